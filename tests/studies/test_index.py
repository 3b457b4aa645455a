"""The index of a run folder: the same turns as the log, whatever the folder is and whatever happened to it."""

from __future__ import annotations

import json
import sqlite3
import stat
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.proxy.conftest import recording
from tests.proxy.upstream import WEATHER
from tests.studies.conftest import study
from truecall.errors import InputError
from truecall.records import EvidenceTier, Exchange, Request, Timing
from truecall.store import RunFolder, index_file, read_log
from truecall.store.history import Bodies
from truecall.store.index import COLUMNS, Index, open_index
from truecall.store.index_file import NAME


def rows(index: Index) -> list[dict[str, Any]]:
    """All rows without their ids, which change when an index is made again."""
    return [
        {n: getattr(row, n) for n in row.__struct_fields__ if n != "id"} for row in index.page(limit=10_000)
    ]


async def test_a_study_has_a_row_for_each_turn_with_its_verdict(player: Any, play: Any) -> None:
    server = await player("native")
    result, _ = await play(study(conditions=["native", "text_tools"]), server.base_url)
    turns = [
        (arm.name, e, n, t) for arm in result.arms for e in arm.episodes for n, t in enumerate(e.turns, 1)
    ]
    with open_index(result.path) as index:
        assert index.count() == len(turns) > 20 and index.bad == 0
        for arm, episode, number, turn in turns:
            row = index.find(f"{arm}|{episode.item}|{episode.seed}||{number}")
            assert row is not None and row.condition == arm and row.task == "chain"
            assert (row.emission, row.delivery, row.rule) == (turn.emission, turn.delivery, turn.rule)
            assert row.lost == turn.flags.well_formed_lost and row.model == "player" and row.status == 200
            taken = "observed" if turn.observed else "executed" if turn.executed else "unknown"
            assert row.uptake == taken
        for column in COLUMNS:
            if column != "defect":
                assert sum(count for _, count in index.values(column)) == len(turns), column


async def test_a_turn_is_put_together_again(player: Any, play: Any) -> None:
    server = await player("native")
    result, _ = await play(study(), server.base_url)
    bodies = Bodies(result.path)
    logged = [line for line in read_log(result.path) if line["kind"] == "exchange"]
    with open_index(result.path) as index:
        for line, row in zip(logged, index.page(), strict=True):
            turn = index.turn(row.id)
            assert turn.faults == () and turn.request == bodies.body(line["request"]["body"])
            assert turn.line == line and turn.exchange is not None and turn.response is not None
            assert turn.exchange.body.decode() == line["body"]["text"]
            assert {tool["function"]["name"] for tool in turn.tools or ()} >= {"open_box", "submit"}
            assert turn.verdict is not None and turn.verdict.calls[0].surfaced is not None
            assert turn.judged() == turn.verdict  # a verdict can always be made again
        first = index.page(limit=1)[0]
        earlier, later = index.beside(first)
        assert earlier is None and later is not None and later.position == 2
        assert index.beside(later)[0] == first
        with pytest.raises(KeyError):
            index.turn(10**6)


async def test_what_the_model_wrote_is_marked_and_found(player: Any, play: Any) -> None:
    server = await player("leaks")
    result, _ = await play(study(conditions=["native"]), server.base_url)
    with open_index(result.path) as index:
        [(delivery, n)] = index.values("delivery")
        assert (
            delivery == "leaked" and n == index.count({"delivery": "leaked", "lost": True}) == index.count()
        )
        turns = [index.turn(row.id) for row in index.page()]
        names = Counter(turn.verdict.calls[0].name for turn in turns if turn.verdict is not None)
        assert {name: index.count(text=name) for name in names} == names and len(names) > 1
        name = next(iter(names))
        assert index.count(text=f'<tool_call> {{"name": "{name[:-2]}') == names[name]
        assert index.count(text="<tool_call>") == n
        assert index.count(text='"quoted ) OR * NEAR(') == index.count(text="no_such_word") == 0
        assert index.count(text="{{ }}") == 0 and index.count(text="  ") == n
        turn = turns[0]
        assert turn.detection is not None and turn.evidence is not None
        [call] = turn.detection.calls
        assert turn.evidence.tier is EvidenceTier.CONTENT
        assert (turn.evidence.text or "")[call.span.start : call.span.end].startswith("<tool_call>")


