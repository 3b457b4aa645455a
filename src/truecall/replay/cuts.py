"""Where a text is cut to be streamed: at a tokenizer's pieces where there is one, else at seeded places."""

from __future__ import annotations

import random
import re
import zlib
from pathlib import Path
from typing import Any, Final

from truecall.errors import InputError, UsageError

# What a tokenizer has as one token of its own reaches a parser whole.
_WHOLE: Final = re.compile(
    r"<[|｜][^<>|｜\n]{1,60}[|｜]>|\[/?[A-Z][A-Z_]{2,20}\]|</?(?:tool_call|tool_response|think)>"
)
_LONGEST: Final = 8  # characters of a piece: English tokens have about four
_MOST: Final = 4000  # pieces of one text


class Cutter:
    """Cuts texts. ``how`` says by what: the tokenizer's file, or ``seeded text splits (seed N)``.

    Args:
        tokenizer: a ``tokenizer.json``, or the folder that holds it.
        pieces: cut into pieces of so many characters, whatever stands there.

    Raises:
        UsageError: the ``tokenizers`` package is not installed.
        InputError: the file is no tokenizer.
    """

    def __init__(self, seed: int = 0, tokenizer: Path | None = None, pieces: int | None = None) -> None:
        self._seed, self._pieces = seed, pieces
        self._tokenizer: Any = _load(tokenizer) if tokenizer else None
        self.how = f"text splits at seeded places (seed {seed})"
        if tokenizer:
            self.how = f"token pieces of {tokenizer}"
        elif pieces:
            self.how = f"pieces of {pieces} characters"

    def cuts(self, text: str) -> tuple[int, ...]:
        """Places inside the text, in order; the same text gets the same."""
        if self._tokenizer is not None:
            ends = {end for _, end in self._tokenizer.encode(text, add_special_tokens=False).offsets}
            return tuple(sorted(end for end in ends if 0 < end < len(text)))
        if self._pieces:
            return tuple(range(self._pieces, len(text), self._pieces))
        return self._seeded(text)

    def _seeded(self, text: str) -> tuple[int, ...]:
        rng = random.Random(f"{self._seed}:{zlib.crc32(text.encode('utf-8', 'replace'))}")
        longest = max(_LONGEST, 2 * len(text) // _MOST)
        whole = iter(_WHOLE.finditer(text))
        token = next(whole, None)
        cuts: list[int] = []
        at, size = 0, len(text)
        while at < size:
            if token is not None and at >= token.start():
                at = token.end()
                token = next(whole, None)
            else:
                at += rng.randint(1, longest)
                if token is not None and at > token.start():
                    at = token.start()
            cuts.append(at)
        return tuple(cut for cut in cuts if cut < size)


def _load(path: Path) -> Any:
    try:
        from tokenizers import Tokenizer  # type: ignore[import-not-found]
    except ImportError:
        raise UsageError("--tokenizer needs the package tokenizers: pip install tokenizers") from None
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises plain Exception
        raise InputError(f"{file}: is no tokenizer.json ({str(error)[:120]})") from None
