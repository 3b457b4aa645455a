"""``truecall local``: the embedded engine as a server, and its model file."""

from __future__ import annotations

import signal
from pathlib import Path

import click

from truecall.cli import screen
from truecall.errors import CannotTell


@click.group("local")
def local_command() -> None:
    """The embedded engine: llama.cpp's server on this machine's CPU, with a 135M model."""


@local_command.command("serve")
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    metavar="FILE.gguf",
    help="Model to serve. Default: SmolLM2-135M-Instruct, fetched once (93 MB).",
)
@click.option(
    "--chat-template",
    metavar="FILE|hermes|own",
    default="own",
    show_default=True,
    help="The model's own template, the packaged hermes one (renders tools), or a Jinja file.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1. Default: a free one."
)
@click.option(
    "--ctx", type=click.IntRange(min=256), default=4096, show_default=True, help="Tokens per request."
)
@click.option(
    "--parallel", type=click.IntRange(1, 64), default=1, show_default=True, help="Requests served at once."
)
@click.option(
    "--threads", type=click.IntRange(min=1), help="CPU threads. Default: one core less than there are."
)
@click.option("--log", type=click.Path(path_type=Path), metavar="FILE", help="Keep what the engine logs.")
def serve_command(
    model: Path | None,
    chat_template: str,
    port: int,
    ctx: int,
    parallel: int,
    threads: int | None,
    log: Path | None,
) -> None:
    """Serve a model until Ctrl-C or SIGTERM. The base URL is printed on stdout once it answers."""
    from truecall.local import embedded

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both end the block the same way
    with embedded(
        model,
        chat_template,
        port=port,
        ctx=ctx,
        parallel=parallel,
        threads=threads,
        log=log,
        progress=download_bar,
    ) as engine:
        try:
            screen.out(engine.base_url)
            screen.say(f"{engine.model.name} on llama.cpp, chat template {chat_template}; Ctrl-C stops it")
            failure = engine.wait()
        except KeyboardInterrupt:  # asked to stop: the normal end
            return
        raise CannotTell(failure)


@local_command.command("fetch")
def fetch_command() -> None:
    """Fetch the default model if it is missing, check its digest, and print its path."""
    from truecall.model_file import model_path

    screen.out(str(model_path(progress=download_bar)))


def download_bar(total: int | None) -> screen.Progress:
    """The progress bar of the model's download, on stderr; one line of talk where there is no terminal."""
    size = f" ({total / 1e6:.0f} MB)" if total else ""
    screen.say(f"fetching the default model{size}, once")
    return screen.progress("model", total, as_bytes=True)
