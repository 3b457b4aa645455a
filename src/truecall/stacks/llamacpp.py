"""llama.cpp's server. Sources: its code and live servers, ``docs/findings/contracts.md``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import ClassVar

from truecall.records import Delivery, Json, Part
from truecall.stacks.base import (
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

_BUILD = re.compile(r"^b\d+-")
_ID = re.compile(r"^chatcmpl-[A-Za-z0-9]{32}$")


_UNSTAMPED = "b0-unknown"  # what a build without git says of itself


class LlamaCpp(Stack):
    name = "llamacpp"
    title = "llama.cpp"
    evidence_kind = "raw_text"
    ways = ("prefill", "echo")
    refusals = (
        Pattern(
            rule="gate.llamacpp.no_jinja",
            match=(r"(tools?|tool_choice)( param)? requires? --jinja",),
            part=Part.GATE,
            title="llama.cpp was started without Jinja templates, so it takes no tools",
            change="start llama-server with --jinja (leave --no-jinja away)",
        ),
        Pattern(
            rule="request.bad_schema",
            match=(r"json schema error at #",),
            part=Part.HARNESS,
            title="llama.cpp can make no grammar of a tool's parameters",
            change="correct the schema at the place that the error names",
        ),
        Pattern(
            rule="parser.llamacpp.parse_input",
            match=(r"failed to parse input at pos",),
            part=Part.PARSER,
            ran=True,
            attempted=True,
            delivery=Delivery.ERASED,
            title="llama.cpp's parser failed on what the model wrote; the text stands in the error",
            change="upgrade llama.cpp, or serve a chat template that matches what the model writes",
        ),
        Pattern(
            rule="parser.llamacpp.grammar",
            match=(r"empty grammar stack",),
            part=Part.CONSTRAINT,
            ran=True,
            delivery=Delivery.UNKNOWN,
            title="the model's text left the grammar in mid-generation; the text is lost",
            change="upgrade llama.cpp, or serve a chat template whose grammar it can follow",
        ),
        Pattern(
            rule="server.context_exceeded",
            match=(r"context size has been exceeded",),
            part=Part.BUDGET,
            ran=None,
            delivery=Delivery.SERVER_ERROR,
            title="the context was full, maybe while the model was writing",
            change="start llama-server with a larger --ctx-size, or fewer slots (--parallel)",
        ),
        Pattern(
            rule="parser.llamacpp.peg_mismatch",
            match=(
                r"output that does not match the expected",
                r"does not match the expected .{1,40} format",
                r"unparsed .{0,40}output:",
                r"invalid diff: .{0,2000}not found at start of",
            ),
            part=Part.PARSER,
            ran=True,
            delivery=Delivery.UNKNOWN,
            title="the model ran, but its output does not fit the template's grammar; the text is lost",
            change="read the server log (unparsed … output), upgrade llama.cpp, or serve a chat template "
            "that matches what the model writes",
        ),
    )
    findings: ClassVar[Mapping[str, str]] = {
        "tools-not-rendered": "start llama-server with --jinja --chat-template-file FILE, "
        "a template that renders tools",
        "parser-mismatch": "llama.cpp derives its parser from the chat template: start it with "
        "--chat-template-file FILE, the template of the model's own family",
        "required-not-enforced": "upgrade llama.cpp, and serve a template that renders tools; with one, "
        "required only forbids the end before a call: keep max_tokens small",
        "named-ignored": 'llama.cpp takes a named tool for "auto": send only that tool, with "required"',
        "context-cut": "start llama-server with a larger --ctx-size",
        "stream-error": "upgrade llama.cpp: the final parse failed after the stream had begun",
    }

    def signals(self, seen: Observations) -> list[str]:
        chat = seen.chat_object()
        found = []
        if "llama.cpp" in seen.header_values("server"):
            found.append("server llama.cpp")
        if "llamacpp" in seen.owners():
            found.append('/v1/models owned_by "llamacpp"')
        props = seen.at("/props")
        if "default_generation_settings" in props or "chat_template_caps" in props:
            found.append("/props default_generation_settings")
        if _BUILD.match(seen.fingerprint()):
            found.append(f"system_fingerprint {seen.fingerprint()}")
        timings = chat.get("timings")
        if isinstance(timings, dict) and "predicted_per_second" in timings:
            found.append("timings in the answer")
        if _ID.match(str(chat.get("id", ""))) and timings is not None:
            found.append("answer id chatcmpl-<32 letters>")
        return found

    def describe(self, seen: Observations) -> StackInfo:
        props = seen.at("/props")
        meta = seen.chosen_model().get("meta")
        meta = meta if isinstance(meta, dict) else {}
        settings = props.get("default_generation_settings")
        context = settings.get("n_ctx") if isinstance(settings, dict) else None
        path = props.get("model_path")
        caps = props.get("chat_template_caps")
        caps = caps if isinstance(caps, dict) else {}
        build = props.get("build_info") or (seen.fingerprint() if _BUILD.match(seen.fingerprint()) else None)
        template = props.get("chat_template_tool_use") or props.get("chat_template")
        return StackInfo(
            engine=self.name,
            title=self.title,
            version=probed(None if build == _UNSTAMPED else build),
            model=served_model(seen),
            model_path=probed(PurePath(path).name if isinstance(path, str) else None),
            quantisation=probed(props.get("model_ftype")),
            chat_template=probed(template),
            tool_parser=probed("derived from the chat template"),
            context_length=probed(context or meta.get("n_ctx_train")),
            capabilities=probed(sorted(k for k, v in caps.items() if v is True) if caps else None),
            tools=probed(caps.get("supports_tools")),
        )

    def evidence_fields(self, body: dict[str, Json]) -> dict[str, Json]:
        wanted = {"verbose": True, "return_tokens": True}
        return {k: v for k, v in wanted.items() if k not in body}

    def loopback(
        self, text: str, tools: Sequence[Json], model: str, way: Way | None = None
    ) -> LoopbackRequest | None:
        if way not in (None, "prefill"):
            return super().loopback(text, tools, model, way)
        # One token after the whole text: with more the model goes on in prose, against the grammar.
        messages = [{"role": "user", "content": "Answer."}, {"role": "assistant", "content": text}]
        body = {**chat_body(model, tools, messages), "max_tokens": 1}
        return LoopbackRequest(
            way="prefill",
            path="/v1/chat/completions",
            body={**body, **self.evidence_fields(body)},
            stream=False,  # a stream sends only what comes after the prefilled text, so no arguments
        )

    def parser_advice(self, info: StackInfo, dialect: str) -> str:
        families = parsers_for("llamacpp", dialect)
        if families:
            return (
                "llama.cpp derives its parser from the chat template: start it with --jinja "
                f"--chat-template-file FILE, a template of the family {families[0]}"
            )
        return (
            f"no template family of llama.cpp makes it expect {dialect}; serve a template that asks the model "
            "for hermes text, and check that the model follows it"
        )
