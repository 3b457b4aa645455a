"""The user's own parser as a command that lives on and answers a line with a line; see ``protocol``.

It gets ``{"text", "tools"}`` on stdin and prints ``{"calls": [{"name", "arguments"}], "content"}``. Other lines that
it prints are skipped. When it ends, the text at hand is an error, and it is started again for the next.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from contextlib import suppress
from typing import Any

from callable_worker import call_of  # type: ignore[import-not-found]
from protocol import Parsed, serve  # type: ignore[import-not-found]


class _Command:
    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._process: subprocess.Popen[str] | None = None

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                self._words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
                errors="replace",
            )
        return self._process

    def whole(self, _: str, text: str, tools: list[Any]) -> Parsed:
        """The command's answer to one text."""
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps({"text": text, "tools": tools}) + "\n")
            process.stdin.flush()
        for line in process.stdout:
            with suppress(ValueError):
                given = json.loads(line)
                if isinstance(given, dict) and isinstance(given.get("calls"), list):
                    return [call_of(call) for call in given["calls"]], given.get("content")
                if isinstance(given, dict) and "error" in given:
                    raise RuntimeError(str(given["error"]))
        raise RuntimeError(f"the command ended with code {process.wait()} and no answer")


def load() -> tuple[str, list[str], Any, Any]:
    """Starts the command that the command line names."""
    command = _Command(shlex.split(sys.argv[1]))
    command._running()
    return "own", ["command"], command.whole, None


if __name__ == "__main__":
    serve("command", load)
