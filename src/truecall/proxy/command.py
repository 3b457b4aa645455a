"""The harness as a child process: the variables that point it at the proxy, its end, its exit code."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from truecall.errors import UsageError

_KEY_NAME: Final = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|AUTH)S?(?:_|$)", re.IGNORECASE
)
_API_BASES: Final = (
    "OPENAI_BASE_URL",
    "OPENAI_API_BASE",  # LiteLLM and older clients
    "HOSTED_VLLM_API_BASE",  # LiteLLM
    "VLLM_BASE_URL",  # inspect_ai
    "REMOTE_OPENAI_BASE_URL",  # bfcl-eval
)
_ROOTS: Final = ("OLLAMA_HOST", "OLLAMA_API_BASE", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE")


def variables(
    host: str, port: int, api_path: str, *, token: str | None = None, names: Iterable[str] = ()
) -> dict[str, str]:
    """The variables that harnesses read, all naming the proxy. ``names``: further ones for the OpenAI base."""
    root = f"http://{host}:{port}" + (f"/{token}" if token else "")
    out = dict.fromkeys((*_API_BASES, *names), root + api_path)
    out |= dict.fromkeys(_ROOTS, root)
    out |= {"LOCAL_SERVER_ENDPOINT": host, "LOCAL_SERVER_PORT": str(port)}  # bfcl-eval
    return out


def environment(own: Mapping[str, str], pointing: Mapping[str, str]) -> dict[str, str]:
    """The child's environment: ours, the variables, and no proxy for loopback."""
    loopback = "127.0.0.1,localhost"
    out = {**own, **pointing}
    for name in ("NO_PROXY", "no_proxy"):
        out[name] = f"{own[name]},{loopback}" if own.get(name) else loopback
    return out


def secrets_of_environment(environ: Mapping[str, str]) -> list[str]:
    """The values of variables whose names say that they hold a key."""
    return [value for name, value in environ.items() if _KEY_NAME.search(name) and value]


async def run(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Runs the command to its end; its exit code, as shells give it (128 + signal).

    Raises:
        UsageError: it can't be started.
    """
    try:
        child = await asyncio.create_subprocess_exec(*command, env=dict(environ))
    except OSError as error:
        raise UsageError(f"{command[0]}: can't be run ({error.strerror})") from None
    loop = asyncio.get_running_loop()

    def passed_on(number: int) -> None:
        if child.returncode is None:
            child.send_signal(number)

    loop.add_signal_handler(signal.SIGINT, lambda: None)  # a terminal sends it to the child, too
    loop.add_signal_handler(signal.SIGTERM, passed_on, signal.SIGTERM)
    loop.add_signal_handler(signal.SIGHUP, passed_on, signal.SIGHUP)
    try:
        code = await child.wait()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(number)
    return code if code >= 0 else 128 - code
