"""AGRA for one's own training loop."""

import copy
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils.data import default_collate

from agra.comparison import RunningGradient, batch_gradient, label_gradients
from agra.decisions import MultilabelRule, Rule, check_mask
from agra.gradients import ENGINES, choose_engine
from agra.gradients.as_found import judging
from agra.gradients.engine import Engine, Gradient
from agra.gradients.parameters import Selection, select_parameters
from agra.inputs import Inputs, call, check_inputs, check_outputs, few_rows, transform
from agra.labels import check_labels, check_multilabel, signed
from agra.ledger import Ledger, check_ids, given_probabilities
from agra.losses import (
    Criterion,
    binary_cross_entropy,
    cross_entropy,
    find_criterion,
    is_multilabel,
)
from agra.names import check_name, warn_caller
from agra.sampling import ComparisonSampler, Weights
from agra.step import Batch, Step, Update
from agra.train_set import Collate, as_train_set


class Agra:
    """Judges the batches of a training loop. The model is never wrapped or changed.

    Args:
        model: Any module with outputs (N, K).
        train_set: Where comparison batches come from: ``(inputs, labels)``, a map-style Dataset,
            or a `TrainSet`.
        criterion: The comparison loss, a name or any ``(outputs, labels) -> scalar``:
            "cross-entropy", "f1"; with several labels per sample "bce", "multilabel-f1".
        update_loss: The loss to learn with; cross-entropy, or the masked BCE for several labels.
        weights: How comparison batches are drawn, see `ComparisonSampler`.
        alternative_label: A class that a sample may be given instead, "any", or None.
        threshold: Scores must be above it for a sample to count.
        comparison_size: Of the comparison batch; None for the largest update batch so far.
        engine: "auto" or a name; see the table in "Choosing an engine".
        parameters: Which parameters are compared, see `select_parameters`.
        momentum: Of the comparison gradient over steps; 0 is the paper.
        eps: Added to the product of norms in the score; the published code has 1e-6.
        scores: Compute all scores, not only those that verdicts need; the ledger then has them.
        multilabel: Several labels per sample (Algorithm 2); None asks the criterion.
        sample_weight: Of all samples, what each weighs in both losses; batches then need ids.
        labels: Of all samples, for a Dataset that does not offer them.
        collate: Items of a Dataset to a batch, as a DataLoader's ``collate_fn``.
        seed: Of the comparison batches.

    Attributes:
        ledger: What happened to every id; None before the first batch with ids.
        engine: The engine in use; None before the first batch.

    Example:
        >>> from torch.utils.data import DataLoader, TensorDataset
        >>> _ = torch.manual_seed(0)
        >>> x = torch.randn(64, 2)
        >>> train_set = TensorDataset(x, (x[:, 0] > 0).long(), torch.arange(64))
        >>> model = nn.Linear(2, 2)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> judge = Agra(model, train_set, criterion="f1", seed=0)
        >>> for inputs, labels, ids in DataLoader(train_set, batch_size=16):
        ...     loss = judge.loss(inputs, labels, ids)
        ...     optimizer.zero_grad()
        ...     loss.backward()
        ...     optimizer.step()
        >>> int(judge.ledger.totals["judged"].sum())
        64
    """

    def __init__(
        self,
        model: nn.Module,
        train_set: Any,
        *,
        criterion: str | Criterion = "cross-entropy",
        update_loss: str | Criterion | None = None,
        weights: Weights = "uniform",
        alternative_label: int | Literal["any"] | None = None,
        threshold: float = 0.0,
        comparison_size: int | None = None,
        engine: str = "auto",
        parameters: Selection = None,
        momentum: float = 0.0,
        eps: float = 0.0,
        scores: bool = False,
        multilabel: bool | None = None,
        sample_weight: Tensor | None = None,
        labels: Any = None,
        collate: Collate = default_collate,
        seed: int = 0,
    ) -> None:
        self.model = model
        self.multilabel = is_multilabel(criterion) if multilabel is None else multilabel
        self._criterion = find_criterion(criterion, multilabel=self.multilabel)
        default = binary_cross_entropy if self.multilabel else cross_entropy
        self._update_loss = find_criterion(
            update_loss or default, multilabel=self.multilabel, argument="update_loss"
        )
        self._rule = self._make_rule(alternative_label, threshold, eps, scores)
        self._parameters = parameters
        select_parameters(model, parameters)  # refuse early
        self._engine_name = check_name("engine", engine, ["auto", *ENGINES])
        rows = as_train_set(train_set, labels=labels, collate=collate)
        self.sampler = ComparisonSampler(rows, weights=weights, seed=seed)
        size = comparison_size
        self._size = None if size is None else self.sampler.check_size(size)
        self._sample_weight = _check_weights(sample_weight, len(rows))
        self._largest = 0
        self._running = RunningGradient(momentum)
        self._num_classes: int | None = None
        self._engine_for: list[str] | None = None  # the parameters that it compares
        self.engine: Engine | None = None
        self.ledger: Ledger | None = None

    def _make_rule(
        self, alternative_label: Any, threshold: float, eps: float, scores: bool
    ) -> Rule | MultilabelRule:
        if not self.multilabel:
            return Rule(alternative_label, threshold, eps, scores)
        if alternative_label is not None:
            raise ValueError(
                "Expected `alternative_label` to be None with several labels per sample, got "
                f"{alternative_label!r}; entries are kept or dropped."
            )
        return MultilabelRule(threshold, eps, scores)

    def loss(
        self, inputs: Inputs, labels: Tensor, ids: Any = None, *, mask: Tensor | None = None
    ) -> Tensor:
        """The update loss over what was kept of a batch. See `update`."""
        return self.update(inputs, labels, ids, mask=mask).loss

    def step(
        self,
        optimizer: torch.optim.Optimizer,
        inputs: Inputs,
        labels: Tensor,
        ids: Any = None,
        *,
        mask: Tensor | None = None,
    ) -> Update:
        """Judge a batch and learn from it. A batch dropped whole moves nothing.

        Not even weight decay and momentum act then, as the optimizer is not called.
        """
        optimizer.zero_grad()  # first: the memory of old gradients serves the judging
        found = self.update(inputs, labels, ids, mask=mask)
        if not found.empty:
            found.loss.backward()
            optimizer.step()
        return found

    def update(
        self, inputs: Inputs, labels: Tensor, ids: Any = None, *, mask: Tensor | None = None
    ) -> Update:
        """Judge a batch against a fresh comparison batch.

        Whatever goes wrong, the judge stands where it stood before.

        Args:
            inputs: A tensor, or a tuple or dict of tensors.
            labels: The given labels; ``IGNORE_LABEL`` for none.
            ids: Row numbers in the training set, for the ledger; None leaves it alone.
            mask: (N, K), the classes that each sample may be relabelled to; None for all.

        Raises:
            ValueError: Inputs, labels, ids or weights that cannot be judged.
        """
        check_inputs(self.model, inputs, labels)
        labels = signed(labels)
        if ids is not None:
            ids = check_ids(ids, len(labels), len(self.sampler.train_set))
        elif self._sample_weight is not None:
            raise ValueError("Expected `ids` to look up `sample_weight` with, got None.")
        num_classes = self._num_classes or self._count_classes(inputs)
        self._check_labels(labels, num_classes)
        if mask is not None and not self.multilabel:
            check_mask(mask, len(labels), num_classes)
        before = self.sampler.state_dict(), copy.copy(self._running), self._largest
        try:
            found = self._judge(Batch(inputs, labels, mask, self._weights_of(ids, labels)))
        except BaseException:
            state, self._running, self._largest = before
            self.sampler.load_state_dict(state)
            raise
        if ids is not None:
            self._record(ids, labels, found)
        return found

    def _count_classes(self, inputs: Inputs) -> int:
        """How many the model has, held against the training set and the rule."""
        with judging(self.model), torch.no_grad():
            outputs = call(self.model, few_rows(inputs))
        check_outputs(self.model, outputs)
        num_classes, train_set = int(outputs.shape[1]), self.sampler.train_set
        if train_set.labels is not None and train_set.settled:
            try:
                self._check_labels(train_set.labels, num_classes)
            except ValueError as error:
                error.add_note("These are the labels of `train_set`.")
                raise
        if isinstance(self._rule, Rule):
            self._rule.candidates(torch.zeros(0, dtype=torch.long), num_classes)
            if missing := train_set.missing_classes(num_classes):
                warn_caller(
                    "Expected every class of the model to occur in the labels of `train_set`, got "
                    f"no sample of {missing[:8]}; comparison batches will never speak for them."
                )
        self._num_classes = num_classes
        return num_classes

    def _check_labels(self, labels: Tensor, num_classes: int) -> None:
        if self.multilabel:
            check_multilabel(labels, (len(labels), num_classes))
        else:
            check_labels(labels, len(labels), num_classes)

    def _judge(self, batch: Batch) -> Update:
        count = len(batch.labels)
        self._largest = max(self._largest, count)
        gradient = self._running.add(self._comparison_gradient())
        names, norms, inputs = list(gradient), self._rule.may_need_norms, batch.inputs
        if self.engine is None or names != self._engine_for:
            self.engine = choose_engine(self._engine_name, self.model, inputs, names, norms=norms)
            self._engine_for = names if count else None  # on no rows every engine looks right
        step = Step(self._criterion, self._rule, self.engine)
        return step.update(self.model, batch, gradient, update_loss=self._update_loss)

    def _comparison_gradient(self) -> Gradient:
        size = self._size or min(self._largest, self.sampler.num_rows)
        inputs, labels, rows = self.sampler.draw_with_rows(max(1, size))
        device = next(self.model.parameters()).device
        inputs, labels = transform(inputs, lambda part: part.to(device)), labels.to(device)
        return (label_gradients if self.multilabel else batch_gradient)(
            *(self.model, inputs, labels, self._criterion),
            parameters=self._parameters,
            sample_weight=self._weights_of(rows, labels),
        )

    def _weights_of(self, rows: Any, labels: Tensor) -> Tensor | None:
        if self._sample_weight is None:
            return None
        return self._sample_weight[rows].to(labels.device)

    def _record(self, ids: Any, labels: Tensor, found: Update) -> None:
        outputs = found.outputs.detach()
        if self.ledger is None:
            num_labels = outputs.shape[1] if self.multilabel else None
            self.ledger = Ledger(len(self.sampler.train_set), num_labels)
        given = given_probabilities(outputs, labels, several=self.multilabel)
        self.ledger.record(ids, found.decisions, given)

    def state_dict(self) -> dict[str, Any]:
        """Generator, ledger and averaged gradient: with these a resumed run is the same run."""
        return {
            "sampler": self.sampler.state_dict(),
            "running": self._running.state_dict(),
            "largest": self._largest,
            "num_rows": len(self.sampler.train_set),
            "ledger": None if self.ledger is None else self.ledger.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state.

        Raises:
            ValueError: The state is of another training set.
        """
        num_rows, ledger = len(self.sampler.train_set), None
        if state["num_rows"] != num_rows:
            raise ValueError(
                f"Expected the state of a judge of {num_rows} samples, got {state['num_rows']}."
            )
        if state["ledger"] is not None:
            ledger = Ledger(*state["ledger"]["totals"]["judged"].shape)
            ledger.load_state_dict(state["ledger"])
        self.ledger = ledger
        self.sampler.load_state_dict(state["sampler"])
        self._running.load_state_dict(state["running"])
        self._largest = int(state["largest"])


def _check_weights(weights: Any, size: int) -> Tensor | None:
    if weights is None:
        return weights
    weights = torch.as_tensor(weights, dtype=torch.float32, device="cpu")
    if weights.shape != (size,) or not bool((weights.isfinite() & (weights >= 0)).all()):
        raise ValueError(
            f"Expected `sample_weight` to be {size} finite numbers, one per sample, none below 0, "
            f"got shape {tuple(weights.shape)} from {float(weights.min()):g}."
        )
    return weights
