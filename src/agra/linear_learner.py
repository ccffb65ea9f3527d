"""The linear learner, judged or plain.

The same criteria, rule and products as for any module, without hooks or graphs between them: a step
costs little more than its products with the rows.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from agra.labels import sample_labelled
from agra.learner import Counts, Learner
from agra.ledger import Ledger
from agra.linear_judge import Judging, LinearJudge
from agra.linear_model import LinearData, LinearModel
from agra.losses import binary_cross_entropy, cross_entropy
from agra.output_gradients import loss_and_gradient


class LinearLearner(Learner):
    """Trains a linear model, judging every batch or none.

    Args:
        model: The model to train.
        data: What it learns from.
        optimizer: Of the model's parameters; Adam with ``fused=True`` is the fastest.
        judging: How to judge; None trains on all labels as given.

    Example:
        >>> from agra.linear_judge import Judging
        >>> from agra.linear_model import LinearData, LinearModel
        >>> from agra.loop import Loop
        >>> from agra.rows import as_rows
        >>> x = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
        >>> data, model = LinearData(as_rows(x), (x[:, 0] > 0).long()), LinearModel(2, 2)
        >>> optimizer = torch.optim.Adam(model.parameters(), fused=True)
        >>> learner = LinearLearner(model, data, optimizer, judging=Judging())
        >>> [epoch.kept + epoch.dropped for epoch in Loop(learner, epochs=2).run()]
        [64, 64]
    """

    model: LinearModel

    def __init__(
        self,
        model: LinearModel,
        data: LinearData,
        optimizer: torch.optim.Optimizer,
        *,
        judging: Judging | None = None,
    ) -> None:
        self.model, self.data, self.optimizer = model, data, optimizer
        self.num_rows = len(data.rows)
        self._update_loss = binary_cross_entropy if data.labels.ndim == 2 else cross_entropy
        self._judge = None if judging is None else LinearJudge(model, data, judging)
        self._learned = 0

    @property
    def ledger(self) -> Ledger | None:
        return None if self._judge is None else self._judge.ledger()

    def start_epoch(self) -> None:
        if self._judge is not None:
            self._judge.ledger().start_epoch()

    @torch.inference_mode()  # a fifth faster than without gradients alone
    def learn(self, rows: Tensor) -> float | None:
        if self._judge is None:
            batch = self.data.take(rows)
            outputs, labels = self.model(batch.rows), batch.labels
        else:
            batch, outputs, labels = self._judge.decide(rows)
        count = int(sample_labelled(labels).sum())
        self._learned += count
        if not count:
            return None
        complete = count == len(labels) and labels.ndim == 1
        loss, back = loss_and_gradient(
            self._update_loss, outputs, labels, batch.weights, complete=complete
        )
        self.model.weight.grad = batch.rows.pull_back(back)
        self.model.bias.grad = back.sum(dim=0)
        self.optimizer.step()
        return float(loss)

    def counts(self) -> Counts:
        if self._judge is not None:
            return self._judge.counts()
        found, self._learned = (self._learned, 0, 0), 0
        return found

    def state_dict(self) -> dict[str, Any]:
        return {
            "optimizer": self.optimizer.state_dict(),
            "judge": None if self._judge is None else self._judge.state_dict(),
            "learned": self._learned,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.optimizer.load_state_dict(state["optimizer"])
        if self._judge is not None:
            self._judge.load_state_dict(state["judge"])
        self._learned = state["learned"]
