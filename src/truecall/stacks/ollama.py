"""Ollama. Source: its code, ``docs/findings/contracts.md``; not run on a live server here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from truecall.records import Delivery, Json, Part
from truecall.stacks.base import Observations, Stack, StackInfo, probed, served_model
from truecall.stacks.dialect_parsers import parsers_for
from truecall.stacks.refusals import Pattern

_LINE = re.compile(r"^(PARSER|RENDERER)\s+(\S+)", re.MULTILINE)
_SHORT_ID = re.compile(r"^chatcmpl-\d{1,3}$")
_GO_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{4,9}(Z|[+-]\d\d:\d\d)$")


class Ollama(Stack):
    name = "ollama"
    title = "Ollama"
    evidence_kind = "logprob_bytes"
    ways = ("echo",)  # its parsers see only what the model adds to a prefilled text
    refusals = (
        Pattern(
            rule="gate.ollama.no_tools_capability",
            match=(r"(?<!model )\bdoes not support tools\b",),
            part=Part.GATE,
            title="Ollama finds no tool support in this model's template",
            change="pull a tag that lists the capability tools (ollama show MODEL), or give the Modelfile "
            "a TEMPLATE with .Tools, or RENDERER and PARSER lines",
        ),
        Pattern(
            rule="parser.ollama.tool_call",
            match=(
                r"error parsing tool call",
                r"failed to parse json: (unexpected end of json input|invalid character|json:)",
                r"xml syntax error on line \d+",
                r"failed to parse tool call(?! arguments)",
                r"harmony parser: no reverse mapping found for function name",
            ),
            part=Part.PARSER,
            ran=True,
            attempted=True,
            delivery=Delivery.ERASED,
            title="Ollama's parser failed on the call that the model wrote, and the turn became an error",
            change="the raw text may stand in the error; upgrade Ollama, or sample again",
        ),
    )
    findings: ClassVar[Mapping[str, str]] = {
        "tools-not-rendered": "give the Modelfile a TEMPLATE that renders .Tools, or a RENDERER line, and "
        "create the model again; or pull a tag with the capability tools",
        "required-not-enforced": "Ollama has no tool_choice: the field is ignored, whatever its value",
        "named-ignored": "Ollama has no tool_choice: offer only the tool that should be called",
        "none-not-respected": "Ollama has no tool_choice: leave tools away when no call is wanted",
        "strict-not-enforced": "Ollama ignores strict: use format with a JSON schema and no tools",
        "parallel-cut": "Ollama ignores parallel_tool_calls",
        "context-cut": "set num_ctx (options) or OLLAMA_CONTEXT_LENGTH to hold the prompt: Ollama cuts it "
        "without a word",
    }

    def signals(self, seen: Observations) -> list[str]:
        chat = seen.chat_object()
        found = []
        root = seen.seen.get("/")
        if root and isinstance(root.body, str) and "ollama is running" in root.body.lower():
            found.append("/ says Ollama is running")
        if "version" in seen.at("/api/version"):
            found.append("/api/version")
        if seen.fingerprint() == "fp_ollama":
            found.append("system_fingerprint fp_ollama")
        if "capabilities" in seen.at("/api/show") or "modelfile" in seen.at("/api/show"):
            found.append("/api/show modelfile")
        if _SHORT_ID.match(str(chat.get("id", ""))):
            found.append("answer id chatcmpl-<number>")
        if "library" in seen.owners():
            found.append('/v1/models owned_by "library"')
        if _GO_TIME.match(str(chat.get("created_at", ""))) and "done" in chat:
            found.append("/api/chat answer with nanoseconds")
        return found

    def describe(self, seen: Observations) -> StackInfo:
        show = seen.at("/api/show")
        details = show.get("details")
        details = details if isinstance(details, dict) else {}
        lines = dict(_LINE.findall(str(show.get("modelfile") or "")))
        capabilities = show.get("capabilities")
        listed = isinstance(capabilities, list)
        loaded = _loaded(seen)
        return StackInfo(
            engine=self.name,
            title=self.title,
            version=probed(seen.at("/api/version").get("version")),
            model=served_model(seen),
            digest=probed(loaded.get("digest")),
            quantisation=probed(details.get("quantization_level")),
            chat_template=probed(show.get("template")),
            tool_parser=probed(lines.get("PARSER")),
            context_length=probed(loaded.get("context_length") or _trained_context(show)),
            capabilities=probed(capabilities if listed else None),
            tools=probed("tools" in capabilities if isinstance(capabilities, list) else None),
            notes=(f"rendered by {lines['RENDERER']}",) if "RENDERER" in lines else (),
        )

    def evidence_fields(self, body: dict[str, Json]) -> dict[str, Json]:
        return {} if "logprobs" in body else {"logprobs": True}

    def parser_advice(self, info: StackInfo, dialect: str) -> str:
        names = parsers_for("ollama", dialect)
        if not names:
            return "give the Modelfile the TEMPLATE of the model's family, or pull another tag"
        if info.tool_parser.value in names:
            return ""
        return f"add PARSER {names[0]} to the Modelfile and create the model again"


def _loaded(seen: Observations) -> dict[str, Json]:
    """The entry of ``/api/ps`` for the model: what is loaded now, with its digest."""
    models = seen.at("/api/ps").get("models")
    entries = [m for m in models if isinstance(m, dict)] if isinstance(models, list) else []
    wanted = seen.model or seen.chosen_model().get("id")
    return next((m for m in entries if wanted in (m.get("name"), m.get("model"))), {})


def _trained_context(show: dict[str, Json]) -> Json:
    info = show.get("model_info")
    pairs = info.items() if isinstance(info, dict) else ()
    return next((v for k, v in pairs if str(k).endswith(".context_length")), None)
