"""Charts: what they show (`kinds`), how they are drawn (`draw`, `svg`; these need altair and vl-convert)."""
