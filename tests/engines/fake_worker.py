"""A worker that does on demand what engines' workers do by accident: the text says what."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import truecall.engines as package

sys.path.insert(0, str(Path(package.__file__).parent / "workers"))

import protocol

_channel = protocol._own_channel
_out: list[int] = []


def _noted() -> int:
    _out.append(_channel())
    return _out[0]


protocol._own_channel = _noted


def whole(parser: str, text: str, tools: list[Any]) -> Any:
    """One hermes call, or the misbehaviour that the text asks for."""
    if "DIE" in text:
        os.kill(os.getpid(), signal.SIGKILL)
    if "EXIT" in text:
        os._exit(7)
    if "HANG" in text:
        time.sleep(60)
    if "UNASKED" in text:
        raise protocol.Unasked("the model wrote another text")
    if "RAISE" in text:
        raise ValueError("the parser stumbled")
    if "PRINT" in text:
        print("something that an engine prints")
        os.write(1, b"something that its native code prints\n")
    if "NOISE" in text:
        os.write(_out[0], b'Loading model...\n{"half": \n\xff\xfe\n[1, 2]\n')
    if "SLEEP" in text:
        time.sleep(0.005)
    opened, closed = text.find("<tool_call>"), text.find("</tool_call>")
    if opened < 0 or closed < 0 or parser == "blind":
        return [], text
    call = json.loads(text[opened + 11 : closed])
    names = {tool["function"]["name"] for tool in tools}
    if parser == "strict" and call["name"] not in names:
        return [], ""
    return [[call["name"], json.dumps(call["arguments"])]], text[:opened] + text[closed + 12 :]


def streamed(parser: str, pieces: Sequence[str], tools: list[Any]) -> Any:
    """The parser ``split`` loses what comes in more than one piece."""
    if parser == "split" and len(pieces) > 1:
        return [], ""
    return whole(parser, "".join(pieces), tools)


def load() -> Any:
    """Four parsers, or what the command line asks for."""
    if "--missing" in sys.argv:
        raise ImportError("the engine is not installed")
    if "--crash" in sys.argv:
        os._exit(3)
    if "--network" in sys.argv:
        import socket

        socket.create_connection(("127.0.0.1", 9), timeout=2)
    return "1.0", ["blind", "plain", "split", "strict"], whole, None if "--whole" in sys.argv else streamed


if __name__ == "__main__":
    protocol.serve("fake", load)
