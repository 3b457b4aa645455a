"""SGLang (0.4 to 0.5). Source: its code, ``docs/findings/contracts.md``; not run on a live server here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from truecall.records import Json
from truecall.stacks.base import (
    EngineRequest,
    LoopbackRequest,
    Observations,
    Stack,
    StackInfo,
    Way,
    chat_body,
    probed,
    served_model,
)
from truecall.stacks.dialect_parsers import parsers_for

_META = re.compile(r"[\\.^$*+?{}\[\]|()]")
_CALL_ID = re.compile(r"^call_[0-9a-f]{24}$")


class SGLang(Stack):
    name = "sglang"
    title = "SGLang"
    evidence_kind = "token_ids"
    ways = ("guided", "oracle", "echo")
    findings: ClassVar[Mapping[str, str]] = {
        "tools-not-rendered": "start SGLang with --chat-template FILE, a template that renders tools",
        "no-parser": "start SGLang with --tool-call-parser NAME; without it calls stay in content",
        "reasoning-swallows-call": "check --reasoning-parser: the call stands in what it takes for reasoning",
        "unknown-name-erased": "set SGLANG_FORWARD_UNKNOWN_TOOLS=true to see calls to unknown tools",
    }

    def signals(self, seen: Observations) -> list[str]:
        found = []
        if "sglang" in seen.owners():
            found.append('/v1/models owned_by "sglang"')
        info = seen.at("/model_info", "/get_model_info")
        if "is_generation" in info or "weight_version" in info:
            found.append("/model_info is_generation")
        server = seen.at("/server_info", "/get_server_info")
        if "tool_call_parser" in server or "internal_states" in server or "mem_fraction_static" in server:
            found.append("/server_info server arguments")
        if _flat_error(seen) and "sglang" not in seen.fingerprint():
            found.append('error body {"object": "error"} with a code')
        if any(_CALL_ID.match(i) for i in _call_ids(seen)) and "metadata" in seen.chat_object():
            found.append("tool call id call_<24 hex> with metadata")
        return found

    def describe(self, seen: Observations) -> StackInfo:
        info = {**seen.at("/server_info", "/get_server_info"), **seen.at("/model_info", "/get_model_info")}
        entry = seen.chosen_model()
        parser = info.get("tool_call_parser")
        told = "tool_call_parser" in info
        return StackInfo(
            engine=self.name,
            title=self.title,
            version=probed(info.get("version")),
            model=served_model(seen),
            model_path=probed(info.get("model_path")),
            digest=probed(info.get("weight_version") if info.get("weight_version") != "default" else None),
            quantisation=probed(info.get("quantization")),
            tool_parser=probed(parser or ("none" if told else None)),
            reasoning_parser=probed(info.get("reasoning_parser")),
            context_length=probed(
                entry.get("max_model_len") or info.get("context_length") or info.get("max_total_num_tokens")
            ),
            notes=("no tool-call parser is set: calls stay in content",) if told and not parser else (),
        )

    def evidence_fields(self, body: dict[str, Json]) -> dict[str, Json]:
        wanted = {"return_token_ids": True, "return_meta_info": True}
        return {k: v for k, v in wanted.items() if k not in body}

    def detokenize(self, ids: Sequence[int], model: str | None = None) -> EngineRequest:
        named: dict[str, Json] = {"model": model} if model else {}
        return EngineRequest(
            path="/detokenize", body={**named, "tokens": list(ids), "skip_special_tokens": False}
        )

    def read_detokenized(self, body: Json) -> str | None:
        text = body.get("text") if isinstance(body, dict) else None
        if isinstance(text, list) and len(text) == 1:  # a batch of one
            text = text[0]
        return text if isinstance(text, str) else None

    def loopback(
        self, text: str, tools: Sequence[Json], model: str, way: Way | None = None
    ) -> LoopbackRequest | None:
        if way in (None, "guided"):
            body = chat_body(model, tools, [{"role": "user", "content": "Answer."}])
            guided = {"regex": exactly(text), "max_tokens": 64 + len(text.encode())}
            return LoopbackRequest(
                way="guided",
                path="/v1/chat/completions",
                body={**body, **guided, **self.evidence_fields(body)},
            )
        return super().loopback(text, tools, model, way)

    def oracle(self, text: str, tools: Sequence[Json], parser: str) -> LoopbackRequest:
        """Ask the live server's own parser code, by the parser's name (``info.tool_parser``)."""
        body: dict[str, Json] = {"text": text, "tools": list(tools), "tool_call_parser": parser}
        return LoopbackRequest(way="oracle", path="/parse_function_call", body=body, stream=False)

    def read_oracle(self, body: Json) -> tuple[str, list[dict[str, Json]]] | None:
        if not isinstance(body, dict) or not isinstance(body.get("calls"), list):
            return None
        calls = [{"name": c.get("name"), "arguments": c.get("parameters")} for c in body["calls"]]
        return str(body.get("normal_text") or ""), calls

    def parser_advice(self, info: StackInfo, dialect: str) -> str:
        names = parsers_for("sglang", dialect)
        if not names:
            return (
                f"no tool-call parser of SGLang reads {dialect}; serve a template that asks for hermes text"
            )
        current = info.tool_parser.value
        if current in names:
            return ""
        if current and current != "none":
            return f"change --tool-call-parser {current} to {names[0]}"
        return f"start SGLang with --tool-call-parser {names[0]}"


def exactly(text: str) -> str:
    """A regular expression for this text alone, in the few escapes that every grammar backend reads."""
    escaped = _META.sub(lambda m: "\\" + m[0], text)
    return escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _flat_error(seen: Observations) -> bool:
    body = seen.chat_object()
    return body.get("object") == "error" and "message" in body and "code" in body


def _call_ids(seen: Observations) -> list[str]:
    choices = seen.chat_object().get("choices")
    messages = [c.get("message") for c in choices if isinstance(c, dict)] if isinstance(choices, list) else []
    calls = [m.get("tool_calls") for m in messages if isinstance(m, dict)]
    return [
        str(c.get("id")) for found in calls if isinstance(found, list) for c in found if isinstance(c, dict)
    ]
