"""Results that several test modules make reports of, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report import made


@pytest.fixture(scope="session")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a study over faulty stacks."""
    return made.five_stacks(tmp_path_factory.mktemp("stacks") / "run")


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a study whose every turn is hostile."""
    return made.hostile_study(tmp_path_factory.mktemp("hostile") / "run")
