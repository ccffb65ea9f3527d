"""Folders of images with a table of labels, and images as arrays of RGB."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agra.data.dataset import NoisyDataset
from agra.data.readers.columns import USUAL, Columns, Names
from agra.data.readers.tables import TableReader
from agra.names import optional

Array = np.ndarray[Any, Any]

# no PostScript among them, which would be run
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
_MODES = {
    *("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr"),
    *("I", "I;16", "I;16B", "I;16L", "I;16N"),
}


def read_images(
    folder: str | Path,
    table: str = "labels.csv",
    *,
    columns: Columns = USUAL,
    votes: Names | None = None,
    classes: Sequence[Any] | None = None,
    split: str = "train",
    check: bool = False,
) -> NoisyDataset:
    r"""The data set in a folder of images, with their paths as inputs.

    Args:
        folder: Of the images; no path may lead out of it.
        table: A table with columns "path", "label" and what else `read_table` knows; its name
            within the folder, or any path.
        columns: As for `read_table`.
        votes: As for `read_table`.
        classes: As for `read_table`.
        split: "train", "valid" or "test".
        check: Decode every image once, so that broken ones are refused now.

    Raises:
        FileNotFoundError: No such table or image.
        ValueError: Whatever `read_table` refuses, a path that leads out, or a broken image.
        ImportError: `check` without Pillow.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "one.png").write_bytes(b"")
        ...     _ = Path(folder, "labels.csv").write_text("path,label\none.png,cat\n")
        ...     data = read_images(folder)
        >>> data.inputs[0].name, data.kind
        ('one.png', 'paths')
    """
    folder = Path(folder)
    reader = TableReader(
        folder / table, columns, votes, folder=folder, check=load_image if check else None
    )
    (records,) = reader.records(None)
    data = reader.data(records, reader.survey(iter([records]), classes))
    if data.kind != "paths":
        raise ValueError(
            f"Expected a column of paths in {table}, got {data.kind}; name it with "
            "`Columns(path=...)`."
        )
    return data.replace(split=split, name=folder.resolve().name)


def load_image(path: str | Path) -> Array:
    """The first frame of an image, upright, as RGB: uint8 (H, W, 3).

    Palettes and grey become colours, CMYK too (by Pillow's plain formula, without a profile). What
    is transparent lies on white. 16 bit grey is scaled to 8 bit from its full range.

    Args:
        path: Of a file; BMP, GIF, JPEG, PNG, PPM, TIFF or WebP.

    Raises:
        FileNotFoundError: No such file.
        ValueError: A file of another kind, a broken one, or one of more than 16 bit.
        ImportError: Without Pillow.

    Example:
        >>> import tempfile
        >>> from PIL import Image
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Image.new("L", (2, 1), 7).save(Path(folder, "grey.png"))
        ...     load_image(Path(folder, "grey.png")).tolist()
        [[[7, 7, 7], [7, 7, 7]]]
    """
    pillow = optional("PIL.Image", "data")
    name = Path(path).name
    if not Path(path).is_file():
        raise FileNotFoundError(f"Expected `path` to be an image, got no file {str(path)!r}.")
    try:
        with pillow.open(path, formats=FORMATS) as opened:
            image = optional("PIL.ImageOps", "data").exif_transpose(opened)
    except Exception as error:  # decoders raise whatever comes to their minds
        raise ValueError(
            f"Expected {name} to be a whole image ({', '.join(FORMATS)}), got: {error}."
        ) from error
    if image.mode not in _MODES:
        raise ValueError(f"Expected {name} to hold colours of 8 or 16 bit, got {image.mode!r}.")
    if image.mode.startswith("I"):
        grey = np.asarray(image).astype(np.int64)
        if grey.min() < 0 or grey.max() > 65535:
            raise ValueError(f"Expected {name} to hold grey of 16 bit at most, got more.")
        image = pillow.fromarray(((grey + 128) // 257).astype(np.uint8))
    if image.has_transparency_data:
        layers = image.convert("RGBA")
        image = pillow.alpha_composite(pillow.new("RGBA", layers.size, "white"), layers)
    return np.asarray(image.convert("RGB"))
