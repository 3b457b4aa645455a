"""The engines' own parsers, each in an environment and a process of its own."""

from __future__ import annotations

from truecall.engines.base import NOT_ASKED, Health, Hello, Job, Launch, Parse, State
from truecall.engines.pool import Pool
from truecall.engines.registry import Engine, engines, find
from truecall.engines.specs import Spec, resolve
from truecall.engines.worker import Worker

__all__ = [
    "NOT_ASKED",
    "Engine",
    "Health",
    "Hello",
    "Job",
    "Launch",
    "Parse",
    "Pool",
    "Spec",
    "State",
    "Worker",
    "engines",
    "find",
    "resolve",
]
