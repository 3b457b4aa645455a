"""A whole fake engine: template, model, parser and gate can each be made to fail, all consistently.

The model is a rule: it calls the first tool when it can see one and the user asks for it (the word "use" or the
tool's name, and no "not use"), it answers a tool's result in words, and it repeats, continues or chooses a text
when told to.
Token ids are the text's bytes, so that ``/detokenize`` is exact.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.faults.contracts import TABLE
from tests.faults.fingerprints import ENGINES
from tests.faults.kinds import DONE, Answer, Stream, chunk

Engine = Literal["vllm", "sglang", "llamacpp", "ollama", "lmstudio", "tgi"]
Message = dict[str, Any]
ECHO_SIGN = "word for word"


@dataclass(frozen=True)
class Profile:
    """What this engine does.

    ``parser`` "hermes" surfaces hermes text, "qwen3_coder" erases it and surfaces its own, "none" leaves all
    in the content. ``gate``: the server takes tools at all. ``required``: what a demanded call meets.
    ``stream_parser``: another parser when streaming. ``context``: prompt tokens kept; the rest is cut
    silently from the front of the tools. ``writes``: the model's text where it would call (default: hermes).
    """

    engine: Engine = "vllm"
    parser: Literal["hermes", "qwen3_coder", "none"] = "hermes"
    stream_parser: Literal["hermes", "qwen3_coder", "none", "same"] = "same"
    template_renders_tools: bool = True
    renders_tool_results: bool = True
    gate: bool = True
    required: Literal["enforced", "ignored", "loops"] = "enforced"
    none_calls: bool = False  # a parser that runs although tool_choice is "none"
    parallel: bool = True
    context: int = 100_000
    writes: str | None = None
    model_calls: bool = True
    evidence: bool = True  # takes the fields that ask for token ids, raw text or logprobs
    fails_above: int | None = None  # requests at once above which it answers 503
    seen: dict[str, Any] = field(default_factory=dict)


def hermes(name: str, arguments: Any) -> str:
    return (
        f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=False)}\n</tool_call>"
    )


def sample(schema: Any) -> Any:
    """A value that a simple schema takes."""
    if not isinstance(schema, dict):
        return {}
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if kind == "object":
        return {k: sample(v) for k, v in schema.get("properties", {}).items()}
    if kind == "array":
        return [sample(schema.get("items", {}))]
    return {"integer": 2, "number": 1.5, "boolean": True, "null": None}.get(kind, "Oslo")


# ------------------------------------------------------------------ template


def rendered(profile: Profile, body: dict[str, Any]) -> str:
    """The prompt: tools (when the template has them) and messages, cut to the context."""
    tools = body.get("tools") or []
    head = json.dumps(tools) if tools and profile.template_renders_tools else ""
    lines = [_line(profile, m) for m in body.get("messages", [])]
    text = "\n".join([head, *lines])
    return text[-profile.context * 4 :]


def _line(profile: Profile, message: Message) -> str:
    if message.get("role") == "tool" and not profile.renders_tool_results:
        return ""
    calls = (message.get("tool_calls") or []) if profile.template_renders_tools else []
    texts = [hermes(c["function"]["name"], _object(c["function"]["arguments"])) for c in calls]
    return f"<{message.get('role')}>{message.get('content') or ''}{''.join(texts)}"


def _object(arguments: Any) -> Any:
    return json.loads(arguments) if isinstance(arguments, str) else arguments


def tokens(text: str) -> int:
    return len(text) // 4 + 1


# ------------------------------------------------------------------ model


def writes(profile: Profile, body: dict[str, Any], prompt: str) -> str:
    """The text that the model writes."""
    choice = (body.get("structured_outputs") or {}).get("choice")
    if choice:
        return str(choice[0])
    last = body["messages"][-1] if body.get("messages") else {}
    content = str(last.get("content") or "")
    if last.get("role") == "assistant":
        return content  # prefilled: what the server parses begins with it
    if ECHO_SIGN in content:
        return content.split("\n\n", 1)[-1]
    offered = [t["function"]["name"] for t in body.get("tools") or []]
    names = [n for n in offered if f'"name": "{n}"' in prompt]  # what the template shows, as it writes it
    wanted = body.get("tool_choice")
    forced = profile.required == "enforced" and (wanted == "required" or isinstance(wanted, dict))
    if forced or (names and profile.model_calls and _asks(last, content, names)):
        return _call_text(profile, body, names, wanted)
    if wanted == "required" and profile.required == "loops":
        return "It is sunny in Oslo. " * 200
    return "It is sunny in Oslo."


def _asks(last: Message, content: str, names: list[str]) -> bool:
    words = content.lower()
    if last.get("role") != "user" or "not use" in words:
        return False
    return "use " in words or any(n in content for n in names)


def _call_text(profile: Profile, body: dict[str, Any], names: list[str], wanted: Any) -> str:
    tools = {t["function"]["name"]: t["function"] for t in body["tools"]}
    name = wanted["function"]["name"] if isinstance(wanted, dict) else (names or list(tools))[0]
    if profile.writes is not None and not isinstance(wanted, dict) and wanted != "required":
        return profile.writes
    return hermes(name, sample(tools[name].get("parameters") or {}))


# ------------------------------------------------------------------ parser


_BLOCK = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
_FUNCTION = re.compile(r"<function=([\w.-]+)>(.*?)</function>", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([\w.-]+)>\n?(.*?)\n?</parameter>", re.DOTALL)


def parse(parser: str, text: str) -> tuple[str, list[tuple[str, str]]]:
    """What is left of the text, and the calls: name and arguments as JSON text."""
    if parser == "none":
        return text, []
    blocks = _BLOCK.findall(text)
    calls = []
    for block in blocks:
        if parser == "hermes":
            try:
                value = json.loads(block)
                calls.append((value["name"], json.dumps(value.get("arguments", {}), ensure_ascii=False)))
            except (ValueError, KeyError, TypeError):
                return text, []
        else:
            found = _FUNCTION.findall(block)
            calls += [(name, json.dumps(dict(_PARAMETER.findall(inner)))) for name, inner in found]
    return _BLOCK.sub("", text).strip() if blocks else text, calls


# ------------------------------------------------------------------ the answer


def refuses(profile: Profile, body: dict[str, Any]) -> Answer | None:
    """The refusal of a closed gate or an unknown field, as the engine words it."""
    if not profile.evidence and {"return_token_ids", "verbose", "logprobs"} & set(body):
        named = next(f for f in ("return_token_ids", "verbose", "logprobs") if f in body)
        text = f"Unrecognized request argument supplied: {named}"
        return Answer(400, {"error": {"message": text, "type": "invalid_request_error", "code": None}})
    if profile.gate or not body.get("tools") or body.get("tool_choice") == "none":
        return None
    wanted = body.get("tool_choice")
    kind = "named" if isinstance(wanted, dict) else "required" if wanted == "required" else "auto"
    row = {"vllm": f"vllm-{kind}", "llamacpp": "llamacpp-no-jinja", "ollama": "ollama-no-tools"}
    _, status, answer, _ = TABLE[row.get(profile.engine, "openai-no-tools")]
    return Answer(status, answer)


def answer(profile: Profile, body: dict[str, Any]) -> Answer | Stream:
    """The engine's answer to a chat request."""
    refusal = refuses(profile, body)
    if refusal is not None:
        return refusal
    prompt = rendered(profile, body)
    raw = writes(profile, body, prompt)
    budget = body.get("max_tokens") or 4096
    cut = tokens(raw) > budget and body.get("messages", [{}])[-1].get("role") != "assistant"
    raw = raw[: budget * 4] if cut else raw
    streaming = bool(body.get("stream"))
    parser = profile.stream_parser if streaming and profile.stream_parser != "same" else profile.parser
    on = body.get("tools") and (body.get("tool_choice") != "none" or profile.none_calls)
    content, calls = parse(parser if on else "none", raw)
    if body.get("parallel_tool_calls") is False or not profile.parallel:
        calls = calls[:1]
    finish = "tool_calls" if calls else "length" if cut else "stop"
    whole = _whole(profile, body, prompt, raw, content, calls, finish)
    return _streamed(whole) if streaming else Answer(200, whole, _headers(profile))


