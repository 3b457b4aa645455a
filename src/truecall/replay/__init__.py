"""Other people's texts through the engines' own parsers, and where each lost call was lost."""

from __future__ import annotations

from truecall.replay.layers import Layer, Lost
from truecall.replay.replaying import Engine, Fate, Replayed
from truecall.replay.texts import Material, material

__all__ = ["Engine", "Fate", "Layer", "Lost", "Material", "Replayed", "material"]
