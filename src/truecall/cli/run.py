"""``truecall run``: a study, from a file or from flags, into a run folder."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecall.cli import screen
from truecall.cli.options import connection_options
from truecall.errors import InputError, UsageError

if TYPE_CHECKING:
    from truecall.config import Connection
    from truecall.run.runner import Outcome
    from truecall.run.study import Study
    from truecall.sandbox import Sandbox

_LOCAL = {
    "conditions": ["native", "native_hint", "text_tools", "constrained"],
    "sampling": {"max_tokens": 64},
    "limits": {"turns": 8, "concurrency": 2},
}
"""What ``--local`` runs unless flags say otherwise: small enough for two cores."""

_TEMPLATE = "chat template "


@click.command("run")
@click.argument("study_file", metavar="[STUDY.toml]", required=False, type=click.Path(path_type=Path))
@connection_options
@click.option("--local", "use_local", is_flag=True, help="Run on the embedded engine and its small model.")
@click.option("--chat-template", metavar="FILE|hermes|own", help="With --local: the template to start with.")
@click.option("--task", "tasks", multiple=True, help="A task (aggregate, chain, code, …); repeatable.")
@click.option(
    "--condition", "conditions", multiple=True, help="native, native_hint, text_tools, …; repeatable."
)
@click.option("--schema", "schemas", multiple=True, help="terse, rich or strict; repeatable.")
@click.option("--seeds", type=click.IntRange(min=1), help="Task instances, seeds 0 to N-1 [8].")
@click.option("--turns", type=click.IntRange(min=1), help="The cap of an episode [40].")
@click.option("--max-tokens", type=click.IntRange(min=1), help="Completion tokens of one turn [512].")
@click.option("--temperature", type=float, help="Sampling temperature [1.0].")
@click.option("--concurrency", type=click.IntRange(min=1), help="Requests at once, per endpoint [4].")
@click.option(
    "--budget", type=click.IntRange(min=1), metavar="REQUESTS", help="Requests that the run may send."
)
@click.option(
    "--loops", type=click.Choice(["stop", "observe"]), help="What a loop does to an episode [stop]."
)
@click.option("--beside", multiple=True, metavar="URL", help="Send the same study to this base URL, too.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Change a field of the study.")
@click.option("--plan", "plan_only", is_flag=True, help="Print requests and token ceilings; send nothing.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="The run folder [a new one].")
@click.option("--resume", metavar="RUN", help="Go on with this run (an id or a folder).")
@click.option("--retry-failed", is_flag=True, help="With --resume: take up episodes whose request failed.")
@click.option(
    "--keep", type=click.Choice(["full", "shape", "none"]), default="full", help="What is kept of texts."
)
@click.option(
    "--unsafe-sandbox", is_flag=True, help="Run model-written code without bubblewrap, if it must be."
)
@click.option(
    "--fail-on",
    type=click.Choice(["findings", "never"]),
    default="findings",
    show_default=True,
    help="What ends with exit code 1.",
)
@click.option("--json", "as_json", is_flag=True, help="All numbers as JSON on stdout.")
def run_command(
    study_file: Path | None,
    connection: Connection,
    use_local: bool,
    chat_template: str | None,
    settings: tuple[str, ...],
    plan_only: bool,
    out: Path | None,
    resume: str | None,
    retry_failed: bool,
    keep: str,
    unsafe_sandbox: bool,
    fail_on: str,
    as_json: bool,
    **flags: Any,
) -> int:
    """Run a study: tasks × conditions × seeds against one or more endpoints.

    Without STUDY.toml the flags make one. STUDY may be the name of a bundled study.
    """
    from truecall.run.result import find_run

    folder = find_run(resume) if resume else None
    if folder is not None and (study_file or out):
        raise UsageError(
            "--resume takes the study and the folder of that run: leave STUDY.toml and --out away"
        )
    study = _study(study_file, flags, settings, folder, use_local, chat_template)
    sandbox = _sandbox(study, unsafe_sandbox)
    if plan_only:
        from truecall.cli.run_screen import show_plan

        show_plan(study, sandbox)
        return 0
    path = folder or _folder(out)
    with _endpoint(study, connection, use_local, chat_template) as target:
        outcome = _run(study, path, target, keep, retry_failed, sandbox)
    return _report(path, outcome, as_json, fail_on)


def _run(
    study: Study, path: Path, connection: Connection, keep: str, retry_failed: bool, sandbox: Sandbox | None
) -> Outcome:
    from truecall.run.cards import bank_of, seeds_of
    from truecall.run.runner import run
    from truecall.run.study import arms_of
    from truecall.store import name_of

    bank = bank_of(study, sandbox=sandbox)
    total = sum(len(seeds_of(study, bank[arm.task])) * len(study.samples()) for arm in arms_of(study))
    screen.say(f"{total} episodes into {path}; Ctrl-C stops, truecall run --resume {name_of(path)} goes on")
    with screen.progress("episodes", total) as bar:
        return asyncio.run(
            run(
                study,
                path,
                connection,
                keep=keep,  # type: ignore[arg-type]
                retry_failed=retry_failed,
                sandbox=sandbox,
                on_episode=lambda key, ended: bar.update(1),
            )
        )


# --------------------------------------------------------------------------- the study


def _study(
    file: Path | None,
    flags: dict[str, Any],
    settings: tuple[str, ...],
    folder: Path | None,
    local: bool,
    template: str | None,
) -> Study:
    import msgspec

    from truecall.run.cards import load_card
    from truecall.run.study import checked, load, override

    if folder is not None:
        data = msgspec.to_builtins(load_card(folder).study)
    elif file is not None:
        data = msgspec.to_builtins(load(file))
    else:
        data = msgspec.to_builtins(checked(_LOCAL if local else {}, "flags"))
    data = msgspec.json.decode(msgspec.json.encode(data))  # lists instead of tuples, so that settings fit
    _put_flags(data, flags)
    if local and folder is None:
        _put_local(data, template)
    if flags["beside"]:
        _put_beside(data, flags["beside"])
    return checked(override(data, settings), str(file or folder or "flags"))


def _put_flags(data: dict[str, Any], flags: dict[str, Any]) -> None:
    for name in ("tasks", "conditions", "schemas"):
        if flags[name]:
            data[name] = list(flags[name])
    if flags["seeds"]:
        data["seeds"] = flags["seeds"]
    for table, names in (
        ("sampling", ("max_tokens", "temperature")),
        ("limits", ("turns", "concurrency", "loops")),
    ):
        for name in names:
            if flags[name] is not None:
                data.setdefault(table, {})[name] = flags[name]
    if flags["budget"]:
        data.setdefault("limits", {})["requests"] = flags["budget"]


def _put_local(data: dict[str, Any], template: str | None) -> None:
    """The embedded engine stands in place of endpoints without an address; what is known of it is declared."""
    from importlib import metadata

    from truecall.model_file import SMOLLM2

    try:
        engine = {"engine_version": f"xllamacpp {metadata.version('xllamacpp')}"}
    except metadata.PackageNotFoundError:
        engine = {}  # the engine's own start says what is missing
    endpoints = data.setdefault("endpoints", [{"name": "local"}]) or [{"name": "local"}]
    for endpoint in endpoints:
        if not endpoint.get("base_url"):
            endpoint["name"] = "local" if endpoint.get("name", "endpoint") == "endpoint" else endpoint["name"]
            declared = {"model_digest": f"sha256:{SMOLLM2.sha256}", "quantisation": "Q4_1"}
            endpoint["declared"] = {**engine, **declared, **endpoint.get("declared", {})}
            if template:
                endpoint["declared"]["launch_flags"] = f"{_TEMPLATE}{template}"


def _template_of(study: Study) -> str:
    """The template that an earlier part of the run was started with, as its card declares it; else the model's."""
    flags = [str(endpoint.declared.get("launch_flags", "")) for endpoint in study.endpoints]
    return next((f.removeprefix(_TEMPLATE) for f in flags if f.startswith(_TEMPLATE)), "own")


