"""Any server that speaks the OpenAI chat API and shows no marks of an engine that is known.

OpenAI's own service, hosted APIs, MLX and others. Source: the public API reference; only the portable parts.
"""

from __future__ import annotations

from truecall.records import Json
from truecall.stacks.base import Observations, Stack, StackInfo, probed, served_model


class OpenAICompatible(Stack):
    name = "openai_compatible"
    title = "an OpenAI-compatible server"
    evidence_kind = "logprob_bytes"
    ways = ("echo",)

    def describe(self, seen: Observations) -> StackInfo:
        entry = seen.chosen_model()
        length = next(
            (entry[k] for k in ("max_model_len", "context_length", "context_window") if entry.get(k)), None
        )
        supported = entry.get("supported_parameters")  # OpenRouter lists them
        return StackInfo(
            engine=self.name,
            title="OpenAI" if any(s.header("openai-version") for s in seen.every()) else self.title,
            model=served_model(seen),
            context_length=probed(length),
            capabilities=probed(supported if isinstance(supported, list) else None),
            tools=probed("tools" in supported if isinstance(supported, list) else None),
        )

    def evidence_fields(self, body: dict[str, Json]) -> dict[str, Json]:
        return {} if "logprobs" in body else {"logprobs": True}
