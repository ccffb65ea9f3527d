"""Data sets with noisy labels: what they are, where they come from, and noise to inject."""