def _put_beside(data: dict[str, Any], urls: tuple[str, ...]) -> None:
    """The same study against further base URLs; endpoints are named by their place."""
    endpoints = data.setdefault("endpoints", [{}]) or [{}]
    for place, url in enumerate(urls, start=len(endpoints) + 1):
        endpoints.append({"name": f"endpoint{place}", "base_url": url})


def _sandbox(study: Study, unsafe: bool) -> Sandbox | None:
    """The sandbox, where a task of the study needs one."""
    from truecall import tasks
    from truecall.sandbox import Sandbox

    return Sandbox(unsafe=unsafe) if any(tasks.needs_sandbox(name) for name in study.tasks) else None


def _folder(out: Path | None) -> Path:
    from truecall.store import Place, new_place

    if out is None:
        return new_place(Place.RUN)
    if (out / "log.jsonl").exists():
        raise InputError(f"{out}: there is a run already; go on with it by --resume {out}")
    return out


@contextmanager
def _endpoint(
    study: Study, connection: Connection, use_local: bool, template: str | None
) -> Iterator[Connection]:
    """The address of the endpoints that have none of their own."""
    if use_local:
        from truecall.cli.local import download_bar
        from truecall.local import embedded

        screen.say("starting the embedded engine (llama.cpp, SmolLM2-135M-Instruct)…")
        with embedded(
            chat_template=template or _template_of(study),
            parallel=study.limits.concurrency,
            progress=download_bar,
        ) as engine:
            yield connection.at(engine.base_url)
        return
    if connection.base_url is None and any(endpoint.base_url is None for endpoint in study.endpoints):
        raise UsageError("no endpoint: give --base-url, endpoints in the study file, or --local")
    yield connection


def _report(path: Path, outcome: Outcome, as_json: bool, fail_on: str) -> int:
    from truecall.cli.run_screen import show
    from truecall.run.output import findings, nothing_came, run_output
    from truecall.run.result import read

    result = read(path)
    if as_json:
        screen.emit_json(_versioned(run_output(result)))
    else:
        show(result, outcome)
    if outcome.left or nothing_came(result):
        return 2
    return 1 if fail_on == "findings" and findings(result) else 0


def _versioned(output: Any) -> dict[str, Any]:
    """A record with its version always written (defaults are left out of records otherwise)."""
    import msgspec

    return {"schema_version": output.schema_version, **msgspec.to_builtins(output)}
