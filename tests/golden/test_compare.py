"""The check itself: what it must notice, what it must let pass, and how intended differences are accepted."""

import pytest
from compare import Comparison, Intended
from shorten import LONGEST, pack, shorten, unpack

CASE = "attack/er"
VALUE = {"mean": 0.73575, "count": 80, "name": "top_k(k=4)", "verified": True, "random": None, "rows": [1.5, 2.5]}
MANY = [0.1 * place for place in range(5 * LONGEST)]


def differences(old, new):
    return [(found.path, found.old, found.new) for found in Comparison(CASE, old, new).differences]


@pytest.mark.parametrize("change", [{"mean": 0.73575 * (1 + 1e-6)}, {"rows": [1.5, 2.5 + 1e-7]}])
def test_rounding_passes(change):
    assert differences(VALUE, VALUE | change) == []


@pytest.mark.parametrize(
    ("key", "new"),
    [
        ("mean", 0.7359),
        ("mean", None),
        ("count", 81),
        ("name", "top_k(k=5)"),
        ("verified", False),
        ("verified", 1),
        ("random", 0.0),
        ("rows", [1.5]),
    ],
)
def test_a_change_is_a_difference_with_its_path(key, new):
    assert differences(VALUE, VALUE | {key: new}) == [(key, VALUE[key], new)]


def test_a_missing_key_is_a_difference_and_an_additional_one_is_listed():
    without = {key: value for key, value in VALUE.items() if key != "count"}
    assert differences(VALUE, without) == [("count", 80, "missing")]
    comparison = Comparison(CASE, {"result": without}, {"result": VALUE})
    assert comparison.differences == [] and comparison.additional == ["result/count"]


def exchanged(values):
    return [values[1], values[0], *values[2:]]


@pytest.mark.parametrize("change", [exchanged, lambda values: [*values[:-1], values[-1] + 0.1], lambda values: [*values, 0.0]])
@pytest.mark.parametrize("values", [MANY, list(range(40))], ids=["real", "whole"])
def test_a_long_list_shows_an_exchange_a_change_and_an_addition(values, change):
    assert differences(shorten({"values": values}), shorten({"values": change(values)}))


def test_a_long_list_lets_rounding_pass():
    assert differences(shorten({"values": MANY}), shorten({"values": [value * (1 + 1e-7) for value in MANY]})) == []


def test_what_is_stored_can_be_read_again():
    value = shorten({"real": MANY, "whole": list(range(40)), "undefined": [None, *MANY], "words": ["a"] * 40, "few": [1, 2.5]})
    assert unpack(pack(value)) == value


ENTRY = '[[changed]]\ncase = "attack/er"\npath = "mean"\nold = 0.73575\nnew = 0.5\nreason = "a test"\n'


def judged(tmp_path, entries, new):
    """The differences that are not accepted, and the sentences about entries."""
    (tmp_path / "changed.toml").write_text(entries)
    intended = Intended(tmp_path / "changed.toml")
    unexpected = [found.path for found in Comparison(CASE, VALUE, new).differences if not intended.accepts(found)]
    return unexpected, list(intended.wrong({CASE: VALUE}, {CASE}))


def test_an_intended_difference_is_accepted_as_it_is_listed(tmp_path):
    assert judged(tmp_path, ENTRY, VALUE | {"mean": 0.5}) == ([], [])
    assert judged(tmp_path, ENTRY, VALUE | {"mean": 0.5, "count": 81}) == (["count"], [])


@pytest.mark.parametrize(("new", "unexpected"), [({}, []), ({"mean": 0.6}, ["mean"])])
def test_an_entry_that_does_not_apply_is_an_error(tmp_path, new, unexpected):
    found, sentences = judged(tmp_path, ENTRY, VALUE | new)
    assert found == unexpected and len(sentences) == 1


def test_an_entry_for_many_paths_says_how_many(tmp_path):
    many = '[[changed]]\ncase = "attack/*"\npath = "*"\ncount = 2\nreason = "a test"\n'
    assert judged(tmp_path, many, VALUE | {"mean": 0.5, "count": 81}) == ([], [])
    assert len(judged(tmp_path, many, VALUE | {"mean": 0.5})[1]) == 1


@pytest.mark.parametrize(
    "entry", [ENTRY.replace('reason = "a test"\n', ""), ENTRY.replace("old = 0.73575\n", ""), ENTRY + "more = 1\n"]
)
def test_an_entry_without_its_parts_is_refused(tmp_path, entry):
    with pytest.raises(SystemExit, match=r"changed\.toml"):
        judged(tmp_path, entry, VALUE)
