"""Calls written out in a dialect, as the chat templates of its models write them.

The text is what a model that was trained on the dialect would emit: for loopback (is this server's parser
able to read it?), for replay matrices and for tests. Sources: the vendors' chat templates, as described in
the dialect's own file under ``dialects/``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from truecall.records import Json

Written = Sequence[tuple[str, Mapping[str, Json]]]
"""(name, arguments) of each call, in order."""


def write(dialect: str, calls: Written) -> str:
    """The calls as text of ``dialect``. Raises KeyError for a dialect that has no writer."""
    return WRITERS[dialect](calls)


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _object(name: str, arguments: Mapping[str, Json], key: str = "arguments") -> str:
    return _json({"name": name, key: dict(arguments)})


def _text(value: Json) -> str:
    """A parameter value as XML dialects carry it: strings bare, everything else as JSON."""
    return value if isinstance(value, str) else _json(value)


def _hermes(calls: Written) -> str:
    return "\n".join(f"<tool_call>\n{_object(n, a)}\n</tool_call>" for n, a in calls)


def _bare_json(calls: Written) -> str:
    return "\n".join(_object(n, a) for n, a in calls)


def _fenced_json(calls: Written) -> str:
    return "\n".join(f"```json\n{_object(n, a)}\n```" for n, a in calls)


def _llama3_json(calls: Written) -> str:
    return "; ".join(_object(n, a, "parameters") for n, a in calls)


def _python_call(name: str, arguments: Mapping[str, Json]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _pythonic(calls: Written) -> str:
    return f"[{', '.join(_python_call(n, a) for n, a in calls)}]"


def _mistral(calls: Written) -> str:
    body = [{"name": n, "arguments": dict(a)} for n, a in calls]
    return f"[TOOL_CALLS]{_json(body)}"


def _mistral_args(calls: Written) -> str:
    return "".join(f"[TOOL_CALLS]{n}[ARGS]{_json(dict(a))}" for n, a in calls)


def _qwen3_coder(calls: Written) -> str:
    def one(name: str, arguments: Mapping[str, Json]) -> str:
        inside = "".join(f"<parameter={k}>\n{_text(v)}\n</parameter>\n" for k, v in arguments.items())
        return f"<tool_call>\n<function={name}>\n{inside}</function>\n</tool_call>"

    return "\n".join(one(n, a) for n, a in calls)


def _glm(calls: Written) -> str:
    def one(name: str, arguments: Mapping[str, Json]) -> str:
        pairs = "".join(
            f"<arg_key>{k}</arg_key>\n<arg_value>{_text(v)}</arg_value>\n" for k, v in arguments.items()
        )
        return f"<tool_call>{name}\n{pairs}</tool_call>"

    return "\n".join(one(n, a) for n, a in calls)


def _deepseek_v3(calls: Written) -> str:
    inside = "\n".join(
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{n}\n```json\n{_json(dict(a))}\n```<｜tool▁call▁end｜>"
        for n, a in calls
    )
    return f"<｜tool▁calls▁begin｜>{inside}<｜tool▁calls▁end｜>"


def _deepseek_v31(calls: Written) -> str:
    inside = "".join(
        f"<｜tool▁call▁begin｜>{n}<｜tool▁sep｜>{_json(dict(a))}<｜tool▁call▁end｜>" for n, a in calls
    )
    return f"<｜tool▁calls▁begin｜>{inside}<｜tool▁calls▁end｜>"


def _dsml(calls: Written) -> str:
    def parameter(key: str, value: Json) -> str:
        kind = "true" if isinstance(value, str) else "false"
        return f'<｜DSML｜parameter name="{key}" string="{kind}">{_text(value)}</｜DSML｜parameter>\n'

    inside = "".join(
        f'<｜DSML｜invoke name="{n}">\n{"".join(parameter(k, v) for k, v in a.items())}</｜DSML｜invoke>\n'
        for n, a in calls
    )
    return f"<｜DSML｜function_calls>\n{inside}</｜DSML｜function_calls>"


def _kimi(calls: Written) -> str:
    inside = "".join(
        f"<|tool_call_begin|>functions.{n}:{i}<|tool_call_argument_begin|>{_json(dict(a))}<|tool_call_end|>"
        for i, (n, a) in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{inside}<|tool_calls_section_end|>"


def _harmony(calls: Written) -> str:
    return "<|start|>assistant".join(
        f"<|channel|>commentary to=functions.{n} <|constrain|>json<|message|>{_json(dict(a))}<|call|>"
        for n, a in calls
    )


def _functionary(calls: Written) -> str:
    return "".join(f"<function={n}>{_json(dict(a))}</function>" for n, a in calls)


def _minimax(calls: Written) -> str:
    inside = "".join(
        f'<invoke name="{n}">\n'
        + "".join(f'<parameter name="{k}">{_text(v)}</parameter>\n' for k, v in a.items())
        + "</invoke>\n"
        for n, a in calls
    )
    return f"<minimax:tool_call>\n{inside}</minimax:tool_call>"


def _lfm2(calls: Written) -> str:
    return f"<|tool_call_start|>{_pythonic(calls)}<|tool_call_end|>"


def _gemma4_value(value: Json) -> str:
    if isinstance(value, str):
        return f'<|"|>{value}<|"|>'
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{k}:{_gemma4_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return f"[{','.join(map(_gemma4_value, value))}]"
    return _json(value)


def _gemma4(calls: Written) -> str:
    return "".join(f"<|tool_call>call:{n}{_gemma4_value(dict(a))}<tool_call|>" for n, a in calls)


def _phi4(calls: Written) -> str:
    return f"functools{_json([{'name': n, 'arguments': dict(a)} for n, a in calls])}"


def _granite(calls: Written) -> str:
    return f"<|tool_call|>{_json([{'name': n, 'arguments': dict(a)} for n, a in calls])}"


def _react(calls: Written) -> str:
    name, arguments = calls[0]
    return f"Action: {name}\nAction Input: {_json(dict(arguments))}"


WRITERS: Final[dict[str, Callable[[Written], str]]] = {
    "hermes": _hermes,
    "bare_json": _bare_json,
    "fenced_json": _fenced_json,
    "llama3_json": _llama3_json,
    "pythonic": _pythonic,
    "mistral": _mistral,
    "mistral_args": _mistral_args,
    "qwen3_coder": _qwen3_coder,
    "glm": _glm,
    "deepseek": _deepseek_v3,
    "deepseek_v31": _deepseek_v31,
    "deepseek_dsml": _dsml,
    "kimi": _kimi,
    "harmony": _harmony,
    "functionary": _functionary,
    "minimax": _minimax,
    "lfm2": _lfm2,
    "gemma4": _gemma4,
    "phi4_functools": _phi4,
    "granite3": _granite,
    "react": _react,
}
"""Dialect name -> writer. ``react`` writes the first call only: its second step needs an observation."""
