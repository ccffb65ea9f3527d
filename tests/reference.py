"""The step of the paper as plain loops: slow, obvious, and what every engine must equal.

Nothing here is shared with the package but the label marker and the losses.
"""

import torch

from agra import IGNORE_LABEL


def row_of(inputs, t):
    """One sample as a batch of one."""
    if isinstance(inputs, dict):
        return {name: part[t : t + 1] for name, part in inputs.items()}
    if isinstance(inputs, tuple):
        return tuple(part[t : t + 1] for part in inputs)
    return inputs.to_dense()[t : t + 1] if inputs.layout == torch.sparse_csr else inputs[t : t + 1]


def run(model, inputs):
    """The outputs of a batch."""
    if isinstance(inputs, dict):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, tuple) else model(inputs)


def flat(gradients):
    """Gradients of several parameters as one vector."""
    return torch.cat([part.flatten() for part in gradients])


def gradient(scalar, parameters):
    """The gradient of a scalar as one vector; zeros where it does not reach."""
    if not scalar.requires_grad:
        return flat([torch.zeros_like(p) for p in parameters])
    return flat(torch.autograd.grad(scalar, parameters, allow_unused=True, materialize_grads=True))


def comparison_gradient(model, inputs, labels, criterion, parameters):
    """Line 4 of Algorithm 1."""
    return gradient(criterion(run(model.eval(), inputs), labels), parameters)


def sample_gradient(model, inputs, labels, t, criterion, parameters, outputs):
    """How the batch's loss moves the parameters through sample t alone (line 6)."""
    mixed = outputs.detach().clone()
    mixed[t] = run(model.eval(), row_of(inputs, t))[0]
    labelled = labels != IGNORE_LABEL
    labelled = labelled.any(dim=1) if labelled.ndim == 2 else labelled
    if not labelled[t]:
        return gradient(torch.zeros(()), parameters)
    return gradient(criterion(mixed[labelled], labels[labelled]), parameters)


def similarity(own, other):
    """Eq. (1); a zero gradient is similar to nothing."""
    norms = own.norm() * other.norm()
    return torch.zeros(()).to(own) if norms == 0 else own @ other / norms


def verdict(given, labels, scores, threshold):
    """Lines 8 to 16 for one sample: (label, verdict). The given label has the first score."""
    best = max(range(1, len(scores)), key=lambda c: scores[c], default=None)
    if best is not None and scores[best] > threshold and scores[best] > scores[0]:
        return labels[best], "relabelled"
    if scores[0] > threshold:
        return given, "kept"
    return IGNORE_LABEL, "dropped"


def judge(model, inputs, labels, g, criterion, parameters, *, others=(), threshold=0.0, mask=None):
    """Algorithm 1 for one batch: a list of (label, verdict, scores per candidate)."""
    outputs = run(model.eval(), inputs).detach()
    columns = [labels, *(torch.full((len(outputs),), other) for other in others)]
    results = []
    for t in range(len(outputs)):
        scores = []
        for column in columns:
            own = sample_gradient(model, inputs, column, t, criterion, parameters, outputs)
            scores.append(similarity(own, g))
        ranked = list(scores)
        soft = labels.ndim == 2
        if (labels[t] == IGNORE_LABEL).any():
            ranked[0] = torch.tensor(-torch.inf)
        for c, other in enumerate(others, start=1):
            same = not soft and int(labels[t]) == other
            if same or (mask is not None and not mask[t, other]):
                ranked[c] = torch.tensor(-torch.inf)
        label, found = verdict(labels[t], [None, *others], ranked, threshold)
        results.append((label, found, scores))
    return results


def judge_multilabel(model, inputs, labels, comparison, criterion, parameters, *, threshold=0.0):
    """Algorithm 2 for one batch: kept (N, K) and scores (N, K)."""
    outputs = run(model.eval(), inputs).detach()
    per_label = [
        label_gradient(model, *comparison, k, criterion, parameters)
        for k in range(outputs.shape[1])
    ]
    scores = torch.zeros_like(outputs)
    for t in range(len(outputs)):
        for k in range(outputs.shape[1]):
            mixed = outputs.clone()
            mixed[t, k] = run(model.eval(), row_of(inputs, t))[0, k]
            own = gradient(criterion(mixed, labels), parameters)
            scores[t, k] = similarity(own, per_label[k])
    known = ~(labels.isnan() | (labels == IGNORE_LABEL))
    return (scores > threshold) & known, scores


def label_gradient(model, inputs, labels, k, criterion, parameters):
    """The comparison gradient of label k: what reaches the parameters through output k alone."""
    live = run(model.eval(), inputs)
    mixed = live.detach().clone()
    mixed[:, k] = live[:, k]
    return gradient(criterion(mixed, labels), parameters)
