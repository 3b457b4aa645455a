"""A request file in its three forms, and what is said of files that are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from truecall.errors import InputError
from truecall.preflight.request_file import OwnRequest, load

BODY = {"model": "m", "messages": [{"role": "user", "content": "it's 5 o'clock"}], "tools": []}


def har(url: str) -> dict[str, object]:
    return {"request": {"url": url, "method": "POST", "postData": {"text": json.dumps(BODY)}}}


@pytest.mark.parametrize(
    ("text", "api"),
    [
        (json.dumps(BODY), "openai.chat"),
        (json.dumps(har("http://h/v1/chat/completions")), "openai.chat"),
        (json.dumps({"log": {"entries": [har("http://h/x"), har("http://h/api/chat")]}}), "ollama.chat"),
        (
            "curl https://h/v1/chat/completions \\\n -H 'Authorization: Bearer k' \\\n --data-raw '"
            + json.dumps(BODY).replace("'", "'\\''")
            + "'",
            "openai.chat",
        ),
    ],
    ids=["json", "har-entry", "har-log", "curl"],
)
def test_three_forms(tmp_path: Path, text: str, api: str) -> None:
    path = tmp_path / "failing"
    path.write_text(text, "utf-8")
    assert load(path) == OwnRequest(body=BODY, api=api)


def test_a_curl_line_may_name_its_body_file(tmp_path: Path) -> None:
    (tmp_path / "body.json").write_text(json.dumps(BODY), "utf-8")
    (tmp_path / "line").write_text("curl -d @body.json http://h/v1/chat/completions", "utf-8")
    assert load(tmp_path / "line").body == BODY


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "{",
        "curl http://h/v1",
        "curl 'unclosed",
        '{"input": "x"}',
        '{"log": {"entries": []}}',
        "[" * 10**5,
    ],
    ids=range(8),
)
def test_other_files_are_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError) as caught:
        load(path)
    assert "\n" not in str(caught.value) and "--request" in str(caught.value)
