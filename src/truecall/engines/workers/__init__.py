"""Scripts that an engine's own Python runs (see ``protocol``); nothing here is imported by truecall itself."""