def _headers(profile: Profile) -> dict[str, str]:
    server = {"llamacpp": "llama.cpp", "vllm": "uvicorn", "sglang": "uvicorn"}.get(profile.engine)
    return {"server": server} if server else {}


def _whole(
    profile: Profile,
    body: dict[str, Any],
    prompt: str,
    raw: str,
    content: str,
    calls: list[tuple[str, str]],
    finish: str,
) -> dict[str, Any]:
    known = ENGINES[profile.engine]["chat"][2]
    listed = [
        {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for i, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": content or None, "tool_calls": listed}
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": finish}
    spent, used = tokens(prompt), tokens(raw)
    usage = {"prompt_tokens": spent, "completion_tokens": used, "total_tokens": spent + used}
    whole = {**known, "model": body.get("model", "m"), "choices": [choice], "usage": usage}
    if body.get("return_token_ids") and profile.engine in ("vllm", "sglang"):
        choice["token_ids"] = list(raw.encode())
        whole["prompt_token_ids"] = list(prompt.encode())
    if body.get("verbose") and profile.engine == "llamacpp":
        whole["__verbose"] = {"content": raw, "prompt": prompt}
    if body.get("logprobs"):
        pieces = [{"token": c, "bytes": list(c.encode()), "logprob": -0.1} for c in raw]
        choice["logprobs"] = {"content": pieces}
    return whole


def _streamed(whole: dict[str, Any]) -> Stream:
    choice = whole["choices"][0]
    message = choice["message"]
    text = message["content"] or ""
    payloads = [chunk({"role": "assistant", "content": ""})]
    payloads += [chunk({"content": text[i : i + 9]}) for i in range(0, len(text), 9)]
    for index, call in enumerate(message["tool_calls"]):
        function = call["function"]
        named = {"index": index, "id": call["id"], "type": "function"}
        payloads.append(
            chunk({"tool_calls": [{**named, "function": {"name": function["name"], "arguments": ""}}]})
        )
        payloads.append(
            chunk({"tool_calls": [{"index": index, "function": {"arguments": function["arguments"]}}]})
        )
    ids = {"token_ids": choice["token_ids"]} if "token_ids" in choice else {}
    last = json.loads(chunk({}, choice["finish_reason"]))
    last["choices"][0].update(ids)
    end = {"choices": [], "usage": whole["usage"], "system_fingerprint": whole.get("system_fingerprint")}
    return Stream((*payloads, json.dumps(last), json.dumps(end), DONE))


def detokenize(body: dict[str, Any]) -> dict[str, str]:
    return {"prompt": bytes(body.get("tokens") or []).decode("utf-8", "replace")}


def get(profile: Profile, path: str) -> Answer | None:
    """What the engine says of itself under ``path``."""
    if path in profile.seen:
        return Answer(200, profile.seen[path])
    known = ENGINES[profile.engine].get(path)
    if known is None or path in HIDDEN.get(profile.engine, ()):
        return None
    status, headers, body = known
    told = TOLD.get((profile.engine, path))
    return Answer(status, {**body, **told(profile)} if told else body, headers)


HIDDEN = {"vllm": ("/server_info", "/tokenizer_info")}  # shown in development mode only
PLAIN = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}"
TOLD: dict[tuple[str, str], Callable[[Profile], dict[str, Any]]] = {
    ("sglang", "/model_info"): lambda p: {"tool_call_parser": None if p.parser == "none" else p.parser},
    ("llamacpp", "/props"): lambda p: {
        "chat_template": f"{{{{ tools | tojson }}}}{PLAIN}" if p.template_renders_tools else PLAIN,
        "chat_template_caps": dict.fromkeys(
            ("supports_tools", "supports_tool_calls"), p.template_renders_tools
        ),
    },
}
"""What an engine says of itself that follows from the profile."""
