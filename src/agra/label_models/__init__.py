"""Votes of labelling functions, or of annotators, to labels."""

from agra.label_models.balance import balance_of
from agra.label_models.coverage import Coverage, coverage_summary, function_table
from agra.label_models.data_programming import DataProgramming
from agra.label_models.dawid_skene import DawidSkene
from agra.label_models.flying_squid import FlyingSquid
from agra.label_models.majority import majority_vote, most_probable, vote_shares
from agra.label_models.majority_model import MajorityVote
from agra.label_models.metal import MeTaL
from agra.label_models.model import LabelModel
from agra.label_models.votes import vote_counts

__all__ = [
    "Coverage",
    "DataProgramming",
    "DawidSkene",
    "FlyingSquid",
    "LabelModel",
    "MajorityVote",
    "MeTaL",
    "balance_of",
    "coverage_summary",
    "function_table",
    "majority_vote",
    "most_probable",
    "vote_counts",
    "vote_shares",
]
