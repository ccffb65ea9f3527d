"""Data to learn from: for now, label noise to inject."""
