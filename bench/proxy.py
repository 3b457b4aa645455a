"""What a proxy costs: direct, nginx, truecall (recording and judging), mitmdump, LiteLLM, a bare aiohttp pass-through.

All in one run, interleaved round by round, on loopback, before one nginx that answers each chat request with the same
bytes. Whole answers are loaded by ``wrk`` at 1, 16 and 64 connections; streams by a small client of this file, from an
upstream of this file: paced (a chunk every few ms: delays) and unpaced (as fast as they are taken: chunks/s). nginx and
wrk are found on PATH; the others are named by options and left out where they are not given.
``python bench/proxy.py --seconds 3 --rounds 3 --mitmdump … --litellm …``
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

_UNSET_KEY = "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"  # loopback only
CHUNKS, EVERY = 100, 0.005  # of a paced stream
UNPACED = 2000  # chunks of a stream without pauses
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "The weather in a city.", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}  # fmt: skip
ASK = {
    "model": "m",
    "messages": [{"role": "user", "content": "What is the weather in Oslo? " * 20}],
    "tools": [TOOL],
}
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'},
}
ANSWER = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [
    {"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": [CALL]},
     "finish_reason": "tool_calls"}],
    "usage": {"prompt_tokens": 150, "completion_tokens": 20, "total_tokens": 170}}  # fmt: skip
NGINX = """
worker_processes 1; daemon off; pid {folder}/pid; error_log stderr crit;
events {{ worker_connections 2048; }}
http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
 uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; keepalive_requests 10000000; client_max_body_size 0;
 server {{ listen 127.0.0.1:{port}; {body} }} {more} }}
"""
PASS = "location / {{ proxy_pass http://up; proxy_http_version 1.1; proxy_buffering off; "
PASS += "proxy_set_header Connection ''; }}"
_QUOTED = json.dumps(ANSWER).replace("\\", "\\\\")  # nginx takes backslashes away
ANSWERING = f"location / {{ default_type application/json; return 200 '{_QUOTED}'; }}"
WRK = """wrk.method = "POST"; wrk.headers["Content-Type"] = "application/json"; wrk.body = [==[{body}]==]"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def process(command: list[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A server for as long as the block lasts."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    try:
        yield child
    finally:
        child.send_signal(signal.SIGINT)
        try:
            child.wait(60)
        except subprocess.TimeoutExpired:
            child.kill()


def wait_for(port: int, seconds: float = 180) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit(f"nothing listens on {port}")


def nginx(folder: Path, port: int, body: str, more: str = "") -> list[str]:
    folder.mkdir()
    conf = folder / "nginx.conf"
    conf.write_text(NGINX.format(folder=folder, port=port, body=body, more=more))
    return ["nginx", "-c", str(conf), "-e", "stderr"]


def servers(
    options: argparse.Namespace, base: Path, upstream: int
) -> dict[str, tuple[int, Callable[[], Any]]]:
    """Name -> (port, what starts it) of each proxy before the port ``upstream``."""
    out: dict[str, tuple[int, Callable[[], Any]]] = {}

    def add(name: str, make: Callable[[int], list[str]], **more: Any) -> None:
        port = free_port()
        out[name] = (port, lambda: process(make(port), **more))

    pool = f"upstream up {{ server 127.0.0.1:{upstream}; keepalive 128; keepalive_requests 10000000; }}"
    add("nginx", lambda port: nginx(base / f"n{port}", port, PASS.format(), pool))
    add("truecall", lambda port: [sys.executable, "-m", "truecall", "record", "--port", str(port), "--upstream",
        f"http://127.0.0.1:{upstream}", "--out", str(base / f"t{port}")])  # fmt: skip
    add("aiohttp", lambda port: [sys.executable, __file__, "--pass", str(port), str(upstream)])
    if options.mitmdump:
        add("mitmdump", lambda port: [options.mitmdump, "-q", "--mode", f"reverse:http://127.0.0.1:{upstream}", "-p",
            str(port), "-w", str(base / f"flows{port}"), "--set", "stream_large_bodies=1m"])  # fmt: skip
    if options.litellm:
        config = base / f"litellm{upstream}.yaml"
        place = f"http://127.0.0.1:{upstream}/v1"
        params = {"model": "hosted_vllm/m", "api_base": place, "api_key": "none"}
        config.write_text(json.dumps({"model_list": [{"model_name": "m", "litellm_params": params}]}))
        environ = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", _UNSET_KEY: "true"}
        add("litellm", lambda port: [options.litellm, "--config", str(config), "--port", str(port), "--host",
            "127.0.0.1"], env=environ)  # fmt: skip
    return out


# --------------------------------------------------------------------------- whole answers


