"""The page of a turn: what is kept is shown whole, in parts where it is long, and what is missing is told."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import quote

import aiohttp
import msgspec
import pytest

from tests.proxy.conftest import recording
from tests.proxy.upstream import LEAK, WEATHER, say, whole
from tests.proxy.upstream import completion as upstream_completion
from tests.studies.conftest import connection, study
from tests.studies.player import Player
from tests.view.conftest import Serve, Viewer
from tests.view.folders import Answer, completion, stream, study_folder, surfaced
from truecall.records import Chunk, Exchange, Request, Timing
from truecall.run import runner
from truecall.store import RunFolder
from truecall.view import Shelf
from truecall.view.texts import PART, text_of
from truecall.view.timing import picture, timing_of
from truecall.view.turn import sentence

CALL = '<tool_call>\n{"name": "open_box", "arguments": {"code": "A-1"}}\n</tool_call>'
BIG = 5 << 20


def turns_of(path: Path, *answers: Answer) -> Path:
    """A run of one episode with these answers."""
    return study_folder(path, len(answers), answers=iter(answers), per_episode=len(answers))


def key(turn: int) -> str:
    return quote(f"native|chain|0||{turn}")


def turn_page(viewer: Viewer, turn: int = 1, more: str = "") -> str:
    answer = viewer.ask(f"/turn?of=run&key={key(turn)}{more}")
    assert answer.status == 200
    return answer.text


def shown(page: str) -> list[str]:
    """The texts of the page's ``pre`` elements, as a reader sees them."""
    return [
        unescape(re.sub(r"<[^>]+>", "", pre)) for pre in re.findall(r"<pre[^>]*>(.*?)</pre>", page, re.DOTALL)
    ]


def test_a_leaked_call_is_seen_beside_the_empty_tool_calls(serve: Serve, tmp_path: Path) -> None:
    viewer = serve(turns_of(tmp_path / "run", completion(f"Let me see.\n{CALL}")))
    page = turn_page(viewer)
    assert (
        '<span class="span span-call"><b class="label">call 1 · hermes · tight</b>&lt;tool_call&gt;' in page
    )
    assert "<code>[]</code>" in page
    assert sentence("call.leaked.content") == (
        "The call stands in the content, as text; the interface did not give it as a call."
    )
    assert sentence("call.leaked.content") in unescape(page)
    assert "call.leaked.content" in page and "cause: parser" in page
    assert "You open boxes. Use the tools." in page and "Opens a box and tells" in page


def test_violations_and_surfaced_calls_are_listed(serve: Serve, tmp_path: Path) -> None:
    viewer = serve(turns_of(tmp_path / "run", completion(None, [surfaced('{"kode": 5}')])))
    page = turn_page(viewer)
    assert "<b>missing</b>" in page and "<b>unknown</b>" in page
    assert "invalid_arguments" in page
    assert '{"kode": 5}' in shown(page)


def test_every_refusal_and_rule_has_its_sentence() -> None:
    assert sentence("gate.auto_tool_choice") or sentence("auth.key")
    assert sentence("net.timeout") == "Time ran out before the answer was whole."
    assert sentence("no.such.rule") == "" == sentence(None)


def test_the_turns_of_an_episode_are_linked(serve: Serve, tmp_path: Path) -> None:
    viewer = serve(turns_of(tmp_path / "run", *(completion(f"answer {n}") for n in range(40))))
    page = turn_page(viewer, 20)
    assert f'rel="prev" href="/turn?of=run&amp;key={key(19)}"'.replace("%7C", "%7C") in page
    episode = page.partition('id="episode"')[2]
    assert len(re.findall(r'href="/turn\?', episode)) == 24
    assert "32 earlier messages" in page or "earlier messages" in page
    whole_list = re.search(r'href="(/\?run=run&amp;episode=[^"]+)"', page)
    assert whole_list is not None
    assert "40 turns" in viewer.ask(unescape(whole_list[1])).text


