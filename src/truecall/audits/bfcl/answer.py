"""An audit's answer in a sentence, and its findings one by one."""

from __future__ import annotations

from truecall.audits.bfcl import Report, RunAudit
from truecall.audits.bfcl.categories import CategoryAudit, Outcome
from truecall.audits.bfcl.gated import GatedCategory
from truecall.audits.bfcl.load import is_irrelevance
from truecall.audits.bfcl.table import Row

NEAR_ZERO = 0.10
_HARNESS = ("name_dots", "dict_type")
_WORDS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")


class Output(Report, frozen=True):
    """What ``--json`` prints: the report with its answer and findings (docs/schemas/audit-bfcl.json)."""

    answer: str = ""
    findings: tuple[str, ...] = ()


def answer(report: Report) -> str:
    """The most important thing that was found; that nothing was found, where it is so."""
    if unreadable(report):
        return f"Can't tell: no entry and no table row could be read, {report.bad_count} bad lines."
    return _leaderboard(report) or _near_zero(report) or _credits(report) or _nothing(report)


def unreadable(report: Report) -> bool:
    """Whether nothing at all could be read."""
    gates = any(found.every.entries for run in report.runs for found in run.gated)
    others = any(found.entries for run in report.runs for found in run.categories)
    return not (report.leaderboards or gates or others)


def _leaderboard(report: Report) -> str:
    for board in report.leaderboards:
        rows = [row for row in board.table.rows if "signature" in row.flags]
        if not rows:
            continue
        shares = sorted(row.share for row in rows if row.share is not None)
        span = _span(shares) if shares else "an unknown part"
        have, get, their = ("has", "gets", "its") if len(rows) == 1 else ("have", "get", "their")
        text = (
            f"{count_word(len(rows))} of {len(board.table.rows)} rows {have} relevance 0 and {get} {span} of "
            f"{their} score from irrelevance"
        )
        return f"{text}{_markup(report, rows)}."
    return ""


def _span(shares: list[float]) -> str:
    low, high = round(shares[0]), round(shares[-1])
    return f"{low} %" if low == high else f"{low}-{high} %"


def _markup(report: Report, rows: list[Row]) -> str:
    """The clause on the rows whose credits carry call markup, where their files are at hand."""
    names = {row.model for row in rows}
    found = [
        (run.row, marker)
        for run in report.runs
        if run.row in names
        for category in run.gated
        if is_irrelevance(category.category) and (marker := top_marker(category))
    ]
    if not found:
        return ""
    parts = [f"({name}) {k} of its {n} credits carry call markup" for name, (_, k, n) in found]
    lead = "in one of them " if len(rows) > 1 else "in it "
    return "; " + lead + "; in another ".join(parts)


def top_marker(category: GatedCategory) -> tuple[str, int, int] | None:
    """(literal marker, credited texts that carry it, credited entries) of the commonest call opening."""
    right = category.credited
    if right is None or not right.entries:
        return None
    for marker, count in right.markers.items():
        if marker != "<tools>":
            return marker, count, right.entries
    return None


def count_word(count: int) -> str:
    """A count at the beginning of a sentence."""
    return _WORDS[count] if count < len(_WORDS) else f"{count:,}"


def _near_zero(report: Report) -> str:
    """The sentence on the category that lost most, of those near 0."""
    found = [
        (_lost(item), text) for run in report.runs for item in run.categories if (text := near_zero(item))
    ]
    return max(found, key=lambda pair: pair[0])[1] if found else ""


def _lost(found: CategoryAudit) -> int:
    """Entries whose loss is not the model's, as far as the files tell."""
    harness = _by_harness(found)
    return harness + sum(found.outcomes.get(name, 0) for name in (Outcome.IN_TEXT, Outcome.REQUEST_FAILED))


def _by_harness(found: CategoryAudit) -> int:
    """Calls that were rejected for how the harness spells names and literals."""
    return sum(found.reasons.get(Outcome.REJECTED, {}).get(name, 0) for name in _HARNESS)


