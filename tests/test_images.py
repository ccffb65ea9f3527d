"""Folders of images: their paths, and images as arrays of RGB."""

import io
import json
import re
import sys

import numpy as np
import pytest
from PIL import Image

from agra.data.readers.images import load_image, read_images
from agra.data.readers.tables import Columns


def refuses(message, error=ValueError):
    """The message, with " ... " for anything."""
    return pytest.raises(error, match=" .*".join(map(re.escape, message.split(" ... "))))


@pytest.fixture
def folder(tmp_path):
    """A folder of two images with a table, beside a third image."""
    inside = tmp_path / "pets"
    (inside / "cats").mkdir(parents=True)
    for name in ("cats/a.png", "b.png", "../secret.png"):
        Image.new("RGB", (3, 2), "red").save(inside / name)
    (inside / "labels.csv").write_text("path,label,true_label\ncats/a.png,cat,cat\nb.png,cat,dog\n")
    return inside


def test_a_folder_of_images(folder):
    data = read_images(folder, check=True, split="valid")
    assert data.inputs.tolist() == [folder / "cats/a.png", folder / "b.png"]
    assert data.kind == "paths"
    assert data.classes == ("cat", "dog")
    assert data.wrong.tolist() == [False, True]
    assert (data.name, data.split) == ("pets", "valid")


def test_other_tables(folder):
    (folder / "own.tsv").write_text("file\ttopic\tlf_a\nb.png\tx\ty\n")
    columns = Columns(path="file", label="topic")
    data = read_images(folder, "own.tsv", columns=columns, votes="lf_a", classes=["y", "x"])
    assert data.labels.tolist() == [1]
    elsewhere = folder.parent / "elsewhere.csv"
    elsewhere.write_text("path,label\nb.png,x\n")
    assert read_images(folder, str(elsewhere)).inputs.tolist() == [folder / "b.png"]


@pytest.mark.parametrize(
    "path", ["../secret.png", "cats/../b.png", "/etc/passwd", "..\\secret.png", "C:\\a.png", "C:a"]
)
def test_paths_that_lead_out_are_refused(folder, path):
    (folder / "labels.csv").write_text(f"path,label\nb.png,x\n{path},x\n")
    with refuses("Expected a path within the folder in labels.csv, line 3, column 'path', got"):
        read_images(folder)


def test_links_that_lead_out_are_refused(folder):
    (folder / "labels.csv").write_text("path,label\nlink.png,x\n")
    (folder / "link.png").symlink_to(folder / "b.png")
    assert len(read_images(folder)) == 1
    (folder / "link.png").unlink()
    (folder / "link.png").symlink_to(folder.parent / "secret.png")
    with refuses("got 'link.png', which leads out of it"):
        read_images(folder)


@pytest.mark.parametrize("path", ["none.png", "cats", "a\0b"])
def test_images_that_are_not_there(folder, path):
    (folder / "labels.jsonl").write_text(json.dumps({"path": path, "label": 1}))
    with refuses(
        "Expected the path of a file within ... in labels.jsonl, line 1", FileNotFoundError
    ):
        read_images(folder, "labels.jsonl")


def test_tables_without_paths(folder):
    (folder / "labels.csv").write_text("text,label\nb.png,x\n")
    with refuses(
        "Expected a column of paths in labels.csv, got texts; name it with `Columns(path="
    ):
        read_images(folder)
    (folder / "labels.csv").write_text("path,label\n,x\n")
    with refuses("Expected the path of an image in labels.csv, line 2, column 'path', got ''"):
        read_images(folder)
    with refuses("Expected `path` to be a file, got", FileNotFoundError):
        read_images(folder, "none.csv")