def load(port: int, connections: int, seconds: float, script: Path) -> dict[str, float]:
    """Requests/s and latency in ms by wrk."""
    threads = "1"
    command = [
        "wrk",
        "-t",
        threads,
        "-c",
        str(connections),
        "-d",
        f"{seconds}s",
        "--latency",
        "-s",
        str(script),
    ]
    done = subprocess.run(
        [*command, f"http://127.0.0.1:{port}/v1/chat/completions"], capture_output=True, text=True
    )
    found = {"rps": float(re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)[1])}  # type: ignore[index]
    for name in ("50", "99"):
        value, unit = re.search(rf"{name}%\s+([\d.]+)(us|ms|s)", done.stdout).groups()  # type: ignore[union-attr]
        found[f"p{name}"] = float(value) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[unit]
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", done.stdout)
    found["bad"] = float(bad[1]) if bad else 0.0
    return found


def whole_answers(options: argparse.Namespace, base: Path) -> None:
    port = free_port()
    script = base / "post.lua"
    script.write_text(WRK.format(body=json.dumps(ASK)))
    with ExitStack() as stack:
        stack.enter_context(process(nginx(base / "up", port, ANSWERING)))
        proxies = servers(options, base, port)
        for listen, start in proxies.values():
            stack.enter_context(start())
            wait_for(listen)
        targets = {"direct": port, **{name: listen for name, (listen, _) in proxies.items()}}
        for listen in targets.values():
            load(listen, 4, 1, script)
        found: dict[tuple[str, int], list[dict[str, float]]] = defaultdict(list)
        for _ in range(options.rounds):
            for connections in (1, 16, 64):
                for name, listen in targets.items():
                    found[name, connections].append(load(listen, connections, options.seconds, script))
    print(
        f"{'whole answers':14}" + "".join(f"{f'{c} conn':>12}{'p50 ms':>9}{'p99 ms':>9}" for c in (1, 16, 64))
    )
    for name in targets:
        cells = ""
        for connections in (1, 16, 64):
            runs = found[name, connections]
            rps, p50, p99 = (statistics.median(run[key] for run in runs) for key in ("rps", "p50", "p99"))
            bad = sum(run["bad"] for run in runs)
            cells += f"{rps:>10,.0f}/s{p50:>9.2f}{p99:>9.2f}" + (f" ({bad:.0f} bad)" if bad else "")
        print(f"{name:14}{cells}", flush=True)


# --------------------------------------------------------------------------- streams


async def upstream_of_streams(port: int) -> None:
    """Answers each request with chunks that carry the time of their sending; ``"chunks"`` asks for an unpaced lot."""

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", head.lower())
                body = json.loads(await reader.readexactly(int(length[1]) if length else 0))
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                )
                for _ in range(body.get("chunks", CHUNKS)):
                    writer.write(_chunk(f"{time.perf_counter_ns()} "))
                    if "chunks" in body:
                        await writer.drain()
                    await asyncio.sleep(0 if "chunks" in body else EVERY)
                end = b"data: [DONE]\n\n"
                writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(end), end))
        except (ConnectionError, asyncio.IncompleteReadError):
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", port)
    await server.serve_forever()


def _chunk(content: str) -> bytes:
    choice = b'{"index":0,"delta":{"content":"%b"},"finish_reason":null}' % content.encode()
    event = (
        b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[%b]}\n\n'
        % choice
    )
    return b"%x\r\n%b\r\n" % (len(event), event)


