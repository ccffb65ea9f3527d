"""Experiments: what to run, and running it."""
