"""``truecall view``: a local page to look through the turns of runs."""

from truecall.view.runs import Shelf
from truecall.view.server import serving

__all__ = ["Shelf", "serving"]
