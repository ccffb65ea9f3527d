"""Which parameters take part in the comparison."""

import fnmatch
from collections.abc import Callable

from torch import nn

Selection = str | Callable[[str, nn.Parameter], bool] | None

# layers that hold no parameter and hand features through unchanged when the model is judged
_PASSING = (nn.Flatten, nn.Identity, nn.Dropout)


def select_parameters(model: nn.Module, parameters: Selection = None) -> dict[str, nn.Parameter]:
    """The parameters to compare, by name. Frozen ones never take part.

    Args:
        model: Any module.
        parameters: A pattern of names as in a shell ("head.*"; a leading "!" inverts it), or a
            predicate ``(name, parameter) -> bool``. None: all, except the bias of a linear model,
            which the paper leaves out (section 4.3).

    Raises:
        ValueError: Nothing that can be trained is left to compare.

    Example:
        >>> list(select_parameters(nn.Linear(3, 2)))
        ['weight']
        >>> list(select_parameters(nn.Linear(3, 2), "*"))
        ['weight', 'bias']
    """
    trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not trainable:
        raise ValueError("Expected `model` to have a parameter that can be trained, got none.")
    matches = _predicate(model, parameters)
    chosen = {name: p for name, p in trainable.items() if matches(name, p)}
    if not chosen:
        raise ValueError(
            f"Expected `parameters` to leave something to compare, got {parameters!r}, which fits "
            f"none of the trainable parameters {list(trainable)[:8]}."
        )
    return chosen


def _predicate(model: nn.Module, parameters: Selection) -> Callable[[str, nn.Parameter], bool]:
    if callable(parameters):
        return parameters
    if isinstance(parameters, str):
        pattern = parameters.removeprefix("!")
        wanted = not parameters.startswith("!")
        return lambda name, _: fnmatch.fnmatchcase(name, pattern) is wanted
    if parameters is not None:
        raise TypeError(
            "Expected `parameters` to be a pattern of names, a predicate (name, parameter) -> "
            f"bool or None, got {type(parameters).__name__}."
        )
    layer = linear_layer(model)
    bias = None if layer is None else layer.bias
    return lambda _, parameter: parameter is not bias


def linear_layer(model: nn.Module) -> nn.Linear | None:
    """The one layer of a linear model, or None for any other model."""
    while isinstance(model, nn.Sequential) and len(model):
        *front, model = model
        if not all(isinstance(layer, _PASSING) for layer in front):
            return None
    return model if type(model) is nn.Linear else None
