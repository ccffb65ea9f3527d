"""CIFAR-10's features under a plain linear model, on noisy and on true labels.

    AGRA_DATA_HOME=... AGRA_IMAGE_FEATURES=features.npz python benchmarks/cifar_linear.py

The features are those of `image_features.py`. 50,000 rows are learned from; of the test images
the first 5,000 choose the learner and its settings, the other 5,000 are the score.
"""

from collections.abc import Iterator
from typing import Any

import click
import numpy as np
import real_data
import results
import torch
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from agra import AgraClassifier

_ROW_LENGTH = 4  # in the root mean square, as the defaults of both learners expect


@click.command(context_settings={"show_default": True})
@click.option("--epochs", type=click.IntRange(min=1), default=20)
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
def main(*, epochs: int, markdown: bool) -> None:
    """Train both learners with every setting, and show the best of each."""
    torch.set_num_threads(1)
    for data in real_data.images():
        length = np.sqrt(np.square(data.features, dtype=np.float64).sum(1).mean())
        scale = np.float32(_ROW_LENGTH / length)
        (x_valid, y_valid), (x_test, y_test) = data.validation, data.test
        x_valid, x_test = x_valid * scale, x_test * scale
        rows = []
        for labels, y in {"noisy": data.given, "true": data.truth}.items():
            best: dict[str, tuple[float, float, str]] = {}
            for name, settings, learner in _learners(epochs):
                takes_validation = isinstance(learner, AgraClassifier)
                options = {"validation": (x_valid, y_valid)} if takes_validation else {}
                learner.fit(data.features * scale, y, **options)
                scores = learner.score(x_valid, y_valid), learner.score(x_test, y_test)
                best[name] = max(best.get(name, (-1.0, -1.0, "")), (*scores, settings), key=_first)
            for name, (valid, test, settings) in best.items():
                rows.append([labels, name, settings, f"{valid:.2%}", f"{test:.2%}"])
        title = f"{data.features.shape[1]} features"
        headers = ["labels", title, "chosen", "validation", "test"]
        results.show(headers, [rows], 3, markdown=markdown)


def _first(scores: tuple[Any, ...]) -> Any:
    return scores[0]  # only the validation chooses; on ties the earlier setting stays


def _learners(epochs: int) -> Iterator[tuple[str, str, Any]]:
    for rate in (3e-4, 1e-3, 1e-2):
        for decay in (0.0, 1e-4, 1e-3):
            yield (
                "AgraClassifier(judging=False)",
                f"learning rate {rate:g}, weight decay {decay:g}",
                AgraClassifier(
                    judging=False,
                    learning_rate=rate,
                    weight_decay=decay,
                    epochs=epochs,
                    random_state=0,
                ),
            )
    for inverse in (0.01, 0.1, 1.0):
        yield (
            "LogisticRegression",
            f"C = {inverse:g}",
            LogisticRegression(C=inverse, max_iter=200, tol=1e-3),
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
