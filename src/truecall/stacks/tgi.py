"""Text Generation Inference. Source: its code, ``docs/findings/contracts.md``; not run here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from truecall.records import Delivery, Json, Part
from truecall.stacks.base import Observations, Stack, StackInfo, Way, probed, served_model
from truecall.stacks.refusals import Pattern

_FINGERPRINT = re.compile(r"^(\d+\.\d+\.\d+\S*?)-(native|sha-\w+|\w+)$")


class TGI(Stack):
    name = "tgi"
    title = "TGI"
    evidence_kind = "logprob_bytes"
    ways: tuple[Way, ...] = ()  # a grammar makes the call: there is no parser to try
    refusals = (
        Pattern(
            rule="tgi.generated_not_json",
            match=(r"failed to parse generated text",),
            part=Part.CONSTRAINT,
            ran=True,
            attempted=True,
            delivery=Delivery.ERASED,
            title="TGI's grammar should have given JSON and did not; the text stands in the error",
            change="raise max_tokens: the JSON was most likely cut",
        ),
        Pattern(
            rule="request.unknown_tool",
            match=(r"tool with name .{0,120} not found",),
            part=Part.HARNESS,
            title="tool_choice names a tool that is not in tools (TGI takes any unknown word for a name)",
            change="name a tool that the same request offers",
        ),
    )
    findings: ClassVar[Mapping[str, str]] = {
        "tools-not-rendered": "start TGI with a tokenizer configuration whose chat template renders tools",
        "parallel-cut": "TGI answers with one call at most",
        "finish-reason-lies": "TGI never says tool_calls as finish_reason: look at the calls themselves",
        "no-call-forced": "TGI's grammar lets a model decline only through its own pseudo tool no_tool",
    }

    def signals(self, seen: Observations) -> list[str]:
        found = []
        info = seen.at("/info")
        if "docker_label" in info or ("model_id" in info and "sha" in info):
            found.append("/info docker_label, sha")
        if any(s.header("x-compute-type") for s in seen.every()):
            found.append("header x-compute-type")
        if "max_total_tokens" in info or "max_input_tokens" in info or "max_concurrent_requests" in info:
            found.append("/info token limits")
        if _FINGERPRINT.match(seen.fingerprint()):
            found.append(f"system_fingerprint {seen.fingerprint()}")
        if "error_type" in seen.chat_object():
            found.append("error body with error_type")
        return found

    def describe(self, seen: Observations) -> StackInfo:
        info = seen.at("/info")
        stamp = _FINGERPRINT.match(seen.fingerprint())
        model = served_model(seen)
        return StackInfo(
            engine=self.name,
            title=self.title,
            version=probed(info.get("version") or (stamp[1] if stamp else None)),
            model=model if model.value else probed(info.get("model_id")),
            model_path=probed(info.get("model_id")),
            digest=probed(info.get("model_sha")),
            tool_parser=probed("a JSON grammar"),
            context_length=probed(info.get("max_total_tokens")),
        )

    def evidence_fields(self, body: dict[str, Json]) -> dict[str, Json]:
        return {} if "logprobs" in body else {"logprobs": True}
