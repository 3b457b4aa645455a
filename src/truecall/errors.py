"""Our own failures and the user's mistakes. What a model or a server did is never one of these.

TruecallError
├── UsageError      the user asked for something that can't be (a bad flag, a missing file)
├── InputError      a file or text of the user's can't be read as what it should be
└── CannotTell      the work could not be done to an answer (exit 2)
"""

from __future__ import annotations


class TruecallError(Exception):
    """One clear line: what, where, what to do. The CLI prints it and exits with 2."""


class UsageError(TruecallError):
    """The request makes no sense as given."""


class InputError(TruecallError):
    """The user's file or text can't be read."""


class CannotTell(TruecallError):
    """No answer could be reached, for a reason outside the model."""
