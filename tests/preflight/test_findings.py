"""Each fault of a stack, shown by a fake engine that has just this fault, is found and put down to its part."""

from __future__ import annotations

import pytest

from tests.faults.engine import Profile
from tests.preflight.conftest import Examine
from truecall.preflight.report import Report
from truecall.records import Part

HERMES_GATE = "--enable-auto-tool-choice --tool-call-parser"


def ids(report: Report, *severities: str) -> set[str]:
    return {f.id for f in report.findings if not severities or f.severity in severities}


@pytest.mark.parametrize("engine", ["vllm", "sglang", "llamacpp", "ollama", "lmstudio"])
async def test_a_healthy_stack_is_ready(examine: Examine, engine: str) -> None:
    report = await examine(Profile(engine=engine))  # type: ignore[arg-type]
    assert (report.state, ids(report, "broken", "degraded")) == ("READY", set()), report.answer
    assert report.endpoint is not None and report.endpoint.engine == engine
    auto = next(p for p in report.probes if p.name == "auto")
    assert auto.rate is not None and (auto.rate.count.k, auto.rate.count.n) == (5, 5)


@pytest.mark.parametrize(
    ("profile", "finding", "part"),
    [
        (Profile(gate=False), "gate-refuses-auto", Part.GATE),
        (Profile(engine="ollama", gate=False), "gate-refuses-auto", Part.GATE),
        (Profile(template_renders_tools=False), "tools-not-rendered", Part.TEMPLATE),
        (Profile(engine="llamacpp", template_renders_tools=False), "tools-not-rendered", Part.TEMPLATE),
        (Profile(parser="none"), "call-leaked", Part.PARSER),
        (Profile(engine="sglang", parser="none"), "call-leaked", Part.PARSER),
        (Profile(parser="qwen3_coder"), "call-erased", Part.PARSER),
        (Profile(renders_tool_results=False), "tool-result-not-rendered", Part.TEMPLATE),
        (Profile(engine="ollama", context=200), "context-cut", Part.SERVER),
        (Profile(stream_parser="none"), "stream-differs", Part.STREAM),
        (Profile(stream_parser="qwen3_coder"), "stream-differs", Part.STREAM),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
async def test_a_broken_part_is_named(examine: Examine, profile: Profile, finding: str, part: Part) -> None:
    report = await examine(profile)
    found = {f.id: f for f in report.findings}
    assert finding in found, (report.answer, sorted(found))
    assert (report.state, found[finding].part, found[finding].severity) == ("BROKEN", part, "broken")
    assert found[finding].repeat.startswith("curl -sS ")


@pytest.mark.parametrize(
    ("profile", "finding", "part"),
    [
        (Profile(required="ignored", model_calls=False), "required-not-enforced", Part.CONSTRAINT),
        (Profile(required="loops", model_calls=False), "required-not-enforced", Part.CONSTRAINT),
        (Profile(none_calls=True), "none-not-respected", Part.CONSTRAINT),
        (Profile(fails_above=4), "load-changes-outcome", Part.SERVER),
        (Profile(parallel=False), "shape-parallel", Part.PARSER),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
async def test_a_weak_part_is_named(examine: Examine, profile: Profile, finding: str, part: Part) -> None:
    report = await examine(profile)
    found = {f.id: f for f in report.findings}
    assert finding in found, (report.answer, sorted(found))
    assert (found[finding].part, found[finding].severity) == (part, "degraded")
    assert report.state == "DEGRADED"


async def test_a_prompt_cut_before_the_tools_name_is_no_template_that_drops_tools(examine: Examine) -> None:
    report = await examine(Profile(context=40), only=("rendered", "auto", "result"))
    found = {f.id: f for f in report.findings}
    assert (
        found["context-cut"].part is Part.SERVER
        and "its name is not in the prompt" in found["context-cut"].title
    )
    assert not {"tools-not-rendered", "tool-result-not-rendered"} & set(found)
    auto = next(p for p in report.probes if p.name == "auto")
    assert auto.rate is None


async def test_the_gate_finding_gives_the_exact_flags(examine: Examine) -> None:
    report = await examine(Profile(gate=False))
    assert report.state == "BROKEN"
    assert f"{HERMES_GATE} hermes" in report.findings[0].change


async def test_a_mismatch_names_the_parser_to_change_to(examine: Examine) -> None:
    report = await examine(Profile(parser="qwen3_coder"))
    loopback = next(p for p in report.probes if p.name == "loopback")
    assert loopback.data["way"] == "guided"
    assert loopback.data["table"]["hermes"] == "erased"
    assert loopback.data["table"]["qwen3_coder"] == "surfaced"
    change = next(f.change for f in report.findings if f.id in ("parser-mismatch", "call-erased"))
    assert "hermes" in change


async def test_a_model_that_never_calls_is_not_a_broken_stack(examine: Examine) -> None:
    report = await examine(Profile(model_calls=False))
    assert report.state == "READY"
    assert "wrote no valid call in 5 tries" in report.answer
    auto = next(p for p in report.probes if p.name == "auto")
    assert auto.rate is not None and auto.rate.interval is not None
    assert auto.rate.count.k == 0 and auto.rate.interval.method == "wilson"


async def test_tools_that_were_never_rendered_give_no_rate_of_the_model(examine: Examine) -> None:
    report = await examine(Profile(engine="llamacpp", template_renders_tools=False))
    auto = next(p for p in report.probes if p.name == "auto")
    assert (auto.state, auto.rate) == ("unknown", None)
    assert "model" not in report.answer.split(".")[0] or "never shows" in report.answer


async def test_a_host_that_refuses_our_fields_is_asked_without_them(examine: Examine) -> None:
    report = await examine(Profile(evidence=False))
    assert report.state == "READY"
    assert report.endpoint is not None and "evidence_refused" in report.endpoint.facts


async def test_only_runs_what_is_named(examine: Examine) -> None:
    report = await examine(Profile(), only=("required", "none"))
    assert [p.name for p in report.probes] == ["required", "none"]


async def test_a_stream_that_hides_its_call_is_told(examine: Examine) -> None:
    report = await examine("d36-call-finish-stop", only=("stream",))
    found = next(f for f in report.findings if f.id == "finish-reason-hides-call")
    assert (found.part, found.severity) == (Part.STREAM, "degraded") and "stop" in found.title


@pytest.mark.parametrize(
    ("name", "finding"),
    [
        ("d18-stream-leaks", "stream-differs"),
        ("d19-stream-empty", "stream-differs"),
        ("d42-stream-cut", "stream-differs"),
        ("index-reused", "stream-differs"),
        ("index-missing", "stream-form"),
        ("no-done", "stream-form"),
    ],
)
async def test_a_fault_of_the_stream_is_the_streams(examine: Examine, name: str, finding: str) -> None:
    report = await examine(name, only=("stream",))
    found = next((f for f in report.findings if f.id == finding), None)
    assert found is not None, [(f.id, f.title) for f in report.findings]
    assert found.part is Part.STREAM


async def test_a_model_that_thinks_first_gets_the_tokens_for_it(examine: Examine) -> None:
    thoughts = "<think>" + "let me see " * 120 + "</think>"
    profile = Profile(
        writes=f'{thoughts}<tool_call>\n{{"name": "get_weather", "arguments": {{"city": "Oslo"}}}}\n</tool_call>'
    )
    report = await examine(profile, only=("auto", "strict"))
    auto = next(p for p in report.probes if p.name == "auto")
    assert auto.data["thinks"] is True
    assert auto.rate is not None and (auto.rate.count.k, auto.rate.count.n) == (5, 5), auto.said


async def test_a_budget_that_ends_every_try_is_not_put_as_no_call(examine: Examine) -> None:
    report = await examine(Profile(writes="It is sunny. " * 900), only=("auto",))
    auto = next(p for p in report.probes if p.name == "auto")
    assert "out of tokens before any call 5/5" in auto.said
