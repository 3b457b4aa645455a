"""The data of a report: every number is that of the numbers' rooms, and texts are masked where it is shared."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from tests.audits.snapshots import BFCL, needs_published
from tests.report.made import CALLED, DONE, LEAKED, SECRET, Passed, crossed, played, record, recorded, user
from truecall.audits import lock, work
from truecall.detector import detect
from truecall.errors import InputError
from truecall.funnel import measure
from truecall.report.data import Badge, Bullets, Example, Examples, Figure, Note, ReportData, Table
from truecall.report.markdown import markdown
from truecall.report.reading import load
from truecall.report.table import COLUMNS, table
from truecall.run.result import read
from truecall.store import Keep


def part(report: ReportData, title: str) -> tuple[object, ...]:
    """The blocks of a part."""
    return next(p.blocks for s in report.sections for p in s.parts if p.title == title)


def words(report: ReportData) -> str:
    """All that a reader could read, as one text."""
    return markdown(report) + table(report)


def examples(report: ReportData) -> list[Example]:
    return [e for block in part(report, "Worst examples") if isinstance(block, Examples) for e in block.items]


@pytest.fixture(scope="module")
def report(stacks: Path) -> ReportData:
    return load([str(stacks)])


def test_every_number_of_the_csv_is_the_funnels(report: ReportData, stacks: Path) -> None:
    lines = list(csv.DictReader(io.StringIO(table(report))))
    assert tuple(lines[0]) == COLUMNS
    arms = {arm.name: arm.numbers for arm in read(stacks).arms}
    checked = 0
    for line in lines:
        numbers = arms[line["group"]]
        assert numbers is not None
        if line["average"] not in ("per seed", "pooled") or line["number"] in (
            "solved",
            "rescues",
            "first_passes",
        ):
            continue
        if line["number"].startswith("called"):
            continue
        number = numbers[line["number"]]
        rate = number.per_seed if line["average"] == "per seed" else number.pooled
        assert (line["low"], line["high"]) == tuple(
            "" if v is None else str(v) for v in (rate.low, rate.high)
        )
        assert (line["k"], line["unknown"], line["n"]) == (
            str(number.yes),
            str(number.unknown),
            str(number.n),
        )
        assert line["interval_low"] == ("" if rate.interval is None else str(rate.interval.low))
        assert line["reason"] == rate.reason
        checked += 1
    assert checked == len(arms) * 8 * 2  # six numbers and two variants, in both averages


def test_undefined_is_empty_with_a_reason(report: ReportData) -> None:
    lines = csv.DictReader(io.StringIO(table(report)))
    refused = next(
        r for r in lines
        if (r["group"], r["number"], r["average"]) == ("refusing/native", "observed_fidelity", "pooled")
    )  # fmt: skip
    assert refused["low"] == refused["interval_low"] == "" and "not 0" in refused["reason"]


def test_the_diagnosis_stands_first(report: ReportData) -> None:
    section = report.sections[0]
    assert section.answer.startswith("Well-formed calls were lost")
    assert [p.title for p in section.parts][:4] == ["Findings", "What was measured", "Funnel", "Rates"]
    unknown = next(b for b in part(report, "What was measured") if isinstance(b, Note))
    assert "digest of the weights" in unknown.text


def test_every_picture_is_there_and_has_a_table(report: ReportData) -> None:
    names = [figure.name for figure in report.figures()]
    assert names == [
        "funnel",
        "rates",
        "instances",
        "outcomes",
        "conditions-emitted",
        "conditions-observed",
        "stacks",
    ]
    for figure in report.figures():
        grid = figure.chart.grid()
        assert grid.rows and all(len(row) == len(grid.head) for row in grid.rows)


def test_the_non_response_share_stands_beside_the_rates(report: ReportData) -> None:
    figure = next(b for b in part(report, "Rates") if isinstance(b, Figure))
    beside = [row for row in figure.chart.grid().rows if row[1] == "non-response"]
    assert len(beside) == 8
    assert next(row for row in beside if row[0] == "refusing/native")[2] == "100.0 %"


def test_what_cannot_be_compared_says_why(report: ReportData) -> None:
    assert any(isinstance(b, Note) and "can be compared" in b.text for b in part(report, "Comparisons"))
    reasons = next(b for b in part(report, "Admissibility") if isinstance(b, Table)).rows
    errors = next(row for row in reasons if "request errors" in str(row[0]))
    assert "500_with_call/native" in str(errors[1]) and "leaks/native" not in str(errors[1])


def test_predictions_are_judged(report: ReportData) -> None:
    rows = next(b for b in part(report, "Predictions") if isinstance(b, Table)).rows
    states = {str(row[1]): row[2] for row in rows}
    assert states["leaks/native"] == Badge(word="failed", tone="bad")
    assert states["native/native"] == Badge(word="held", tone="good")


def test_the_worst_examples_show_both_sides(report: ReportData) -> None:
    found = examples(report)
    first, leaked = found[0], next(e for e in found if e.title.startswith("leaks/native"))
    assert [b.word for b in first.verdict] == ["valid", "erased", "by the parser"]
    assert dict(first.returned)["HTTP status"].text == "500"
    assert leaked.wrote is not None and leaked.wrote.text.startswith("<tool_call>")
    [mark] = [m for m in leaked.wrote.marks if m.kind == "call"]
    assert (mark.start, mark.end) == (0, len(leaked.wrote.text))
    assert dict(leaked.returned)["tool_calls"].text == "[]"
    text = next(e for e in found if e.title.startswith("leaks/text_tools"))
    assert "took no call" in dict(text.returned)["the harness's parser"].text


def test_a_shared_report_keeps_markup_and_verdicts_and_no_values(report: ReportData, stacks: Path) -> None:
    shared = load([str(stacks)], share=True)
    assert SECRET in words(report) and SECRET not in words(shared)
    assert "127.0.0.1" in words(report) and "127.0.0.1" not in words(shared)
    assert str(stacks.parent) not in words(shared)
    for open_, masked in zip(examples(report), examples(shared), strict=True):
        assert open_.verdict == masked.verdict
        if open_.wrote is not None and masked.wrote is not None:
            assert open_.wrote.marks == masked.wrote.marks and len(open_.wrote.text) == len(masked.wrote.text)
            before, after = detect(open_.wrote.text), detect(masked.wrote.text)
            assert [c.name for c in before.calls] == [c.name for c in after.calls]
            assert [c.well_formed for c in before.calls] == [c.well_formed for c in after.calls]
    assert shared.sections[0].measures == report.sections[0].measures


def test_markdown_holds_no_markup_of_others(hostile: Path) -> None:
    made = markdown(load([str(hostile)]))
    outside = "".join(piece for piece in made.split("```")[::2])
    assert "\\<script\\>" in outside and re.search(r"(?<!\\)<", outside) is None
    assert "\x00" not in made and "\u202e" not in made


def test_a_recorded_run(tmp_path: Path) -> None:
    report = load([str(recorded(tmp_path / "rec"))])
    section = report.sections[0]
    assert section.answer == "Well-formed calls were lost in 1 of 3 produced turns."
    counts = {m.number: (m.k, m.unknown, m.n) for m in section.measures if m.average == "count"}
    assert counts["funnel: surfaced"] == (2, 0, 3)
    assert counts["funnel: observed"] == (1, 1, 3)  # the last call has no later request that would tell
    assert [e.title for e in examples(report)] == ["m · exchange 2 · turn 2"]


def test_a_recorded_run_has_the_numbers_of_its_summary(tmp_path: Path) -> None:
    other = {**CALLED["tool_calls"][0], "function": {"name": "f", "arguments": '{"x": 1}'}}
    words = {"role": "assistant", "content": "Which day?"}
    first, second, third = ([user(text)] for text in "qrs")
    judging = record(
        tmp_path / "rec",
        [
            Passed(first, []),  # busy, left, then answered: one turn
            Passed(first, [CALLED], gone=True),
            Passed(first, [CALLED]),
            Passed([*first, CALLED, DONE], [words]),
            Passed(second, [CALLED]),  # altered, then asked for two answers
            Passed([*second, {**CALLED, "tool_calls": [other]}, DONE], [LEAKED, words]),
            Passed([*first, CALLED, DONE, words, user("go on")], []),  # goes on by its words alone, and fails
            Passed(third, [CALLED], gone=True),  # nobody waited for any answer
        ],
    )
    numbers = measure(judging.conversations.episodes())
    assert [p.episodes for p in numbers.positions] == [3, 2, 1]
    [section] = load([str(tmp_path / "rec")]).sections
    said = {(m.number, m.average): (m.low, m.high, m.k, m.unknown, m.n) for m in section.measures}
    for number in numbers.numbers:
        for average, rate in (("per seed", number.per_seed), ("pooled", number.pooled)):
            assert said[number.name, average] == (rate.low, rate.high, number.yes, number.unknown, number.n)
    for step in numbers.steps:
        assert said[f"funnel: {step.name}", "count"][2:] == (step.k, step.unknown, step.n)
    assert f"{numbers.request_errors} requests failed" in section.answer
    assert {"By turn position", "Every instance behind the means"} <= {p.title for p in section.parts}


def test_two_runs_are_held_against_each_other(stacks: Path, hostile: Path) -> None:
    report = load([str(stacks), str(hostile)])
    assert [s.kind for s in report.sections] == ["runs", "run", "run"]
    assert report.sections[0].parts[0].title == "Conditions × models"


NO_RESULTS = (
    *("", "no JSON", "[1]", "{}", '{"kind": "scan", "tally": 1}', '{"probes": 1, "findings": 2}'),
    *('{"report_sha256": 3}', '{"splits": 1, "rows": 2}', '{"engines": 1, "texts": 2}', '{"meetings": 1}'),
)


@pytest.mark.parametrize("text", NO_RESULTS)
def test_what_is_no_result_is_told_in_a_line(text: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        load([str(file)])
    assert "x.json" in str(caught.value) and "\n" not in str(caught.value)


def test_what_is_not_there_is_told_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUECALL_HOME", str(tmp_path))
    for name in ("nothing.json", "0007", "preflight/3", "scan/4", str(tmp_path)):
        with pytest.raises(InputError):
            load([name])


@needs_published
def test_the_published_audit_from_its_lock(tmp_path: Path) -> None:
    asked = work.Asked(kind="bfcl", inputs=(str(BFCL),))
    _, locked = work.run_bfcl(asked, lambda _: None, tmp_path)
    lock.write(locked, tmp_path / "audit.lock")
    report = load([str(tmp_path / "audit.lock")])
    section = report.sections[0]
    assert section.answer.startswith("Three of 109 rows have relevance 0")
    falcon = examples(report)[0]
    assert falcon.title == "tiiuae_Falcon3-1B-Instruct-FC · irrelevance_0"
    assert [b.word for b in falcon.verdict] == ["MALFORMED", "credited"]
    assert falcon.wrote is not None and any(m.kind == "call" for m in falcon.wrote.marks)
    counted = {(m.group, m.number): (m.k, m.n) for m in section.measures if m.average == "count"}
    assert counted["tiiuae_Falcon3-1B-Instruct-FC", "irrelevance: MALFORMED"] == (228, 240)
    assert not any(
        isinstance(b, Note) and "Not what the lock says" in b.text for b in part(report, "What was measured")
    )
    changed = lock.Lock(**{**{f: getattr(locked, f) for f in locked.__struct_fields__}, "answer": "another"})
    lock.write(changed, tmp_path / "audit.lock")
    again = load([str(tmp_path / "audit.lock")])
    assert any(
        isinstance(b, Note) and "Not what the lock says: answer" in b.text
        for b in part(again, "What was measured")
    )
    assert isinstance(part(again, "Findings")[0], Bullets)


@pytest.mark.parametrize("keep", ["shape", "none"])
def test_a_run_that_kept_no_texts(tmp_path: Path, keep: Keep) -> None:
    report = load([str(played(tmp_path / "run", "leaks", keep))])
    [native, _, *_] = examples(report)
    assert f"its text was not kept (--keep {keep})" in native.evidence
    assert [b.word for b in native.verdict] == ["valid", "leaked", "by the parser"]
    if keep == "none":
        assert native.wrote is None and native.returned == ()
    else:
        assert native.wrote is not None and SECRET not in native.wrote.text
        assert native.wrote.text.startswith('<tool_call>\n{"name": "read_label"')
        assert [m.kind for m in native.wrote.marks] == ["call"]


def test_a_run_without_an_episode(tmp_path: Path) -> None:
    report = load([str(played(tmp_path / "run", "leaks", requests=0))])
    assert report.sections[0].answer == "No episode came to its end: there are no numbers."
    assert report.figures() == [] and report.sections[0].measures == ()


def test_arms_of_two_runs_are_paired_across_them(tmp_path: Path) -> None:
    first, second = (str(played(tmp_path / name, "leaks")) for name in ("one", "two"))
    report = load([first, second])
    rows = next(b for b in part(report, "Comparisons") if isinstance(b, Table)).rows
    assert {str(row[0]) for row in rows} == {f"{second}:native against {first}:native"}


def test_a_recorded_run_forces_nothing(tmp_path: Path) -> None:
    [section] = load([str(recorded(tmp_path / "rec"))]).sections
    emitted = next(m for m in section.measures if (m.number, m.average) == ("emitted_fidelity", "pooled"))
    assert (emitted.k, emitted.n) == (3, 3)
    steps = next(b for p in section.parts for b in p.blocks if isinstance(b, Figure)).chart.grid().rows
    assert [row[1] for row in steps][-1] == "observed"  # nobody says whether anything was solved


def test_a_factorial_is_shown_with_its_interaction(tmp_path: Path) -> None:
    blocks = part(load([str(crossed(tmp_path / "run"))]), "The 2 × 2")
    heat = next(b for b in blocks if isinstance(b, Figure)).chart.grid()
    assert heat.rows == (("template off", "0.0 %", "0.0 %"), ("template on", "0.0 %", "100.0 %"))
    effects = {str(row[0]): str(row[1]) for row in next(b for b in blocks if isinstance(b, Table)).rows}
    assert effects["template alone"] == "+0.0" and effects["template × parser"] == "+100.0"


def test_loops_are_listed_and_their_arguments_kept_back(tmp_path: Path) -> None:
    run = str(played(tmp_path / "run", "loop"))
    calls = []
    for share in (False, True):
        rows = next(
            b for b in part(load([run], share=share), "Loops and confusions") if isinstance(b, Table)
        ).rows
        calls.append(str(rows[0][3]))
    assert "A-100" in calls[0] and calls[1] == "open_box"
