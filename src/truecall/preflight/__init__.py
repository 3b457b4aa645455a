"""Preflight: what does this endpoint do with a tool call? Probes of a live endpoint, to findings (DESIGN §5, §6)."""

from __future__ import annotations

from collections.abc import Sequence

from truecall.client import Client
from truecall.preflight.compare import compare
from truecall.preflight.examine import Examination, Progress, plan
from truecall.preflight.report import Report
from truecall.preflight.request_file import OwnRequest

__all__ = ["Examination", "Progress", "compare", "plan", "run"]


async def run(
    client: Client,
    *,
    model: str | None = None,
    only: Sequence[str] = (),
    own: OwnRequest | None = None,
    progress: Progress | None = None,
) -> Report:
    """Examine the endpoint of ``client``. Whatever it does is data in the report.

    ``own``: the user's failing request. ``only``: names of probes; those that they build on are sent with them.

    Raises:
        UsageError: ``only`` names a probe that does not exist.
    """
    examination = Examination(client, model=model, only=only, own=own, progress=progress)
    await examination.run()
    return examination.report()
