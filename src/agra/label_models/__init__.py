"""Votes of labelling functions, or of annotators, to labels."""
