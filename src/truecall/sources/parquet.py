"""Parquet tables, row by row: TRL completions, verl rollouts, lm-eval samples, conversations, told by their columns.

Needs the extra ``parquet`` (pyarrow). Batches of rows are read one after another, so that memory does not grow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from truecall.errors import UsageError
from truecall.records import Json
from truecall.sources.base import Bad, Head, Item, Options, Place
from truecall.sources.chat import entry_turns, is_entry
from truecall.sources.lm_eval import is_sample, sample_turns
from truecall.sources.trl import completion_turns, is_completion
from truecall.sources.verl import is_rollout, rollout_turns

NAME: Final = "parquet"
_ROWS: Final = 512
_MAGIC: Final = b"PAR1"

_READERS: Final = (
    (is_completion, completion_turns),
    (is_rollout, rollout_turns),
    (is_sample, sample_turns),
    (is_entry, entry_turns),
)


class ParquetSource:
    """See the module."""

    name = NAME
    lines = False

    def sniff(self, head: Head) -> bool:
        """Whether the file begins with parquet's magic number."""
        return head.data.startswith(_MAGIC)

    def read(self, data: Any, file: str, options: Options) -> Iterator[Item]:
        """The turns of all rows."""
        try:
            import pyarrow
            import pyarrow.parquet as arrow
        except ImportError:
            raise UsageError(f"{file}: parquet needs pyarrow (pip install 'truecall[parquet]')") from None
        number = 0
        reader = None
        try:
            with arrow.ParquetFile(str(data)) as table:
                for batch in table.iter_batches(batch_size=_ROWS):
                    for row in batch.to_pylist():
                        place = Place(file=file, entry=f"row {number}")
                        number += 1
                        row = _without_nulls(row)
                        reader = reader or _reader(row)
                        if reader is None:
                            yield Bad(
                                place=place,
                                reason=f"columns of no known table: {', '.join(map(str, row))[:200]}",
                            )
                            return
                        yield from reader(row, place, options)
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            yield Bad(place=Place(file=file, entry=f"row {number}"), reason=f"breaks off: {str(error)[:200]}")


def _reader(row: dict[str, Json]) -> Any:
    return next((read for fits, read in _READERS if fits(row)), None)


def _without_nulls(value: Json) -> Json:
    """Parquet gives every struct all fields that any row has: those that are null were absent."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
