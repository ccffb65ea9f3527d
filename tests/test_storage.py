"""Estimators in a folder: everything comes back, nothing else is read, nothing is half written."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from torch import nn

from agra import AgraClassifier, AgraMultilabelClassifier
from agra.estimators import storage


def data():
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 3, 200)
    return generator.normal(size=(200, 4)) + 2 * np.eye(3, 4)[truth], truth


def fitted(**settings):
    x, y = data()
    return AgraClassifier(random_state=0, epochs=2, **settings).fit(x, y)


def test_everything_comes_back(tmp_path):
    x, y = data()
    frame = pd.DataFrame(x, columns=list("abcd"), index=[f"id {i}" for i in range(200)])
    labels = pd.Series(np.array(["ham", "spam", "eggs"])[y], dtype=object)
    labels[3] = None
    model = AgraClassifier(criterion="f1", random_state=0, epochs=3, alternative_label="any")
    model.fit(frame, labels, validation=(frame[10:], labels[10:]))
    model.save(tmp_path / "model")
    found = AgraClassifier.load(tmp_path / "model")
    assert found.get_params() == model.get_params()
    np.testing.assert_array_equal(found.predict_proba(frame), model.predict_proba(frame))
    np.testing.assert_array_equal(found.predict(frame), model.predict(frame))
    pd.testing.assert_frame_equal(found.find_label_issues(), model.find_label_issues())
    assert found.classes_.dtype.kind == model.classes_.dtype.kind
    assert found.feature_names_in_.tolist() == list("abcd")
    assert found.history_ == model.history_
    assert (found.n_iter_, found.best_epoch_) == (model.n_iter_, model.best_epoch_)
    assert found.ledger_.updates == model.ledger_.updates
    assert found.ledger_.to_frame().equals(model.ledger_.to_frame())
    assert len(found.ledger_.epochs) == 3


def test_a_stream_goes_on_where_it_was(tmp_path):
    x, y = data()
    model = AgraClassifier(random_state=0).partial_fit(x[:100], y[:100], classes=[0, 1, 2])
    model.save(tmp_path / "model")
    found = AgraClassifier.load(tmp_path / "model").partial_fit(x[100:], y[100:])
    np.testing.assert_array_equal(
        found.predict_proba(x), model.partial_fit(x[100:], y[100:]).predict_proba(x)
    )


def test_several_labels_and_plain_fits(tmp_path):
    x, y = data()
    model = AgraMultilabelClassifier(epochs=2, random_state=0).fit(x, [{f"label {k}"} for k in y])
    model.save(tmp_path / "model")
    found = AgraMultilabelClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(found.predict(x), model.predict(x))
    pd.testing.assert_frame_equal(found.find_label_issues(), model.find_label_issues())
    fitted(judging=False).save(tmp_path / "model")  # over the old one
    plain = AgraClassifier.load(tmp_path / "model")
    assert plain.ledger_ is None
    assert plain.judging is False


def test_a_module_needs_its_architecture_again(tmp_path):
    x, _ = data()
    model = fitted(module=nn.Linear)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="Expected `module` to load"):
        AgraClassifier.load(tmp_path / "model")
    found = AgraClassifier.load(tmp_path / "model", module=nn.Linear)
    np.testing.assert_allclose(found.predict_proba(x), model.predict_proba(x), rtol=1e-6)


def test_saving_is_whole_or_not_at_all(tmp_path, monkeypatch):
    folder = tmp_path / "model"
    fitted().save(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr(storage, "bytes_of", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fitted().save(folder)
    monkeypatch.undo()
    monkeypatch.setattr(storage.Path, "write_bytes", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fitted().save(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_nothing_else_is_overwritten(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(FileExistsError, match="Expected `folder` to be new, or to hold a saved es"):
        fitted().save(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_labels_that_json_cannot_hold(tmp_path):
    x, y = data()
    model = AgraClassifier(epochs=1).fit(x, [(int(k), "x") for k in y])
    with pytest.raises(
        TypeError, match="Expected the classes to be strings or numbers to save them"
    ):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("name", ["estimator.json", "tensors.safetensors"])
@pytest.mark.parametrize("damage", [lambda b: b[:-5], lambda b: b"x" + b[1:], lambda _: b""])
def test_damaged_files_are_refused(tmp_path, name, damage):
    fitted().save(tmp_path / "model")
    path = tmp_path / "model" / name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match="to be as `save` wrote it, got a damaged file of"):
        AgraClassifier.load(tmp_path / "model")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 3}', '{"files": []}'])
def test_foreign_manifests_are_refused(tmp_path, content):
    fitted().save(tmp_path / "model")
    (tmp_path / "model" / "manifest.json").write_text(content)
    with pytest.raises(ValueError, match="to be as `save` wrote it, got a damaged or foreign file"):
        AgraClassifier.load(tmp_path / "model")


def test_other_kinds_and_versions_are_refused(tmp_path):
    folder = tmp_path / "model"
    with pytest.raises(
        FileNotFoundError, match=r"to hold a saved estimator, found no manifest\.json"
    ):
        AgraClassifier.load(folder)
    fitted().save(folder)
    with pytest.raises(ValueError, match="Expected a saved AgraMultilabelClassifier in"):
        AgraMultilabelClassifier.load(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "version": 99}))
    with pytest.raises(ValueError, match="version 99; it needs another release of agra"):
        AgraClassifier.load(folder)


def test_a_pickle_in_place_of_the_files_is_never_loaded(tmp_path):
    class Evil:
        def __reduce__(self):
            return (exec, ("raise SystemExit('executed')",))

    fitted().save(tmp_path / "model")
    for name in ("estimator.json", "tensors.safetensors"):
        (tmp_path / "model" / name).write_bytes(pickle.dumps(Evil()))
    with pytest.raises(ValueError, match="damaged file"):
        AgraClassifier.load(tmp_path / "model")


def test_files_that_agree_but_are_no_tensors(tmp_path):
    import hashlib

    folder = tmp_path / "model"
    fitted().save(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "tensors.safetensors").write_bytes(b"not tensors")
    manifest["files"]["tensors.safetensors"] = hashlib.sha256(b"not tensors").hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="Expected JSON and safetensors in"):
        AgraClassifier.load(folder)


def test_settings_of_any_kind_come_back_or_are_said(tmp_path):
    x, y = data()
    weighty = {label: 1.0 + place for place, label in enumerate(np.unique(y))}
    model = AgraClassifier(class_weight=weighty, epochs=np.int64(2), momentum=np.float32(0.5))
    model.fit(x, y).save(tmp_path / "plain")
    again = AgraClassifier.load(tmp_path / "plain")
    assert (again.class_weight, again.epochs, again.momentum) == (weighty, 2, 0.5)
    with pytest.warns(UserWarning, match="Expected what JSON can hold, got others in weights; set"):
        fitted(weights=np.ones(len(y))).save(tmp_path / "weights")
    days = pd.DataFrame(x, index=pd.date_range("2020", periods=len(x)))
    with pytest.warns(UserWarning, match="got others in the index of the rows"):
        AgraClassifier(epochs=1).fit(days, y).save(tmp_path / "days")
    assert AgraClassifier.load(tmp_path / "days").find_label_issues().index[0] == 0
