"""Files that are one JSON value: their entries one at a time, in bounded memory, up to a limit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from truecall.errors import InputError
from truecall.sources import files
from truecall.sources.files import elements, fields, plain, read_whole


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b'[1, {"a": [2]}, "x", null]', [1, {"a": [2]}, "x", None]),
        (b"[]", []),
        (b'{"a": 1}', []),
        (b"[1, 2", []),
        (b"", []),
        (b'["\\ud800", -Infinity]', ["\ud800", float("-inf")]),  # what Python's json writes
        ([1, 2], [1, 2]),
        (None, []),
    ],
)
def test_elements(data: Any, found: list[Any]) -> None:
    assert list(elements(data)) == found


def test_fields_stay_undecoded_until_they_are_asked_for() -> None:
    value = fields(b'{"info": {"model": "m"}, "runs": [{"id": 1}, {"id": 2}]}')
    assert all(isinstance(part, msgspec.Raw) for part in value.values())
    assert plain(fields(value["info"])["model"]) == "m"
    assert list(elements(value["runs"])) == [{"id": 1}, {"id": 2}]
    assert fields(b'{"reward": NaN, "n": 1}')["n"] == 1
    assert fields(b"[1]") == fields(b'{"cut": ') == fields(None) == {}


def test_a_file_over_the_limit_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "big.json"
    path.write_bytes(b"[" + b" " * (2 << 20) + b"]")
    monkeypatch.setattr(files, "MAX_WHOLE", 1 << 20)
    with pytest.raises(InputError, match="larger than 1 MB"):
        read_whole(str(path))


READ = """
import re, sys
from truecall.sources.base import Options
from truecall.sources.taubench import TauBenchSource

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10

before = peak()
turns = sum(1 for _ in TauBenchSource().read(sys.argv[1], "x", Options()))
print(turns, peak() - before)
"""


def test_memory_is_that_of_the_bytes_and_one_entry(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    turns = [
        {"role": "user", "content": "Do it."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "done"},
    ]
    entry = json.dumps({"task_id": 1, "reward": 1.0, "info": {}, "traj": turns * 50, "trial": 0})
    path = tmp_path / "tau.json"
    path.write_text("[" + ",\n".join([entry] * 2000) + "]")
    made = subprocess.run([sys.executable, "-c", READ, path], capture_output=True, text=True, check=True)
    count, grown = map(int, made.stdout.split())
    assert count == 2000 * 50
    assert path.stat().st_size > 20 << 20 and grown < 1.5 * path.stat().st_size
