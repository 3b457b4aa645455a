"""The list of defects in the package's docstring is the list in the code."""

from __future__ import annotations

import re
from pathlib import Path

from truecall import wire


def test_defects_are_listed() -> None:
    folder = Path(wire.__file__).parent
    code = "\n".join(
        path.read_text() for path in folder.glob("*.py") if path.name not in ("__init__.py", "request.py")
    )
    used = set(re.findall(r'defects\.add\(\s*"(\w+)"', code)) | set(re.findall(r'defects=\("(\w+)",', code))
    used |= set(re.findall(r'_nothing\(api, "(\w+)"\)', code)) | {
        "too_deep",
        "truncated_json",
        "invalid_utf8",
    }
    used |= set(re.findall(r'"(\w+)" if \w+ is NOTHING else "\w+"', code)) - {"not_json"}
    listed = set(re.findall(r"^(\w+) +\S", wire.__doc__ or "", re.MULTILINE))
    assert {name for name in listed if "_" in name or name == "overflow"} >= used
    assert all(name in code for name in listed if "_" in name)
