"""Texts for the matrix: every dialect's calls as they should be, and as they often are not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from truecall.errors import InputError
from truecall.records import Json, Record
from truecall.replay.forms import FORMS, squeezed, written
from truecall.replay.texts import Material, material

Calls = tuple[tuple[str, dict[str, Json]], ...]


def _tool(name: str, required: list[str], **properties: str) -> Json:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": f"{name}.",
            "parameters": {
                "type": "object",
                "properties": {key: {"type": kind, "description": key} for key, kind in properties.items()},
                "required": required,
            },
        },
    }


TOOLS: Final[list[Json]] = [
    _tool("get_weather", ["city"], city="string", days="integer"),
    _tool("write_file", ["path", "body"], path="string", body="string"),
]

CASES: Final[dict[str, Calls]] = {
    "one": (("get_weather", {"city": "Oslo"}),),
    "typed": (("get_weather", {"city": "Oslo", "days": 2}),),
    "two": (("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome", "days": 3})),
    "code": (("write_file", {"path": "a.py", "body": "def f(d):\n    return {k: v for k, v in d}"}),),
}
"""Calls that every dialect can carry."""

_ARGUMENTS: Final = json.dumps(CASES["typed"][0][1])
_CLOSER: Final = re.compile(r"\s*(?:</[^<>]+>|<[|｜/][^<>]+>|```|\])\s*\Z")


def _no_closer(text: str) -> str:
    return _CLOSER.sub("", text)


def _no_inner_closer(text: str) -> str:
    return re.sub(r"\n?</(?:parameter|arg_value|param|steptml:parameter)>", "", text, count=1)


def _extra_brace(text: str) -> str:
    at = text.rfind("}")
    return f"{text[:at]}}}{text[at:]}" if '"' in text and at >= 0 else text


MALFORMED: Final[dict[str, Callable[[str], str]]] = {
    "text before": lambda text: f"I will look.\n{text}",
    "text after": lambda text: f"{text}\nThat is all.",
    "not closed": _no_closer,
    "inner tag not closed": _no_inner_closer,
    "one brace too many": _extra_brace,
    "parameters key": lambda text: text.replace('"arguments"', '"parameters"'),
    "arguments as text": lambda text: text.replace(_ARGUMENTS, json.dumps(_ARGUMENTS)),
    "single quotes": lambda text: text.replace('"', "'"),
    "no offered name": lambda text: text.replace("get_weather", "weather_at"),
}
"""What goes wrong -> how it is made from a text that is right; no change: it can't go wrong there."""


class Sample(Record, frozen=True):
    """A text of the matrix. ``fault`` "": as it should be."""

    dialect: str
    form: str
    case: str
    fault: str
    material: Material


def samples() -> Iterator[Sample]:
    """All texts, dialect by dialect; each is the same in every run."""
    for dialect, forms in FORMS.items():
        for form, writer in forms.items():
            texts = {name: text for name, calls in CASES.items() if (text := written(writer, calls))}
            for name, text in texts.items():
                if dialect != "react" or name != "two":  # the second step needs an observation
                    yield _sample(dialect, form, name, "", text)
            for fault, change in MALFORMED.items():
                wrong = change(texts["typed"])
                if wrong != texts["typed"]:
                    yield _sample(dialect, form, "typed", fault, wrong)


def _sample(dialect: str, form: str, case: str, fault: str, text: str) -> Sample:
    where = f"{dialect}/{form}/{case}{f'/{fault}' if fault else ''}"
    return Sample(dialect=dialect, form=form, case=case, fault=fault, material=material(text, TOOLS, where))


class _Line(msgspec.Struct):
    text: str | None = None
    raw: Json = None
    tools: list[Json] | None = None


def read(path: Path) -> Iterator[Sample]:
    """The user's own texts: JSON lines with ``text`` (or ``raw``) and ``tools``; the dialect is the detector's.

    Raises:
        InputError: a line is nothing of the kind.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror})") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = msgspec.json.decode(line, type=_Line)
        except msgspec.MsgspecError as error:
            raise InputError(f"{path}:{number}: {error}") from None
        text = row.text if row.text is not None else row.raw
        if not isinstance(text, str):
            raise InputError(f'{path}:{number}: has no text (`{{"text": …, "tools": […]}}`)')
        made = material(text, row.tools or TOOLS, f"{path.name}:{number}")
        dialect = made.found.calls[0].dialect if made.found.calls else "no call"
        yield Sample(dialect=dialect, form="yours", case=str(number), fault="", material=made)


def marks() -> list[tuple[str, str]]:
    """Each form's beginning up to the name, white space away, by which an instruction shows its dialect.

    Where the name stands right behind a tag that other dialects have too, it is what follows the name.
    """
    found = []
    for dialect, forms in FORMS.items():
        for writer in forms.values():
            text = written(writer, CASES["typed"]) or ""
            before, _, after = text.partition("get_weather")
            mark = squeezed(before).rstrip("\"'")
            if mark.endswith(">") and not {"|", "｜"} & set(mark):
                mark = squeezed(after.partition("city")[0])
            if len(mark) >= 8 and not mark[0].isalnum():
                found.append((dialect, mark))
    return found
