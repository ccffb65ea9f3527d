import pytest

from agra.names import check_name


@pytest.mark.parametrize("name", ["linear", "forward", "ghost"])
def test_a_known_name_comes_back_as_it_is(name):
    assert check_name("engine", name, ["linear", "forward", "ghost"]) == name


@pytest.mark.parametrize(
    ("typed", "nearest"),
    [("liner", "linear"), ("foward", "forward"), ("ghosts", "ghost"), ("gohst", "ghost")],
)
def test_the_refusal_names_the_nearest_known_name(typed, nearest):
    text = (
        rf"^Expected `engine` to be one of \['forward', 'ghost', 'linear'\], got '{typed}'; "
        rf"did you mean '{nearest}'\?$"
    )
    with pytest.raises(ValueError, match=text):
        check_name("engine", typed, ["linear", "forward", "ghost"])


def test_the_refusal_gives_no_hint_when_nothing_is_near():
    with pytest.raises(ValueError, match=r"^Expected `mood` to be one of \['calm'\], got 'xyz'\.$"):
        check_name("mood", "xyz", ["calm"])


def test_case_counts():
    with pytest.raises(ValueError, match="did you mean 'linear'"):
        check_name("engine", "Linear", ["linear"])


def test_names_may_come_from_any_iterable():
    assert check_name("criterion", "f1", {"f1": 1, "bce": 2}) == "f1"
    assert check_name("criterion", "f1", (name for name in ("bce", "f1"))) == "f1"
