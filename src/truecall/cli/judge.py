"""``truecall judge``: a saved response, HAR entry or stream, judged and explained."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecall.cli import screen
from truecall.cli.files import read_bytes, read_json, read_tools
from truecall.cli.screen import visible
from truecall.errors import InputError

if TYPE_CHECKING:
    from truecall.records import Verdict

_LOST = ("leaked", "erased", "mangled", "cut_off", "phantom", "rejected", "server_error", "timeout")
_BOM = b"\xef\xbb\xbf"


@click.command("judge")
@click.argument("response", type=click.Path(path_type=Path, allow_dash=True), metavar="RESPONSE|-")
@click.option("--request", "request_file", type=click.Path(path_type=Path), metavar="FILE",
              help="The request body as JSON: its tools, tool_choice and max_tokens count.")  # fmt: skip
@click.option("--tools", "tools_file", type=click.Path(path_type=Path), metavar="FILE",
              help="The offered tools as a JSON list, where the request is not at hand.")  # fmt: skip
@click.option(
    "--status", type=int, metavar="CODE", help="The HTTP status. Default: a HAR entry's own, or 200."
)
@click.option("--api", metavar="NAME", help="openai.chat, anthropic.messages, … Default: told from the body.")
@click.option("--json", "as_json", is_flag=True, help="The verdict as JSON.")
def judge_command(
    response: Path,
    request_file: Path | None,
    tools_file: Path | None,
    status: int | None,
    api: str | None,
    as_json: bool,
) -> int:
    """Judge a saved response: what the model did, what the stack did with it, and by which rule.

    RESPONSE holds a JSON body, an event stream, NDJSON, or a HAR file or entry. Exit code 1: a call was lost or the
    request failed.
    """
    saved = _Saved.read(response)
    request = read_json(request_file, "--request") if request_file else saved.request
    tools = read_tools(tools_file) if tools_file else None
    if request is not None and not isinstance(request, dict):
        raise InputError(f"--request {request_file}: is no JSON object")
    verdict = _judge(saved, request, tools, status, api)
    if as_json:
        import msgspec

        screen.emit_json({"schema_version": 1, **msgspec.to_builtins(verdict)})
    else:
        _show(verdict, knows_tools=tools is not None or bool(request))
    return 1 if str(verdict.delivery) in _LOST else 2 if str(verdict.emission) == "unknown" else 0


def _judge(
    saved: _Saved,
    request: dict[str, Any] | None,
    tools: list[Any] | None,
    status: int | None,
    api: str | None,
) -> Verdict:
    from truecall import wire
    from truecall.classify import judge

    known = [*wire.ASSEMBLERS]
    if api is not None and api not in known:
        raise InputError(f"--api {api}: not known; there are {', '.join(map(str, known))}")
    code = status if status is not None else saved.status if saved.status is not None else 200
    by_url = wire.sniff(None, None, saved.url)
    told = wire.sniff(saved.body, saved.content_type)
    if told is None and code < 400:
        _check_is_answer(saved, certain=(api or by_url) is not None)
    name = api or by_url or told or "openai.chat"
    return judge(code, saved.body, tools, api=name, request=request)


_ERROR_KEYS = frozenset(
    {"error", "errors", "detail", "details", "message", "msg", "code", "status", "fault", "title"}
)


def _check_is_answer(saved: _Saved, *, certain: bool) -> None:
    """Tells a file of the user's that is no response of any API from a server's odd answer.

    Text that is no JSON (a page, a gateway's words, nothing at all) is what servers do send; JSON of another kind,
    without a word of an error, is a wrong file. ``certain``: it is said to be an API's response, odd as it is.

    Raises:
        InputError: the wrong file, or JSON that is nested too deep to be read here.
    """
    try:
        value = json.loads(saved.body.removeprefix(_BOM) if isinstance(saved.body, bytes) else saved.body)
    except RecursionError:
        raise InputError(f"{saved.path}: nested too deep to be read") from None
    except ValueError:
        return
    first = value[0] if isinstance(value, list) and value else value  # some APIs put an error into a list
    if not certain and not (isinstance(first, dict) and _ERROR_KEYS & first.keys()):
        raise InputError(f"{saved.path}: is JSON, but no response of an API that is known, and no error")


class _Saved:
    """A saved response, with what a HAR entry says around it."""

    def __init__(self, body: bytes | str, path: Path) -> None:
        self.path = path
        self.body: bytes | str = body
        self.status: int | None = None
        self.content_type: str | None = None
        self.url: str | None = None
        self.request: dict[str, Any] | None = None

    @classmethod
    def read(cls, path: Path) -> _Saved:
        raw = read_bytes(path)
        saved = cls(raw, path)
        if raw.removeprefix(_BOM).lstrip()[:1] == b"{" and (
            b'"entries"' in raw[:1_000_000] or b'"response"' in raw
        ):
            value = None
            with suppress(ValueError, RecursionError):  # then it is judged as it stands
                value = json.loads(raw.removeprefix(_BOM))
            saved._har(value, path)
        return saved

    def _har(self, value: Any, path: Path) -> None:
        entry = _entry(value)
        response = entry.get("response")
        if not isinstance(response, dict) or not isinstance(response.get("content"), dict):
            if _is_har(value):
                raise InputError(f"{path}: as a HAR file or entry it holds no response with a content")
            return
        import base64

        content = response["content"]
        text = content.get("text")
        text = text if isinstance(text, str) else ""
        self.body = base64.b64decode(text) if content.get("encoding") == "base64" else text
        self.status = response.get("status") if isinstance(response.get("status"), int) else None
        self.content_type = content.get("mimeType") if isinstance(content.get("mimeType"), str) else None
        request = entry.get("request")
        self.url = _url(entry)
        post = request.get("postData") if isinstance(request, dict) else None
        with suppress(ValueError, RecursionError, TypeError):
            body = json.loads(post.get("text") or "") if isinstance(post, dict) else None
            self.request = body if isinstance(body, dict) else None


_CHAT = ("/completions", "/responses", "/messages", "/api/chat", "generateContent", "streamGenerateContent")


def _is_har(value: Any) -> bool:
    """Whether it is a HAR file or entry, whatever it lacks."""
    if not isinstance(value, dict):
        return False
    log = value.get("log")
    return (isinstance(log, dict) and isinstance(log.get("entries"), list)) or {
        "request",
        "response",
    } <= value.keys()


def _entry(value: Any) -> dict[str, Any]:
    """A HAR entry, or the last one of a HAR file that went to a model; {} for other JSON."""
    log = value.get("log") if isinstance(value, dict) else None
    if not isinstance(log, dict):
        return value if isinstance(value, dict) else {}
    entries = [e for e in log.get("entries") or [] if isinstance(e, dict)]
    chats = [e for e in entries if (_url(e) or "").partition("?")[0].rstrip("/").endswith(_CHAT)]
    return next(reversed(chats or entries), {})


def _url(entry: dict[str, Any]) -> str | None:
    request = entry.get("request")
    url = request.get("url") if isinstance(request, dict) else None
    return url if isinstance(url, str) else None


def _show(verdict: Verdict, *, knows_tools: bool) -> None:
    """The verdict, the rule in words, each call, and what to change where that is known."""
    cause = "" if str(verdict.cause) == "none" else f" · {verdict.cause}"
    _say(f"{_words(verdict.emission)} · {_words(verdict.delivery)}{cause}")
    says = _says(verdict.rule)
    for line in (says, "" if says and says in verdict.detail else verdict.detail):
        if line:
            screen.out(f"  {visible(line, 400)}")
    for call in verdict.calls:
        arguments = (
            "arguments that can't be read"
            if call.arguments is None
            else visible(json.dumps(call.arguments, ensure_ascii=False), 200)
        )
        dialect = f" as {call.dialect}" if call.dialect else ""
        marks = [f"{_words(call.emission)}, {_words(call.delivery)}"]
        marks += [f"{v.path or '/'} {_words(v.kind)}" for v in call.violations]
        marks += [_words(defect) for defect in call.defects]
        _say(f"call: {visible(call.name or '?')} {arguments}{dialect}: {'; '.join(marks)}")
        if call.rule != verdict.rule:
            screen.out(f"  {visible(_says(call.rule), 400)}")
    change = _change(verdict.rule)
    if change:
        _say(f"fix: {change}")
    notes = f"; notes: {', '.join(map(_words, verdict.notes))}" if verdict.notes else ""
    _say(f"rule {verdict.rule} · evidence {verdict.tier}{notes}")
    if not knows_tools:
        _say("no tool list was given: names and arguments were not held against one (--request, --tools)")


def _says(rule: str) -> str:
    """A rule in words: ours, or what is known of a refusal."""
    from truecall import stacks
    from truecall.classify.rules import BY_ID

    if rule in BY_ID:
        return BY_ID[rule].says
    return next((p.title for p in stacks.patterns() if p.rule == rule), "")


def _change(rule: str) -> str:
    from truecall import stacks

    return next((p.change for p in stacks.patterns() if p.rule == rule), "")


def _words(text: str) -> str:
    return str(text).replace("_", " ")


def _say(text: str) -> None:
    screen.out(screen.plain(text))
