"""Texts that break off: wherever a call is cut, it stays an attempt and is never taken for another whole call."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_golden import GOLDEN, rows

from truecall.detector import detect

# Where an XML body's only end is the wrapper's, a cut right behind a value can't be told from a missing wrapper.
WRAPPER_ENDS = {"glm", "hunyuan_v3", "k2_horizon"}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.jsonl")), ids=lambda p: p.stem)
def test_every_cut(path: Path) -> None:
    for row in rows(path):
        if not row["id"].endswith(("-single", "-parallel", "-empty_arguments")):
            continue
        raw, tools = row["raw"], row["tools"]
        whole = detect(raw, tools).calls
        seen = False
        for end in range(whole[0].span.start + 1, len(raw)):
            calls = detect(raw[:end], tools).calls
            assert calls or not seen, (row["id"], raw[:end])
            seen = bool(calls)
            for call, label in zip(calls, whole, strict=False):
                if call.well_formed and path.stem not in WRAPPER_ENDS:
                    assert call.arguments == label.arguments, (row["id"], raw[:end])
