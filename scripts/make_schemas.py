"""Writes the published JSON schemas of truecall's outputs to docs/schemas/ (``--check``: only compare).

python scripts/make_schemas.py [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from truecall.annotate.report import Output as AnnotateOutput
from truecall.audits.bfcl.answer import Output
from truecall.audits.tau import TauOutput
from truecall.cli.dialects import DialectsOutput
from truecall.engines.registry import EnginesOutput
from truecall.preflight.beside import Beside
from truecall.preflight.report import Report
from truecall.proxy.session import Outcome as RecordOutput
from truecall.records import Detection, Verdict
from truecall.replay.matrix import MatrixOutput, TemplatesOutput
from truecall.replay.tally import Report as ReplayReport
from truecall.run.output import CardOutput, CompareOutput, RunOutput
from truecall.scan.summary import Report as ScanReport

FOLDER = Path(__file__).parent.parent / "docs" / "schemas"
SCHEMAS = {
    "annotate": AnnotateOutput,
    "audit-bfcl": Output,
    "audit-tau": TauOutput,
    "card": CardOutput,
    "compare": CompareOutput,
    "detection": Detection,
    "dialects": DialectsOutput,
    "engines": EnginesOutput,
    "matrix": MatrixOutput,
    "matrix-templates": TemplatesOutput,
    "preflight": Report,
    "preflight-beside": Beside,
    "record": RecordOutput,
    "replay": ReplayReport,
    "run": RunOutput,
    "scan": ScanReport,
    "verdict": Verdict,
}


def text(kind: type) -> str:
    """The schema of a record type, as it is published."""
    return msgspec.json.format(msgspec.json.encode(msgspec.json.schema(kind)), indent=2).decode() + "\n"


def main() -> int:
    stale = []
    for name, kind in SCHEMAS.items():
        path = FOLDER / f"{name}.json"
        if "--check" in sys.argv[1:]:
            stale += [] if path.exists() and path.read_text("utf-8") == text(kind) else [path.name]
        else:
            FOLDER.mkdir(parents=True, exist_ok=True)
            path.write_text(text(kind), "utf-8")
    if stale:
        print(f"out of date: {', '.join(stale)}; run python scripts/make_schemas.py")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
