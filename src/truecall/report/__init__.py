"""``truecall report``: results of any verb as one page, as Markdown, as CSV, and as figures for a paper.

`reading.load` makes the data (`data.ReportData`); `html`, `markdown` and `table` write it. Charts and the page need
the extra ``report``; the rest does not.
"""
