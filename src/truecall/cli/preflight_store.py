"""What a preflight keeps, and what a later one is compared with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from truecall import store
from truecall.cli import screen
from truecall.cli.preflight_screen import EMBEDDED, body_of, body_path, template_of
from truecall.errors import InputError, UsageError
from truecall.preflight.compare import compare, counted
from truecall.preflight.diagnose import capital
from truecall.preflight.report import SCHEMA_VERSION, Report
from truecall.preflight.request_file import OwnRequest
from truecall.redact import Redactor

if TYPE_CHECKING:
    from truecall.config import Connection

_OWN_ID = re.compile(r"(?:preflight/)?\d{1,9}")
_REQUEST = "request.json"


@dataclass(frozen=True)
class Earlier:
    """The preflight to compare with, if any. ``trusted``: kept here under its id, not handed over as a file."""

    name: str | None = None
    report: Report | None = None
    request: OwnRequest | None = None
    trusted: bool = False

    @classmethod
    def load(cls, again: str | None, baseline: str | None) -> Earlier:
        """Read it.

        Raises:
            InputError: there is none of that name, or it is no report that this version reads.
        """
        name = again or baseline
        if not name:
            return cls()
        data = store.load_preflight(name)
        version = data.get("schema_version", 1)
        if not isinstance(version, int) or version > SCHEMA_VERSION:
            raise InputError(f"{name}: written by a newer truecall (schema {version})")
        try:
            report = msgspec.convert(data, Report)
        except msgspec.ValidationError as error:
            raise InputError(f"{name}: is no preflight report ({error})") from None
        trusted = _OWN_ID.fullmatch(name) is not None
        return cls(name, report, _kept_request(report) if trusted else None, trusted)

    @property
    def template(self) -> str | None:
        """The chat template of a run on the embedded engine; None for any other run."""
        return template_of(self.report) if self.report else None

    def probes(self, own: OwnRequest | None) -> tuple[str, ...]:
        """The probes to repeat: those of then, or all where that run was cut short."""
        ran = [p.name for p in self.report.probes] if self.report else []
        if "stopped" in ran or "warm-up" in ran:
            return ()
        return tuple(name for name in ran if name != "usage" and (name != "own" or own is not None))

    def connection(self, connection: Connection, *, named: bool) -> Connection:
        """The endpoint and model of then, unless the options name others (``named``: an address was given).

        A key that only stands in the environment goes there again if this machine's own record names the place.
        """
        then = self.report.endpoint if self.report else None
        if then is None:
            return connection
        if not named and self.template is not None:
            raise UsageError(
                f"{self.name}: was a run on the embedded engine, which is gone: add --local"
                " (starts it again, with the chat template of then)"
            )
        if not named:
            screen.say(f"again: {then.base_url}")
            connection = connection.at(then.base_url, keep_key=self.trusted)
        if connection.model is None and then.model_origin.startswith("named by you"):
            connection = msgspec.structs.replace(connection, model=then.model)
        return connection

    def compared(self, report: Report) -> Report:
        """The report, with what changed since then."""
        if self.report is None:
            return report
        changes = compare(self.report, report)
        fixed = [counted(c) for c in changes if c.change == "fixed"]
        new = [counted(c) for c in changes if c.change == "new"]
        same = sum(c.change == "unchanged" for c in changes)
        said = f"{', '.join(fixed) or 'nothing'} fixed, {', '.join(new) or 'nothing'} new"
        said += f", {same} unchanged" if same else ""
        said += f". {capital(report.answer)}"
        if said.startswith("nothing"):
            said = said[0].upper() + said[1:]
        return msgspec.structs.replace(
            report, changes=changes, compared_with=self.report.id or self.name, answer=said
        )


def embedded_in(report: Report, template: str | None) -> Report:
    """The report with the embedded engine's chat template among its facts; as it is for any other endpoint."""
    if template is None or report.endpoint is None:
        return report
    facts = {**report.endpoint.facts, EMBEDDED: {"value": template, "origin": "named"}}
    return msgspec.structs.replace(report, endpoint=msgspec.structs.replace(report.endpoint, facts=facts))


def saved(
    report: Report, asked: Sequence[store.Asked], own: OwnRequest | None, connection: Connection
) -> tuple[Report, Path]:
    """The report with its id, and its folder: the report, what was asked, the user's request, the body of each
    request to repeat."""
    redactor = Redactor()
    redactor.add(*connection.secrets())
    ident = store.save_preflight(msgspec.to_builtins(report), asked, redactor=redactor)
    folder = store.state_dir() / "preflight" / ident
    for finding in report.findings:
        body = body_of(finding)
        if body is not None:
            store.write_private(body_path(folder, finding), body.encode("utf-8", "surrogatepass"))
    if own is not None:
        store.write_private(folder / _REQUEST, redactor.data(msgspec.json.encode(own)))
    return msgspec.structs.replace(report, id=ident), folder


def _kept_request(report: Report) -> OwnRequest | None:
    """The request file of that run, where it had one."""
    path = store.state_dir() / "preflight" / (report.id or "") / _REQUEST
    try:
        return msgspec.json.decode(path.read_bytes(), type=OwnRequest)
    except (OSError, msgspec.MsgspecError):
        return None
