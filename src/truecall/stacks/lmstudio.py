"""LM Studio. Source: its documentation of 2026-04, ``docs/findings/contracts.md``; not run here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from truecall.records import Json
from truecall.stacks.base import Observations, Stack, StackInfo, probed, served_model


class LMStudio(Stack):
    name = "lmstudio"
    title = "LM Studio"
    evidence_kind = "none"
    ways = ("echo",)
    findings: ClassVar[Mapping[str, str]] = {
        "tools-not-rendered": "update the model's prompt template (My Models), or load a model "
        "marked for tool use",
        "parser-mismatch": "load a model marked for tool use: for all others LM Studio expects its own "
        "[TOOL_REQUEST]…[END_TOOL_REQUEST] text",
        "no-parser": "load a model marked for tool use; see the prompt with: lms log stream",
        "context-cut": "load the model with a longer context length",
    }

    def signals(self, seen: Observations) -> list[str]:
        chat = seen.chat_object()
        found = []
        if _entry(seen, "/api/v1/models", "models"):
            found.append("/api/v1/models")
        if _entry(seen, "/api/v0/models", "data"):
            found.append("/api/v0/models")
        if "organization_owner" in seen.owners():
            found.append('/v1/models owned_by "organization_owner"')
        if "runtime" in chat and "stats" in chat:
            found.append("stats and runtime in the answer")
        if chat.get("stats") == {} and chat.get("system_fingerprint") == chat.get("model"):
            found.append("system_fingerprint is the model's name")
        return found

    def describe(self, seen: Observations) -> StackInfo:
        new = _entry(seen, "/api/v1/models", "models")
        old = _entry(seen, "/api/v0/models", "data")
        claims = new.get("capabilities")
        if isinstance(claims, dict):
            listed: list[str] | None = sorted(k for k, v in claims.items() if v)
            tools = claims.get("trained_for_tool_use")
        else:
            claims = old.get("capabilities")
            listed = [str(c) for c in claims] if isinstance(claims, list) else None
            tools = "tool_use" in listed if listed is not None else None
        quant = new.get("quantization")
        return StackInfo(
            engine=self.name,
            title=self.title,
            model=served_model(seen),
            quantisation=probed(quant.get("name") if isinstance(quant, dict) else old.get("quantization")),
            context_length=probed(
                _loaded_context(new) or old.get("loaded_context_length") or new.get("max_context_length")
            ),
            capabilities=probed(listed),
            tools=probed(tools),
            notes=("not marked for tool use: calls are asked for as [TOOL_REQUEST] text",)
            if tools is False
            else (),
        )


def _entry(seen: Observations, path: str, key: str) -> dict[str, Json]:
    """The entry of the wanted model in a native model list, else of a loaded one, else the first."""
    models = seen.at(path).get(key)
    entries = [m for m in models if isinstance(m, dict)] if isinstance(models, list) else []
    wanted = seen.model or seen.chosen_model().get("id")
    named = (m for m in entries if wanted in (m.get("id"), m.get("key")))
    loaded = (m for m in entries if m.get("state") == "loaded" or m.get("loaded_instances"))
    return next(named, None) or next(loaded, None) or (entries[0] if entries else {})


def _loaded_context(entry: dict[str, Json]) -> Json:
    instances = entry.get("loaded_instances")
    first = instances[0] if isinstance(instances, list) and instances else None
    config = first.get("config") if isinstance(first, dict) else None
    return config.get("context_length") if isinstance(config, dict) else None
