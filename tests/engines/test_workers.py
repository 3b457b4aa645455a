"""Workers that die, hang and talk nonsense: counted, replaced, and the run goes on."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from truecall.engines import Health, Job, Launch, Pool, Worker
from truecall.engines import worker as workers
from truecall.errors import CannotTell

FAKE = str(Path(__file__).with_name("fake_worker.py"))
CALL = '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'
TOOLS: list[Any] = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


def fake(*words: str) -> Launch:
    return Launch(engine="fake", python=sys.executable, script=FAKE, words=words)


def jobs(*texts: str, parser: str = "plain") -> list[Job]:
    return [Job(parser, text, TOOLS) for text in texts]


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker(fake(), text_seconds=2) as made:
        yield made


def states(worker: Worker, *texts: str) -> list[str]:
    return [parse.state for parse in worker.run(jobs(*texts))]


def test_says_what_it_is(worker: Worker) -> None:
    hello = worker.hello()
    assert (hello.engine, hello.version, hello.parsers) == (
        "fake",
        "1.0",
        ("blind", "plain", "split", "strict"),
    )
    assert hello.network in ("cut", "refused")


def test_gives_calls_and_the_text_that_is_left(worker: Worker) -> None:
    (parse,) = worker.run(jobs(f"Here: {CALL}"))
    assert [(call.name, call.arguments) for call in parse.calls] == [("f", '{"x": 1}')]
    assert parse.content == "Here: "
    assert parse.seconds > 0


@pytest.mark.parametrize("word", ["DIE", "EXIT"])
def test_a_text_that_kills_the_worker_is_a_result(worker: Worker, word: str) -> None:
    assert states(worker, "a", CALL, word, CALL, "b") == ["parsed", "parsed", "crashed", "parsed", "parsed"]
    assert worker.health.crashed == 2  # in the batch, and once more to tell which text it was
    assert worker.health.started == 3


def test_a_text_on_which_it_hangs_is_a_result() -> None:
    with Worker(fake(), text_seconds=0.5) as worker:
        assert states(worker, CALL, "HANG", CALL) == ["parsed", "hung", "parsed"]
        assert worker.health.hung == 2


def test_a_killed_worker_is_replaced_and_costs_no_text() -> None:
    with Worker(fake(), text_seconds=5) as worker:
        worker.hello()
        pid = worker.pid
        assert pid is not None
        killer = threading.Timer(0.1, os.kill, (pid, signal.SIGKILL))
        killer.start()
        done = list(worker.run(jobs(*["SLEEP" + CALL] * 60)))
        killer.join()
        assert [parse.state for parse in done] == ["parsed"] * 60
        assert worker.health == Health(started=2, crashed=1)


def test_noise_is_skipped_and_counted(worker: Worker) -> None:
    assert states(worker, "NOISE" + CALL, CALL) == ["parsed", "parsed"]
    assert worker.health.noise == 4


def test_what_an_engine_prints_goes_nowhere(worker: Worker) -> None:
    assert states(worker, "PRINT" + CALL, CALL) == ["parsed", "parsed"]
    assert worker.health.noise == 0


def test_ten_megabytes_pass(worker: Worker) -> None:
    large = "x" * 10_000_000 + CALL
    first, second = worker.run(jobs(large, CALL))
    assert first.state == "parsed" and len(first.content or "") == 10_000_000
    assert second.state == "parsed"


def test_what_is_larger_than_is_taken_is_not_sent(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "MAX_TEXT", 100)
    assert states(worker, CALL, "y" * 101, CALL) == ["parsed", "too_large", "parsed"]
    assert worker.health.too_large == 1


def test_an_exception_is_a_result(worker: Worker) -> None:
    one, two = worker.run(jobs("RAISE", CALL))
    assert (one.state, one.detail) == ("raised", "ValueError: the parser stumbled")
    assert two.state == "parsed"


def test_streams_in_pieces(worker: Worker) -> None:
    job = Job("split", CALL, TOOLS, (3, 9))
    whole, cut = worker.run([job._replace(cuts=None), job])
    assert len(whole.calls) == 1 and len(cut.calls) == 0


def test_a_parser_without_streaming_says_so() -> None:
    with Worker(fake("--whole")) as worker:
        (parse,) = worker.run([Job("plain", CALL, TOOLS, (3,))])
        assert parse.state == "no_stream"


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("--missing", "not installed"),
        ("--crash", "exit code 3"),
        ("--network", "PermissionError|unreachable"),
    ],
)
def test_one_that_does_not_start_says_why(word: str, said: str) -> None:
    with Worker(fake(word)) as worker, pytest.raises(CannotTell, match=said):
        worker.hello()


def test_an_interpreter_that_is_not_there() -> None:
    launch = Launch(engine="fake", python="/nowhere/python", script=FAKE)
    with Worker(launch) as worker, pytest.raises(CannotTell, match="can't be run"):
        worker.hello()


def test_gets_neither_keys_nor_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    made = workers._environment("/somewhere")
    assert made["HOME"] == "/somewhere"
    assert not any("secret" in value or "KEY" in name for name, value in made.items())


def test_lone_surrogates_and_any_character_arrive(worker: Worker) -> None:
    text = "Ærø 北京 \ud800 \u2028 \x00"
    (parse,) = worker.run(jobs(text))
    assert parse.content == text.replace("\ud800", "?")


def test_tool_lists_are_sent_once_and_forgotten(worker: Worker) -> None:
    lists: list[list[Any]] = [
        [{"type": "function", "function": {"name": f"f{n}", "parameters": {}}}] for n in range(200)
    ]
    texts = [CALL.replace('"f"', f'"f{n}"') for n in range(200)]
    for start in (0, 150, 0):
        batch = [Job("strict", texts[n], lists[n]) for n in range(start, start + 50)]
        assert all(len(parse.calls) == 1 for parse in worker.run(batch))
    assert len(worker._tools) <= workers._TOOL_LISTS


def test_a_pool_keeps_the_order_and_uses_all_its_workers() -> None:
    with Pool(fake(), 2, text_seconds=2) as pool:
        pool.warm()
        texts = [f'<tool_call>{{"name": "f", "arguments": {{"x": {n}}}}}</tool_call>' for n in range(1000)]
        texts[500] = "DIE"
        done = list(pool.run(jobs(*texts)))
        assert [i for i, parse in enumerate(done) if parse.state != "parsed"] == [500]
        for n, parse in enumerate(done):
            assert n == 500 or parse.calls[0].arguments == f'{{"x": {n}}}'
        assert pool.health.started == 4


def test_closing_a_pool_ends_its_processes() -> None:
    with Pool(fake(), 2) as pool:
        pool.warm()
        pids = pool.pids
        assert len(pids) == 2
    deadline = time.monotonic() + 5
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
