"""Packs in a real browser: annotated by keyboard alone, whatever the texts hold, and by nobody else's script."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from statsmodels.stats.inter_rater import cohens_kappa

from tests.annotate.material import TOOLS, write_log
from tests.effort import HANGS
from tests.pages.browser import PHONE, Watched
from truecall.annotate import folder as folders
from truecall.annotate.report import output
from truecall.cli import execute

Decide = Callable[[str], str]  # a text -> the keys for it: n, u, yn, yy


def opened(watched: Watched, pack: Path) -> Page:
    watched.page.goto(pack.as_uri())
    watched.page.wait_for_selector("#work:not([hidden])")
    return watched.page


def begun(watched: Watched, pack: Path) -> Page:
    """The pack with its first text in focus, by keyboard."""
    page = opened(watched, pack)
    for _ in range(5):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "begin":
            break
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "text"
    return page


def text_of(page: Page) -> str:
    return "".join(page.locator("#text .passage").all_text_contents())


def tool_in(text: str) -> str:
    return re.findall(r'"name": "(\w+)"', text)[0]


def annotate(watched: Watched, pack: Path, decide: Decide) -> dict[str, Any]:
    """Answers every text with keys alone; the file that the page saves."""
    page = begun(watched, pack)
    for _ in json.loads(page.locator("#data").text_content() or "")["items"]:
        keys = decide(text_of(page))
        for key in keys:
            page.keyboard.press(key)
        if keys[0] == "y" and page.locator("#ask-tool").is_visible():
            assert page.evaluate("document.activeElement.id") == "tool"
            page.keyboard.type(tool_in(text_of(page)))  # a list goes to what is typed
        page.keyboard.press("Enter")
    with page.expect_download() as download:
        page.keyboard.press("Enter")  # all are answered: this saves
    assert download.value.suggested_filename == f"answers-{pack.stem.removeprefix('pack-')}.json"
    assert watched.errors == [] and watched.foreign("file://") == []
    return json.loads(Path(download.value.path()).read_text("utf-8"))


def kept(file: dict[str, Any], path: Path) -> str:
    path.write_text(json.dumps(file), "utf-8")
    return str(path)


# --------------------------------------------------------------------------- the whole way


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two run folders: a model whose calls are left in the text, and one that writes prose."""
    base = tmp_path_factory.mktemp("runs")
    for mode in ("leaks", "prose"):
        flags = [
            "--task",
            "chain",
            "--condition",
            "native",
            "--condition",
            "text_tools",
            "--seeds",
            "4",
            "--turns",
            "3",
        ]
        player = [sys.executable, "-m", "tests.studies.player", mode, "0"]
        with subprocess.Popen(player, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            command = [
                sys.executable,
                "-m",
                "truecall",
                "run",
                "--base-url",
                url,
                *flags,
                "--fail-on",
                "never",
            ]
            subprocess.run(
                [*command, "--out", str(base / mode)], check=True, capture_output=True, timeout=120
            )
            server.communicate("")
    return [str(base / "leaks"), str(base / "prose")]


def test_two_annotators_and_an_adjudicator(
    chromium: Browser, runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = tmp_path / "work"
    assert execute(["annotate", "make", *runs, "-o", str(work), "--per-stratum", "12"]) == 0

    def a(text: str) -> str:
        return "yy" if "<tool_call>" in text else "n"

    def b(text: str) -> str:
        return "n" if sum(text.encode()) % 2 else a(text)

    answers = {}
    for name, decide in (("a", a), ("b", b)):
        watched = Watched.opened(chromium)
        answers[name] = annotate(watched, work / f"pack-{name}.html", decide)
        watched.close()
    files = [kept(file, tmp_path / f"{name}.json") for name, file in answers.items()]
    assert execute(["annotate", "add", str(work), *files]) == 0
    annotation = folders.load(work)

    table = [[0, 0], [0, 0]]
    for item in annotation.key.items:
        text = item.text.passages[0].text
        table[a(text)[0] == "y"][b(text)[0] == "y"] += 1
    assert table[1][0] > 0, "a run in which the two annotators part"
    found = output(annotation).call.agreement[0]
    assert found.same.n == sum(map(sum, table)) == len(annotation.key.items)
    assert found.kappa.value == pytest.approx(cohens_kappa(table).kappa, abs=1e-9)
    assert 0 < (found.kappa.value or 0) < 1

    assert execute(["annotate", "adjudicate", str(work)]) == 0
    watched = Watched.opened(chromium)
    decided = annotate(watched, work / "pack-adjudicator.html", a)
    watched.close()
    assert execute(["annotate", "add", str(work), kept(decided, tmp_path / "c.json")]) == 0
    capsys.readouterr()
    assert execute(["annotate", "export", str(work), "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out)
    assert numbers["call"]["precision"]["value"] == numbers["call"]["recall"]["value"] == 1
    assert numbers["adjudication"]["disputed"] == table[1][0]


# --------------------------------------------------------------------------- hostile texts

HOSTILE = [
    "<script>document.title = 'ran'; alert(1)</script>",
    "<img src=x onerror=\"document.title = 'ran'\"><svg onload=alert(1)>",
    '</script><script>alert(1)</script><a href="javascript:alert(1)">here</a>',
    '<iframe src="http://127.0.0.1:9/"></iframe><link rel=stylesheet href="http://127.0.0.1:9/x.css">',
    "null \x00 bell \x07 turned \u202e isolate \u2066 zero\u200bwidth tag \U000e0041 broken \ufffd\x00\n\r\n\tmore",
    "</script><!-- <script> ]]> --> &lt;b&gt; ${1} `x` \\u003c",
]
BAD_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "</option><script>alert(1)</script>",
            "description": "<img src=x onerror=alert(1)>\u202e",
            "parameters": {"type": "object", "properties": {}},
        },
    }
]


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A pack of hostile texts, one of them of 5 MB."""
    large = ("Some prose, then more. " * 40 + "\n") * 5600 + "<script>alert(1)</script>"
    assert len(large) > 5_000_000
    log = write_log(tmp_path / "log.jsonl", {"none": 1}, extra=[*HOSTILE, large], tools=BAD_TOOLS)
    assert execute(["annotate", "make", str(log), "-o", str(tmp_path / "work")]) == 0
    return tmp_path / "work" / "pack-a.html"


def test_hostile_texts_are_shown_and_nothing_runs(watched: Watched, hostile: Path) -> None:
    page = begun(watched, hostile)
    shown = set()
    for _ in range(len(HOSTILE) + 2):
        shown.add(text_of(page))
        assert (
            page.locator("#text script, #text img, #text iframe, #text a, #tools script, #tools img").count()
            == 0
        )
        page.keyboard.press("]")
    for text in HOSTILE:
        if "\x00" not in text:
            assert text in shown
    [unseen] = [text for text in shown if text.startswith("null")]
    by_point = re.sub("[^\t\n -~\ufffd]", lambda found: f"U+{ord(found[0]):04X}", HOSTILE[4])
    assert "U+0000" in by_point and "U+202E" in by_point and unseen == by_point
    assert max(map(len, shown)) > 5_000_000
    assert "<script>alert(1)</script>" in (page.locator("#tool").text_content() or "")
    assert page.title() == "Annotation pack of a: 8 texts"
    assert (watched.dialogs, watched.errors, watched.foreign("file://")) == ([], [], [])


def test_a_text_of_5_mb_is_there_at_once(watched: Watched, hostile: Path) -> None:
    page = begun(watched, hostile)
    slowest = 0.0
    for _ in range(len(HOSTILE) + 2):
        start = time.monotonic()
        page.keyboard.press("]")
        page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
        slowest = max(slowest, time.monotonic() - start)
    assert slowest < HANGS


# --------------------------------------------------------------------------- keys, focus, files


@pytest.fixture
def pack(tmp_path: Path) -> Iterator[Path]:
    """A pack of six texts."""
    log = write_log(tmp_path / "log.jsonl", {"tight": 2, "malformed": 2, "none": 2})
    assert execute(["annotate", "make", str(log), "-o", str(tmp_path / "work")]) == 0
    yield tmp_path / "work" / "pack-a.html"


def place(page: Page) -> str:
    return page.locator("#place").text_content() or ""


def test_it_meets_wcag_aa_at_every_step(chromium: Browser, pack: Path) -> None:
    for dark, size in ((False, None), (True, None), (False, PHONE)):
        watched = Watched.opened(chromium, dark=dark, size=size)
        page = opened(watched, pack)
        assert watched.faults() == []
        page.locator("#begin").press("Enter")
        page.keyboard.press("y")
        page.keyboard.press("y")
        page.locator("#tools summary").first.click()
        assert page.locator("#ask-tool").is_visible() and watched.faults() == []
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide == 0
        watched.close()


def test_keys_do_nothing_where_they_are_switched_off(watched: Watched, pack: Path) -> None:
    page = opened(watched, pack)
    page.locator("#single-keys").press("Space")
    page.locator("#begin").press("Enter")
    page.keyboard.press("n")
    assert place(page) == "Text 1 of 6, 0 answered"
    page.keyboard.press("Enter")  # no letter: leads to the open question
    page.keyboard.press("Space")
    assert page.locator("input[name=call]:checked").get_attribute("value") == "yes"


def test_an_answer_can_be_changed(watched: Watched, pack: Path) -> None:
    page = begun(watched, pack)
    page.keyboard.press("y")
    assert page.evaluate("document.activeElement.name") == "well_formed"
    page.keyboard.press("u")
    assert page.evaluate("document.activeElement.id") == "tool"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.name") == "call"
    page.keyboard.press("n")
    assert page.locator("input[name=call]:checked").get_attribute("value") == "no"
    assert page.locator("#ask-well_formed").is_hidden() and place(page) == "Text 1 of 6, 1 answered"


def test_progress_is_kept(watched: Watched, pack: Path) -> None:
    page = begun(watched, pack)
    page.keyboard.press("n")
    page.keyboard.press("Enter")
    page.keyboard.press("n")
    page.evaluate(
        """async () => {
            const kept = () => Object.values(localStorage).map((file) => JSON.parse(file).answers.length);
            while (!kept().includes(2)) await new Promise((done) => setTimeout(done, 10));
        }"""
    )
    page.reload()
    page.wait_for_selector("#work:not([hidden])")
    assert place(page) == "Text 3 of 6, 2 answered"


NO_STORAGE = "Object.defineProperty(window, 'localStorage', {get() { throw new Error('none here'); }});"


def test_progress_goes_by_file_where_there_is_no_storage(
    chromium: Browser, pack: Path, tmp_path: Path
) -> None:
    first = Watched.opened(chromium)
    first.page.add_init_script(NO_STORAGE)
    page = begun(first, pack)
    page.keyboard.press("n")
    page.keyboard.press("Enter")
    with page.expect_download() as download:
        page.keyboard.press("s")
    saved = json.loads(Path(download.value.path()).read_text("utf-8"))
    assert first.errors == []
    first.close()

    second = Watched.opened(chromium)
    second.page.add_init_script(NO_STORAGE)
    page = opened(second, pack)
    load = page.locator("#load")
    altered = {**saved, "answers": [{**saved["answers"][0], "call": "unclear"}]}
    wrong = {**saved, "pack": "0" * 64}
    for file, said in (
        (altered, "altered"),
        (wrong, "another pack"),
        ([1], "no file"),
        ("{", "can't be read"),
    ):
        text = file if isinstance(file, str) else json.dumps(file)
        load.set_input_files({"name": "x.json", "mimeType": "application/json", "buffer": text.encode()})
        page.wait_for_function(
            "said => document.getElementById('trouble').textContent.includes(said)", arg=said
        )
        assert place(page).endswith("0 answered")
    load.set_input_files(kept(saved, tmp_path / "saved.json"))
    expect(page.locator("#place")).to_have_text("Text 1 of 6, 1 answered")
    assert page.locator("#trouble").is_hidden()
    second.close()


def test_answers_to_an_altered_pack_are_refused(
    watched: Watched, pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody cuts a text in the page: what was read is not what was sent, and the answers say so."""
    page = pack.read_text("utf-8")
    assert page.count("fine day") == 2
    pack.write_text(page.replace("fine day", "day", 1), "utf-8")
    file = annotate(watched, pack, lambda text: "n")
    assert execute(["annotate", "add", str(pack.parent), kept(file, tmp_path / "a.json")]) == 2
    assert "the pack was altered on its way" in capsys.readouterr().err


def test_a_cut_log_is_told(watched: Watched, tmp_path: Path) -> None:
    from truecall.annotate.pack import make_pack
    from truecall.annotate.records import Answer, Item, Passage, Text

    passages = (Passage(kind="reasoning", text="Hm."), Passage(kind="content", text="So it is"))
    text = Text("p", "g", passages, "none", Answer(call="no"), ("", "", ""), "content", cut=True)
    (tmp_path / "pack-a.html").write_text(make_pack("a", [Item(text, "0")], [0], [], "").html, "utf-8")
    page = opened(watched, tmp_path / "pack-a.html")
    assert page.locator("#text h3").all_text_contents() == [
        "Reasoning (the interface gave it apart, before the rest)",
        "Then the text",
    ]
    assert (
        page.locator("#text .end").text_content()
        == "End of the text, 11 characters. The log stored no more of it."
    )
    assert page.locator("#offered-name").text_content() == "Offered tools: the log does not say"


def test_a_text_whose_end_was_not_seen_says_so(watched: Watched, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.jsonl", {}, extra=["A line.\n" * 400])
    assert execute(["annotate", "make", str(log), "-o", str(tmp_path / "work")]) == 0
    page = begun(watched, tmp_path / "work" / "pack-a.html")
    expect(page.locator("#goes-on")).to_be_visible()
    page.keyboard.press("End")
    expect(page.locator("#goes-on")).to_be_hidden()
    assert page.locator("#text").evaluate("box => box.scrollTop + box.clientHeight >= box.scrollHeight - 4")


def test_tools_are_those_of_the_text(watched: Watched, pack: Path) -> None:
    page = begun(watched, pack)
    names = [tool["function"]["name"] for tool in TOOLS]
    assert page.locator("#tools summary").all_text_contents() == names
    assert page.locator("#tool option").all_text_contents() == [
        "Choose", *names, "another name, not offered", "no name can be read"
    ]  # fmt: skip
