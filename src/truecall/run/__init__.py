"""Studies: arms of tasks, conditions and seeds, run against endpoints, kept in a run folder, and read back."""
