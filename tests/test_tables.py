"""Tables: what is read, what is converted, and what is refused with its file, line and column."""

import contextlib
import csv
import gzip
import json
import re
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from agra import IGNORE_LABEL, AgraClassifier
from agra.data.readers.tables import Columns, read_table, stream_table
from agra.label_models.majority import majority_vote
from text_sets import TEXT_SETS, load

MAILS = "text,label\nfree money,spam\nlunch?,ham\n"


@pytest.fixture
def written(tmp_path):
    """Write a file, get its path."""

    def write(content, name="mails.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def lines(*objects):
    return "".join(json.dumps(each) + "\n" for each in objects)


def parquet(path, **columns):
    pd.DataFrame(columns).to_parquet(path)
    return path


# what is read


def test_texts_and_labels(written):
    data = read_table(written(MAILS), split="valid")
    assert data.inputs.tolist() == ["free money", "lunch?"]
    assert data.classes == ("ham", "spam")
    assert data.labels.tolist() == [1, 0]
    assert data.ids.tolist() == [0, 1]
    assert (data.name, data.split, data.kind) == ("mails", "valid", "texts")
    assert data.votes is None
    assert data.true_labels is None


def test_everything_by_its_usual_name(written):
    data = read_table(
        written(
            "id,text,label,true_label,lf_a,vote_b,lf_c\n"
            "m1,free,spam,spam,spam,,ham\n"
            "m2,lunch,,ham,-1,spam,\n"
        ),
        votes=["lf_*", "vote_b"],
    )
    assert data.ids.tolist() == ["m1", "m2"]
    assert data.labels.tolist() == [1, IGNORE_LABEL]
    assert data.true_labels.tolist() == [1, 0]
    assert data.functions == ("lf_a", "lf_c", "vote_b")
    assert data.votes.tolist() == [[1, 0, -1], [-1, -1, 1]]


def test_everything_by_other_names(written):
    path = written("key;body;topic;gold;url;links\n7;free;b;a;x;a\n8;lunch;a;;y;b\n")
    data = read_table(
        path,
        columns=Columns(text="body", label="topic", true_label="gold", id="key", ignore=["ur*"]),
        votes="links",
    )
    assert data.inputs.tolist() == ["free", "lunch"]
    assert data.labels.tolist() == [1, 0]
    assert data.true_labels.tolist() == [0, IGNORE_LABEL]
    assert data.votes.tolist() == [[0], [1]]
    assert data.ids.tolist() == ["7", "8"]


def test_what_has_no_use_may_be_ignored(written):
    path = written("text,label,day,place\na,b,c,d\n")
    for ignore in ("*", ["day", "place"], ["d*", "*"]):
        assert read_table(path, columns=Columns(ignore=ignore)).classes == ("b",)
    bare = read_table(written("text,label,id\na,b,\n"), columns=Columns(ignore="id"))
    assert bare.ids.tolist() == [0]


def test_votes_without_labels_give_their_majority(written):
    data = read_table(written("text,lf_a,lf_b,lf_c\none,b,b,a\ntwo,a,b,\nthree,,,-1\n"))
    assert data.classes == ("a", "b")
    expected = majority_vote(data.votes, 2, uncovered="unlabelled")
    assert data.labels.tolist() == expected.tolist() == [1, expected[1], IGNORE_LABEL]


@pytest.mark.parametrize("text_set", TEXT_SETS, ids=lambda text_set: text_set.name)
def test_the_noise_rates_of_the_paper_come_out_of_a_table(tmp_path, text_set):
    texts, truth, cast = load(text_set.name, "train")
    table = pd.DataFrame(cast).add_prefix("lf_").assign(text=texts, true_label=truth)
    table.to_csv(tmp_path / "train.csv", index=False)
    data = read_table(tmp_path / "train.csv", classes=range(truth.max() + 1))
    assert (data.labelled == (data.votes >= 0).any(axis=1)).all()
    noisy = data.replace(labels=majority_vote(data.votes, len(data.classes)))
    assert round(100 * noisy.noise_rate, 1) == text_set.noise


def test_a_class_may_be_called_minus_one(written):
    path = written("text,lf_a,lf_b\none,-1,1\ntwo,,-1\n")
    assert read_table(path).classes == ("1",)
    data = read_table(path, classes=[-1, 1])
    assert data.votes.tolist() == [[0, 1], [-1, 0]]


def test_classes_are_sorted_by_number_where_all_are_numbers(written):
    assert read_table(written("text,label\na,10\nb,9\n")).classes == ("9", "10")
    assert read_table(written("text,label\na,10\nb,9\nc,x\n")).classes == ("10", "9", "x")
    assert read_table(written("text,label\na,NA\nb,nan\n")).classes == ("NA", "nan")
    data = read_table(written("text,label\na,10\nb,9\n"), classes=[10, 9, 8])
    assert (data.classes, data.labels.tolist()) == (("10", "9", "8"), [0, 1])


def test_features_are_all_columns_of_no_other_use(written):
    data = read_table(written(",a,b,label,id\n0,1,2.5,x,p\n1,-1e3, 4,y,q\n", "sizes.csv"))
    assert data.inputs.dtype == np.float32
    assert data.inputs.tolist() == [[1, 2.5], [-1000, 4]]
    chosen = read_table(
        written("a,b,c,label\n1,2,x,u\n"), columns=Columns(features=["b", "a"], ignore="c")
    )
    assert chosen.inputs.tolist() == [[2, 1]]


def test_image_paths_start_at_the_folder_of_the_table(written, tmp_path):
    (tmp_path / "cats").mkdir()
    (tmp_path / "cats" / "a.png").touch()
    data = read_table(written("path,label\ncats/a.png,cat\n"))
    assert data.inputs.tolist() == [tmp_path / "cats" / "a.png"]


def test_several_labels_in_columns(written):
    path = written("text,label_warm,label_wet,true_label_wet,true_label_warm\na,1,0,1,1\nb,,1,0,\n")
    data = read_table(path)
    assert data.classes == ("warm", "wet")
    np.testing.assert_array_equal(data.labels, [[1, 0], [np.nan, 1]])
    np.testing.assert_array_equal(data.true_labels, [[1, 1], [np.nan, 0]])
    swapped = read_table(path, classes=["wet", "warm"])
    np.testing.assert_array_equal(swapped.labels, [[0, 1], [1, np.nan]])
    named = read_table(
        written("text,warm,wet\na,True,0.0\n"), columns=Columns(label=["warm", "wet"])
    )
    assert (named.classes, named.labels.tolist()) == (("warm", "wet"), [[1, 0]])


def test_several_labels_in_lists(written, tmp_path):
    days = [["warm", "wet"], None, []]
    text = lines(*({"text": "day", "label": day} for day in days))
    for path in (
        written(text, "days.jsonl"),
        parquet(tmp_path / "days.parquet", text=["day"] * 3, label=days),
    ):
        data = read_table(path)
        assert data.classes == ("warm", "wet")
        np.testing.assert_array_equal(data.labels, [[1, 1], [np.nan] * 2, [0, 0]])
        assert read_table(path, classes=["wet", "warm", "dry"]).labels.shape == (3, 3)


def test_json_lines(written):
    text = lines(
        {"text": "free", "label": True, "id": 7, "true_label": 1.0},
        {"text": "lunch", "label": False, "id": 3, "true_label": None},
        {"id": 5, "text": "no label"},
    )
    data = read_table(
        written(text.replace("\n", "\n\n"), "a.jsonl"), columns=Columns(ignore="true_*")
    )
    assert data.classes == ("False", "True")
    assert data.labels.tolist() == [1, 0, IGNORE_LABEL]
    assert data.ids.tolist() == [7, 3, 5]


def test_parquet(tmp_path):
    path = parquet(
        tmp_path / "sizes.parquet",
        a=[1, 2, 3],
        b=np.float32([0.5, 1, 2]),
        label=pd.Categorical(["x", None, "y"]),
        lf_a=pd.array([1, None, 0], dtype="Int64"),
    )
    data = read_table(path, columns=Columns(ignore="lf_a"))
    assert data.inputs.tolist() == [[1, 0.5], [2, 1], [3, 2]]
    assert data.labels.tolist() == [0, IGNORE_LABEL, 1]
    votes = read_table(path, columns=Columns(ignore="label"))
    assert (votes.classes, votes.votes.tolist()) == (("0", "1"), [[1], [-1], [0]])
    chunks = list(stream_table(path, rows=2, columns=Columns(ignore="lf_a")))
    assert [len(chunk) for chunk in chunks] == [2, 1]


def test_a_frame_comes_back(written):
    data = read_table(written("id,text,label,true_label,lf_a\nx,one,a,b,\ny,two,,a,b\n"))
    data.to_frame().to_csv(path := written("", "again.csv"))
    again = read_table(path)
    for part in ("inputs", "labels", "true_labels", "votes", "ids"):
        np.testing.assert_array_equal(getattr(again, part), getattr(data, part))


@pytest.mark.parametrize("name", ["mails.csv", "mails.tsv", "MAILS.CSV"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff", "\n\n"])
def test_separators_line_ends_and_marks(written, name, end, start):
    marks = ["\t"] if name.endswith("tsv") else [",", ";", "\t"]
    for mark in marks:
        data = read_table(
            written(start.replace("\n", end) + MAILS.replace(",", mark).replace("\n", end), name)
        )
        assert data.inputs.tolist() == ["free money", "lunch?"]


def test_compressed_and_other_encodings(written):
    assert len(read_table(written(gzip.compress(MAILS.encode()), "mails.csv.gz"))) == 2
    packed = gzip.compress(lines({"text": "a", "label": "b"}).encode())
    assert len(read_table(written(packed, "mails.jsonl.gz"))) == 1
    for encoding in ("latin-1", "utf-16"):
        path = written("text,label\ncafé,ham\n".encode(encoding))
        assert read_table(path, encoding=encoding).inputs.tolist() == ["café"]


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1)
)
def test_texts_come_back_as_they_are(tmp_path_factory, texts):
    texts = ["=1+2", '"quoted", and\nbroken', *texts]
    path = tmp_path_factory.mktemp("texts") / "mails.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["text", "label"], *([text, "a"] for text in texts)])
    assert read_table(path, empty="keep").inputs.tolist() == texts


def test_empty_cells_may_be_kept(written):
    data = read_table(written("text,label\n,a\nb,b\n"), empty="keep")
    assert data.inputs.tolist() == ["", "b"]
    assert (
        read_table(written(lines({"text": None, "label": 1}), "a.jsonl"), empty="keep").inputs[0]
        == ""
    )
    numbers = read_table(written("x,y,label\n1,,a\n"), empty="keep").inputs
    np.testing.assert_array_equal(numbers, [[1, np.nan]])


def test_a_classifier_learns_from_a_table(written):
    path = written("text,label\n" + MAILS[11:] * 50)
    data = read_table(path)
    rows = TfidfVectorizer().fit_transform(data.inputs)
    model = AgraClassifier(random_state=0).fit(rows, data.label_names())
    assert model.score(rows, data.label_names()) == 1


# chunks


def test_chunks_are_the_table(written):
    rows = [f'm{n},"text\n{n}",{"ab"[n % 2]},{"ba"[n % 3 > 0]}' for n in range(25)]
    path = written("id,text,label,lf_a\n" + "\n".join(rows))
    whole = read_table(path)
    for size in (1, 7, 25, 100):
        chunks = list(stream_table(path, rows=size))
        assert max(map(len, chunks)) == min(size, 25)
        for part in ("inputs", "labels", "votes", "ids"):
            together = np.concatenate([getattr(chunk, part) for chunk in chunks])
            np.testing.assert_array_equal(together, getattr(whole, part))
        assert all(chunk.classes == whole.classes for chunk in chunks)


def test_ties_fall_in_chunks_as_in_the_whole(written):
    rows = [f"m{n},{'ab'[n % 2]},{'ba'[n % 2]}" for n in range(25)]
    path = written("text,lf_a,lf_b\n" + "\n".join(rows))
    whole = read_table(path)
    assert len(set(whole.labels.tolist())) == 2
    chunks = stream_table(path, rows=4)
    assert np.concatenate([chunk.labels for chunk in chunks]).tolist() == whole.labels.tolist()


def test_rows_of_chunks_are_numbered_through(written):
    chunks = stream_table(written(MAILS), rows=1, classes=["ham", "spam"])
    assert [chunk.ids.tolist() for chunk in chunks] == [[0], [1]]


def test_several_labels_in_chunks(written):
    objects = [{"text": "a", "label": ["x"]}, {"text": "b", "label": None}]
    for classes in (None, ["x"]):
        chunks = list(stream_table(written(lines(*objects), "a.jsonl"), rows=1, classes=classes))
        assert [chunk.labels.shape for chunk in chunks] == [(1, 1), (1, 1)]
    columns = stream_table(written("text,label_x\na,1\nb,0\n"), rows=1)
    assert [chunk.labels.tolist() for chunk in columns] == [[[1]], [[0]]]


def test_a_stream_refuses_a_bad_header_at_once_and_a_bad_row_in_its_chunk(written):
    with refuses("Expected a column 'label' in mails.csv"):
        stream_table(written("text,x\na,b\n"))
    chunks = stream_table(written(MAILS + "a\n"), rows=2, classes=["ham", "spam"])
    assert len(next(chunks)) == 2
    with refuses("Expected 2 fields in mails.csv, line 4"):
        next(chunks)
    with refuses("Expected `rows` to be at least 1 per chunk, got 0"):
        stream_table(written(MAILS), rows=0)


def _peak(read):
    tracemalloc.start()
    try:
        count = sum(len(chunk) for chunk in read())
        return count, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _long_table(path, rows):
    with path.open("w", encoding="utf-8") as file:
        file.write("id,text,label\n")
        for row in range(rows):
            file.write(f"m{row},some words about number {row},{'ham' if row % 3 else 'spam'}\n")
    return path


def test_memory_of_a_stream_does_not_grow_with_the_file(tmp_path):
    short, long = (_long_table(tmp_path / f"{rows}.csv", rows) for rows in (2000, 20_000))
    next(stream_table(short, rows=500))  # imports
    _, few = _peak(lambda: stream_table(short, rows=500))
    count, many = _peak(lambda: stream_table(long, rows=500))
    assert count == 20_000
    assert many < 2 * few


@pytest.mark.slow
def test_a_million_rows_stream_in_little_memory(tmp_path):
    path = _long_table(tmp_path / "million.csv", 1_000_000)
    count, peak = _peak(lambda: stream_table(path))
    assert count == 1_000_000
    assert peak < 100e6


# what is refused


def refuses(message, error=ValueError):
    """The message, with " ... " for anything."""
    return pytest.raises(error, match=" .*".join(map(re.escape, message.split(" ... "))))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "text,label\na,\n,x\n",
            "Expected a text in mails.csv, line 3, column 'text', got an empty one; pass empty=",
        ),
        ("text,label\na,x\n   ,x\n", "Expected a text in mails.csv, line 3, column 'text', got an"),
        (
            'text,label\n"a\n\nb",x\nc\n',
            "Expected 2 fields in mails.csv, line 5, as in its header, got 1; put fields",
        ),
        ("text,label\na,x,y\n", "Expected 2 fields in mails.csv, line 2, as in its header, got 3"),
        (
            'text,label\na,x\n"b,x\n',
            "Expected a well-formed record in mails.csv, line 3, got one with: unexpected end",
        ),
        ('text,label\n"b"b,x\n', "Expected a well-formed record in mails.csv, line 2, got one"),
        ("text,label\n" + "a" * 140_000 + ",x\n", "store fields of more than 131072 characters"),
        (
            "id,text,label\n7,a,x\n8,b,x\n7,c,x\n",
            "Expected an id of its own in mails.csv, line 4, column 'id', got '7', which line 2 ",
        ),
        (
            "id,text,label\n,a,x\n",
            "Expected an id of its own in mails.csv, line 2, column 'id', got none",
        ),
        (
            "x,label\n1,a\ntwo,b\n",
            "Expected a finite number in mails.csv, line 3, column 'x', got 'two'; name a column",
        ),
        ("x,label\n1,a\n1e99,b\n", "in mails.csv, line 3, column 'x', got '1e99'"),
        ("x,label\ninf,a\n", "in mails.csv, line 2, column 'x', got 'inf'"),
        ("x,label\n,a\n", "in mails.csv, line 2, column 'x', got ''"),
        (
            "text,label_a\nb,2\n",
            "Expected 0, 1 or nothing in mails.csv, line 2, column 'label_a', got '2'",
        ),
        ("text,label\na,\n", "Expected labels or votes in mails.csv, got empty cells only"),
        (
            "text,label,lf_a\na,x,y\n",
            "Expected one of the classes ['x'] in mails.csv, line 2, column 'lf_a', got 'y'; name "
            "all of them in `classes`",
        ),
    ],
)
def test_cells_that_are_refused(written, content, message):
    with refuses(message):
        read_table(written(content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "Expected a header in mails.csv, got none"),
        ("\n\n", "Expected a header in mails.csv, got none"),
        ("text,label\n", "Expected rows in mails.csv, got none"),
        (
            "text,label,text\na,b,c\n",
            "Expected the columns of mails.csv to be named differently, got ['text'] twice",
        ),
        (
            "text,lable\na,b\n",
            "Expected a column 'label' in mails.csv, or columns of votes, got ['text', 'lable']; "
            "did you mean 'lable'; name it with",
        ),
        (
            "label\nb\n",
            "Expected a column 'text' or 'path', or columns of numbers, in mails.csv, got none",
        ),
        (
            "text,label,day\na,b,c\n",
            "Expected every column of mails.csv to have a use, got ['day'] besides; name them",
        ),
        (
            "text,path,label\na,b,c\n",
            "Expected one column of texts or paths, or columns of numbers, as inputs in mails.csv",
        ),
    ],
)
def test_headers_that_are_refused(written, content, message):
    with refuses(message):
        read_table(written(content))


