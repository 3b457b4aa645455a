"""Every form in which a dialect's call is written: what a parser of the dialect is tried with.

A dialect may have several (with or without line ends, an old and a new body); a parser may take one and not another.
Sources: the vendors' chat templates and the parsers' own sources, as described in ``dialects/``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from truecall.canonical import WRITERS, Written
from truecall.records import Json

Writer = Callable[[Written], str]


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _object(name: str, arguments: Mapping[str, Json], key: str = "arguments") -> str:
    return _json({"name": name, key: dict(arguments)})


def _array(calls: Written, key: str = "arguments") -> str:
    return f"[{', '.join(_object(n, a, key) for n, a in calls)}]"


def _around(before: str, after: str, between: str = "\n", key: str = "arguments") -> Writer:
    """A form in which every call's object stands between the same two texts."""
    return lambda calls: between.join(f"{before}{_object(n, a, key)}{after}" for n, a in calls)


def _around_array(before: str, after: str) -> Writer:
    return lambda calls: f"{before}{_array(calls)}{after}"


def _python(calls: Written, between: str) -> str:
    return between.join(f"{n}({', '.join(f'{k}={v!r}' for k, v in a.items())})" for n, a in calls)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _glm47(calls: Written) -> str:
    def pairs(arguments: Mapping[str, Json]) -> str:
        return "".join(
            f"<arg_key>{k}</arg_key><arg_value>{_text(v)}</arg_value>" for k, v in arguments.items()
        )

    return "".join(f"<tool_call>{n}{pairs(a)}</tool_call>" for n, a in calls)


def _seed(calls: Written) -> str:
    def one(name: str, arguments: Mapping[str, Json]) -> str:
        inside = "".join(f"<parameter={k}>{_text(v)}</parameter>\n" for k, v in arguments.items())
        return f"<seed:tool_call>\n<function={name}>\n{inside}</function>\n</seed:tool_call>"

    return "\n".join(one(n, a) for n, a in calls)


def _functiongemma(calls: Written) -> str:
    def value(given: Json) -> str:
        return f"<escape>{given}<escape>" if isinstance(given, str) else _json(given)

    return "".join(
        f"<start_function_call>call:{n}{{{','.join(f'{k}:{value(v)}' for k, v in a.items())}}}<end_function_call>"
        for n, a in calls
    )


def _step3(calls: Written) -> str:
    def one(name: str, arguments: Mapping[str, Json]) -> str:
        inside = "".join(
            f'<steptml:parameter name="{k}">{_text(v)}</steptml:parameter>' for k, v in arguments.items()
        )
        return (
            f'<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="{name}">{inside}</steptml:invoke>'
            "<｜tool_call_end｜>"
        )

    return f"<｜tool_calls_begin｜>{''.join(one(n, a) for n, a in calls)}<｜tool_calls_end｜>"


def _minicpm5(calls: Written) -> str:
    return "".join(
        f'<function name="{n}">'
        + "".join(f'<param name="{k}">{_text(v)}</param>' for k, v in a.items())
        + "</function>"
        for n, a in calls
    )


def _harmony_role_first(calls: Written) -> str:
    return "".join(
        f"<|start|>assistant to=functions.{n}<|channel|>commentary <|constrain|>json<|message|>{_json(dict(a))}<|call|>"
        for n, a in calls
    )


def _cohere(calls: Written) -> str:
    made = [{"tool_call_id": str(i), "tool_name": n, "parameters": dict(a)} for i, (n, a) in enumerate(calls)]
    return f"<|START_ACTION|>[\n    {_json(made)[1:-1]}\n]<|END_ACTION|>"


_MORE: Final[dict[str, dict[str, Writer]]] = {
    "hermes": {"hermes, no line ends": _around("<tool_call>", "</tool_call>")},
    "bare_json": {"JSON list": _array},
    "llama3_json": {"python tag": lambda calls: "<|python_tag|>" + WRITERS["llama3_json"](calls)},
    "glm": {"glm, no line ends": _glm47},
    "mistral": {"[ARGS]": WRITERS["mistral_args"]},
    "deepseek": {"v3.1": WRITERS["deepseek_v31"]},
    "deepseek_dsml": {
        "v4": lambda calls: WRITERS["deepseek_dsml"](calls).replace("function_calls>", "tool_calls>")
    },
    "harmony": {
        "from the start": lambda calls: "<|start|>assistant" + WRITERS["harmony"](calls),
        "role first": _harmony_role_first,
    },
    "granite3": {"3.1": _around_array("<tool_call>", "")},
    "phi4_functools": {"tags": _around_array("<|tool_call|>", "<|/tool_call|>")},
    "pythonic": {"python start": lambda c: f"<|python_start|>{WRITERS['pythonic'](c)}<|python_end|>"},
    "internlm2": {
        "no space": _around("<|action_start|><|plugin|>\n", "<|action_end|>", "", "parameters"),
        "space": _around("<|action_start|> <|plugin|>\n", "<|action_end|>\n", "", "parameters"),
    },
    "olmo3": {"olmo3": lambda calls: f"<function_calls>\n{_python(calls, chr(10))}\n</function_calls>"},
    "jamba": {
        "jamba": _around_array("<tool_calls>", "</tool_calls>"),
        "lines": lambda calls: f"<tool_calls>[\n    {_array(calls)[1:-1]}\n]</tool_calls>",
    },
    "minimax_m1": {
        "minimax_m1": lambda calls: f"<tool_calls>\n{_around('', '')(calls)}\n</tool_calls>",
    },
    "granite20b_fc": {
        "granite20b_fc": _around("<function_call> ", ""),
        "closed": _around("<function_call>", "</function_call>"),
    },
    "apertus": {
        "apertus": lambda calls: f"<|tools_prefix|>{_json([{n: dict(a)} for n, a in calls])}<|tools_suffix|>",
    },
    "longcat": {"longcat": _around("<longcat_tool_call>", "</longcat_tool_call>")},
    "nemotron_toolcall": {"nemotron": _around_array("<TOOLCALL>", "</TOOLCALL>")},
    "tools_tag": {"tools tag": _around("<tools>\n", "\n</tools>")},
    "cohere_action": {"cohere": _cohere},
    "seed_oss": {"seed": _seed},
    "functiongemma": {"functiongemma": _functiongemma},
    "step3": {"step3": _step3},
    "minicpm5": {"minicpm5": _minicpm5},
}

_OF_ANOTHER: Final = {"mistral_args", "deepseek_v31"}  # forms that the detector gives one dialect's name


def _table() -> dict[str, dict[str, Writer]]:
    table: dict[str, dict[str, Writer]] = {
        name: {name: writer} for name, writer in WRITERS.items() if name not in _OF_ANOTHER
    }
    for name, forms in _MORE.items():
        table.setdefault(name, {}).update(forms)
    return table


FORMS: Final = _table()
"""Dialect, as the detector names it -> form -> writer."""


def written(form: Writer, calls: Written) -> str | None:
    """The calls in a form; None where it can't carry them."""
    try:
        return form(calls)
    except (TypeError, ValueError, KeyError, IndexError):
        return None


def squeezed(text: str) -> str:
    """The text without white space."""
    return "".join(text.split())
