"""``truecall judge``: saved answers of every API and form, judged and explained, on the screen and as JSON."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from truecall import cli

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests" / "recorded"
HERMES = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
TOOL = {
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
TOOLS = [{"type": "function", "function": TOOL}]
REQUEST = {"model": "m", "messages": [{"role": "user", "content": "?"}], "tools": TOOLS}
LEAKED: dict[str, Any] = {
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": HERMES}, "finish_reason": "stop"}],
}


def sse(*payloads: object) -> str:
    return "".join(f"data: {p if isinstance(p, str) else json.dumps(p)}\n\n" for p in payloads)


def delta(**fields: object) -> dict[str, Any]:
    return {
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": fields, "finish_reason": None}],
    }


OLLAMA = {"model": "m", "created_at": "x"}
CALL = {"function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
BODIES: dict[str, tuple[str, str, int]] = {
    "chat": (json.dumps(LEAKED), "valid leaked", 1),
    "stream": (sse(delta(content=HERMES[:20]), delta(content=HERMES[20:]), "[DONE]"), "valid leaked", 1),
    "stream of a call": (
        sse(delta(tool_calls=[{"index": 0, "id": "c", **CALL}]), "[DONE]"),
        "valid surfaced",
        0,
    ),
    "payloads": (json.dumps([delta(content=HERMES)]), "valid leaked", 1),
    "ollama": (
        json.dumps(
            {
                "model": "m",
                "created_at": "x",
                "message": {"role": "assistant", "content": HERMES},
                "done": True,
            }
        ),
        "valid leaked",
        1,
    ),
    "ollama lines": (
        "\n".join(
            json.dumps({**OLLAMA, "message": {"role": "assistant", "content": c}, "done": d})
            for c, d in ((HERMES[:9], False), (HERMES[9:], False), ("", True))
        ),
        "valid leaked",
        1,
    ),
    "anthropic": (
        json.dumps(
            {
                "type": "message",
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "t", "name": "get_weather", "input": {"city": "Oslo"}}
                ],
                "stop_reason": "tool_use",
            }
        ),
        "valid surfaced",
        0,
    ),
    "responses": (
        json.dumps(
            {
                "object": "response",
                "status": "completed",
                "output": [
                    {
                        "type": "function_call",
                        "call_id": "c",
                        "name": "get_weather",
                        "arguments": '{"city": "Oslo"}',
                    }
                ],
            }
        ),
        "valid surfaced",
        0,
    ),
    "gemini": (
        json.dumps(
            {
                "candidates": [
                    {
                        "content": {
                            "role": "model",
                            "parts": [{"functionCall": {"name": "get_weather", "args": {"city": "Oslo"}}}],
                        },
                        "finishReason": "STOP",
                    }
                ]
            }
        ),
        "valid surfaced",
        0,
    ),
    "empty": ("", "unknown server_error", 1),
    "html": ("<!DOCTYPE html><html><body>Sign in</body></html>", "unknown server_error", 1),
}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    (tmp_path / "request.json").write_text(json.dumps(REQUEST))
    return tmp_path


def judged(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, dict[str, Any]]:
    code = cli.execute(["judge", *map(str, args), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", BODIES)
def test_every_form_is_told_apart_and_judged(
    capsys: pytest.CaptureFixture[str], saved: Path, name: str
) -> None:
    text, triple, exit_code = BODIES[name]
    (saved / "body").write_text(text)
    code, verdict = judged(capsys, saved / "body", "--tools", saved / "tools.json")
    assert (f"{verdict['emission']} {verdict['delivery']}", code) == (triple, exit_code)
    schema = json.loads((ROOT / "docs" / "schemas" / "verdict.json").read_text("utf-8"))
    jsonschema_rs.validator_for(schema).validate(verdict)
    assert verdict["schema_version"] == 1


def har(body: str, *, status: int = 200, encoded: bool = False) -> dict[str, Any]:
    content: dict[str, Any] = {"mimeType": "application/json", "text": body}
    if encoded:
        content = {**content, "text": base64.b64encode(body.encode()).decode(), "encoding": "base64"}
    return {
        "request": {"url": "https://h/v1/chat/completions", "postData": {"text": json.dumps(REQUEST)}},
        "response": {"status": status, "content": content},
    }


@pytest.mark.parametrize("encoded", [False, True])
def test_a_har_file_brings_its_request_along(
    capsys: pytest.CaptureFixture[str], saved: Path, encoded: bool
) -> None:
    other = {"request": {"url": "https://h/logo.png"}, "response": {"status": 200, "content": {"text": "x"}}}
    log = {"log": {"entries": [har(json.dumps(LEAKED), encoded=encoded), other]}}
    (saved / "x.har").write_text(json.dumps(log))
    code, verdict = judged(capsys, saved / "x.har")
    assert (code, verdict["delivery"]) == (1, "leaked")
    assert verdict["calls"][0]["emitted"]["offered"] is True  # held against the request's tools


def test_a_har_entrys_status_counts(capsys: pytest.CaptureFixture[str], saved: Path) -> None:
    refusal = (
        '{"error": {"message": "\\"auto\\" tool choice requires --enable-auto-tool-choice", "code": 400}}'
    )
    (saved / "entry").write_text(json.dumps(har(refusal, status=400)))
    assert cli.execute(["judge", str(saved / "entry")]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "not run · rejected · gate"
    assert "vLLM was started without tool calling" in out[1]
    assert any(line.startswith("fix: start vLLM with --enable-auto-tool-choice") for line in out)


def test_stdin(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(json.dumps(LEAKED).encode())

    monkeypatch.setattr("sys.stdin", Stdin())
    assert cli.execute(["judge", "-"]) == 1
    assert "no tool list was given" in capsys.readouterr().out


def test_the_screen_explains_the_rule_and_each_call(capsys: pytest.CaptureFixture[str], saved: Path) -> None:
    (saved / "body").write_text(json.dumps(LEAKED))
    assert cli.execute(["judge", str(saved / "body"), "--request", str(saved / "request.json")]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "valid · leaked · parser",
        "  The call stands in the content, as text; the interface did not give it as a call.",
        'call: get_weather {"city": "Oslo"} as hermes: valid, leaked',
        "rule call.leaked.content · evidence content",
    ]


def test_what_a_model_wrote_cannot_steer_the_terminal(
    capsys: pytest.CaptureFixture[str], saved: Path
) -> None:
    evil = HERMES.replace("Oslo", "\\u001b[2J\\u202eOslo")
    message = {"role": "assistant", "content": evil}
    (saved / "body").write_text(json.dumps({"choices": [{"message": message}]}))
    cli.execute(["judge", str(saved / "body")])
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\u202e" not in out


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["/no/such/file"], "/no/such/file: No such file"),
        (["BODY", "--tools", "BODY"], "is no JSON list"),
        (["BODY", "--request", "LIST"], "is no JSON object"),
        (["BODY", "--request", "TEXT"], "is no JSON"),
        (["BODY", "--api", "nosuch"], "--api nosuch: not known; there are openai.chat"),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_2(
    capsys: pytest.CaptureFixture[str], saved: Path, args: list[str], says: str
) -> None:
    for name, text in (("BODY", json.dumps(LEAKED)), ("LIST", "[1]"), ("TEXT", "{")):
        (saved / name).write_text(text)
    words = [str(saved / word) if word in ("BODY", "LIST", "TEXT") else word for word in args]
    assert cli.execute(["judge", *words]) == 2
    out, err = capsys.readouterr()
    assert out == "" and says in err and len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("null", "no response of an API"),
        ("[1]", "no response of an API"),
        ('{"name": "get_weather", "arguments": {"city": "Oslo"}}', "no response of an API"),
        ('\ufeff{"name": "get_weather"}', "no response of an API"),
        ('{"log": {"entries": []}}', "holds no response"),
        ('{"log": {"entries": [{"request": {}, "response": {}}]}}', "holds no response"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested too deep"),
    ],
    ids=["null", "list", "call", "bom", "no-entries", "empty-entry", "deep"],
)
def test_a_file_that_is_no_response_is_the_users_mistake(
    capsys: pytest.CaptureFixture[str], saved: Path, text: str, says: str
) -> None:
    (saved / "body").write_text(text, "utf-8")
    assert cli.execute(["judge", str(saved / "body")]) == 2
    out, err = capsys.readouterr()
    assert out == "" and says in err and len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "text",
    ['{"detail": "Not Found"}', '[{"error": {"code": 503, "message": "overloaded"}}]', "upstream error"],
)
def test_an_odd_answer_of_a_server_is_still_judged(
    capsys: pytest.CaptureFixture[str], saved: Path, text: str
) -> None:
    (saved / "body").write_text(text)
    code, verdict = judged(capsys, saved / "body")
    assert code in (1, 2) and verdict["delivery"] != "surfaced"
    entry = har("null")
    (saved / "entry").write_text(json.dumps(entry))
    assert judged(capsys, saved / "entry")[0] in (1, 2)  # the address says that a chat API answered so


@pytest.mark.parametrize(
    ("name", "first", "code"),
    [
        ("vllm-hermes-choice-hermes", "valid · surfaced", 0),
        ("vllm-hermes-choice-qwen3-coder", "valid · leaked · parser", 1),
        ("vllm-noparser-auto", "not run · rejected · gate", 1),
        ("llamacpp-hermes-prefill-hermes-bad-json", "unknown · unknown · parser", 2),
    ],
)
def test_recorded_answers_of_live_engines(
    capsys: pytest.CaptureFixture[str], saved: Path, name: str, first: str, code: int
) -> None:
    recorded = json.loads((RECORDED / f"{name}.json").read_text("utf-8"))
    (saved / "body").write_text(recorded["body"])
    (saved / "asked.json").write_text(json.dumps(recorded["request"]["body"]))
    options = ["--request", str(saved / "asked.json"), "--status", str(recorded["status"])]
    assert cli.execute(["judge", str(saved / "body"), *options]) == code
    assert capsys.readouterr().out.splitlines()[0] == first