def encoded(image, form="PNG", **options):
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def test_broken_images(folder):
    noise = np.random.default_rng(0).integers(0, 255, (40, 40, 3), dtype=np.uint8)
    for form in ("PNG", "JPEG", "GIF"):
        whole = encoded(Image.fromarray(noise), form)
        for content in (whole[: len(whole) // 2], whole[:12], b"", b"no image"):
            (folder / "b.png").write_bytes(content)
            with refuses(
                "Expected b.png to be a whole image (BMP, GIF, JPEG, PNG, PPM, TIFF, WEBP)"
            ):
                load_image(folder / "b.png")
            with refuses(
                "Expected a whole image in labels.csv, line 3, column 'path', got 'b.png':"
            ):
                read_images(folder, check=True)
    assert len(read_images(folder)) == 2


def test_nothing_is_executed(folder):
    (folder / "b.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n")
    with refuses("Expected b.png to be a whole image ("):
        load_image(folder / "b.png")


@pytest.fixture
def loaded(tmp_path):
    """Save an image, load it again."""

    def load(image, name="a.png", **options):
        image.save(tmp_path / name, **options)
        array = load_image(tmp_path / name)
        assert array.dtype == np.uint8
        assert array.shape[2] == 3
        return array

    return load


def test_modes_of_images(loaded):
    grey = Image.new("L", (3, 2), 7)
    assert (loaded(grey) == 7).all()
    assert loaded(grey).shape == (2, 3, 3)
    assert (loaded(Image.new("1", (3, 2), 1)) == 255).all()
    blue = Image.new("RGB", (3, 2), "blue")
    for form in ("png", "gif", "bmp", "tiff", "ppm"):
        assert (loaded(blue, f"a.{form}") == [0, 0, 255]).all()
    assert (loaded(blue.quantize()) == [0, 0, 255]).all()
    for form in ("jpg", "webp"):
        assert abs(loaded(blue, f"a.{form}").astype(int) - [0, 0, 255]).max() <= 3


def test_what_is_transparent_lies_on_white(loaded):
    half = Image.new("RGBA", (3, 2), (255, 0, 0, 128))
    assert (loaded(half) == [255, 127, 127]).all()
    assert (loaded(Image.new("LA", (3, 2), (0, 0))) == 255).all()
    palette = Image.new("P", (3, 2), 0)
    palette.putpalette([10, 20, 30])
    assert (loaded(palette) == [10, 20, 30]).all()
    assert (loaded(palette, transparency=0) == 255).all()


def test_sixteen_bits(loaded):
    values = np.array([[0, 128, 129, 257, 32768, 65535]], dtype=np.uint16)
    for name in ("a.png", "a.tiff"):
        assert loaded(Image.fromarray(values), name)[0, :, 0].tolist() == [0, 0, 1, 1, 128, 255]


def test_cmyk(loaded):
    cyan = Image.new("CMYK", (3, 2), (255, 0, 0, 0))
    assert (loaded(cyan, "a.tiff") == [0, 255, 255]).all()
    assert abs(loaded(cyan, "a.jpg").astype(int) - [0, 255, 255]).max() <= 3


def test_images_stand_upright(loaded):
    turned = Image.fromarray(np.array([[[9, 9, 9], [1, 1, 1]]], dtype=np.uint8))
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    assert loaded(turned, exif=exif)[0, :, 0].tolist() == [1, 9]


def test_images_that_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.tiff"
    Image.fromarray(np.ones((2, 2), dtype=np.float32)).save(path)
    with refuses("Expected a.tiff to hold colours of 8 or 16 bit, got 'F'"):
        load_image(path)
    Image.fromarray(np.full((2, 2), 70_000, dtype=np.int32)).save(path)
    with refuses("Expected a.tiff to hold grey of 16 bit at most, got more"):
        load_image(path)
    with refuses("Expected `path` to be an image, got no file '", FileNotFoundError):
        load_image(tmp_path / "none.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1)
    Image.new("L", (9, 9)).save(path)
    with refuses("Expected a.tiff to be a whole image (", ValueError):
        load_image(path)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with refuses("Expected the package 'PIL.Image' to be installed; run pip install", ImportError):
        load_image(path)
