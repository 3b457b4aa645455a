"""Hooks for other programs: the pytest plugin, and monitors for reinforcement learning."""
