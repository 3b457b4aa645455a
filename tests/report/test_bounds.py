"""What a page leaves out is told, every interval has its method, and long texts of a run are read back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.report.made import crossed
from tests.studies.player import Mode, Player
from truecall.config import resolve
from truecall.errors import InputError
from truecall.report.arms import MOST_ARMS
from truecall.report.data import Bullets, Figure, Part, ReportData, Section, Table
from truecall.report.markdown import markdown
from truecall.report.reading import load
from truecall.run import runner
from truecall.run.study import checked

ARMS = MOST_ARMS + 3
PREFLIGHT = Path(__file__).parent / "preflight.json"


def study(path: Path, mode: Mode, *, arms: int = 1, model: str = "m", turns: int = 1) -> Path:
    async def run() -> None:
        async with Player(mode) as player:
            endpoints = [{"name": f"e{n}", "base_url": player.base_url, "model": model} for n in range(arms)]
            made = {"tasks": ["chain"], "seeds": 1, "limits": {"turns": turns}, "endpoints": endpoints}
            await runner.run(checked(made, "test"), path, resolve(player.base_url, environ={}))

    asyncio.run(run())
    return path


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Section:
    """A study of more arms than a page shows."""
    path = study(tmp_path_factory.mktemp("crowded") / "run", "leaks", arms=ARMS)
    return load([str(path)]).sections[0]


def part(section: Section, title: str) -> Part:
    return next(part for part in section.parts if part.title == title)


def test_no_part_of_a_page_grows_with_the_arms(crowded: Section) -> None:
    for each in crowded.parts:
        for block in each.blocks:
            if isinstance(block, Table):
                names = {str(row[0]) for row in block.rows}
                assert len(names) <= MOST_ARMS, each.title
            if isinstance(block, Figure):
                grid = block.chart.grid()
                assert len({row[0] for row in grid.rows}) <= MOST_ARMS, each.title
    assert len({measure.group for measure in crowded.measures}) == ARMS


def test_what_is_left_out_is_counted(crowded: Section) -> None:
    tables = [b for b in part(crowded, "What was measured").blocks if isinstance(b, Table)]
    assert [table.left_out for table in tables] == [3, 0, 3]
    text = markdown(ReportData(title="t", sections=(crowded,), made_at=0, truecall="0", detector="1"))
    assert "40 arms are shown, 3 more" in text and "and 3 more." in text


def test_a_finding_is_told_once_with_its_arms(crowded: Section) -> None:
    bullets = next(b for b in part(crowded, "Findings").blocks if isinstance(b, Bullets))
    assert len(bullets.items) == 1
    assert bullets.items[0].startswith("Well-formed calls lost: e0/native, e1/native, ")


def test_one_arm_differs_from_nothing(tmp_path: Path) -> None:
    section = load([str(study(tmp_path / "run", "native"))]).sections[0]
    captions = [b.caption for b in part(section, "What was measured").blocks if isinstance(b, Table)]
    assert captions and not [caption for caption in captions if caption.startswith("Arms")]


def test_every_interval_has_its_method(tmp_path: Path, stacks: Path) -> None:
    sections = load([str(stacks), str(crossed(tmp_path / "run")), str(PREFLIGHT)]).sections
    looked_at = 0
    for each in (part for section in sections for part in section.parts):
        texts = "\n".join(getattr(b, "text", "") + getattr(b, "caption", "") for b in each.blocks)
        for table in (b for b in each.blocks if isinstance(b, Table)):
            places = [n for n, column in enumerate(table.columns) if column.title == "95 % interval"]
            if any(str(row[n]).startswith("[") for row in table.rows for n in places):
                looked_at += 1
                assert "95 % intervals: " in (texts if each.title == "Rates" else table.caption), each.title
    assert looked_at >= 5


def test_a_name_too_long_for_a_log_line_is_read_back(tmp_path: Path) -> None:
    path = study(tmp_path / "run", "leaks", model="m" * 10_000)
    assert load([str(path)]).sections[0].answer.startswith("Well-formed calls were lost")


def test_a_log_of_a_newer_truecall_is_not_read(tmp_path: Path) -> None:
    log = study(tmp_path / "run", "native") / "log.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"v":1,', b'"v":2,'))
    with pytest.raises(InputError, match="newer truecall"):
        load([str(log.parent)])


def test_predictions_are_not_called_unknown(stacks: Path) -> None:
    section = load([str(stacks)]).sections[0]
    said = [getattr(block, "text", "") for block in part(section, "What was measured").blocks]
    assert any(text.startswith("Unknown in every arm") for text in said)
    assert not [text for text in said if "predictions" in text]
