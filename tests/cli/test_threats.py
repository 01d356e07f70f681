"""Threat models beyond the ball: valid rows, sides, tolerance; and what attack reports for each sample."""

import json

import numpy as np
import pytest
from conftest import mlp_weights

ATTACK = ["--norm", "l2", "--epsilon", "1.6", "--metric", "top_k(k=2)"]


@pytest.fixture
def table(subject, tmp_path):
    """Columns 0-2 one level each, column 3 in quarters, 4 and 5 any number of [0, 1]."""
    features = [{"name": name} for name in ("red", "green", "blue")]
    features += [{"name": "age", "step": 0.25}, {"name": "income"}, {"name": "debt"}]
    schema = {
        "layout": {"kind": "vector", "length": 6},
        "features": features,
        "groups": [{"name": "color", "columns": [0, 1, 2]}],
    }
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    random = np.random.default_rng(2)
    rows = random.uniform(size=(20, 6)).astype(np.float32)
    rows[:, :3] = np.eye(3, dtype=np.float32)[random.integers(0, 3, size=20)]
    rows[:, 3] = np.round(rows[:, 3] * 4) / 4
    np.save(tmp_path / "inputs.npy", rows)
    return [*subject, "--schema", "schema.json"]


def probabilities(inputs):
    weights = mlp_weights()
    hidden = np.maximum(inputs @ weights["hidden1.weight"].T + weights["hidden1.bias"], 0)
    logits = hidden @ weights["output.weight"].T + weights["output.bias"]
    p = np.exp(logits - logits.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True)


@pytest.mark.parametrize("attack", ["er(steps=30)", "mse(steps=30)", "random(samples=60)", "random_sign(steps=60)"])
def test_perturbed_rows_are_valid_rows(holdfast, table, tmp_path, attack):
    holdfast("attack", *table, "--attack", attack, *ATTACK, "--valid", "--out", "out")
    clean, moved = np.load(tmp_path / "inputs.npy"), np.load(tmp_path / "out" / "perturbed.npy")
    np.testing.assert_array_equal(np.sort(moved[:, :3], axis=1), [[0, 0, 1]] * 20)
    np.testing.assert_allclose(moved[:, 3] * 4, np.round(moved[:, 3] * 4), atol=1e-6)
    assert moved[:, 3:].min() >= 0 and moved[:, 3:].max() <= 1
    assert np.linalg.norm((moved - clean).astype(np.float64), axis=1).max() <= 1.6 * (1 + 1e-6)
    assert (moved != clean).any()
    assert json.loads((tmp_path / "out" / "result.json").read_text())["threat"]["valid"] is True


def test_the_probability_stays_within_its_tolerance(holdfast, subject, tmp_path):
    rows = np.arange(20)

    def largest_change(*flags, out):
        holdfast("attack", *subject, "--attack", "random(samples=60)", *ATTACK, *flags, "--out", out)
        before = probabilities(np.load(tmp_path / "inputs.npy").astype(np.float64))
        after = probabilities(np.load(tmp_path / out / "perturbed.npy").astype(np.float64))
        return np.abs(before - after)[rows, before.argmax(1)].max()

    assert largest_change(out="free") > 0.05
    assert largest_change("--tolerance", "0.05", out="held") <= 0.05


def test_what_makes_no_sense_is_refused(holdfast, subject):
    def refused(*flags, saying):
        holdfast.fails("attack", *subject, "--attack", "er", *ATTACK, *flags, "--out", "out", saying=saying)

    refused("--valid", saying="valid rows need a schema with features")
    refused("--sides", "first", saying="sides=first: the samples are no pairs")
    refused("--sides", "left", saying="--sides")
    refused("--tolerance", "2", saying="tolerance is 2; it must be above 0 and at most 1")
    refused("--tolerance", "much", saying="--tolerance: 'much' is not a number")


def test_a_configuration_sets_the_threat(holdfast, tmp_path):
    (tmp_path / "audit.toml").write_text(
        """
        samples = 10
        attacks = ["random(samples=20)"]
        metrics = ["top_k(k=3)"]
        [threat]
        norm = "linf"
        epsilon = 1.0
        valid = true
        tolerance = 0.1
        [[dataset]]
        name = "synthetic(samples=100)"
        [[model]]
        name = "net"
        dataset = "synthetic"
        architecture = "mlp(hidden=8)"
        [model.train]
        epochs = 1
        """
    )
    holdfast("audit", "audit.toml", "--out", "run")
    row = json.loads((tmp_path / "run" / "results.json").read_text())["rows"][0]
    assert row["threat"] == {"norm": "linf", "epsilon": 1.0, "box": None, "valid": True, "tolerance": 0.1}
    assert {"projections", "non_finite", "median_margin_used"} <= set(row)


def test_a_trace_has_its_evaluations(holdfast, subject, tmp_path):
    holdfast("attack", *subject, "--attack", "er(steps=10)", *ATTACK, "--trace", "--out", "out")
    samples = json.loads((tmp_path / "out" / "result.json").read_text())["samples"]
    assert len(samples) == len(np.load(tmp_path / "inputs.npy"))
    for sample in samples:
        assert len(sample["trace"]) == len(sample["trace_evaluations"]) <= 10
        assert sample["trace_evaluations"][0] == 4
        assert sample["trace_evaluations"][-1] == sample["evaluations"]
        assert sample["trace"] == sorted(sample["trace"], reverse=True)
        assert (sample["clean_margin"] > 0 and sample["margin"] >= 1e-4) or sample["iteration"] == 0
        assert sample["non_finite"] == 0
