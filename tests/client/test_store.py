"""The run folder: whole or not at all, one writer, readable by the user alone, and read back as written."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import stat
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from truecall import store
from truecall.errors import InputError, UsageError
from truecall.records import Exchange, Request, Timing
from truecall.redact import Redactor
from truecall.store import (
    INLINE,
    Place,
    RunFolder,
    find_place,
    latest_preflight,
    load_preflight,
    name_of,
    new_place,
    read_blob,
    read_log,
    save_preflight,
    state_dir,
)

BODY = json.dumps(
    {
        "id": "c1",
        "choices": [{"message": {"role": "assistant", "content": "It is cold in Oslo, 12 degrees."}}],
    }
).encode()


def exchange(
    body: bytes = BODY, sent: bytes = b'{"messages":[{"role":"user","content":"Weather?"}]}'
) -> Exchange:
    request = Request(method="POST", url="http://h/v1/chat/completions", body=sent)
    return Exchange(request=request, status=200, body=body, received=len(body), timing=Timing(started_at=1.0))


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    big = os.urandom(50) * 2000
    with RunFolder(tmp_path / "run") as folder:
        folder.exchange(exchange(), probe="auto")
        folder.append(
            "episode", {"binary": b"\xff\x00", "big": big, "text": "é" * INLINE + "!", "n": [1, {"x": None}]}
        )
        folder.write("card.json", {"model": "m"})
    first, second = read_log(tmp_path / "run")
    assert (first["kind"], first["v"], first["probe"], first["status"]) == ("exchange", 1, "auto", 200)
    assert first["body"] == {"text": BODY.decode()} and abs(first["at"] - time.time()) < 60
    assert second["big"]["size"] == len(big) and read_blob(tmp_path / "run", second["big"]["blob"]) == big
    assert read_blob(tmp_path / "run", second["binary"]["blob"]) == b"\xff\x00"
    assert read_blob(tmp_path / "run", second["text"]["blob"]).decode() == "é" * INLINE + "!"
    assert second["n"] == [1, {"x": None}]
    assert json.loads((tmp_path / "run" / "card.json").read_text()) == {"model": "m"}


def test_the_same_body_is_stored_once(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as folder:
        for _ in range(50):
            folder.exchange(exchange(body=BODY * 500))
    blobs = [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]
    assert len(blobs) == 1 and blobs[0].stat().st_size < len(BODY * 500) / 20


def test_only_the_user_can_read_it(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with RunFolder(tmp_path / "a" / "run") as folder:
            folder.append("note", {"body": b"x" * 9999})
            folder.write("report.json", {})
    finally:
        os.umask(old)
    for path in [tmp_path / "a", *(tmp_path / "a").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_one_writer(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as folder:
        with pytest.raises(UsageError, match="another truecall"):
            RunFolder(tmp_path)
        folder.append("note", {})
    with RunFolder(tmp_path) as folder:
        folder.append("note", {})
    assert len(list(read_log(tmp_path))) == 2


@pytest.mark.parametrize("torn", [b'{"kind":"no', b"\x00" * 70000, b'{"kind":"note"', b"[1]"])
def test_a_torn_line_is_left_out_and_cut_off(tmp_path: Path, torn: bytes) -> None:
    with RunFolder(tmp_path) as folder:
        folder.append("note", {"n": 1})
    with (tmp_path / "log.jsonl").open("ab") as file:
        file.write(torn)
    assert [line["n"] for line in read_log(tmp_path)] == [1]
    with RunFolder(tmp_path) as folder:
        folder.append("note", {"n": 2})
    assert [line["n"] for line in read_log(tmp_path)] == [1, 2]
    assert (tmp_path / "log.jsonl").read_bytes().count(b"\n") == 2


def _write_for_ever(path: str) -> None:
    with RunFolder(Path(path)) as folder:
        for number in range(10**9):
            folder.append("note", {"n": number, "fill": b"x" * 3000})


def test_a_killed_writer_loses_at_most_the_line_it_was_at(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    for _ in range(2):
        before = len(list(read_log(tmp_path))) if (tmp_path / "log.jsonl").exists() else 0
        process = context.Process(target=_write_for_ever, args=(str(tmp_path),))
        process.start()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and (
            not (tmp_path / "log.jsonl").exists() or len(list(read_log(tmp_path))) < before + 20
        ):
            time.sleep(0.02)
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        numbers = [line["n"] for line in read_log(tmp_path)][before:]
        assert len(numbers) >= 20 and numbers == list(range(len(numbers)))
    with RunFolder(tmp_path) as folder:  # the lock died with its holder
        folder.append("note", {"n": -1})
    assert [line["n"] for line in read_log(tmp_path)][-1] == -1


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report.json"
    store.write_private(target, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("truecall.store.folder.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        store.write_private(target, b"new")
    assert target.read_bytes() == b"old" and [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_damaged_blobs_are_told(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as folder:
        digest = folder.put(b"x" * 5000)
        other = folder.put(b"y" * 5000)
    path = tmp_path / "blobs" / digest[:2] / digest[2:]
    path.write_bytes((tmp_path / "blobs" / other[:2] / other[2:]).read_bytes())
    with pytest.raises(InputError, match="not those of its name"):
        read_blob(tmp_path, digest)
    path.write_bytes(b"junk")
    with pytest.raises(InputError, match="damaged"):
        read_blob(tmp_path, digest)
    for bad in ("../../etc/passwd", "0" * 64, ""):
        with pytest.raises(InputError):
            read_blob(tmp_path, bad)


def test_keep_shape_and_none(tmp_path: Path) -> None:
    stream = b'data: {"x":"Oslo"}\n\n'
    for keep in ("shape", "none"):
        with RunFolder(tmp_path / keep, keep=keep, words={"get_weather"}) as folder:
            folder.exchange(exchange())
            folder.exchange(exchange(body=stream))
        raw = (tmp_path / keep / "log.jsonl").read_text()
        assert "Oslo" not in raw and "Weather" not in raw
        first, second = read_log(tmp_path / keep)
        assert first["body"]["size"] == len(BODY) and len(first["body"]["sha256"]) == 64
        assert "shape" not in second["body"]
    message = next(read_log(tmp_path / "shape"))["body"]["shape"]["choices"][0]["message"]
    assert message == {"role": "assistant", "content": "qz qz qzvk qz qzvk, 11 qzvkwjf."}
    assert "shape" not in next(read_log(tmp_path / "none"))["body"]


def test_what_a_model_wrote_never_stops_the_writer(tmp_path: Path) -> None:
    """Lone surrogates in names, and arguments that are nested deeper than Python goes."""
    deep: Any = "x"
    for _ in range(900):
        deep = [deep]
    with RunFolder(tmp_path / "run") as folder:
        folder.append("verdict", {"n": 1, "arguments": {"\ud800": "\ud800"}}, plain=True)
        folder.append("verdict", {"n": 2, "arguments": deep, "why": "w" * 9000}, plain=True)
        folder.write("report.json", {"\ud800": ("\ud800",)})
    one, two = read_log(tmp_path / "run")
    assert one["arguments"] == {"?": "?"} and two["n"] == 2 and two["arguments"] is None
    assert msgspec.json.decode((tmp_path / "run" / "report.json").read_bytes()) == {"\ufffd": ["\ufffd"]}


def test_preflights_have_short_ids_in_order(tmp_path: Path) -> None:
    assert latest_preflight(tmp_path) is None
    first = save_preflight({"verdict": "READY"}, home=tmp_path)
    second = save_preflight({"verdict": "BROKEN"}, home=tmp_path)
    assert (first, second) == ("0001", "0002") and latest_preflight(tmp_path) == second
    for name in ("0002", "2", "preflight/0002", str(tmp_path / "preflight" / "0002")):
        assert load_preflight(name, home=tmp_path) == {"verdict": "BROKEN", "id": "0002"}
    unfinished = new_place(Place.PREFLIGHT, tmp_path).name
    assert unfinished == "0003" and latest_preflight(tmp_path) == second


def test_ids_are_given_once(tmp_path: Path) -> None:
    taken: list[str] = []
    threads = [
        threading.Thread(target=lambda: taken.append(new_place(Place.PREFLIGHT, tmp_path).name))
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(taken)) == 20


def test_a_report_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        save_preflight({"bad": object()}, home=tmp_path)
    assert list((tmp_path / "preflight").iterdir()) == []


def test_a_baseline_is_a_file(tmp_path: Path) -> None:
    baseline = tmp_path / "base.json"
    baseline.write_bytes(msgspec.json.encode({"findings": []}))
    assert load_preflight(baseline, home=tmp_path) == {"findings": []}
    for content in (b"{", b"[]", b"\xff", b"[" * 100_000):
        baseline.write_bytes(content)
        with pytest.raises(InputError):
            load_preflight(baseline, home=tmp_path)
    for name in ("0999", str(tmp_path / "none.json"), str(tmp_path)):
        with pytest.raises(InputError):
            load_preflight(name, home=tmp_path)


def test_secrets_in_a_report_are_replaced(tmp_path: Path) -> None:
    key = 'sk-"quoted"/0123'
    ident = save_preflight(
        {"findings": [{"got": f"key {key}", key: 1}]}, redactor=Redactor([key]), home=tmp_path
    )
    assert load_preflight(ident, home=tmp_path)["findings"] == [{"got": "key [redacted]", "[redacted]": 1}]


def test_where_results_are_kept() -> None:
    assert state_dir({"TRUECALL_HOME": "/a"}) == Path("/a")
    assert state_dir({"XDG_STATE_HOME": "/b"}) == Path("/b/truecall")
    assert state_dir({}) == Path("~/.local/state/truecall").expanduser()


def test_a_place_that_cannot_be_written_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="TRUECALL_HOME"):
        new_place(Place.PREFLIGHT, tmp_path / "file")
    with pytest.raises(UsageError, match="can't be written"):
        RunFolder(tmp_path / "file" / "run")


def test_a_bare_id_that_two_kinds_have_must_be_told_apart(tmp_path: Path) -> None:
    run, record = (new_place(place, tmp_path) for place in (Place.RUN, Place.RECORD))
    with pytest.raises(InputError, match="1: there is more than one; say run/0001 or record/0001"):
        find_place("1", list(Place), tmp_path)
    assert find_place("record/1", list(Place), tmp_path) == record and name_of(run, tmp_path) == "run/0001"
    with pytest.raises(InputError, match="preflight/1: no preflight of that id"):
        find_place("preflight/1", list(Place), tmp_path)
    assert find_place("some/where", list(Place), tmp_path) == Path("some/where")
