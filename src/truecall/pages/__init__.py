"""What all pages for people share: templates, style, the content security policy, and model text made safe.

Foreign text reaches a page in one of two ways only: through a template, which escapes it, or through
:func:`marked`, which also shows the characters that can't be seen. No page asks the network for anything.
"""

from truecall.pages.html import SERVED_POLICY, asset, environment, one_file
from truecall.pages.text import Mark, marked, marks_of, shown

__all__ = ["SERVED_POLICY", "Mark", "asset", "environment", "marked", "marks_of", "one_file", "shown"]
