"""Whole scans: workers, compressed files, shards, samples, digests, and the command line."""

from __future__ import annotations

import gzip
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.scan import chats
from tests.scan.chats import plain
from tests.sources.samples import DATA, TEXT_CALL, TOOLS, lines
from truecall.cli import execute as command
from truecall.errors import CannotTell, InputError, UsageError
from truecall.scan import ScanOptions, Tally, scan
from truecall.scan import run as running
from truecall.scan import saved as results
from truecall.scan.summary import Report, episode_mean, report
from truecall.scan.units import Sniffed, pieces, sniffed
from truecall.sources import files


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUECALL_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scan") / "chat.jsonl"
    path.write_bytes(chats.lines(400))
    return path


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truecall.sources.files.BLOCK", 10_000)
    monkeypatch.setattr("truecall.scan.units.STEP", 10_000)
    monkeypatch.setattr("truecall.scan.units._SMALL_BLOCK", 1_000)


def numbers(tally: Tally) -> dict[str, Any]:
    found: Report = report(tally, detector="1")
    return {
        "rates": found.total.rates,
        "delivery": found.total.delivery,
        "bad": found.bad,
        "turns": found.total.turns,
    }


# --------------------------------------------------------------------------- blocks and workers


def test_blocks_add_up_and_keep_their_lines(chat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = scan([str(chat)], ScanOptions(by=("model",)))
    for block in (1_000, 7_777, 100_000):
        monkeypatch.setattr("truecall.scan.units.STEP", block)
        cut = scan([str(chat)], ScanOptions(by=("model",)))
        assert plain(cut) == plain(whole), block
    text = chat.read_bytes().split(b"\n")
    for kept in whole.examples.values():
        for _, example in kept:
            line = text[(example.place.line or 0) - 1]
            assert json.loads(line)["messages"] and chat.read_bytes()[example.place.offset or 0 :].startswith(
                line
            )


def test_workers_and_compressed_files_give_the_same(
    chat: Path, tmp_path: Path, small_blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truecall.scan.run._ALONE", 0)
    data = chat.read_bytes()
    whole = numbers(scan([str(chat)]))
    assert numbers(scan([str(chat)], ScanOptions(workers=2))) == whole
    for name, packed in (("c.gz", gzip.compress(data)), ("c.zst", zstandard.compress(data))):
        (tmp_path / name).write_bytes(packed)
        for workers in (1, 2):
            assert numbers(scan([str(tmp_path / name)], ScanOptions(workers=workers))) == whole, (
                name,
                workers,
            )


def test_a_worker_that_dies_costs_only_its_piece(
    chat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ScanOptions(workers=2)
    found = [sniffed(str(chat))]
    todo = list(pieces(found, workers=2))
    deadly = todo[0]._replace(path=str(tmp_path / "deadly"), source="deadly")
    done = list(_with_deadly(options, [todo[0], deadly, todo[0]]))
    assert [d.tally.turns > 0 for d in done] == [True, False, True]
    assert "died" in done[1].tally.bad[0].reason


def _with_deadly(options: ScanOptions, todo: list[Any]) -> Any:
    pool = running._Pool(options.by, options.reading(), 2, False)
    pool._new = lambda workers: running.ProcessPoolExecutor(  # type: ignore[method-assign]
        workers, mp_context=running.get_context("spawn"), initializer=_deadly_start, initargs=pool._start
    )
    pool._pool.shutdown()
    pool._pool = pool._new(2)
    return pool.run(iter(todo))


def _deadly_start(*start: Any) -> None:
    from truecall.sources import SOURCES

    class Deadly:
        name, lines = "deadly", False

        def read(self, *_: Any) -> Any:
            os.kill(os.getpid(), signal.SIGKILL)

    SOURCES["deadly"] = Deadly()  # type: ignore[assignment]
    running._begin(*start)


def test_long_lines_and_a_byte_order_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truecall.sources.files.BLOCK", 100)
    monkeypatch.setattr("truecall.sources.files.MAX_LINE", 1000)
    path = tmp_path / "x"
    path.write_bytes(b"\xef\xbb\xbfa\n\n" + b"b" * 5000 + b"\nccc\n" + b"d" * 500)
    found = list(files.lines(str(path)))
    assert [(line.number, line.data[:1]) for line in found] == [
        (1, b"a"),
        (2, b""),
        (3, b"\0"),
        (4, b"c"),
        (5, b"d"),
    ]
    data = path.read_bytes()
    for line in found:
        if line.data and line.data != files.TOO_LONG:
            assert data[line.offset :].removeprefix(b"\xef\xbb\xbf").startswith(line.data)
    for cut in (1, 3, 5, 7, 5004, 5007, 5011):
        both = [*files.lines(str(path), 0, cut), *files.lines(str(path), cut)]
        assert [line.offset for line in both] == [line.offset for line in found], cut


# --------------------------------------------------------------------------- parts of a collection


def test_shards_add_up_to_the_whole(chat: Path, small_blocks: None) -> None:
    whole = scan([str(chat)], ScanOptions(by=("model",)))
    parts = []
    for index in (1, 2, 3):
        options = ScanOptions(by=("model",), shard=(index, 3))
        parts.append((f"shard {index}", results.result(scan([str(chat)], options), options)))
    assert sum(one.tally.turns > 0 for _, one in parts) == 3
    merged = results.merge(parts)
    assert numbers(merged.tally) == numbers(whole) and not merged.notes
    assert results.merge(parts[:2]).notes == ("shards 3 of 3 are missing",)
    with pytest.raises(UsageError, match="already"):
        results.merge([parts[0], parts[0]])
    other = ScanOptions(by=("step",), shard=(2, 3))
    with pytest.raises(UsageError, match="by"):
        results.merge([parts[0], ("x", results.result(scan([str(chat)], other), other))])


@pytest.mark.parametrize("blocks", [False, True])
def test_a_sample_is_a_share_and_always_the_same(
    chat: Path, blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if blocks:
        monkeypatch.setattr("truecall.scan.units._SMALL_BLOCK", 1_000)
    whole = scan([str(chat)])
    one = scan([str(chat)], ScanOptions(sample=0.3, seed=1))
    assert plain(one) == plain(scan([str(chat)], ScanOptions(sample=0.3, seed=1)))
    assert plain(one) != plain(scan([str(chat)], ScanOptions(sample=0.3, seed=2)))
    assert 0.2 < one.turns / whole.turns < 0.4


def test_only_changed_files_are_read_again(
    tmp_path: Path, chat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in ("a.jsonl", "b.jsonl"):
        (logs / name).write_bytes(chats.lines(50, seed=ord(name[0])))
    read: list[str] = []

    def noted(found: list[Sniffed], options: ScanOptions) -> Any:
        read.extend(file.path for file in found)
        return running.counted(found, options)

    monkeypatch.setattr(results, "counted", noted)
    found = [sniffed(path) for path in files.expand([str(logs)])]
    first = results.scan_incremental(found, ScanOptions(), tmp_path / "cache")
    assert len(read) == 2 and numbers(first) == numbers(scan([str(logs)]))
    again = results.scan_incremental(found, ScanOptions(), tmp_path / "cache")
    assert len(read) == 2 and plain(again) == plain(first)
    (logs / "b.jsonl").write_bytes(chats.lines(60, seed=3))
    found = [sniffed(path) for path in files.expand([str(logs)])]
    changed = results.scan_incremental(found, ScanOptions(), tmp_path / "cache")
    assert read[2:] == [str(logs / "b.jsonl")] and numbers(changed) == numbers(scan([str(logs)]))
    results.scan_incremental(found, ScanOptions(tools=TOOLS), tmp_path / "cache")
    assert len(read) == 5  # other tools: other counts


def test_a_tally_goes_through_json(chat: Path) -> None:
    tally = scan([str(chat), str(DATA / "verl_400.jsonl")], ScanOptions(by=("model", "step")))
    again = Tally.from_plain(json.loads(json.dumps(tally.plain())))
    assert plain(again) == plain(tally) and report(again, detector="1") == report(tally, detector="1")


# --------------------------------------------------------------------------- numbers


def test_rates_of_a_known_file(tmp_path: Path) -> None:
    leak = {
        "messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": TEXT_CALL}],
        "tools": TOOLS,
    }
    text = {"messages": [{"role": "assistant", "content": "No."}], "tools": TOOLS}
    dead = {"messages": [{"role": "assistant", "content": "Error code: 500 - x"}], "tools": TOOLS}
    bare = {"messages": [{"role": "assistant", "content": "No."}], "tools": []}
    path = tmp_path / "x.jsonl"
    path.write_text(lines(*[leak] * 3, *[text] * 5, *[dead] * 2, bare))
    found = report(scan([str(path)]), detector="1").total
    assert (found.turns, found.eligible) == (11, 10)
    k_n = {name: (rate.k, rate.unknown, rate.n) for name, rate in found.rates.items()}
    assert k_n["emitted"] == k_n["emitted_valid"] == k_n["censored"] == (3, 0, 8)
    assert k_n["naive"] == (0, 0, 10) and k_n["non_response"] == (2, 0, 10)
    assert found.rates["censored"].value == 3 / 8
    low, high = found.rates["censored"].low, found.rates["censored"].high
    assert low is not None and high is not None
    assert (round(low, 4), round(high, 4)) == (
        0.1368,
        0.6943,
    )  # statsmodels: proportion_confint(3, 8, method="wilson")
    assert found.errors == {"server_error: turn.error_text": 2}


def test_texts_that_the_log_cut_are_unknown(tmp_path: Path) -> None:
    def entry(text: str) -> Any:
        return {"messages": [{"role": "assistant", "content": text}], "tools": TOOLS}

    path = tmp_path / "x.jsonl"
    path.write_text(lines(*[entry("x" * 4000)] * 3, *[entry("y" * n) for n in (10, 1000, 300)]))
    found = report(scan([str(path)]), detector="1")
    assert found.total.capped == 3 and found.total.rates["emitted"].unknown == 3
    assert found.total.rates["emitted"].value is None
    assert any("at 4,000 characters" in line for line in found.limits)
    path.write_text(lines(*[entry("x" * 4000)] * 3, entry("y" * 5001)))  # a longer text: 4,000 was no cap
    assert report(scan([str(path)]), detector="1").total.capped == 0


def test_episodes_by_hand() -> None:
    found = episode_mean({(1, 2, 0): 2, (0, 4, 0): 1, (3, 3, 0): 1})
    assert found is not None and found.mean == pytest.approx((0.5 + 0.5 + 0 + 1) / 4)
    assert found.low is not None and found.high is not None and 0 <= found.low < found.mean < found.high <= 1
    two = episode_mean({(1, 2, 0): 2})
    assert two is not None and two.low is None and two.reason == "under three episodes"
    assert episode_mean({(1, 1, 0): 50}) is None
    open_ended = episode_mean({(1, 2, 1): 4})
    assert open_ended is not None and (open_ended.mean, open_ended.mean_if_unknown_valid) == (0.5, 1.0)


def test_cold_start_by_step(tmp_path: Path) -> None:
    def entry(step: int, *, seen: bool) -> Any:
        calls = [{"id": "c", "function": {"name": "get_weather", "arguments": '{"city": "x"}'}}]
        lost = [{"role": "assistant", "content": TEXT_CALL}, {"role": "user", "content": "?"}]
        kept = [{"role": "assistant", "content": None, "tool_calls": calls}, {"role": "tool", "content": "x"}]
        return {"messages": kept if seen else lost, "tools": TOOLS, "step": step}

    path = tmp_path / "x.jsonl"
    path.write_text(lines(*[entry(0, seen=False)] * 6, *[entry(100, seen=True)] * 6))
    found = report(scan([str(path)], ScanOptions(by=("step",))), detector="1")
    assert [(one.group["step"], one.cold_start) for one in found.groups] == [("0", True), ("100", False)]
    assert "none is accepted in step 0" in found.headline


def test_many_groups_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truecall.scan.tally.MAX_GROUPS", 3)
    entries = [
        {"messages": [{"role": "assistant", "content": "No."}], "tools": TOOLS, "model": f"m{n}"}
        for n in range(9)
    ]
    path = tmp_path / "x.jsonl"
    path.write_text(lines(*entries))
    tally = scan([str(path)], ScanOptions(by=("model",)))
    assert len(tally.groups) == 4 and tally.turns == 9 and tally.groups[("(other)",)].total() == 6


# --------------------------------------------------------------------------- the command


def test_command(chat: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["scan", str(chat), "--by", "model", "-o", str(tmp_path / "out.json")]) == 1
    shown = capsys.readouterr()
    assert "lost one before it came out of the interface" in shown.out.splitlines()[0]
    assert f"{chat}:" in shown.out and "out.json" in shown.err
    assert results.read(tmp_path / "out.json").tally.turns > 500
    assert command(["scan", str(chat), "--json", "--fail-on", "never"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema_version"] == 1 and data["total"]["rates"]["censored"]["k"] > 0 and data["bad"] > 0
    assert command(["scan", str(chat), "--csv", "--by", "model,step", "--fail-on", "bad"]) == 1
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].startswith("model,step,turns,eligible,emitted_k") and len(rows) > 4


def test_command_entries_expand_every_count(
    chat: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "entries.jsonl"
    command(["scan", str(chat), "--entries", str(target), "--json"])
    total = json.loads(capsys.readouterr().out)["total"]
    entries = [json.loads(line) for line in target.read_text().splitlines()]
    counted = [e for e in entries if e["eligible"] is not False]
    assert len(entries) == total["turns"] and len(counted) == total["eligible"]
    leaked = [e for e in counted if e["delivery"] == "leaked"]
    assert len(leaked) == total["delivery"]["leaked"] and all(e["offset"] is not None for e in leaked)


def test_command_shards_and_merge(chat: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for index in (1, 2):
        command(["scan", str(chat), "--shard", f"{index}/2", "-o", str(tmp_path / f"{index}.json"), "--json"])
    capsys.readouterr()
    assert command(["merge", str(tmp_path / "1.json"), str(tmp_path / "2.json"), "--json"]) == 1
    merged = json.loads(capsys.readouterr().out)
    command(["scan", str(chat), "--json"])
    whole = json.loads(capsys.readouterr().out)
    assert merged["total"] == whole["total"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["no/such/file"],
        ["{chat}", "--sample", "2"],
        ["{chat}", "--shard", "3/2"],
        ["{chat}", "--tools", "{chat}"],
        ["{empty}"],
    ],
)
def test_command_mistakes(
    chat: Path, tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "notes").write_text("hello")
    filled = [a.format(chat=chat, empty=empty) for a in arguments]
    assert command(["scan", *filled]) == 2
    assert capsys.readouterr().err.startswith("truecall: ")


def test_paths(tmp_path: Path) -> None:
    for name in (
        "a/x.jsonl",
        "a/.hidden",
        "a/note.md",
        "b/y.jsonl",
        "run/log.jsonl",
        "run/card.json",
        "run/blobs/aa/bb",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    found = [str(Path(p).relative_to(tmp_path)) for p in files.expand([str(tmp_path)])]
    assert found == ["a/x.jsonl", "b/y.jsonl", "run/log.jsonl"]
    assert len(files.expand([str(tmp_path / "*" / "*.jsonl"), str(tmp_path / "a" / "x.jsonl")])) == 3
    with pytest.raises(InputError):
        files.expand([str(tmp_path / "*.none")])
    with pytest.raises(CannotTell):
        scan([str(tmp_path / "a")])


def test_a_damaged_result_is_told(tmp_path: Path) -> None:
    for text in ("", "{}", '{"kind": "scan", "format": 1}', "[]"):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(InputError, match=r"x\.json"):
            results.read(tmp_path / "x.json")