def test_walking_keeps_to_the_list(serve: Serve, tmp_path: Path) -> None:
    answers = [completion(CALL if n % 3 == 0 else "prose") for n in range(9)]
    viewer = serve(turns_of(tmp_path / "run", *answers))
    page = turn_page(viewer, 4, "&delivery=leaked")
    following = re.search(r'rel="next" href="([^"]+)"', page)
    assert following is not None
    assert unescape(following[1]).endswith(f"key={quote('native|chain|0||7', safe='')}&delivery=leaked")
    assert 'rel="next"' not in turn_page(viewer, 7, "&delivery=leaked")


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A turn of 5 MB with a call in its middle, and with hostile bytes."""
    half = ("0123456789 abcdef ghij\n" * (BIG // 46 + 1))[: BIG // 2]
    return turns_of(tmp_path_factory.mktemp("big") / "run", completion(f"{half}{CALL}{half}"))


def test_a_long_text_is_shown_in_parts_that_make_the_whole(serve: Serve, big: Path) -> None:
    viewer = serve(big)
    page = viewer.ask(f"/turn?of=run&key={key(1)}")
    assert page.status == 200 and len(page.body) < 300_000
    assert f"of {BIG + len(CALL):,} characters" in page.text
    with Shelf([str(big)]) as shelf:
        entry = shelf.entry("run", "native|chain|0||1")
        assert entry is not None
        text = text_of(shelf.turn(entry), "raw")
    assert text is not None and text.parts == -(-len(text.text) // PART)
    middle = BIG // 2 // PART + 1
    link = f"/text?of=run&amp;key={quote('native|chain|0||1', safe='')}&amp;what=raw&amp;part={middle}"
    assert link in page.text
    got = ""
    for part in range(1, text.parts + 1):
        answer = viewer.ask(f"/text?of=run&key={key(1)}&what=raw&part={part}")
        assert answer.status == 200 and len(answer.body) < 300_000
        pre = re.search(r"<pre[^>]*>(.*)</pre>", answer.text, re.DOTALL)
        assert pre is not None
        got += unescape(re.sub(r"<b class=.label.>[^<]*</b>|<[^>]+>", "", pre[1]))
    assert got == text.text
    file = viewer.ask(f"/file?of=run&key={key(1)}&what=raw")
    assert file.body.decode() == text.text
    assert file.headers["content-type"] == "text/plain; charset=utf-8"
    assert file.headers["content-disposition"] == 'attachment; filename="run-native-chain-0-1-raw.txt"'
    assert file.headers["x-content-type-options"] == "nosniff"


def test_bytes_that_are_no_text_are_kept_in_the_file(serve: Serve, tmp_path: Path) -> None:
    body = b"\xff\xfe{broken \x00 json <script>alert(1)</script>"
    viewer = serve(turns_of(tmp_path / "run", Answer(200, body, (Chunk(0.1, len(body)),))))
    page = turn_page(viewer)
    assert "<script>alert" not in page
    assert viewer.ask(f"/file?of=run&key={key(1)}&what=body").body == body
    text = viewer.ask(f"/text?of=run&key={key(1)}&what=body").text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text and "\x00" not in text


@pytest.mark.parametrize(
    "what", ["", "nothing", "call-0", "call-99999999", "message-x", "../../etc/passwd", "raw-1"]
)
def test_a_text_that_is_not_there_is_not_found(serve: Serve, tmp_path: Path, what: str) -> None:
    viewer = serve(turns_of(tmp_path / "run", completion("prose")))
    for path in ("/text", "/file"):
        assert viewer.ask(f"{path}?of=run&key={key(1)}&what={quote(what)}").status == 404
    for path in ("/turn?of=run&key=nothing", "/turn?of=other&key=x", "/turn", "/text?of=run&key=x&what=raw"):
        assert viewer.ask(path).status == 404


def test_a_missing_or_damaged_blob_is_told(serve: Serve, tmp_path: Path) -> None:
    folder = turns_of(tmp_path / "run", completion("word " * 2000), completion("prose"))
    viewer = serve(folder)
    assert "Not all of this turn" not in turn_page(viewer)
    blobs = sorted(path for path in (folder / "blobs").rglob("*") if path.is_file())
    blobs[0].write_bytes(b"damaged")
    page = turn_page(serve(folder))
    assert "Not all of this turn can be read" in page and "is damaged" in page
    assert "You open boxes" in page  # the rest is there
    shutil.rmtree(folder / "blobs")
    page = turn_page(serve(folder))
    assert "Not all of this turn can be read" in page and "can&#39;t be read" in page
    assert "Not all of this turn" not in turn_page(serve(folder), 2)


def test_a_turn_without_texts_says_so(serve: Serve, tmp_path: Path) -> None:
    exchange = Exchange(
        request=Request(
            method="POST", url="http://h/v1/chat/completions", body=b'{"model": "m", "messages": []}'
        ),
        timing=Timing(started_at=1.0, first_byte=0.1, total=0.2),
        status=200,
        body=completion("secret prose").body,
    )
    with RunFolder(tmp_path / "run", keep="none") as folder:
        folder.exchange(exchange, n=1)
    viewer = serve(tmp_path / "run")
    page = viewer.ask("/turn?of=run&key=1")
    assert page.status == 200 and "secret" not in page.text
    assert "not judged" in page.text


def test_failures_are_shown_as_what_they_are(serve: Serve, tmp_path: Path) -> None:
    broken = stream("the words of a stream that breaks off in it", ended=False)
    viewer = serve(
        turns_of(tmp_path / "run", broken, Answer(400, b'{"error": {"message": "no <b>tools</b>"}}'))
    )
    first = turn_page(viewer, 1)
    assert "closed mid stream" in first and "reset by peer" in first and "<svg" in first
    second = turn_page(viewer, 2)
    assert "HTTP 400" in second and "no &lt;b&gt;tools&lt;/b&gt;" in second


@pytest.mark.parametrize(
    "body", [b"[" * 60_000, b'{"a":' * 60_000, b'{"choices": [{"message": {"content": "\\ud800"}}]}']
)
def test_no_answer_makes_the_page_fail(serve: Serve, tmp_path: Path, body: bytes) -> None:
    viewer = serve(turns_of(tmp_path / "run", Answer(200, body, (Chunk(0.1, len(body)),))))
    assert viewer.ask("/").status == 200
    turn_page(viewer)
    for what in ("body", "line", "request"):
        assert viewer.ask(f"/text?of=run&key={key(1)}&what={what}").status == 200


def test_names_without_end_are_cut_on_the_page_and_whole_in_the_files(serve: Serve, tmp_path: Path) -> None:
    name = "n" * 2_000_000
    answer = completion(None, [surfaced("{}", name)], finish=name)
    body = answer.body.replace(b'"player"', b'"' + name.encode() + b'"')
    viewer = serve(turns_of(tmp_path / "run", answer._replace(body=body)))
    for path in ("/", f"/turn?of=run&key={key(1)}"):
        page = viewer.ask(path)
        assert page.status == 200 and len(page.body) < 100_000
    assert viewer.ask(f"/file?of=run&key={key(1)}&what=body").body == body


def test_a_recorded_harness_can_be_looked_through(serve: Serve, tmp_path: Path) -> None:
    async def record() -> None:
        answer = json.dumps(upstream_completion(LEAK)).encode()
        async with recording(tmp_path / "record", lambda _, writer: say(writer, whole(answer))) as proxied:
            messages = [{"role": "user", "content": "Weather in Oslo?"}]
            async with aiohttp.ClientSession() as client:
                for more in ({"tools": [WEATHER]}, {}):
                    body = {"model": "m", "messages": messages, **more}
                    async with client.post(f"{proxied.url}/v1/chat/completions", json=body) as response:
                        await response.read()

    asyncio.run(record())
    viewer = serve(tmp_path / "record")
    page = viewer.ask("/").text
    assert re.search(r'<h2 id="count">2 turns', page) and "leaked" in page
    first = re.search(r'<a class="turn" href="([^"]+)"', page)
    assert first is not None
    turn = viewer.ask(unescape(first[1]))
    assert turn.status == 200
    assert (
        "Weather in Oslo?" in turn.text and "get_weather" in turn.text and "call.leaked.content" in turn.text
    )


def test_a_study_that_really_ran(serve: Serve, tmp_path: Path) -> None:
    async def run() -> None:
        async with Player("text") as player:
            what = study(conditions=["native", "text_tools"], seeds=1)
            await runner.run(what, tmp_path / "run", connection(player.base_url))

    asyncio.run(run())
    viewer = serve(tmp_path / "run")
    page = viewer.ask("/?arm=text_tools").text
    turn = viewer.ask(unescape(re.findall(r'<a class="turn" href="([^"]+)"', page)[1])).text
    assert "surfaced" in turn and "by a parser of its own" in turn
    assert "begin with" in turn  # the task, in the request's messages
    native = viewer.ask("/?arm=native").text
    assert "leaked" in native and "surfaced" not in native.partition('<ol class="turns">')[2]

    log = (tmp_path / "run" / "log.jsonl").read_bytes().splitlines(keepends=True)
    bare = b"".join(line for line in log if b'"kind":"verdict"' not in line)
    (tmp_path / "run" / "log.jsonl").write_bytes(bare)
    viewer = serve(tmp_path / "run")
    first = {arm: viewer.ask(f"/?arm={arm}").text for arm in ("native", "text_tools")}
    turns = {arm: unescape(re.findall(r'<a class="turn" href="([^"]+)"', first[arm])[0]) for arm in first}
    assert "call.leaked.content" in viewer.ask(turns["native"]).text  # judged when it is looked at
    assert "This turn was not judged" in viewer.ask(turns["text_tools"]).text  # its parser is not at hand


def gaps(*places: float) -> Iterator[Chunk]:
    return (Chunk(at=at, size=10) for at in places)


def test_timing_names_the_longest_pause() -> None:
    chunks = tuple(gaps(0.2, 0.3, 1.8, 1.9))
    exchange = Exchange(
        request=Request(method="POST", url="http://h/"),
        timing=Timing(started_at=0.0, first_byte=0.2, total=2.0),
        received=40,
        chunks=chunks,
    )
    timing = timing_of(exchange)
    assert (timing.chunks, timing.size, timing.gap_at) == (4, 40, 0.3)
    assert timing.gap == pytest.approx(1.5)
    assert (
        timing_of(exchange)
        .words()
        .startswith("First byte after 200.0 ms. Over after 2.00 s. 40 bytes in 4 chunks.")
    )
    untold = timing_of(msgspec.structs.replace(exchange, chunks=()))  # no stream: nobody counted its chunks
    assert untold.words() == "First byte after 200.0 ms. Over after 2.00 s. 40 bytes."
    drawn = str(picture(chunks, 2.0))
    assert "M64.0 42v10M96.0 42v10M576.0 42v10M608.0 42v10" in drawn
    assert "style=" not in drawn
    assert picture(chunks[:1], 2.0) == "" == picture((), None)
    assert str(picture(tuple(gaps(*(n / 1000 for n in range(5000)))), 5.0)).count("v10") <= 800
