"""Files of labels with noise, and manifests of how they were made."""

import csv
import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agra.data.noise.reading import LabelFile
from agra.data.noise.result import Noise
from agra.data.parts import named
from agra.files import whole_file


def write_noise(
    out: Path, labels: LabelFile, noise: Noise, made: Mapping[str, Any]
) -> dict[str, Any]:
    """Write labels to a CSV and a manifest beside it, and return what the latter says.

    Both are complete before either takes its place. Cells are written as they are, also those
    that begin with = + - @, which spreadsheets may take for formulas: the file is data, and names
    must come out as they went in.

    Args:
        out: The CSV, with the columns id, label and true_label. The manifest adds .json to it.
        labels: What there was before.
        noise: What there is now.
        made: How, for the manifest.

    Raises:
        ValueError: A folder that does not exist, or one in the place of the files.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from agra.data.noise import symmetric_noise
        >>> import numpy as np
        >>> labels = LabelFile(["a", "b"], np.array([0, 1]), ("ham", "spam"))
        >>> noise = symmetric_noise(labels.codes, 1, 2)
        >>> with TemporaryDirectory() as folder:
        ...     manifest = write_noise(Path(folder, "noisy.csv"), labels, noise, {"seed": 0})
        ...     Path(folder, "noisy.csv").read_text().split()
        ['id,label,true_label', 'a,spam,ham', 'b,ham,spam']
        >>> manifest["matrix"], manifest["rate"]
        ([[0, 1], [1, 0]], 1.0)
    """
    manifest_path = out.with_name(out.name + ".json")
    if not out.parent.is_dir() or out.is_dir() or manifest_path.is_dir():
        raise ValueError(f"Expected {out} to be a file in a folder that exists; create that first.")
    table = io.StringIO(newline="")
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["id", "label", "true_label"])
    columns = [named(codes, labels.classes) for codes in (noise.labels, labels.codes)]
    writer.writerows(zip(labels.ids, *columns, strict=True))  # None becomes an empty cell
    content = table.getvalue().encode()
    manifest = {
        **made,
        "output": {"file": out.name, "sha256": hashlib.sha256(content).hexdigest()},
        "rows": len(labels.ids),
        "unlabelled": int((labels.codes < 0).sum()),
        "rate": noise.rate,
        "classes": list(labels.classes),
        "matrix": noise.matrix.tolist(),
    }
    with whole_file(manifest_path) as manifest_draft, whole_file(out) as draft:
        draft.write_bytes(content)
        manifest_draft.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return manifest


def fingerprint(path: Path) -> dict[str, str]:
    """A file's name and SHA-256, for a manifest.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     _ = Path(folder, "a.txt").write_text("a")
        ...     fingerprint(Path(folder, "a.txt"))["sha256"][:8]
        'ca978112'
    """
    with path.open("rb") as file:
        return {"file": path.name, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