async def read_stream(port: int, chunks: int = 0) -> tuple[float, list[float]]:
    """(ms to the first chunk, ms that each chunk took from its sending) of one stream."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps({**ASK, "stream": True, **({"chunks": chunks} if chunks else {})}).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    started = time.perf_counter_ns()
    writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    first, delays, buffer = 0.0, [], b""
    while b"[DONE]" not in buffer:
        data = await reader.read(65536)
        if not data:
            break
        now = time.perf_counter_ns()
        buffer = buffer[buffer.rfind(b"\n") + 1 :] + data  # a chunk may come in two pieces
        whole = buffer[: buffer.rfind(b"\n") + 1]
        for sent in re.findall(rb'"content": ?"(\d+) "', whole):
            first = first or (now - started) / 1e6
            delays.append((now - int(sent)) / 1e6)
    writer.close()
    return first, delays


async def streams_of(port: int, count: int, chunks: int = 0) -> tuple[list[float], list[float], float]:
    """(ms to each stream's first chunk, ms of each chunk, chunks/s over all)."""
    started = time.perf_counter()
    done = await asyncio.gather(*(read_stream(port, chunks) for _ in range(count)))
    delays = [delay for _, found in done for delay in found]
    return [first for first, _ in done], delays, len(delays) / (time.perf_counter() - started)


def streams(options: argparse.Namespace, base: Path) -> None:
    import uvloop

    port = free_port()
    with ExitStack() as stack:
        stack.enter_context(process([sys.executable, __file__, "--streams", str(port)]))
        wait_for(port)
        proxies = servers(options, base, port)
        for listen, start in proxies.values():
            stack.enter_context(start())
            wait_for(listen)
        targets = {"direct": port, **{name: listen for name, (listen, _) in proxies.items()}}
        found: dict[tuple[str, int], list[Any]] = defaultdict(list)
        for _ in range(options.rounds):
            for count in (1, 16):
                for name, listen in targets.items():
                    found[name, count].append(uvloop.run(streams_of(listen, count)))
            for name, listen in targets.items():
                found[name, 0].append(uvloop.run(streams_of(listen, 8, UNPACED)))
    print(
        f"{'streams':14}"
        + "".join(f"{f'{c}: first ms':>14}{'delay p50':>11}{'p99':>8}" for c in (1, 16))
        + f"{'8 unpaced: chunks/s':>22}"
    )
    for name in targets:
        cells = ""
        for count in (1, 16):
            firsts = [x for run in found[name, count] for x in run[0]]
            delays = sorted(x for run in found[name, count] for x in run[1])
            if not delays:
                cells += f"{'no chunks':>33}"
                continue
            p99 = delays[int(len(delays) * 0.99) - 1]
            cells += f"{statistics.median(firsts):>14.2f}{statistics.median(delays):>11.2f}{p99:>8.2f}"
        rates = [run[2] for run in found[name, 0]]
        whole = min(len(run[1]) for run in found[name, 0])
        missing = f" ({8 * UNPACED - whole:,} missing)" if whole < 0.99 * 8 * UNPACED else ""
        print(f"{name:14}{cells}{statistics.median(rates):>22,.0f}{missing}", flush=True)


# --------------------------------------------------------------------------- memory


def resident(pid: int) -> float:
    """Resident memory in MB, shared ring included."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024  # type: ignore[index]


def memory(options: argparse.Namespace, base: Path) -> None:
    """Resident memory of proxy and recorder along many exchanges."""
    port, listen = free_port(), free_port()
    script = base / "post2.lua"
    script.write_text(WRK.format(body=json.dumps(ASK)))
    command = [
        sys.executable,
        "-m",
        "truecall",
        "record",
        "--port",
        str(listen),
        "--upstream",
        f"http://127.0.0.1:{port}",
    ]
    with (
        process(nginx(base / "up3", port, ANSWERING)),
        process([*command, "--out", str(base / "memory")]) as proxy,
    ):
        wait_for(port), wait_for(listen)
        tasks = Path(f"/proc/{proxy.pid}/task").glob("*/children")  # a thread of the proxy starts it
        recorder = next(int(child) for task in tasks for child in task.read_text().split())
        sent = 0
        print("memory: exchanges, proxy MB, recorder MB")
        while sent < options.exchanges:
            sent += int(load(listen, 8, 3, script)["rps"] * 3)
            while (base / "memory" / "log.jsonl").stat().st_mtime > time.time() - 1.0:
                time.sleep(0.5)  # judging has caught up
            print(f"{sent:>10,} {resident(proxy.pid):>8.0f} {resident(recorder):>8.0f}", flush=True)


# --------------------------------------------------------------------------- the bare pass-through


async def bare(port: int, upstream: int) -> None:
    """What one writes in a few lines with aiohttp: no recording, no checks."""
    from aiohttp import ClientSession, TCPConnector, web

    session = ClientSession(connector=TCPConnector(limit=0), auto_decompress=False)

    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        url = f"http://127.0.0.1:{upstream}{request.rel_url}"
        headers = {k: v for k, v in request.headers.items() if k.lower() not in ("host", "content-length")}
        async with session.request(request.method, url, data=body, headers=headers) as answer:
            drop = ("transfer-encoding", "connection")
            kept = {k: v for k, v in answer.headers.items() if k.lower() not in drop}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            async for data in answer.content.iter_any():
                await response.write(data)
            await response.write_eof()
            return response

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mitmdump")
    parser.add_argument("--litellm")
    parser.add_argument("--exchanges", type=int, default=0, help="memory over so many exchanges, too")
    parser.add_argument("--only-memory", action="store_true")
    parser.add_argument("--pass", dest="bare", nargs=2, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--streams", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        asyncio.run(bare(*options.bare))
    elif options.streams:
        import uvloop

        uvloop.run(upstream_of_streams(options.streams))
    else:
        for needed in ("nginx", "wrk"):
            if not shutil.which(needed):
                raise SystemExit(f"{needed} is needed on PATH")
        with tempfile.TemporaryDirectory() as base:
            print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
            if not options.only_memory:
                whole_answers(options, Path(base))
                streams(options, Path(base))
            if options.exchanges:
                memory(options, Path(base))
            print(f"load at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
