"""Scenarios of the fault server: what real engines can't be made to show on demand."""
