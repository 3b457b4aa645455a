"""Writes spans as the SDK's console exporter prints them to FILE."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from answers import CALL, TOOLS, serve

os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "span_only"
os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"

import openai
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

FUNCTION = {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": FUNCTION}],
}


def main() -> None:
    answers = [
        CALLED,
        {"role": "assistant", "content": "It is sunny."},
        {"role": "assistant", "content": CALL},
    ]
    with Path(sys.argv[1]).open("w", encoding="utf-8") as out:
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out)))
        OpenAIInstrumentor().instrument(tracer_provider=provider)
        client = openai.OpenAI(base_url=serve(answers), api_key="none", max_retries=0)
        question = [{"role": "user", "content": "Weather in Oslo?"}]
        followed = [*question, CALLED, {"role": "tool", "tool_call_id": "c1", "content": "sunny"}]
        for messages in (question, followed, question, question):
            try:
                client.chat.completions.create(model="m", messages=messages, tools=TOOLS)
            except openai.InternalServerError as error:
                print("as it should:", error)


if __name__ == "__main__":
    main()