def near_zero(found: CategoryAudit) -> str:
    """The sentence on a category whose score is near 0 for a reason outside the model; else ""."""
    if found.score is None or not found.score[1] or found.score[0] / found.score[1] > NEAR_ZERO:
        return ""
    k, n = found.score
    lost = found.outcomes.get(Outcome.IN_TEXT, 0)
    harness = _by_harness(found)
    failed = found.outcomes.get(Outcome.REQUEST_FAILED, 0)
    empty = found.outcomes.get(Outcome.EMPTY, 0)
    name = f"{found.category} of {found.model}"
    score = f"The score of {100 * k / n:.1f} % ({k}/{n})"
    largest = max(lost, harness, failed)
    if largest * 3 < n:
        if empty * 2 > n:
            return f"{score} in {name} can't be put down to the model: {empty} results are empty, their text lost."
        return ""
    if largest == lost:
        valid = found.valid.get(Outcome.IN_TEXT)
        what = f"{valid} valid calls were" if valid else f"{lost} calls were"
        return f"{score} in {name} is not the model's: {what} left in the text."
    if largest == harness:
        what = f"{harness} calls were rejected for how names or literals are written"
        return f"{score} in {name} is not the model's: {what}."
    return f"{score} in {name} is not the model's: {failed} requests failed and were stored as results."


def _credits(report: Report) -> str:
    malformed = errors = 0
    where = set()
    for run in report.runs:
        for category in run.gated:
            states = (
                category.credited.states if category.credited and is_irrelevance(category.category) else {}
            )
            malformed += states.get("MALFORMED", 0)
            errors += states.get("SERVING_ERROR", 0)
            if states.get("MALFORMED") or states.get("SERVING_ERROR"):
                where.add(run.model)
    if not malformed and not errors:
        return ""
    counts = ((malformed, _UNREAD), (errors, _STORED_ERROR))
    told = " and ".join(_counted(count, names) for count, names in counts if count)
    credited = "was credited as an abstention" if malformed + errors == 1 else "were credited as abstentions"
    return f"{told} {credited} ({', '.join(sorted(where))})."


_UNREAD = ("unread call", "unread calls")
_STORED_ERROR = ("stored request error", "stored request errors")
_IN_TEXT = ("call left in the text", "calls left in the text")


def _counted(count: int, names: tuple[str, str]) -> str:
    return f"{count} {names[count != 1]}"


def _nothing(report: Report) -> str:
    findings_left = findings(report)
    if findings_left:
        return f"{findings_left[0][0].upper()}{findings_left[0][1:]}."
    if not report.runs:
        return "Nothing found in the tables; no result files were at hand."
    if report.bad_count:
        return f"Nothing found in what could be read; {report.bad_count} lines could not."
    return "Nothing found: every credit that these files can settle is an abstention or a right call."


def findings(report: Report) -> list[str]:
    """Every finding as a clause; an empty list means exit code 0."""
    out = []
    for board in report.leaderboards:
        rows = [row.model for row in board.table.rows if "signature" in row.flags]
        if rows:
            out.append(f"relevance 0 beside high irrelevance: {', '.join(rows)}")
        fit = board.table.weighted
        if fit is not None and fit.within < fit.rows:
            out.append(f"{fit.rows - fit.within} rows of {board.table.folder} do not fit the weighted sum")
    for run in report.runs:
        out += _run_findings(run)
    return out


def _run_findings(run: RunAudit) -> list[str]:
    out = []
    for category in run.gated:
        states = category.credited.states if category.credited else {}
        if is_irrelevance(category.category):
            for state, what in (("MALFORMED", _UNREAD), ("SERVING_ERROR", _STORED_ERROR)):
                if states.get(state):
                    told = _counted(states[state], what)
                    out.append(f"{told} credited in {category.category} of {run.model}")
    if run.weighed.reading == "lost":
        out.append(
            f"{run.weighed.empty} empty irrelevance results of {run.model}: the signature of lost calls"
        )
    for found in run.categories:
        for outcome, what in (
            (Outcome.REQUEST_FAILED, _STORED_ERROR),
            (Outcome.IN_TEXT, _IN_TEXT),
        ):
            if found.outcomes.get(outcome):
                told = _counted(found.outcomes[outcome], what)
                out.append(f"{told} in {found.category} of {run.model}")
        harness = _by_harness(found)
        if harness:
            out.append(
                f"{harness} calls rejected for how names or literals are written in {found.category} of {run.model}"
            )
    return out
