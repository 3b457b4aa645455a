"""vLLM (0.6 to 0.32). Sources: its code and live servers, ``docs/findings/contracts.md``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from truecall.records import Json, Part
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
from truecall.stacks.refusals import Pattern

_FINGERPRINT = re.compile(r"^vllm-(\d[^-]*)")
_FLAGS = "--enable-auto-tool-choice --tool-call-parser"


class VLLM(Stack):
    name = "vllm"
    title = "vLLM"
    evidence_kind = "token_ids"
    ways = ("guided", "echo")
    refusals = (
        Pattern(
            rule="gate.vllm.auto_flags",
            match=(r"--enable-auto-tool-choice", r"enable_auto_tool_choice"),
            part=Part.GATE,
            title="vLLM was started without tool calling",
            change="start vLLM with --enable-auto-tool-choice --tool-call-parser NAME, "
            "where NAME is the parser of the model's dialect",
        ),
        Pattern(
            rule="gate.vllm.required_parser",
            match=(r"tool_choice ?= ?.?required.{0,40}requires.{0,40}--tool-call-parser",),
            part=Part.GATE,
            title='vLLM needs a tool-call parser for tool_choice "required"',
            change="start vLLM with --tool-call-parser NAME",
        ),
        Pattern(
            rule="gate.vllm.named_parser",
            match=(r"tool_choice ?= ?.{0,160}requires.{0,40}--tool-call-parser", r"--tool-call-parser"),
            part=Part.GATE,
            title="vLLM needs a tool-call parser for a named tool",
            change="start vLLM with --tool-call-parser NAME",
        ),
        Pattern(
            rule="gate.vllm.required_unsupported",
            match=(r"tool_choice.? must either be a named tool",),
            part=Part.GATE,
            title='this vLLM is too old for tool_choice "required"',
            change='upgrade vLLM (0.8.3 or newer), or send "auto" or a named tool',
        ),
    )
    findings: ClassVar[Mapping[str, str]] = {
        "tools-not-rendered": "start vLLM with --chat-template FILE, a template that renders tools "
        "(vLLM ships some as examples/tool_chat_template_*.jinja)",
        "reasoning-swallows-call": "check --reasoning-parser: the call stands in what it takes for reasoning",
        "required-not-enforced": "upgrade vLLM; older versions answer required with finish_reason tool_calls "
        "and an empty list",
        "arguments-against-schema": 'set "strict": true in the function, or start with --tool-strict-level',
        "none-not-respected": "start vLLM with --exclude-tools-when-tool-choice-none",
        "finish-reason-lies": "judge truncation by usage.completion_tokens: a cut answer says tool_calls",
    }

    def signals(self, seen: Observations) -> list[str]:
        chat = seen.chat_object()
        found = []
        version = seen.at("/version")
        if set(version) == {"version"} and isinstance(version["version"], str):
            found.append(f"/version {version['version']}")
        if "vllm" in seen.owners():
            found.append('/v1/models owned_by "vllm"')
        if _FINGERPRINT.match(seen.fingerprint()):
            found.append(f"system_fingerprint {seen.fingerprint()}")
        if (
            "uvicorn" in seen.header_values("server")
            and "max_model_len" in seen.chosen_model()
            and "sglang" not in seen.owners()  # the same server, the same field
        ):
            found.append("server uvicorn with max_model_len")
        if any(str(c.get("id", "")).startswith("chatcmpl-tool-") for c in _calls(chat)):
            found.append("tool call id chatcmpl-tool-…")
        if isinstance(seen.at("/server_info").get("vllm_config"), str | dict):
            found.append("/server_info vllm_config")
        if _gate_text(chat):
            found.append("error text names --enable-auto-tool-choice")
        return found

    def describe(self, seen: Observations) -> StackInfo:
        entry = seen.chosen_model()
        stamp = _FINGERPRINT.match(seen.fingerprint())
        version = seen.at("/version").get("version") or (stamp[1] if stamp else None)
        tokenizer = seen.at("/tokenizer_info")
        settings = _settings(seen.at("/server_info"))
        gate = _gate_text(seen.chat_object())
        return StackInfo(
            engine=self.name,
            title=self.title,
            version=probed(version),
            model=served_model(seen),
            model_path=probed(entry.get("root")),
            quantisation=probed(settings.get("quantization")),
            chat_template=probed(tokenizer.get("chat_template")),
            tool_parser=probed("none" if gate else settings.get("tool_call_parser")),
            reasoning_parser=probed(settings.get("reasoning_parser")),
            context_length=probed(entry.get("max_model_len")),
            tools=probed(False if gate else None),
            notes=("no tool-call parser is set: the gate refuses tools",) if gate else (),
        )

    def evidence_fields(self, body: dict[str, Json]) -> dict[str, Json]:
        return {} if "return_token_ids" in body else {"return_token_ids": True}

    def detokenize(self, ids: Sequence[int], model: str | None = None) -> EngineRequest:
        named: dict[str, Json] = {"model": model} if model else {}
        return EngineRequest(path="/detokenize", body={**named, "tokens": list(ids)})

    def read_detokenized(self, body: Json) -> str | None:
        text = body.get("prompt") if isinstance(body, dict) else None
        return text if isinstance(text, str) else None

    def loopback(
        self, text: str, tools: Sequence[Json], model: str, way: Way | None = None
    ) -> LoopbackRequest | None:
        if way not in (None, "guided"):
            return super().loopback(text, tools, model, way)
        body = chat_body(model, tools, [{"role": "user", "content": "Answer."}])
        guided = {"structured_outputs": {"choice": [text]}, "max_tokens": 64 + len(text.encode())}
        return LoopbackRequest(
            way="guided",
            path="/v1/chat/completions",
            body={**body, **guided, **self.evidence_fields(body)},
        )

    def advice(self, finding: str, info: StackInfo, dialect: str | None = None) -> str:
        if finding.startswith("gate.vllm.") and finding != "gate.vllm.required_unsupported" and dialect:
            return self.parser_advice(info, dialect)
        return super().advice(finding, info, dialect)

    def parser_advice(self, info: StackInfo, dialect: str) -> str:
        names = parsers_for("vllm", dialect)
        if not names:
            return f"no tool-call parser of vLLM reads {dialect}; serve a template that asks for hermes text"
        current = info.tool_parser.value
        if current in names:
            return ""
        if current and current != "none":
            return f"change --tool-call-parser {current} to {names[0]}"
        return f"start vLLM with {_FLAGS} {names[0]}"


def _gate_text(chat: dict[str, Json]) -> bool:
    error = chat.get("error")
    message = error.get("message") if isinstance(error, dict) else chat.get("message")
    return isinstance(message, str) and "--enable-auto-tool-choice" in message


def _calls(chat: dict[str, Json]) -> list[dict[str, Json]]:
    found: list[dict[str, Json]] = []
    choices = chat.get("choices")
    for choice in choices if isinstance(choices, list) else []:
        message = choice.get("message") if isinstance(choice, dict) else None
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        found += [c for c in calls or [] if isinstance(c, dict)] if isinstance(calls, list | None) else []
    return found


def _settings(server_info: dict[str, Json]) -> dict[str, str]:
    """The few settings that ``/server_info`` shows in development mode, as text or as an object."""
    config = server_info.get("vllm_config")
    flat = config if isinstance(config, str) else repr(config)
    names = ("quantization", "tool_call_parser", "reasoning_parser")
    found = {n: re.search(rf"{n}['\"]?[=:] ?['\"]?([\w.-]+)", flat) for n in names}
    return {n: m[1] for n, m in found.items() if m and m[1] not in ("None", "null")}