def test_columns_that_are_named_and_missing(written):
    path = written("body,topic,lf_a\na,b,b\n")
    with refuses("column 'bodi' in mails.csv, as `text` says, got ... did you mean 'body'"):
        read_table(path, columns=Columns(text="bodi", label="topic"))
    for missing in ("rule_*", "rule", ["lf_a", "b"]):
        with refuses("in mails.csv, as `votes` says"):
            read_table(path, columns=Columns(text="body", label="topic"), votes=missing)
    with refuses("Expected one column per class, got ... of which two are for the same one"):
        read_table(written("text,a_x,b_x\na,1,0\n"), columns=Columns(label=["a_*", "b_*"]))
    with refuses(
        "Expected one 0/1 column per class ['warm'] in mails.csv, got ['truth']; a pattern"
    ):
        read_table(
            written("text,warm,truth\na,1,0\n"),
            columns=Columns(label=["warm"], true_label=["truth"]),
        )


def test_classes_that_are_not_given(written):
    with refuses("line 2, column 'label', got 'spam'; did you mean 'Spam'"):
        read_table(written(MAILS), classes=["Spam", "ham"])
    for classes in ([], "ab", ["a", "a"], [0, "0"], [None, "a"], [["a"], "b"]):
        with refuses("Expected `classes` to be different names or numbers"):
            read_table(written(MAILS), classes=classes)


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        (
            ['{"text": "a", "label": 1}', '{"text": "b", "lab'],
            "Expected a JSON object in a.jsonl, line 2, got what is no JSON",
        ),
        (["[" * 100_000], "Expected a JSON object in a.jsonl, line 1, got what is no JSON"),
        (["[{}]"], "Expected one JSON object per line in a.jsonl, got list in line 1"),
        (
            ['{"text": "a", "label": 1}', '{"text": "b", "x": 2}'],
            "Expected the keys of the first line ['text', 'label'] in a.jsonl, line 2, got ['x'] "
            "besides; write null",
        ),
        (
            ['{"text": 5, "label": 1}'],
            "Expected a text in a.jsonl, line 1, column 'text', got int",
        ),
        (
            ['{"text": "a", "label": {}}'],
            "Expected the name of a class in a.jsonl, line 1, column 'label', got dict",
        ),
        (
            ['{"text": "a", "label": ["x"]}', '{"text": "b", "label": "x"}'],
            "Expected a list of classes in a.jsonl, line 2, column 'label', as in other rows, got",
        ),
        (
            ['{"text": "a", "label": ["x", {}]}'],
            "Expected a list of some of the classes ['x'] in a.jsonl, line 1, column 'label', got "
            "{} in it",
        ),
        (
            ['{"x": [1, 2], "label": "x"}'],
            "Expected a finite number in a.jsonl, line 1, column 'x', got [1, 2]",
        ),
        ([f'{{"x": {10**400}, "label": "x"}}'], "in a.jsonl, line 1, column 'x', got 1000"),
        (
            ['{"path": 3, "label": "x"}'],
            "Expected the path of an image in a.jsonl, line 1, column 'path', got 3",
        ),
        (["{}"], "Expected a header in a.jsonl, got none"),
        ([""], "Expected a header in a.jsonl, got none"),
    ],
    ids=range(13),
)
def test_json_lines_that_are_refused(written, objects, message):
    with refuses(message):
        read_table(written("\n".join(objects), "a.jsonl"))


