"""Which dialect a template asks for, and that a hostile template does no harm."""

from __future__ import annotations

import json
import struct
import time
from pathlib import Path
from typing import Any

import pytest

import truecall
from truecall.errors import InputError
from truecall.replay.matrix import asked
from truecall.replay.samples import CASES, TOOLS
from truecall.templates import Template, asks, load, render

HERMES = Path(truecall.__file__).parent / "data" / "hermes.jinja"
CODER = """
{%- for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}
{%- for c in m.tool_calls or [] %}
<tool_call>
<function={{ c.function.name }}>
{% for k, v in c.function.arguments.items() %}<parameter={{ k }}>
{{ v if v is string else v | tojson }}
</parameter>
{% endfor %}</function>
</tool_call>{% endfor %}<|im_end|>
{% endfor %}
{%- if tools %}{{ tools | tojson }}{% endif %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
INSTRUCTED = """
{%- if tools %}Tools: {{ tools | tojson }}
Answer with <tool_call>
{"name": NAME, "arguments": OBJECT}
</tool_call>{% endif %}
{%- for m in messages %}{{ m.role }}: {{ m.content }}
{% endfor %}"""


def ask(source: str) -> Any:
    (found,) = asked([Template(name="t", source=source)])
    return found


def test_by_what_it_writes() -> None:
    found = ask(HERMES.read_text())
    assert (found.dialect, found.tools, found.fault) == ("hermes", True, "")
    assert found.instructs[0] == "hermes"
    assert all(text and text.startswith("<tool_call>") for text in found.writes)
    other = ask(CODER)
    assert (other.dialect, other.tools) == ("qwen3_coder", True)


def test_by_its_instruction_where_it_writes_none() -> None:
    found = ask(INSTRUCTED)
    assert found.dialect == "hermes"
    assert set(found.writes) == {None}


def test_one_that_shows_no_tools() -> None:
    found = ask("{% for m in messages %}{{ m.content }}{% endfor %}")
    assert (found.dialect, found.tools) == (None, False)


def test_one_that_does_not_compile() -> None:
    found = ask("{% for %}")
    assert "does not compile" in found.fault and found.dialect is None


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ cycler.__init__.__globals__.os.system('id') }}",
        "{{ raise_exception('no tools, please') }}",
    ],
)
def test_what_a_template_may_not_do(source: str) -> None:
    (answer,) = render(source, [{"messages": []}])
    assert set(answer) == {"error"}


@pytest.mark.parametrize(
    "source",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{{ a if a < 0 }}{% endfor %}{% endfor %}",
        "{% set ns = namespace(x='xxxxxxxx') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    ],
)
def test_a_template_that_eats_time_or_memory_is_ended(source: str) -> None:
    began = time.monotonic()
    (answer,) = render(source, [{"messages": []}])
    assert "error" in answer
    assert time.monotonic() - began < 60


def test_arguments_as_text_where_the_template_wants_that() -> None:
    source = (
        "{{ tools | tojson }}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}"
        '<tool_call>\n{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments }}}\n</tool_call>'
        "{% endfor %}{% endfor %}"
    )
    found = asks(Template(name="t", source=source), TOOLS, tuple(CASES.values()))
    assert found.dialect == "hermes"
    assert (
        found.writes[0] == '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    )


# --------------------------------------------------------------------------- files


def gguf(**keys: str) -> bytes:
    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    numbers = text("some.array") + struct.pack("<IIQ", 9, 4, 3) + struct.pack("<III", 1, 2, 3)
    words = text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("bb")
    flag = text("some.flag") + struct.pack("<I?", 7, True)
    made = [numbers, words, flag, *(text(k) + struct.pack("<I", 8) + text(v) for k, v in keys.items())]
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(made)) + b"".join(made)


def test_from_every_kind_of_file(tmp_path: Path) -> None:
    config = tmp_path / "tokenizer_config.json"
    config.write_text(json.dumps({"chat_template": "A"}))
    several = tmp_path / "several.json"
    several.write_text(json.dumps({"chat_template": [{"name": "default", "template": "B"}, {"name": "x"}]}))
    model = tmp_path / "model.gguf"
    model.write_bytes(gguf(**{"tokenizer.chat_template": "C", "tokenizer.chat_template.tool_use": "D"}))
    plain = tmp_path / "t.jinja"
    plain.write_text("E")
    assert [t.source for t in load(config)] == ["A"]
    assert [t.source for t in load(tmp_path)] == ["A"]
    assert [(t.name, t.source) for t in load(several)] == [("several.json:default", "B")]
    assert [(t.name, t.source) for t in load(model)] == [("model.gguf", "C"), ("model.gguf.tool_use", "D")]
    assert load(plain)[0].source == "E"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.json", b"{"),
        ("a.json", b'{"other": 1}'),
        ("a.gguf", gguf()[:60]),
        ("a.gguf", gguf()),
        ("a.gguf", b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1 << 60)),
        ("a.gguf", b"GGUF" + struct.pack("<IQQ", 9, 0, 1)),
    ],
)
def test_files_that_carry_none(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InputError):
        load(path)


def test_one_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be read"):
        load(tmp_path / "absent.jinja")
