"""Write the tables of docs/verdicts.md from the code: `classify.rules` and `stacks.patterns()`.

    python scripts/make_docs.py            # write
    python scripts/make_docs.py --check    # exit 1 where the page differs from the code

A table stands between `<!-- table: NAME -->` and `<!-- end -->`; the text around it is kept.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from truecall import stacks
from truecall.classify.rules import CALL_EMISSIONS, LEGAL, RULES, SEVERITY
from truecall.records import Delivery, Emission
from truecall.stacks.refusals import Refusal

PAGE = Path(__file__).resolve().parents[1] / "docs" / "verdicts.md"
SLOT = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def legal() -> str:
    deliveries = [d for d in Delivery if any(d in allowed for allowed in LEGAL.values())]
    rows = [
        (f"`{emission}`", *("yes" if delivery in LEGAL[emission] else "" for delivery in deliveries))
        for emission in Emission
    ]
    return table(("emission", *(f"`{d}`" for d in deliveries)), rows)


def severity() -> str:
    return "\n".join(f"{place}. `{delivery}`" for place, delivery in enumerate(SEVERITY, 1))


def rules() -> str:
    rows = ((f"`{r.id}`", r.says, str(r.cause), f"`{r.case}`") for r in RULES)
    return table(("rule", "what it says", "cause", "shown by"), rows)


def refusals() -> str:
    rows = [
        (f"`{found.rule}`", found.title, str(found.part), _ran(found), found.change)
        for found in stacks.known_refusals().values()
    ]
    head = ("rule", "what the server says", "part", "did the model run?", "what to change")
    return table(head, rows)


def _ran(found: Refusal) -> str:
    if found.attempted:
        return "yes, and tried to call"
    return {True: "yes", False: "no", None: "unknown"}[found.ran]


def emissions() -> str:
    return ", ".join(f"`{e}`" for e in Emission if e in CALL_EMISSIONS)


TABLES: dict[str, Callable[[], str]] = {
    "legal": legal,
    "severity": severity,
    "rules": rules,
    "refusals": refusals,
    "emissions": emissions,
}


def filled(page: str) -> str:
    """The page with every table made again."""
    return SLOT.sub(lambda slot: f"{slot[1]}{TABLES[slot[2]]()}\n{slot[3]}", page)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where the page differs")
    options = parser.parse_args()
    page = PAGE.read_text("utf-8")
    made = filled(page)
    missing = set(TABLES) - {slot[2] for slot in SLOT.finditer(page)}
    if missing:
        print(f"docs/verdicts.md has no place for: {', '.join(sorted(missing))}", file=sys.stderr)
        return 1
    if made == page:
        return 0
    if options.check:
        print("docs/verdicts.md differs from the code: run scripts/make_docs.py", file=sys.stderr)
        return 1
    PAGE.write_text(made, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
