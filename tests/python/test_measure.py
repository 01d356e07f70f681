"""Similarities of given maps: known values, the same as the command line's, any array."""

import json

import holdfast
import numpy as np
import pytest
import torch


@pytest.fixture
def maps():
    generator = np.random.default_rng(0)
    return generator.random((30, 6)).astype(np.float32), generator.random((30, 6)).astype(np.float32)


def test_known_values():
    original = np.array([[3.0, 2, 1, 0], [0, 1, 2, 3]])
    perturbed = np.array([[0.0, 2, 1, 3], [0, 1, 2, 3]])
    found = holdfast.measure(original, perturbed, "top_k(k=2)")
    assert found.values.tolist() == [0.5, 1.0] and found.mean == 0.75
    assert found.chance == pytest.approx(0.5) and found["adjusted"] == pytest.approx(0.5)
    assert found.name == "top_k(k=2)" and "mean 0.75" in repr(found)


def test_the_command_line_gives_the_same_numbers(maps, tmp_path, program):
    np.save(tmp_path / "a.npy", maps[0])
    np.save(tmp_path / "b.npy", maps[1])
    printed = json.loads(program("measure", "a.npy", "b.npy", "--metric", "top_k(k=2)", "--metric", "top_k(k=3)", "--json"))
    for written, found in zip(printed["metrics"], holdfast.measure(*maps, ["top_k(k=2)", "top_k(k=3)"]), strict=True):
        assert written == {**found, "values": found.values.tolist()}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_values_without_levels_are_the_same(maps, dtype):
    original, perturbed = [(1000 * part).astype(dtype) for part in maps]
    original[3] = 5
    calls = ["top_k(k=2)", "kendall", "lens_precision(k=2)", "l2"]
    whole = holdfast.measure(original, perturbed, calls)
    for full, alone in zip(whole, holdfast.measure(original, perturbed, calls, levels=False), strict=True):
        np.testing.assert_array_equal(alone.values, full.values)
        assert alone.name == full.name and alone.mean == pytest.approx(full.mean) and alone.undefined == full.undefined
        assert alone.name in repr(alone) and "chance" not in alone
    assert whole[1].undefined == 1 and np.isnan(whole[1].values[3])


def test_labels_give_the_level_within_a_class(maps):
    assert holdfast.measure(*maps, "top_k(k=2)").between_same_class is None
    labels = [0, 1] * 15
    assert 0 < holdfast.measure(*maps, "top_k(k=2)", labels=labels).between_same_class < 1


@pytest.mark.parametrize(
    "convert", [torch.from_numpy, np.asfortranarray, lambda x: x.astype(">f4"), lambda x: x.astype(np.float64)]
)
def test_any_array_gives_the_same_numbers(maps, convert):
    expected = holdfast.measure(*maps, "top_k(k=2)")
    found = holdfast.measure(*map(convert, maps), "top_k(k=2)")
    assert isinstance(found.values, type(convert(maps[0])))
    np.testing.assert_array_equal(np.asarray(found.values), expected.values)


def test_integer_half_and_unsigned_maps():
    original = np.array([[3, 2, 1, 0]])
    for kind in (np.int64, np.uint8, np.uint16, np.float16):
        found = holdfast.measure(original.astype(kind), original[:, ::-1].astype(kind), "top_k(k=1)")
        assert found.values.tolist() == [0.0]


def test_channels_of_images_are_summed():
    original = torch.zeros(1, 2, 2, 2)
    original[0, 0, 0, 0], original[0, :, 1, 1] = 3, 2
    other = torch.zeros(1, 2, 2)
    other[0, 1, 1] = 1
    assert holdfast.measure(original.sum(1), other, "top_k(k=1)").mean == 1
    with pytest.raises(holdfast.Error, match="shape"):
        holdfast.measure(original, other, "top_k(k=1)")


@pytest.mark.parametrize(
    ("change", "saying"),
    [
        (dict(metrics="top_k(k=7)"), "choose k <= 6"),
        (dict(metrics="top"), "did you mean 'top_k'"),
        (dict(perturbed=np.zeros((30, 5))), r"\[30, 5\]"),
        (dict(original=np.zeros((0, 6)), perturbed=np.zeros((0, 6))), "empty"),
        (dict(original=np.full((30, 6), np.nan)), "sample 0 holds NaN"),
        (dict(original=np.zeros(6), perturbed=np.zeros(6)), "samples, ..."),
        (dict(labels=[0]), "has 1 classes for 30 samples"),
        (dict(original=np.zeros((3, 1, 1, 1, 1)), perturbed=np.zeros((3, 1, 1, 1, 1))), "schema"),
    ],
)
def test_refusals(maps, change, saying):
    arguments = {"original": maps[0], "perturbed": maps[1], "metrics": "top_k(k=2)", **change}
    with pytest.raises(holdfast.Error, match=saying):
        holdfast.measure(**arguments)


def test_nothing_is_written_to_the_callers_arrays(maps):
    before = [array.copy() for array in maps]
    holdfast.measure(*maps, "top_k(k=2)")
    np.testing.assert_array_equal(maps[0], before[0])
    np.testing.assert_array_equal(maps[1], before[1])
