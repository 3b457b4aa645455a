"""Fingerprints of exchanges: a backend that changes in mid-run is found."""

from __future__ import annotations

from collections.abc import Iterable

from truecall.records import Exchange, Record, Response

Fingerprint = dict[str, str]
"""What one exchange shows of the backend: ``model``, ``system_fingerprint``, ``server``, ``via``, ``tools``, …"""

_HEADERS = ("server", "via", "x-served-by", "x-model-version", "openai-version")


def fingerprint(exchange: Exchange, response: Response | None) -> Fingerprint:
    """The marks of the backend in one exchange. What an answer does not show is left out, not guessed."""
    marks = {name: value for name in _HEADERS if (value := exchange.header(name))}
    if response is not None:
        if response.model:
            marks["model"] = response.model
        if response.fingerprint:
            marks["system_fingerprint"] = response.fingerprint
    return marks


class Change(Record, frozen=True):
    """A mark that became another one at the exchange numbered ``at`` (counted from 0)."""

    mark: str
    at: int
    before: str
    after: str


class Drift(Record, frozen=True):
    """The marks of a run. ``values``: how many exchanges showed each value of each mark.

    ``changes`` holds the first ones (at most 20), ``changed`` counts all. An exchange that does not show a
    mark (an error, say) is no change of it.
    """

    exchanges: int
    values: dict[str, dict[str, int]]
    changes: tuple[Change, ...]
    changed: int

    @property
    def steady(self) -> bool:
        """No mark changed."""
        return self.changed == 0


_KEPT = 20


def drift(fingerprints: Iterable[Fingerprint]) -> Drift:
    """Follows the marks over the exchanges of one arm, in the order sent."""
    values: dict[str, dict[str, int]] = {}
    last: Fingerprint = {}
    changes: list[Change] = []
    changed = n = 0
    for at, marks in enumerate(fingerprints):
        n = at + 1
        for mark, value in marks.items():
            seen = values.setdefault(mark, {})
            seen[value] = seen.get(value, 0) + 1
            before = last.get(mark, value)
            if before != value:
                changed += 1
                if len(changes) < _KEPT:
                    changes.append(Change(mark=mark, at=at, before=before, after=value))
            last[mark] = value
    return Drift(exchanges=n, values=values, changes=tuple(changes), changed=changed)
