"""truecall: which of model, serving stack and harness lost a tool call.

Public names are loaded on first use, so that ``import truecall`` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "detect": "truecall.detector",
    "Detector": "truecall.detector",
    "gate": "truecall.audits.gate",
    "judge": "truecall.classify",
    "Call": "truecall.records",
    "Detection": "truecall.records",
    "Verdict": "truecall.records",
}

__all__ = ["Call", "Detection", "Detector", "Verdict", "__version__", "detect", "gate", "judge"]

if TYPE_CHECKING:
    from truecall.audits.gate import gate as gate
    from truecall.classify import judge as judge
    from truecall.detector import Detector as Detector
    from truecall.detector import detect as detect
    from truecall.records import Call as Call
    from truecall.records import Detection as Detection
    from truecall.records import Verdict as Verdict


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'truecall' has no attribute {name!r}")
