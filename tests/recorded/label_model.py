"""Records what snorkel's LabelModel finds, as JSON on standard output.

python -m venv apart && apart/bin/pip install torch==2.13.0 snorkel==0.10.0
PYTHONPATH=tests AGRA_DATA_HOME=data apart/bin/python tests/recorded/label_model.py \
    > tests/recorded/label_model.json
"""

import json
import os
from pathlib import Path

import numpy as np

SEED = 7
TEXT_SETS = {"youtube": 2, "sms": 2, "trec": 6, "yoruba": 7, "hausa": 5}


def fitted(votes, balance):
    from snorkel.labeling.model import LabelModel

    model = LabelModel(cardinality=len(balance), verbose=False)
    model.fit(votes, class_balance=list(balance), seed=SEED, progress_bar=False)
    return model.get_conditional_probs()[:, 1:, :], model.predict_proba(votes)


def planted():
    from planted_moments import RECORDED

    for name, case in RECORDED.items():
        conditionals, probabilities = fitted(case.draw()[0], case.balance)
        yield (
            name,
            {
                "conditionals": conditionals.round(6).tolist(),
                "probabilities": probabilities[:20].round(6).tolist(),
            },
        )


def real():
    for name, count in TEXT_SETS.items():
        path = Path(os.environ["AGRA_DATA_HOME"]) / "text" / name / "train.json"
        rows = json.loads(path.read_text(encoding="utf-8"))
        votes = np.array([rows[str(n)]["weak_labels"] for n in range(len(rows))])
        conditionals, probabilities = fitted(votes, [1 / count] * count)
        likeliest = probabilities.max(axis=1)
        clear = (probabilities > likeliest[:, None] - 1e-3).sum(axis=1) == 1
        yield (
            name,
            {
                "mean conditionals": conditionals.mean(axis=0).round(6).tolist(),
                "mean probabilities": probabilities.mean(axis=0).round(6).tolist(),
                "mean of the likeliest": round(float(likeliest.mean()), 6),
                "clear rows": np.bincount(
                    probabilities[clear].argmax(axis=1), minlength=count
                ).tolist(),
            },
        )


def main():
    command = " && ".join(" ".join(line.split()) for line in __doc__.strip().splitlines()[2:])
    record = {"command": command, "seed": SEED, "planted": dict(planted()), "real": dict(real())}
    print(json.dumps(record))


if __name__ == "__main__":
    main()
