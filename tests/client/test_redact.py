"""Secrets and their echoes: in every coding, cut by every boundary, by header and parameter name."""

from __future__ import annotations

import base64
import html
import json
import re
import time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truecall.redact import (
    MARK,
    MIN_LENGTH,
    Redactor,
    clean_url,
    is_auth_header,
    is_secret,
    secrets_of_header,
    secrets_of_url,
    shape,
    words_of_tools,
)

KEY = "sk-Ab+/9='\"é<&>_\\Zz0123"
CODINGS = {
    "plain": str,
    "url-quoted": lambda key: quote(key, safe=""),
    "lower case": lambda key: re.sub("%..", lambda m: m[0].lower(), quote(key, safe="")),
    "form": quote_plus,
    "json": lambda key: json.dumps(key)[1:-1],
    "json, not ascii": lambda key: json.dumps(key, ensure_ascii=False)[1:-1],
    "json, slashes": lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    "html": html.escape,
    "hex": lambda key: key.encode().hex(),
}
BASE64 = {
    "bearer": lambda key: base64.b64encode(f"Bearer {key}".encode()).decode(),
    "user": lambda key: base64.b64encode(f"user:{key}".encode()).decode(),
    "longer user": lambda key: base64.urlsafe_b64encode(f"user2:{key} and more".encode()).decode(),
    "alone": lambda key: base64.b64encode(key.encode()).decode(),
}


@pytest.mark.parametrize("coding", CODINGS)
def test_every_coding_is_found(coding: str) -> None:
    echo = CODINGS[coding](KEY)
    redactor = Redactor([KEY])
    assert redactor.text(f"a{echo}z") == f"a{MARK}z"
    assert redactor.data(f"a{echo}z".encode()) == f"a{MARK}z".encode()


@pytest.mark.parametrize("coding", BASE64)
def test_base64_is_found_at_every_alignment(coding: str) -> None:
    echo = BASE64[coding](KEY)
    clean = Redactor([KEY]).text(f"token {echo} end")
    assert MARK in clean and clean.startswith("token ") and clean.endswith(" end")
    left = clean.replace(MARK, "?" * (len(echo) - len(clean) + len("token  end") + len(MARK)))
    assert KEY[4:12] not in base64.b64decode(re.sub("[^A-Za-z0-9+/]", "A", left) + "===").decode("latin-1")


secret_texts = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=MIN_LENGTH, max_size=50
).filter(lambda text: is_secret(text) and text not in MARK)


@settings(max_examples=150, deadline=None)
@given(secret_texts, st.text(max_size=40), st.text(max_size=40), st.sampled_from(sorted(CODINGS)), st.data())
def test_a_stream_cut_anywhere_shows_no_secret(
    secret: str, before: str, after: str, coding: str, data: st.DataObject
) -> None:
    echo = CODINGS[coding](secret).encode()
    whole = before.encode() + echo + b" " + after.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    stream = Redactor([secret]).stream()
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    out = b"".join([*(stream.feed(piece) for piece in pieces), stream.finish()])
    assert echo not in out and MARK.encode() in out


@given(st.binary(max_size=200), st.integers(1, 9))
def test_a_stream_without_secrets_is_unchanged(data: bytes, step: int) -> None:
    stream = Redactor(["nowhere-in-there-0815"]).stream()
    out = b"".join(stream.feed(data[at : at + step]) for at in range(0, len(data), step)) + stream.finish()
    assert out == data


def test_a_stream_holds_back_no_more_than_it_must() -> None:
    stream = Redactor(["secret-0815"]).stream()
    assert stream.feed(b"data: hello\n\n") == b"data: hello\n\n"
    assert stream.feed(b"it is secr") == b"it is "
    assert stream.feed(b"ecy") == b"secrecy"


def test_a_secret_that_the_end_cuts_off_goes_too() -> None:
    key = "sk-0123456789abcdef"
    redactor = Redactor([key])
    assert redactor.data(b"key " + key[:12].encode(), cut=True) == b"key " + MARK.encode()
    assert redactor.data(b"key " + key[:4].encode(), cut=True) == b"key sk-0"
    stream = redactor.stream()
    assert stream.feed(b"key " + key[:12].encode()) + stream.finish() == b"key " + MARK.encode()


def test_short_texts_and_dummies_are_left_alone() -> None:
    redactor = Redactor(
        ["", "a", "abc12", "EMPTY", "ollama", "lm-studio", "not-needed", "sk-no-key-required"]
    )
    assert not redactor
    assert redactor.text("Ollama is running; abc12 in lm-studio") == "Ollama is running; abc12 in lm-studio"


def test_the_longer_of_two_secrets_wins() -> None:
    assert Redactor(["abcdefgh", "abcdefghij"]).text("xabcdefghijx") == f"x{MARK}x"


def test_json_values_are_walked() -> None:
    value = {"a": [KEY, {KEY: 1}], "b": f"is {KEY}".encode(), "c": None, "d": 1.5, "e": True}
    assert Redactor([KEY]).value(value) == {
        "a": [MARK, {MARK: 1}], "b": f"is {MARK}".encode(), "c": None, "d": 1.5, "e": True
    }  # fmt: skip


