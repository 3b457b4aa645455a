"""The study file: what is to be measured, as TOML or from flags; and the arms that it spans.

``docs/studies.md`` describes every field.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, Literal

import msgspec

from truecall.conditions import CONDITIONS, Factors
from truecall.errors import InputError, UsageError
from truecall.records import Json, Record
from truecall.tasks import SchemaVariant

_NAME = re.compile(r"[\w.:@+-]{1,80}\Z")


class Endpoint(Record, frozen=True, forbid_unknown_fields=True):
    """Where a study sends its requests, and what is declared of it.

    ``labels`` are factors that requests don't show (``template``, ``parser``, ``scale``): arms get them.
    ``declared`` are entries of the card that the server can't be asked for.
    """

    name: str = "endpoint"
    base_url: str | None = None
    model: str | None = None
    api_key_env: str | None = None
    api: Literal["openai.chat", "ollama.chat"] = "openai.chat"
    concurrency: int | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    declared: dict[str, Json] = msgspec.field(default_factory=dict)


class Sampling(Record, frozen=True, forbid_unknown_fields=True):
    """What is sent to the sampler. ``seed``: the first sampling seed, None sends none; ``samples`` per instance."""

    temperature: float | None = 1.0
    max_tokens: int = 512
    seed: int | None = None
    samples: int = 1
    extra: dict[str, Json] = msgspec.field(default_factory=dict)


class Limits(Record, frozen=True, forbid_unknown_fields=True):
    """Where episodes and the run end.

    ``turns``: the cap of an episode. ``requests``: the budget of the run, None: none. ``retries``: a request
    that failed on the network or with 5xx is sent again this often. ``nudges``: turns without a call that are
    answered by a reminder before the episode ends. A loop is the same call ``repeats`` times in a row, or
    ``idle`` calls without progress; ``stop`` ends the episode there, ``observe`` lets it run to the cap.
    """

    turns: int = 40
    requests: int | None = None
    concurrency: int = 4
    retries: int = 0
    nudges: int = 1
    repeats: int = 3
    idle: int = 8
    loops: Literal["stop", "observe"] = "stop"


class Prediction(Record, frozen=True, forbid_unknown_fields=True):
    """A statement made before the run: ``number`` of the arms that match ``arm`` (``*`` stands for anything).

    ``at_least`` and ``at_most`` bound it (0 to 1); ``above`` says instead that it is larger than in that arm.
    """

    text: str
    number: str
    arm: str = "*"
    at_least: float | None = None
    at_most: float | None = None
    above: str | None = None


class Factorial(Record, frozen=True, forbid_unknown_fields=True):
    """A 2 × 2: two factors, each with its off and on value, read from labels or from an arm's own factors."""

    a: str
    a_off: str
    a_on: str
    b: str
    b_off: str
    b_on: str


class Study(Record, frozen=True, forbid_unknown_fields=True):
    """A study: every endpoint × task × condition × schema × prompt × thought × few-shot × tool_choice.

    ``seeds``: a number (0 to n - 1) or a list of task-instance seeds. ``factorial`` names two labels (or
    factors) and their off and on values.
    """

    name: str = "study"
    description: str = ""
    endpoints: tuple[Endpoint, ...] = (Endpoint(),)
    tasks: tuple[str, ...] = ("aggregate",)
    conditions: tuple[str, ...] = ("native",)
    schemas: tuple[SchemaVariant, ...] = ("terse",)
    prompts: tuple[Literal["optional", "mandatory"], ...] = ("optional",)
    thought: tuple[bool, ...] = (False,)
    few_shot: tuple[bool, ...] = (False,)
    tool_choices: tuple[str, ...] = ("auto",)
    seeds: int | tuple[int, ...] = 8
    sampling: Sampling = Sampling()
    limits: Limits = Limits()
    turns: dict[str, int] = msgspec.field(default_factory=dict)  # caps by condition: constrained = 1
    predictions: tuple[Prediction, ...] = ()
    factorial: Factorial | None = None

    def seed_list(self) -> tuple[int, ...]:
        """The task-instance seeds."""
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds

    def samples(self) -> tuple[int | None, ...]:
        """The sampling seeds of each instance; (None,) where none is sent and one sample is taken."""
        first, count = self.sampling.seed, self.sampling.samples
        if first is None:
            return (None,) if count == 1 else tuple(range(count))
        return tuple(range(first, first + count))


class Arm(Record, frozen=True):
    """One cell of a study. ``values``: its factors and labels as text, by name."""

    name: str
    endpoint: str
    task: str
    factors: Factors
    turns: int
    values: dict[str, str]


def arms_of(study: Study) -> tuple[Arm, ...]:
    """The arms of a study, in order. A ``tool_choice`` other than auto applies to native conditions alone."""
    arms: list[Arm] = []
    for endpoint, task in product(study.endpoints, study.tasks):
        for factors in _factors(study):
            values = {
                **endpoint.labels,
                "endpoint": endpoint.name,
                "task": task,
                **{name: _word(value) for name, value in msgspec.structs.asdict(factors).items()},
            }
            cap = study.turns.get(factors.condition, study.limits.turns)
            arms.append(_arm(study, endpoint, task, factors, cap, values))
    return tuple(arms)