LATIN = "text,label\nné,x\n".encode("latin-1")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.csv",
            LATIN,
            "Expected a.csv to be written in utf-8, got other bytes in line 2; name what it is "
            "written in, such as encoding='latin-1'",
        ),
        ("a.csv", MAILS.encode("utf-16"), "bytes in line 1; ... such as encoding='utf-16'"),
        ("a.csv", b"text,label\n" + b"a,b\n" * 5000 + b"\xff,b\n", "other bytes in line 5002"),
        ("a.csv.gz", gzip.compress(LATIN, mtime=0), "other bytes in line 2"),
        (
            "a.csv",
            b"\x89PNG\r\n\x1a\n\0\0",
            "Expected a.csv to hold text, as its name says, got a PNG image",
        ),
        ("a.jsonl", b"PK\x03\x04\0", "got a ZIP archive or a spreadsheet"),
        ("a.csv", gzip.compress(b"a,b\n1,2\n", mtime=0), "got a gzip file"),
        ("a.csv", b"<!DOCTYPE html><p>", "got an HTML page"),
        ("a.csv", b"a,b\n\0\0\0", "got a binary file"),
        ("a.csv.gz", b"text,label\na,b\n", "Expected a.csv.gz to be a whole gzip file, got"),
        (
            "a.csv.gz",
            gzip.compress(LATIN, mtime=0)[:-9],
            "Expected a.csv.gz to be a whole gzip file, got",
        ),
        ("a.parquet", LATIN, "Expected a.parquet to be a Parquet file, got"),
        ("a.xlsx", b"PK", "Expected `path` to end with .csv, .tsv, .jsonl ... got 'a.xlsx'"),
    ],
)
def test_files_of_other_formats(written, name, content, message):
    with refuses(message):
        read_table(written(content, name))


