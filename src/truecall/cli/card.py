"""``truecall card``: the reporting checklist of the serving-confounds paper, filled in from a run."""

from __future__ import annotations

import click

from truecall.cli import screen
from truecall.errors import UsageError


@click.command("card")
@click.argument("run", metavar="RUN")
@click.option("--arm", "arms", multiple=True, metavar="NAME", help="Only this arm; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="The cards and checklists as JSON on stdout.")
def card_command(run: str, arms: tuple[str, ...], as_json: bool) -> int:
    """Print the reporting checklist of each arm of RUN (an id or a folder), filled in.

    Exit code 1: something that should be reported is missing.
    """
    from truecall.card import ENTRIES, in_words, render
    from truecall.run.output import CardOutput, arm_card
    from truecall.run.result import find_run, read

    result = read(find_run(run))
    chosen = [result.arm(name) for name in arms] if arms else [a for a in result.arms if a.ended]
    if not chosen:
        raise UsageError(f"{run}: no episode of it came to its end")
    cards = tuple(arm_card(arm, result.card.quarrels.get(arm.name, ())) for arm in chosen)
    hashed = result.card.predictions_sha256
    if as_json:
        import msgspec

        made = CardOutput(study=result.card.study.name, predictions_sha256=hashed, arms=cards)
        screen.emit_json({"schema_version": made.schema_version, **msgspec.to_builtins(made)})
    else:
        for each in cards:
            _say(render(each.checklist, f"Reporting checklist, {each.name}").rstrip("\n"))
            for name in ("task", "seeds", "loop_policy", "truecall", "detector"):
                _say(f"    {ENTRIES[name]}: {in_words(each.card.entry(name).value)}")
            for fault in each.faults:
                _say(f"  ! {fault}")
            screen.out()
        if hashed:
            _say(f"predictions, hashed before the first request: {hashed}")
    return 1 if any(item.state == "no" for each in cards for item in each.checklist) else 0


def _say(text: str) -> None:
    for line in text.split("\n"):
        screen.out(screen.plain(screen.visible(line)))
