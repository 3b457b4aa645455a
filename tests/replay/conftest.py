"""Engines for the tests: a fake one, and the real ones where they are registered (or TRUECALL_ENGINES_* names them)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from truecall.engines import Launch, Spec
from truecall.engines.specs import resolve
from truecall.errors import TruecallError
from truecall.replay import Engine
from truecall.replay.cuts import Cutter

FAKE = Path(__file__).parents[1] / "engines" / "fake_worker.py"


@pytest.fixture(scope="module")
def fake() -> Spec:
    launch = Launch(engine="fake==1.0", python=sys.executable, script=str(FAKE))
    return Spec(engine="fake", launch=launch)


def _opened(name: str) -> Iterator[Engine]:
    try:
        (spec,) = resolve([f"{name}:all"])
    except TruecallError as error:
        pytest.skip(f"{name} is not here: {error}")
    with Engine(spec, workers=2, cutter=Cutter(pieces=7)) as engine:
        yield engine


@pytest.fixture(scope="module", params=["vllm", "sglang", "verl"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    yield from _opened(request.param)