def load(path: Path) -> Study:
    """A study from a TOML file, or a bundled one by its name.

    Raises:
        InputError: no such study, or it can't be read as one.
    """
    source = path if path.exists() else bundled(str(path))
    try:
        data = tomllib.loads(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is no TOML ({error})") from None
    return checked(data, str(path))


def bundled(name: str) -> Path:
    """The file of a bundled study. InputError where there is none of that name."""
    folder = Path(__file__).parent.parent / "data" / "studies"
    found = folder / f"{name.removesuffix('.toml')}.toml"
    if not _NAME.match(name) or not found.is_file():
        names = ", ".join(sorted(file.stem for file in folder.glob("*.toml")))
        raise InputError(f"{name}: no such file, and no bundled study of that name; there are {names}")
    return found


def checked(data: Mapping[str, Any], where: str) -> Study:
    """A study from plain data. InputError names the field that is wrong."""
    try:
        study = msgspec.convert(dict(data), Study)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {error}") from None
    fault = fault_of(study)
    if fault:
        raise InputError(f"{where}: {fault}")
    return study


def fault_of(study: Study) -> str:
    """What makes the study impossible, in one line; "" where nothing does."""
    names = [endpoint.name for endpoint in study.endpoints]
    if len(set(names)) < len(names):
        return "two endpoints have the same name"
    for name in names:
        if not _NAME.match(name):
            return f"endpoint name {name[:80]!r}: use letters, digits and . _ - : @ +"
    for condition in (*study.conditions, *study.turns):
        if condition not in CONDITIONS:
            return f"no condition {condition!r}; there are {', '.join(CONDITIONS)}"
    if not all(
        (study.endpoints, study.tasks, study.conditions, study.schemas, study.prompts, study.tool_choices)
    ):
        return "endpoints, tasks, conditions, schemas, prompts and tool_choices each need one entry at least"
    if not study.seed_list() or len(set(study.seed_list())) < len(study.seed_list()):
        return "seeds: give a number above 0, or a list without repetition"
    positive = (
        study.sampling.samples,
        study.sampling.max_tokens,
        study.limits.turns,
        study.limits.concurrency,
    )
    if min(*positive, study.limits.repeats, study.limits.idle, *study.turns.values()) < 1:
        return "samples, max_tokens, turns, concurrency, repeats and idle are at least 1"
    if min(study.limits.retries, study.limits.nudges, study.limits.requests or 0) < 0:
        return "retries, nudges and requests can't be negative"
    for prediction in study.predictions:
        if prediction.at_least is None and prediction.at_most is None and prediction.above is None:
            return f"prediction {prediction.text[:60]!r} says nothing: give at_least, at_most or above"
    return ""


def override(data: dict[str, Any], settings: tuple[str, ...]) -> dict[str, Any]:
    """The study's data with ``a.b=value`` settings put in; values are TOML, or plain text where they are none.

    Raises:
        UsageError: a setting without ``=``, or below something that is no table.
    """
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set {setting}: give it as name.name=value")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
        *above, last = key.strip().split(".")
        place = data
        for part in above:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise UsageError(f"--set {setting}: {part} is no table")
        place[last] = value
    return data


# --------------------------------------------------------------------------- arms


def _factors(study: Study) -> list[Factors]:
    """Every combination of factors once; what a condition does not have is not varied in it."""
    found: dict[Factors, None] = {}
    axes = (study.conditions, study.schemas, study.prompts, study.thought, study.few_shot, study.tool_choices)
    for condition, schema, prompt, thought, few_shot, choice in product(*axes):
        native = condition in ("native", "native_hint")
        found[
            Factors(
                condition=condition,
                schema=schema,
                prompt=prompt,
                thought=thought,
                few_shot=few_shot,
                tool_choice=choice if native else "auto",
            )
        ] = None
    return list(found)


def _arm(
    study: Study, endpoint: Endpoint, task: str, factors: Factors, cap: int, values: dict[str, str]
) -> Arm:
    """The arm, named by what varies in the study."""
    parts = [endpoint.name] if len(study.endpoints) > 1 else []
    parts += [task] if len(study.tasks) > 1 else []
    parts.append(factors.condition)
    for name, axis in (
        ("schema", study.schemas),
        ("prompt", study.prompts),
        ("thought", study.thought),
        ("few_shot", study.few_shot),
        ("tool_choice", study.tool_choices),
    ):
        if len(axis) > 1:
            value = getattr(factors, name)
            parts.append((name if value else f"no_{name}") if isinstance(value, bool) else str(value))
    return Arm(
        name="/".join(parts), endpoint=endpoint.name, task=task, factors=factors, turns=cap, values=values
    )


def _word(value: Any) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)
