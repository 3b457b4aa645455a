"""Chat templates: where they stand, and which dialect they ask for."""

from __future__ import annotations

from truecall.templates.asking import Asked, asks, render
from truecall.templates.sources import Template, load

__all__ = ["Asked", "Template", "asks", "load", "render"]
