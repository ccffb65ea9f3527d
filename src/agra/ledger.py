"""What happened to every sample: a few numbers per sample, and a few bytes per sample and epoch."""

from typing import Any

import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional

from agra.decisions import Decisions
from agra.labels import is_soft, labelled, sample_labelled
from agra.losses import softmax

KEPT, DROPPED, RELABELLED = 1, 2, 3  # verdicts in an epoch; 0 is not judged

_TOTALS = {
    "judged": torch.int32,
    "kept": torch.int32,
    "dropped": torch.int32,
    "relabelled": torch.int32,
    "new_label": torch.int32,  # of the last relabelling; -1 for none
    "scored": torch.int32,  # how often a score was computed
    "score_sum": torch.float32,
    "score_last": torch.float32,
    "probability_sum": torch.float32,
    "probability_last": torch.float32,
}
_PER_EPOCH = {"verdict": torch.uint8, "score": torch.float16, "probability": torch.float16}


class Ledger:
    """Per sample: how often it was judged, kept, dropped, relabelled to what; scores; confidence.

    Args:
        size: The number of samples; ids are 0 to size - 1.
        num_labels: For several labels per sample, how many; everything is then kept per entry.

    Attributes:
        totals: Over the whole run, {column: (size,) or (size, num_labels)}. "score" is the cosine
            under the given label, "probability" the model's for the given label.
        epochs: The last verdict, score and probability in every epoch: 5 bytes per sample.
        updates: Per update how many were kept, dropped and relabelled.

    Example:
        >>> ledger = Ledger(3)
        >>> yes, no = torch.tensor([True]), torch.tensor([False])
        >>> verdict = Decisions(torch.tensor([-100]), torch.tensor([-0.5]), no, yes, no)
        >>> ledger.record(torch.tensor([2]), verdict, torch.tensor([0.1]))
        >>> ledger.to_frame()["drop_rate"].tolist()
        [nan, nan, 1.0]
    """

    def __init__(self, size: int, num_labels: int | None = None) -> None:
        if size < 1:
            raise ValueError(f"Expected `size` to be at least 1, got {size}.")
        self.shape = (size,) if num_labels is None else (size, num_labels)
        self.totals = {name: self._zeros(kind) for name, kind in _TOTALS.items()}
        self.totals["new_label"].fill_(-1)
        for name in ("score_last", "probability_last"):
            self.totals[name].fill_(torch.nan)
        self.epochs: list[dict[str, Tensor]] = []
        self.updates: list[tuple[int, int, int]] = []
        self._judged_in_epoch = 0

    def _zeros(self, kind: torch.dtype) -> Tensor:
        return torch.zeros(self.shape, dtype=kind, device="cpu")

    def start_epoch(self) -> None:
        """Begin a new column of the history.

        A loop need not call it: a sample that comes again after half of all were judged begins one.
        """
        self.epochs.append({name: self._zeros(kind) for name, kind in _PER_EPOCH.items()})
        self._judged_in_epoch = 0

    def record(
        self,
        ids: Tensor,
        decisions: Decisions,
        probabilities: Tensor,
        *,
        sizes: list[int] | None = None,
    ) -> None:
        """Write down one batch, or several of different samples.

        Args:
            ids: (N,), the row numbers of its samples.
            decisions: Its verdicts.
            probabilities: The model's probability of each given label, shaped as the verdicts.
            sizes: Of the batches, one after the other; None for one batch.
        """
        ids = check_ids(ids, len(decisions.kept), self.shape[0])
        kept, dropped, relabelled = (
            part.cpu() for part in (decisions.kept, decisions.dropped, decisions.relabelled)
        )
        self._count(torch.stack([kept, dropped, relabelled]), sizes or [len(ids)])
        scores = decisions.scores.detach().float().cpu()
        probabilities = probabilities.detach().float().cpu()
        scored = ~scores.isnan()
        additions = {
            "judged": torch.ones_like(kept),
            "kept": kept,
            "dropped": dropped,
            "relabelled": relabelled,
            "scored": scored,
            "score_sum": scores.nan_to_num(nan=0.0),
            "probability_sum": probabilities.nan_to_num(nan=0.0),
        }
        for name, values in additions.items():
            total = self.totals[name]
            total.index_add_(0, ids, values.to(total.dtype))
        # by entry: a repeated id without a score must not bring back the one before
        places = ids.view(-1, *[1] * (scores.ndim - 1)).expand_as(scores)[scored]
        entries = (places, scored.nonzero()[:, 1]) if scores.ndim == 2 else (places,)
        self.totals["score_last"][entries] = scores[scored]
        self.totals["probability_last"][ids] = probabilities
        if bool(relabelled.any()):
            self._record_labels(ids[relabelled], decisions.labels.cpu()[relabelled])
        self._record_epoch(
            ids, kept * KEPT + dropped * DROPPED + relabelled * RELABELLED, scores, probabilities
        )

    def _count(self, verdicts: Tensor, sizes: list[int]) -> None:
        per_sample = verdicts.flatten(2).sum(dim=2) if verdicts.ndim == 3 else verdicts
        # sums up to the end of each batch; what lies between two ends is a batch
        ends = torch.tensor(sizes, dtype=torch.int64).cumsum(0)
        sums = functional.pad(per_sample.cumsum(dim=1), (1, 0))[:, ends]
        counts = sums.diff(dim=1, prepend=sums.new_zeros(3, 1)).T.tolist()
        self.updates.extend((kept, dropped, relabelled) for kept, dropped, relabelled in counts)

    def _record_labels(self, ids: Tensor, labels: Tensor) -> None:
        classes = labels.argmax(dim=1) if labels.ndim == 2 else labels
        self.totals["new_label"][ids] = classes.int()

    def _record_epoch(
        self, ids: Tensor, verdicts: Tensor, scores: Tensor, probabilities: Tensor
    ) -> None:
        half = 2 * self._judged_in_epoch >= self.shape[0]
        if not self.epochs or (half and bool((self.epochs[-1]["verdict"][ids] > 0).any())):
            self.start_epoch()
        epoch = self.epochs[-1]
        epoch["verdict"][ids] = verdicts.to(torch.uint8)
        epoch["score"][ids] = scores.half()
        epoch["probability"][ids] = probabilities.half()
        self._judged_in_epoch += len(ids)

    def to_frame(self) -> pd.DataFrame:
        """One row per sample, or per (sample, label): counts, rates, mean and last values."""
        totals = {name: part.flatten().numpy() for name, part in self.totals.items()}
        frame = pd.DataFrame(totals)
        judged = frame["judged"].where(frame["judged"] > 0)
        scored = frame["scored"].where(frame["scored"] > 0)
        frame["drop_rate"] = frame["dropped"] / judged
        frame["mean_score"] = frame["score_sum"] / scored
        known = frame["probability_last"].notna()  # an unknown label has no probability
        frame["mean_probability"] = (frame["probability_sum"] / judged).where(known)
        frame["new_label"] = frame["new_label"].astype("Int32").where(frame["new_label"] >= 0)
        if len(self.shape) == 2:
            frame.index = pd.MultiIndex.from_product(
                [range(size) for size in self.shape], names=["sample", "label"]
            )
        else:
            frame.index.name = "sample"
        return frame.drop(columns=["scored", "score_sum", "probability_sum"])

    def state_dict(self) -> dict[str, Any]:
        """Everything, as tensors and numbers."""
        return {
            "totals": {name: part.clone() for name, part in self.totals.items()},
            "epochs": [
                {name: part.clone() for name, part in epoch.items()} for epoch in self.epochs
            ],
            "updates": torch.tensor(self.updates, dtype=torch.int32).reshape(-1, 3),
            "judged_in_epoch": self._judged_in_epoch,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state.

        Raises:
            ValueError: The state is of another training set.
        """
        shape = tuple(state["totals"]["judged"].shape)
        if shape != self.shape:
            raise ValueError(
                f"Expected a ledger of shape {self.shape}, as the training set, got {shape}."
            )
        self.totals = {name: state["totals"][name].clone() for name in _TOTALS}
        self.epochs = [
            {name: epoch[name].clone() for name in _PER_EPOCH} for epoch in state["epochs"]
        ]
        self.updates = [(int(k), int(d), int(r)) for k, d, r in state["updates"].tolist()]
        self._judged_in_epoch = int(state["judged_in_epoch"])


def check_ids(ids: Any, count: int, size: int) -> Tensor:
    """Row numbers of a batch as int64 on the CPU.

    Raises:
        ValueError: Not one row number in [0, size) per sample.
    """
    ids = torch.as_tensor(ids).cpu()
    if ids.is_floating_point() or ids.dtype == torch.bool or ids.shape != (count,):
        raise ValueError(
            f"Expected `ids` to be the row numbers of the {count} samples, got "
            f"{ids.dtype} of shape {tuple(ids.shape)}."
        )
    if count and not (int(ids.min()) >= 0 and int(ids.max()) < size):
        raise ValueError(
            f"Expected `ids` to be in [0, {size - 1}], the rows of the training set, "
            f"got {int(ids.min())} to {int(ids.max())}."
        )
    return ids.long()


def given_probabilities(outputs: Tensor, labels: Tensor, *, several: bool) -> Tensor:
    """What the model thinks of the given labels, shaped as they are; NaN where there is none."""
    if several:
        probabilities = outputs.float().sigmoid()
        given = torch.where(labels == 1, probabilities, 1 - probabilities)
        return given.masked_fill(~labelled(labels), torch.nan)
    count = len(labels)
    # whole vectors of rows: the last digit must not depend on how many rows come together
    probabilities = softmax(functional.pad(outputs.float(), (0, 0, 0, -count % 64)))[:count]
    if is_soft(labels):
        given = (probabilities * labels).sum(dim=1)
    else:
        places = labels.clamp(min=0).long().unsqueeze(1)
        given = probabilities.gather(1, places).squeeze(1)
    return given.masked_fill(~sample_labelled(labels), torch.nan)
