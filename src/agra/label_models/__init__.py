"""Votes of labelling functions, or of annotators, to labels."""

from agra.label_models.coverage import Coverage, coverage_summary, function_table
from agra.label_models.majority import majority_vote, vote_shares
from agra.label_models.votes import vote_counts

__all__ = [
    "Coverage",
    "coverage_summary",
    "function_table",
    "majority_vote",
    "vote_counts",
    "vote_shares",
]
