"""CORES²: learning with a confidence regulariser and a sample sieve (Cheng et al. 2021)."""

import math
from typing import Any, Literal

from agra.baselines.linear import LinearBaseline
from agra.baselines.sieve import SieveLearner, Sieving
from agra.estimators.targets import Array
from agra.linear_learner import LinearLearner
from agra.names import check_name

_BETA_PER_CLASS = 0.2  # as the AGRA paper sets it (appendix E); 2 for CIFAR-10, as published


class CORES2(LinearBaseline):
    """Softmax regression that asks for confidence, and leaves out what is not confidently fitted.

    The loss of a sample is its cross-entropy minus ``beta`` times the mean cross-entropy over the
    prior of the given labels. A sample takes part in an update if its cross-entropy is not above
    the mean over all labels by more than ``threshold``.

    Args:
        beta: How strongly confidence is asked for; "auto" is 0.2 per class.
        threshold: Of the sieve; 0 in the paper of the method.
        schedule: "published" is that of the code published for CIFAR, stretched to the number of
            epochs: plain training for a tenth of them, ``beta`` rising to its height over three
            tenths, the sieve in use after three tenths; the prior is then that of the samples kept
            in the epoch before. "constant" uses ``beta``, the sieve and the prior of all labels
            from the first update, where a sieve still knows nothing. A chunk of `partial_fit` is
            the first epoch of a run, so that only "constant" does anything there.
        learning_rate: Of Adam; "auto" as for `AgraClassifier`.
        batch_size: Samples per update.
        weight_decay: In the gradient.
        epochs: How many at most; "auto" as for `AgraClassifier`.
        class_weight: "balanced", {class: weight}, or None.
        selection: "validation" keeps the weights of the best epoch, "last" those of the last one;
            "auto" is "validation" where `fit` gets some.
        scoring: A scorer of scikit-learn, or its name, for validation; None for accuracy.
        patience: Stop after this many epochs without a better score; None never stops early.
        random_state: Of the order of the samples.
        verbose: Show a progress bar.

    Example:
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.preprocessing import scale
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> wrong = y.copy()
        >>> wrong[::5] = 1 - wrong[::5]
        >>> model = CORES2(random_state=0).fit(scale(X), wrong)
        >>> bool(model.sample_kept_[::5].mean() < 0.5 < 0.9 < model.sample_kept_[1::5].mean())
        True
    """

    def __init__(
        self,
        *,
        beta: float | Literal["auto"] = "auto",
        threshold: float = 0.0,
        schedule: Literal["published", "constant"] = "published",
        learning_rate: float | Literal["auto"] = "auto",
        batch_size: int = 128,
        weight_decay: float = 1e-3,
        epochs: int | Literal["auto"] = "auto",
        class_weight: Any = None,
        selection: Literal["auto", "validation", "last"] = "auto",
        scoring: Any = None,
        patience: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.beta = beta
        self.threshold = threshold
        self.schedule = schedule
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.class_weight = class_weight
        self.selection = selection
        self.scoring = scoring
        self.patience = patience
        self.random_state = random_state
        self.verbose = verbose

    @property
    def sample_kept_(self) -> Array:
        """The share of its updates that kept each sample: (N,); NaN where it had no label."""
        return 1 - self._judged().drop_rate.numpy()

    def _learner(self, plain: LinearLearner, epochs: int) -> LinearLearner:
        check_name("schedule", self.schedule, ["constant", "published"])
        beta, threshold = self.beta, self.threshold
        if isinstance(beta, str) and beta == "auto":
            beta = _BETA_PER_CLASS * len(self.classes_)
        if isinstance(beta, str) or not (math.isfinite(beta) and beta >= 0):
            raise ValueError(
                f'Expected `beta` to be "auto", or finite and at least 0, got {beta!r}.'
            )
        if isinstance(threshold, str) or not math.isfinite(threshold):
            raise ValueError(f"Expected `threshold` to be a finite number, got {threshold!r}.")
        return SieveLearner(plain, Sieving(beta, threshold, self.schedule, epochs))
