"""Which turns become texts, whole and in order, and which are left out and why."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.annotate.material import TOOLS, write_log
from tests.studies.conftest import play, player, study  # noqa: F401 - fixtures
from truecall.annotate import frame
from truecall.annotate.frame import LeftOut, texts
from truecall.annotate.records import Answer, Text
from truecall.errors import InputError
from truecall.records import Exchange, Request, Timing
from truecall.sources import Bad

CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'


def found(tmp_path: Path, *entries: dict[str, Any]) -> list[frame.Found]:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), "utf-8")
    return list(texts([str(path)]))


def exchange(message: dict[str, Any], request: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """One request and its response, as many harnesses log them."""
    body = {"messages": [{"role": "user", "content": "Hi"}], "tools": TOOLS, **(request or {})}
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop", **more}
    return {"request": body, "response": {"object": "chat.completion", "model": "m", "choices": [choice]}}


def test_the_strata_are_the_detectors_best_call(tmp_path: Path) -> None:
    counts = {"tight": 3, "well_formed": 2, "malformed": 1, "none": 4}
    made = list(texts([str(write_log(tmp_path / "log.jsonl", counts))]))
    assert [each.stratum for each in made if isinstance(each, Text)] == [
        n for n, c in counts.items() for _ in range(c)
    ]
    said = {each.stratum: each.detector for each in made if isinstance(each, Text)}
    assert said == {
        "tight": Answer(call="yes", well_formed="yes", tool="offered:get_weather"),
        "well_formed": Answer(call="yes", well_formed="yes", tool="other"),
        "malformed": Answer(call="yes", well_formed="no", tool="offered:get_weather"),
        "none": Answer(call="no"),
    }


def test_reasoning_stands_before_what_follows_it(tmp_path: Path) -> None:
    [text] = found(tmp_path, exchange({"content": f"Now. {CALL}", "reasoning_content": "I should look."}))
    assert isinstance(text, Text)
    assert [(each.kind, each.text) for each in text.passages] == [
        ("reasoning", "I should look."),
        ("content", f"Now. {CALL}"),
    ]


def test_a_long_text_is_never_cut(tmp_path: Path) -> None:
    long = "It is long. " * 100_000 + CALL
    _, text = found(tmp_path, exchange({"content": "Short."}), exchange({"content": long}))
    assert isinstance(text, Text) and text.passages[0].text == long and text.stratum == "tight"


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (exchange({"content": "Hm."}, {"tools": []}), frame.NO_TOOLS),
        (exchange({"content": "Hm."}, {"tool_choice": "none"}), frame.NO_TOOLS),
        (exchange({"content": CALL}, {"tool_choice": "required"}), frame.FORCED),
        (exchange({"content": ""}), frame.NO_TEXT),
        (exchange({"content": "Error code: 500 - server error"}), frame.UNKNOWN),
        (
            exchange({"content": "Wait.", "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}
            ]}),
            frame.TAKEN,
        ),
    ],
    ids=["no tools", "forbidden", "forced", "empty", "error text", "taken out"],
)  # fmt: skip
def test_what_nobody_could_read_is_left_out_with_the_reason(
    tmp_path: Path, entry: dict[str, Any], reason: str
) -> None:
    assert found(tmp_path, entry) == [LeftOut(reason=reason)]


def test_an_entry_that_cannot_be_read_is_counted(tmp_path: Path) -> None:
    path = write_log(tmp_path / "log.jsonl", {"none": 1})
    path.write_bytes(path.read_bytes() + b'{"messages": [\n')
    assert isinstance(list(texts([str(path)]))[1], Bad)


def test_a_path_without_a_log_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(InputError, match="no log of a known format"):
        list(texts([str(tmp_path)]))
    with pytest.raises(InputError, match="no run"):
        list(texts(["987654"]))


async def test_the_turns_of_a_run(player: Any, play: Any, tmp_path: Path) -> None:  # noqa: F811
    server = await player("leaks")
    await play(
        study(conditions=["native", "text_tools"], seeds=2, limits={"turns": 3}), server.base_url, "0001"
    )
    made = list(texts([str(tmp_path / "0001")]))
    native = [each for each in made if isinstance(each, Text) and each.group == "native"]
    in_text = [each for each in made if isinstance(each, Text) and each.group == "text_tools"]
    assert native and in_text and len(native) + len(in_text) == len(made)
    for each in (*native, *in_text):
        assert each.stratum == "tight" and each.passages[0].text.startswith("<tool_call>")
        assert [tool["function"]["name"] for tool in each.tools][
            -1
        ] == "submit"  # made again where in the prompt
    assert "native|chain" in native[0].place


async def test_structured_calls_of_a_run_hold_no_text(player: Any, play: Any, tmp_path: Path) -> None:  # noqa: F811
    server = await player("native")
    await play(study(seeds=1), server.base_url, "0001")
    assert {each.reason for each in texts([str(tmp_path / "0001")]) if isinstance(each, LeftOut)} == {
        frame.TAKEN
    }


async def test_a_run_that_kept_no_texts_has_none_to_annotate(player: Any, play: Any, tmp_path: Path) -> None:  # noqa: F811
    server = await player("leaks")
    await play(study(seeds=1), server.base_url, "0001", keep="none")
    assert {each.reason for each in texts([str(tmp_path / "0001")]) if isinstance(each, LeftOut)} == {
        frame.NO_TEXT
    }


async def test_a_turn_whose_bytes_are_gone_is_counted_as_bad(player: Any, play: Any, tmp_path: Path) -> None:  # noqa: F811
    server = await player("leaks")
    await play(study(seeds=1), server.base_url, "0001")
    log = tmp_path / "0001" / "log.jsonl"
    lines = log.read_text("utf-8").splitlines(keepends=True)
    gone = next(n for n, line in enumerate(lines) if '"kind":"exchange"' in line)
    lines[gone] = re.sub(
        r'"body":\{"text":.*?"\},"received"', f'"body":{{"blob":"{"0" * 64}"}},"received"', lines[gone]
    )
    log.write_text("".join(lines), "utf-8")
    made = list(texts([str(tmp_path / "0001")]))
    assert sum(isinstance(each, Bad) for each in made) == 1 and any(isinstance(each, Text) for each in made)


async def test_recordings_of_a_proxy(tmp_path: Path) -> None:
    """Roles that the recorder saw decide who may call."""
    from truecall.annotate.runs import whole_turns
    from truecall.store import RunFolder

    roles = ("agent", "no_tools", "simulator", "prompt")
    with RunFolder(tmp_path / "rec") as folder:
        for number, role in enumerate(roles, 1):
            body = json.dumps({"choices": [{"message": {"role": "assistant", "content": CALL}}]}).encode()
            request = Request(method="POST", url="http://x/v1/chat/completions", body=b'{"messages":[]}')
            seen = Exchange(request=request, timing=Timing(started_at=0.0), status=200, body=body)
            folder.exchange(seen, n=number, role=role)
    turns = [turn for turn in whole_turns(tmp_path / "rec") if not isinstance(turn, Bad)]
    assert [turn.may_call for turn in turns] == [True, False, False, True]
    assert [type(each) for each in texts([str(tmp_path / "rec")])] == [Text, LeftOut, LeftOut, Text]
