"""CIFAR-10 as features of an ImageNet ResNet-50, for `real_data.py` and `cifar_linear.py`.

    python benchmarks/image_features.py IMAGES MODEL OUTPUT.npz --cache FOLDER

IMAGES is the folder of CIFAR-10's binary batches, MODEL a ResNet-50 as a Hugging Face folder. The
images are enlarged to 128 pixels; the 2,048 pooled outputs are reduced to 256 by a PCA fitted on
the 50,000 training images, which come first in OUTPUT, then the 10,000 test images. A run that was
stopped goes on where it was. Takes some ten minutes of one core with bfloat16 instructions, longer
without.
"""

from pathlib import Path

import click
import numpy as np

from agra.data.readers.cifar import read_cifar10
from agra.encode import ImageFeatures, cache_folder, encode


@click.command()
@click.argument("images", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("model", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("output", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--pixels", default=128, show_default=True)
@click.option("--components", default=256, show_default=True, help="0 keeps all 2,048 features.")
@click.option("--cache", type=click.Path(file_okay=False, path_type=Path))
def main(
    *,
    images: Path,
    model: Path,
    output: Path,
    pixels: int,
    components: int,
    cache: Path | None,
) -> None:
    """Write the features and true labels of all images."""
    encoder = ImageFeatures(model, pixels=pixels, components=components or None)
    splits = {split: read_cifar10(images, split) for split in ("train", "test")}
    with click.progressbar(length=sum(map(len, splits.values()))) as bar:
        done = dict.fromkeys(splits, 0)

        def progress(split: str, rows: int, total: int) -> None:
            bar.update(rows - done[split])
            done[split] = rows

        encoded = encode(splits, encoder, cache=cache or cache_folder(), progress=progress)
    draft = output.with_suffix(".part.npz")
    x = np.concatenate([data.inputs for data in encoded.values()])
    y = np.concatenate([data.labels for data in encoded.values()])
    np.savez(draft, x=x, y=y.astype(np.uint8))
    draft.replace(output)


if __name__ == "__main__":
    main()
