"""Record what a live server answers, one JSON file per request, in this folder.

    python record.py BASE_URL SET --engine llamacpp --flags "--chat-template hermes.jinja" --prefix llamacpp-hermes

SET names a list of requests in cases.py. `scripts/two_stacks.py` starts the servers. Bodies are kept as received: a
stream as its list of SSE payloads (lines that are no `data:` field are kept whole), all else as text.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cases import SETS, Case

HERE = Path(__file__).parent


def exchange(base: str, method: str, path: str, body: str | None) -> tuple[int, dict[str, str], bytes]:
    """Send one request; returns status, headers (names in lower case) and the bytes of the body."""
    address = urlsplit(base)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=300)
    try:
        data = body.encode() if body is not None else None
        connection.request(method, path, data, {"content-type": "application/json"} if body else {})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def as_received(headers: dict[str, str], data: bytes) -> str | list[str]:
    text = data.decode("utf-8")
    if not headers.get("content-type", "").startswith("text/event-stream"):
        return text
    lines = [line for line in re.split(r"\r\n|\n|\r", text) if line]
    return [
        line.removeprefix("data:").removeprefix(" ") if line.startswith("data:") else line for line in lines
    ]


def version(base: str, engine: str) -> str:
    path, key = ("/version", "version") if engine == "vllm" else ("/props", "build_info")
    return str(json.loads(exchange(base, "GET", path, None)[2])[key])


def record(options: argparse.Namespace, engine_version: str, case: Case) -> dict[str, Any]:
    """Run one case and write its file; returns what was written."""
    body = (
        case.raw if case.raw is not None else json.dumps(case.body, ensure_ascii=False) if case.body else None
    )
    status, headers, data = exchange(options.base_url, case.method, case.path, body)
    received = as_received(headers, data)
    if case.keep and isinstance(received, str):
        received = json.dumps({key: value for key, value in json.loads(received).items() if key in case.keep})
    kept = {
        "engine": options.engine,
        "version": engine_version,
        "flags": options.flags,
        "request": {
            "method": case.method,
            "path": case.path,
            "body": case.body if case.raw is None else case.raw,
        },
        "status": status,
        "headers": headers,
        "body": received,
        "note": case.note or (f"of the body only: {', '.join(case.keep)}" if case.keep else ""),
    }
    path = HERE / f"{options.prefix}-{case.name}.json"
    path.write_text(json.dumps(kept, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(path.name, status)
    return kept


def token_ids(kept: dict[str, Any]) -> list[int] | None:
    """The generated token ids of a recorded whole answer or stream of vLLM, None where it holds none."""
    bodies = kept["body"] if isinstance(kept["body"], list) else [kept["body"]]
    chunks = [json.loads(text) for text in bodies if text.startswith("{")]
    choices = [choice for chunk in chunks for choice in chunk.get("choices", [])]
    return [number for choice in choices for number in choice.get("token_ids") or []] or None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base_url")
    parser.add_argument("set", choices=sorted(SETS))
    parser.add_argument("--engine", required=True, choices=["llamacpp", "vllm"])
    parser.add_argument("--flags", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--only", help="a regular expression for case names")
    options = parser.parse_args()
    engine_version = version(options.base_url, options.engine)
    for case in SETS[options.set]:
        if options.only and not re.search(options.only, case.name):
            continue
        kept = record(options, engine_version, case)
        ids = token_ids(kept) if case.detokenize else None
        if ids:
            note = f"the token ids of {options.prefix}-{case.name}.json, back to text"
            name = f"{case.name}-detokenized"
            record(options, engine_version, Case(name, {"tokens": ids}, path="/detokenize", note=note))


if __name__ == "__main__":
    main()