@pytest.mark.parametrize("name", [
    "Authorization", "proxy-authorization", "X-Api-Key", "api-key", "x-goog-api-key", "Cookie", "Set-Cookie",
    "apikey", "X-Auth-Token", "X-Amz-Security-Token", "Ocp-Apim-Subscription-Key", "cf-access-client-secret", "X-Auth",
])  # fmt: skip
def test_headers_that_carry_credentials(name: str) -> None:
    assert is_auth_header(name)
    assert Redactor().header(name, "anything") == MARK


@pytest.mark.parametrize("name", [
    "Content-Type", "Server", "x-ratelimit-remaining-tokens", "x-request-id", "openai-organization", "Retry-After",
])  # fmt: skip
def test_headers_that_do_not(name: str) -> None:
    assert not is_auth_header(name) and Redactor().header(name, "5") == "5"


def test_a_scheme_stays_and_basic_is_opened() -> None:
    assert Redactor().header("Authorization", "Bearer sk-abc") == f"Bearer {MARK}"
    basic = "Basic " + base64.b64encode(b"ann:open sesame").decode()
    assert "open sesame" in secrets_of_header("Authorization", basic)
    assert secrets_of_header("Accept", "Bearer x") == []


def test_urls() -> None:
    url = "https://ann:pa%40ss@h.example/v1?key=AIza1&api-version=2&access_token=tok#f"
    assert clean_url(url) == f"https://{MARK}@h.example/v1?key={MARK}&api-version=2&access_token={MARK}#f"
    assert secrets_of_url(url) == ["ann", "pa@ss", "AIza1", "tok"]
    assert clean_url("http://h/?monkey=1&tokens=2&max_tokens=3") == "http://h/?monkey=1&tokens=2&max_tokens=3"
    assert secrets_of_url("http://[broken") == []


MASKED = [
    ('Sure. <tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": 27, "q": 1.5e3}}\n</tool_call>',
     'qzvk. <tool_call>\n{"name": "get_weather", "arguments": {"city": "qzvk", "days": 11, "q": 1.1e1}}\n</tool_call>'),
    ("<|channel|>commentary to=functions.get_weather <|message|>{\"city\":\"Oslo\"}<|call|>",
     "<|channel|>commentary to=functions.get_weather <|message|>{\"city\":\"qzvk\"}<|call|>"),
    ("Thought: hm\nAction: get_weather\nAction Input: Oslo", "Thought: qz\nAction: get_weather\nAction Input: qzvk"),
    ('[get_weather(city="Oslo", days=-2)]', '[get_weather(city="qzvk", days=-1)]'),
    ('<function=f><parameter=city>Oslo</parameter>', '<function=f><parameter=city>qzvk</parameter>'),
    ('{"name":"f","arguments":"{\\"city\\": \\"Oslo\\"}"}', '{"name":"f","arguments":"{\\"city\\": \\"qzvk\\"}"}'),
    ('[TOOL_CALLS]get_weather[ARGS]{"u": "C", "t": "a\\nb\\u00e9"}',
     '[TOOL_CALLS]get_weather[ARGS]{"u": "C", "t": "q\\nq\\u0071"}'),
    ('```json\n{"ok": true, "no": null}\n```', '```json\n{"ok": true, "no": null}\n```'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "masked"), MASKED)
def test_shape_masks_values_and_keeps_markup(text: str, masked: str) -> None:
    assert shape(text, {"get_weather", "C"}) == masked and len(masked) == len(text)


@pytest.mark.parametrize(
    "unit", ["a_", "<a ", '"', "a.", "{'", "<|a", "call:a", "1e", "\\u", "to=", " ", "`"]
)
def test_shape_takes_linear_time(unit: str) -> None:
    began = time.process_time()
    shape(unit * 100_000, {"get_weather", "a_"})
    assert time.process_time() - began < 5


@given(st.text(max_size=200))
def test_shape_keeps_the_length(text: str) -> None:
    assert len(shape(text, {"get_weather"})) == len(text)


scalars = st.none() | st.booleans() | st.integers(0, 10**12) | st.text()
scalars |= st.floats(allow_nan=False, allow_infinity=False)
keys = st.sampled_from(["city", "two words", "é", ""])  # others may become one under the mask


@given(st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner)))
def test_shape_leaves_json_readable(value: object) -> None:
    assert _kinds(json.loads(shape(json.dumps(value)))) == _kinds(value)


def _kinds(value: object) -> object:
    """The structure of a JSON value, with floats and integers alike (1e3 may become 1e1)."""
    if isinstance(value, list):
        return [_kinds(item) for item in value]
    if isinstance(value, dict):
        return [_kinds(item) for item in value.values()]
    return (
        "number"
        if type(value) in {int, float}
        else value
        if value in (None, True, False)
        else type(value).__name__
    )


def test_words_of_tools() -> None:
    properties = {
        "city": {"type": "string"},
        "unit": {"enum": ["celsius", "kelvin", 3]},
        "k": {"const": "fixed"},
    }
    function = {"name": "get_weather", "parameters": {"type": "object", "properties": properties}}
    words = words_of_tools([{"type": "function", "function": function}])
    assert words == {"get_weather", "city", "unit", "k", "celsius", "kelvin", "fixed"}
