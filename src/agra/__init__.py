"""Learning with noisy labels: every sample's gradient is judged while the model trains."""

from agra.comparison import batch_gradient, label_gradients
from agra.data.catalog import load_dataset
from agra.data.dataset import NoisyDataset
from agra.decisions import Decisions, MultilabelRule, Rule
from agra.estimators import AgraClassifier, AgraMultilabelClassifier
from agra.gradients import ENGINES, choose_engine, refusals
from agra.judge import Agra
from agra.labels import IGNORE_LABEL
from agra.learner import ModuleLearner
from agra.ledger import Ledger
from agra.linear_learner import LinearLearner
from agra.sampling import ComparisonSampler
from agra.step import Update, decide, decide_multilabel
from agra.train_set import TrainSet

__all__ = [
    "Agra",
    "AgraClassifier",
    "AgraMultilabelClassifier",
    "ComparisonSampler",
    "Decisions",
    "ENGINES",
    "IGNORE_LABEL",
    "Ledger",
    "LinearLearner",
    "ModuleLearner",
    "MultilabelRule",
    "NoisyDataset",
    "Rule",
    "TrainSet",
    "Update",
    "batch_gradient",
    "choose_engine",
    "decide",
    "decide_multilabel",
    "label_gradients",
    "load_dataset",
    "refusals",
]

__version__ = "0.1.0"
