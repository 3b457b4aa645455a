"""Every call that a chat template at hand writes is read back, its arguments typed by the schema."""

from __future__ import annotations

import json

import pytest
from rendering import TOOLS, Rendered, rendered, template_files

from truecall import detect

TEXTS = [made for path in template_files() for made in rendered(path)]


@pytest.mark.parametrize("made", TEXTS, ids=lambda made: f"{made.template}:{made.case}")
def test_reads_what_a_template_writes(made: Rendered) -> None:
    found = [(call.name, call.reading()) for call in detect(made.text, TOOLS).calls]
    # As JSON, because 1 == True and 3 == 3.0 in Python.
    assert json.dumps(found, sort_keys=True) == json.dumps(made.calls, sort_keys=True), made.text


@pytest.mark.parametrize("made", TEXTS, ids=lambda made: f"{made.template}:{made.case}")
def test_a_template_writes_well_formed_calls(made: Rendered) -> None:
    if _breaks_its_own_syntax(made):
        pytest.skip("the template writes a raw newline into a quoted Python string")
    assert [call.well_formed for call in detect(made.text, TOOLS).calls] == [True] * len(made.calls), (
        made.text
    )


def test_the_packages_own_template_writes_calls() -> None:
    assert {made.case for made in TEXTS} >= {"single", "parallel", "noargs", "nested", "code"}


def _breaks_its_own_syntax(made: Rendered) -> bool:
    values = [value for _, arguments in made.calls for value in arguments.values()]
    return any(isinstance(value, str) and "\n" in value and f"='{value}'" in made.text for value in values)
