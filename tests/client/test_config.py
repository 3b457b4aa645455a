"""Connection options: what wins, how URLs are put together, and what is refused in one line."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from truecall.cli.options import connection_options
from truecall.config import Connection, Timeouts, is_loopback, resolve
from truecall.errors import UsageError

URLS = [
    ("http://h:8000", "http://h:8000", "http://h:8000/v1"),
    ("h:8000", "http://h:8000", "http://h:8000/v1"),
    ("http://h:8000/", "http://h:8000", "http://h:8000/v1"),
    ("http://h:8000/v1/", "http://h:8000", "http://h:8000/v1"),
    ("http://h/v1/chat/completions", "http://h", "http://h/v1"),
    ("http://h:11434/api/chat", "http://h:11434", "http://h:11434/v1"),
    ("https://h/openai/v1", "https://h/openai", "https://h/openai/v1"),
    ("https://h/api/v1", "https://h/api", "https://h/api/v1"),
    ("https://h/v1beta/openai/", "https://h", "https://h/v1beta/openai"),
    ("https://h/prefix", "https://h/prefix", "https://h/prefix"),
    ("http://[::1]:8000/v1", "http://[::1]:8000", "http://[::1]:8000/v1"),
]


@pytest.mark.parametrize(("given", "root", "api"), URLS)
def test_urls_are_put_together(given: str, root: str, api: str) -> None:
    connection = resolve(given, environ={})
    assert (connection.root(), connection.api_base()) == (root, api)
    assert connection.url("/props") == f"{root}/props"
    assert (
        connection.url("chat/completions")
        == connection.url("/v1/chat/completions")
        == f"{api}/chat/completions"
    )


def test_a_query_of_the_base_url_stays() -> None:
    connection = resolve("https://h/openai/v1?api-version=3", environ={})
    assert connection.url("models") == "https://h/openai/v1/models?api-version=3"
    assert connection.url("/props?a=1") == "https://h/openai/props?api-version=3&a=1"


def test_flags_win_over_the_environment() -> None:
    environ = {"OPENAI_BASE_URL": "http://env/v1", "OPENAI_API_KEY": "k-env", "LLM_KEY": "k-named"}
    assert resolve(environ=environ).base_url == "http://env/v1"
    assert resolve("http://flag", environ=environ).base_url == "http://flag"
    assert resolve(environ=environ).auth_headers() == (("Authorization", "Bearer k-env"),)
    named = resolve(api_key_env="LLM_KEY", environ=environ)
    assert named.auth_headers() == (("Authorization", "Bearer k-named"),) and named.key_env == "LLM_KEY"
    own = resolve(headers=["authorization: Token z"], environ=environ)
    assert own.auth_headers() == (("authorization", "Token z"),)
    assert resolve(environ={}).base_url is None and resolve(environ={}).auth_headers() == ()


def test_user_info_becomes_a_header() -> None:
    connection = resolve("http://ann:a%3Ab@localhost/v1", environ={})
    assert connection.base_url == "http://localhost/v1"
    assert connection.auth_headers() == (("Authorization", "Basic YW5uOmE6Yg=="),)
    assert "a:b" in connection.secrets()


@pytest.mark.parametrize("options", [
    {"base_url": "ftp://h"}, {"base_url": "http://"}, {"base_url": "http://h:port"}, {"base_url": "http://[::1"},
    {"base_url": "http://h /v1"}, {"base_url": "unix:///run/x.sock"},
    {"headers": ["no colon"]}, {"headers": ["a b: c"]}, {"headers": ["X: a\r\nY: b"]}, {"headers": [": x"]},
    {"api_key_env": "NOT_SET"}, {"api_key_env": "sk-pasted"}, {"ca_bundle": "/no/such.pem"},
    {"timeout": 0.0}, {"timeout": -1.0}, {"timeout": float("nan")}, {"api_key_env": "TWO_LINES"},
])  # fmt: skip
def test_what_cannot_be_used_is_said_in_one_line(options: dict) -> None:
    with pytest.raises(UsageError) as raised:
        resolve(**options, environ={"TWO_LINES": "a\nb"})
    assert str(raised.value) and "\n" not in str(raised.value)


def test_timeouts() -> None:
    assert resolve(timeout=30, environ={}).timeouts == Timeouts(
        connect=10, first_byte=30, between=30, total=30
    )
    assert resolve(environ={}).timeouts == Timeouts()


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"]
)
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["localhost.example", "0.0.0.0", "10.0.0.1", "127.0.0.1.example", "", "::2"])
def test_not_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "proxy.example:3128")
    monkeypatch.setenv("all_proxy", "socks5://ann:pass-word@socks.example:1080")
    monkeypatch.setenv("no_proxy", ".corp.example")
    connection = resolve("https://h.example", environ={})
    assert connection.proxy("https://h.example/v1") == "http://proxy.example:3128"
    assert connection.proxy("https://llm.corp.example/v1") is None
    assert connection.proxy("https://127.0.0.1/v1") is None
    with pytest.raises(UsageError, match="socks5") as raised:
        connection.proxy("http://h.example/v1")
    assert "pass-word" not in str(raised.value) and "pass-word" in connection.secrets()


def test_the_click_options_are_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_KEY", "k-1")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    seen: list[tuple[Connection, int]] = []

    @click.command()
    @connection_options
    @click.option("--count", default=1)
    def verb(connection: Connection, count: int) -> None:
        """A verb."""
        seen.append((connection, count))

    line = "--base-url h:1 --model m --api-key-env LLM_KEY --header X:y --header Z:w --insecure --timeout 5 --count 3"
    result = CliRunner().invoke(verb, line.split(), catch_exceptions=False)
    assert result.exit_code == 0
    [(connection, count)] = seen
    assert (connection.base_url, connection.model, connection.insecure, count) == ("http://h:1", "m", True, 3)
    assert connection.auth_headers() == (("Authorization", "Bearer k-1"), ("X", "y"), ("Z", "w"))
    assert connection.timeouts.total == 5
    failed = CliRunner().invoke(verb, ["--api-key-env", "NOT_SET"])
    assert isinstance(failed.exception, UsageError) and len(seen) == 1
    text = CliRunner().invoke(verb, ["--help"]).output
    for option in (
        "--base-url",
        "--model",
        "--api-key-env",
        "--header",
        "--ca-bundle",
        "--insecure",
        "--timeout",
    ):
        assert option in text