@given(content=st.binary(max_size=200), name=st.sampled_from([".csv", ".jsonl", ".parquet"]))
@example(content=b'text,label\n"a,b\n', name=".csv")
@example(content=b'{"text": 1e999, "label": NaN}', name=".jsonl")
def test_whatever_is_in_a_file_is_read_or_refused(tmp_path_factory, content, name):
    path = tmp_path_factory.mktemp("any") / f"a{name}"
    path.write_bytes(content)
    with contextlib.suppress(ValueError):
        read_table(path)


def test_options_that_are_refused(written, tmp_path, monkeypatch):
    with refuses("Expected `encoding` to be one that Python knows, got 'utf8x'"):
        read_table(written(MAILS), encoding="utf8x")
    with refuses("Expected `empty` to be one of ['keep', 'refuse'], got 'drop'"):
        read_table(written(MAILS), empty="drop")
    with refuses("Expected `path` to be a file, got '", FileNotFoundError):
        read_table(tmp_path / "none.csv")
    path = parquet(tmp_path / "a.parquet", text=["a"], label=["b"])
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with refuses(
        "Expected the package 'pyarrow.parquet' to be installed; run pip install", ImportError
    ):
        read_table(path)


def test_parquet_that_is_refused(tmp_path):
    with refuses("Expected rows in a.parquet, got none"):
        read_table(parquet(tmp_path / "a.parquet", text=[], label=[]))
    path = parquet(tmp_path / "a.parquet", text=[None, b"b"], label=["x", "y"])
    with refuses("Expected a text in a.parquet, row 2, column 'text', got bytes"):
        read_table(path, empty="keep")
    texts = [f"word {n}" for n in range(500)]
    whole = parquet(tmp_path / "b.parquet", text=texts, label=texts).read_bytes()
    (tmp_path / "c.parquet").write_bytes(whole[:100] + whole[160:])
    with refuses("Expected c.parquet to be a Parquet file, got"):
        read_table(tmp_path / "c.parquet")