async def test_pages_follow_one_another_in_order(player: Any, play: Any) -> None:
    server = await player("native")
    result, _ = await play(study(conditions=["native", "native_hint"]), server.base_url)
    with open_index(result.path) as index:
        whole = [row.key for row in index.page({"arm": "native"}, limit=1000)]
        after, seen = 0, []
        while page := index.page({"arm": ["native"]}, after=after, limit=4):
            seen += [row.key for row in page]
            after = page[-1].id
        assert seen == whole and set(whole).isdisjoint(r.key for r in index.page({"arm": "native_hint"}))
        back = index.page({"arm": "native"}, before=after, limit=3)
        assert [row.key for row in back] == whole[-4:-1]
        assert index.count({"seed": [0, 1]}) + index.count({"seed": 2}) == index.count()
        assert index.count({"role": None}) == index.count() and index.count({"seed": []}) == index.count()
        with pytest.raises(ValueError, match="no column"):
            index.count({"id; DROP TABLE turns": 1})


async def test_new_lines_are_taken_in_and_a_torn_one_waits(player: Any, play: Any, tmp_path: Path) -> None:
    server = await player("native")
    result, _ = await play(study(), server.base_url)
    log = (result.path / "log.jsonl").read_bytes()
    with open_index(result.path) as index:
        fresh = rows(index)
    growing = tmp_path / "growing"
    growing.mkdir()
    (growing / "card.json").write_bytes((result.path / "card.json").read_bytes())
    (growing / "log.jsonl").write_bytes(b"")
    index = open_index(growing)
    for end in [*range(0, len(log), 1 + len(log) // 7), len(log)]:
        (growing / "log.jsonl").write_bytes(log[:end])
        before = index.count()
        assert index.refresh() == index.count() - before
    assert rows(index) == fresh and index.refresh() == 0 and index.bad == 0
    index.close()
    made = (growing / NAME).stat().st_ino
    with open_index(growing) as index:
        assert rows(index) == fresh
    assert (growing / NAME).stat().st_ino == made  # nothing was made again


@pytest.mark.parametrize("damage", ["shorter", "other", "format", "garbage", "empty"])
async def test_an_index_that_does_not_fit_is_made_again(player: Any, play: Any, damage: str) -> None:
    server = await player("native")
    result, _ = await play(study(), server.base_url)
    log, place = result.path / "log.jsonl", result.path / NAME
    with open_index(result.path) as index:
        fresh = rows(index)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    lines = log.read_bytes().splitlines(keepends=True)
    if damage == "shorter":
        log.write_bytes(b"".join(lines[: len(lines) // 2]))
    elif damage == "other":
        log.write_bytes(log.read_bytes().replace(b"open_box", b"shut_box") + lines[-1])
    elif damage == "format":
        with sqlite3.connect(place) as db:
            db.execute("UPDATE about SET value = 0 WHERE name = 'format'")
        db.close()
    else:
        place.write_bytes(b"no database" * 1000 if damage == "garbage" else b"")
    with open_index(result.path) as index:
        if damage == "shorter":
            assert 0 < index.count() < len(fresh)
        elif damage == "other":
            assert index.count(text="open_box") == 0 < index.count(text="shut_box")
        else:
            assert rows(index) == fresh
    assert not [path for path in result.path.iterdir() if path.name.startswith(f".{NAME}")]


async def test_a_folder_that_cannot_be_written_is_read_all_the_same(
    player: Any, play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await player("native")
    result, _ = await play(study(), server.base_url)

    def refuse(*_: object) -> int:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(index_file.os, "open", refuse)
    with open_index(result.path) as index:
        count = index.count({"delivery": "surfaced"})
        assert count > 0 and index.refresh() == 0
    assert not (result.path / NAME).exists()


async def test_without_full_text_the_words_are_still_found(
    player: Any, play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await player("leaks")
    result, _ = await play(study(), server.base_url)
    with open_index(result.path) as index:
        found = {
            text: index.count(text=text) for text in ("read_label", "tool_call submit", "100%", "none_such")
        }
    (result.path / NAME).unlink()
    monkeypatch.setattr(
        index_file, "FULL_TEXT", "CREATE VIRTUAL TABLE words USING fts_that_is_not_there(text)"
    )
    with open_index(result.path) as index:
        assert {text: index.count(text=text) for text in found} == found
        assert index.count(text="<tool_call>") == index.count(text="TOOL_CALL") == index.count()


@pytest.mark.parametrize("keep", ["shape", "none"])
async def test_what_was_not_kept_is_not_in_the_index(player: Any, play: Any, keep: str) -> None:
    server = await player("leaks")
    result, _ = await play(study(), server.base_url, keep=keep)
    turns = [turn for arm in result.arms for episode in arm.episodes for turn in episode.turns]
    with open_index(result.path) as index:
        assert index.count({"delivery": "leaked"}) == index.count() == len(turns)
        assert {row.excerpt for row in index.page()} == {""} and index.count(text="tool_call") == 0
        turn = index.turn(index.page(limit=1)[0].id)
        assert turn.verdict is not None and turn.verdict.calls[0].dialect == "hermes"
        assert turn.judged() is None and turn.faults == ()
        assert index.judge() == 0


async def test_damaged_lines_and_missing_blobs_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    body = json.dumps({"choices": [{"message": {"content": "x" * 9000}}], "model": "m\ud800"}).encode()
    with RunFolder(folder) as writer:
        for n in (1, 2, 3):
            request = Request(method="POST", url="http://h/v1/chat/completions", body=b'{"model": "m"}')
            exchange = Exchange(request=request, timing=Timing(started_at=1.0), status=200, body=body)
            writer.exchange(exchange, n=n)
    log = folder / "log.jsonl"
    first, second, third = log.read_bytes().splitlines(keepends=True)
    odd = second.replace(b'"n":2', b'"n":"two"') + second.replace(
        b'"status":200', b'"status":99999999999999999999'
    )
    log.write_bytes(first + b'{"kind": "exchange"\n' + b"\xff\xfe\n" + b"[]\n" + odd + third)
    with open_index(folder) as index:
        assert [row.key for row in index.page()] == ["1", "3"] and index.bad == 5
        assert index.page()[0].emission is None and index.count({"emission": None}) == 2
        assert index.judge() == 2 and index.values("emission") == [("no_call", 2)]
        [blob] = {path for path in (folder / "blobs").rglob("*") if path.is_file()}
        blob.write_bytes(b"spoilt")
        turn = index.turn(index.page()[0].id)
        assert turn.exchange is None and len(turn.faults) == 1 and "damaged" in turn.faults[0]
        log.write_bytes(b"x" * log.stat().st_size)
        turn = index.turn(index.page()[0].id)
        assert turn.line == {} and "damaged" in turn.faults[0]
    with open_index(folder) as index:
        assert index.count() == 0
    with pytest.raises(InputError, match="no run folder"):
        open_index(tmp_path / "none")


async def test_a_record_has_roles_conversations_and_uptake(tmp_path: Path) -> None:
    ask = {"model": "m", "messages": [{"role": "user", "content": "Weather in Oslo?"}], "tools": [WEATHER]}
    async with recording(tmp_path) as proxied, aiohttp.ClientSession() as session:

        async def post(body: dict[str, Any], path: str = "chat/completions") -> dict[str, Any]:
            async with session.post(f"{proxied.url}/v1/{path}", json=body) as response:
                return dict(json.loads(await response.read() or b"{}"))

        answer = (await post(ask))["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": "12 °C"}
        await post({**ask, "messages": [*ask["messages"], answer, result]})
        await post({**ask, "tools": []})
        await post({"input": "x"}, "embeddings")
    verdicts = [line for line in read_log(tmp_path) if line["kind"] == "verdict"]
    with open_index(tmp_path) as index:
        first, second, third = index.page()
        assert [row.role for row in (first, second, third)] == [line["role"] for line in verdicts]
        assert [row.rule for row in (first, second, third)] == [
            line["verdicts"][0]["rule"] for line in verdicts
        ]
        assert Counter(dict(index.values("role"))) == {"agent": 2, "no_tools": 1}
        assert first.uptake == "observed" and (second.episode, second.position) == (first.key, 2)
        assert index.beside(first) == (None, second) and third.episode == third.key
        turn = index.turn(first.id)
        assert turn.request == ask and turn.tools == (WEATHER,) and turn.judged() == turn.verdict
        assert turn.exchange is not None and turn.exchange.timing.total is not None
    assert (tmp_path / NAME).is_file()
