"""Audits from a configuration: a grid of datasets, models and attacks, gates, and going on after an interruption."""

import csv
import json
import time

import numpy as np
import pytest
import scipy.stats
from conftest import interrupt, mlp_weights, save_mlp

CONFIG = """
title = "grid"
samples = 12
attacks = ["random(samples=20)", "er(steps=10)"]
metrics = ["top_k(k=3)"]
gates = ["top_k(k=3)>=0"]
[threat]
epsilon = 0.4

[[dataset]]
name = "synthetic(samples=200)"
[[dataset]]
name = "synthetic(samples=100,linear=2)"
label = "small"
part = "train"
samples = 1000
[dataset.threat]
norm = "linf"
epsilon = 0.1

[[model]]
name = "net"
dataset = "synthetic"
architecture = "mlp(hidden=8)"
[model.train]
epochs = 2
[[model]]
name = "other"
dataset = "small"
architecture = "linear"
[model.train]
epochs = 2
"""


@pytest.fixture
def config(tmp_path):
    (tmp_path / "audit.toml").write_text(CONFIG)
    return ["audit", "audit.toml"]


def test_every_model_meets_every_attack_on_its_own_data(holdfast, config, tmp_path):
    results = holdfast.json(*config, "--out", "run", "--json")
    assert [(row["model"], row["dataset"], row["attack"], row["count"]) for row in results["rows"]] == [
        ("net", "synthetic", "random(samples=20)", 12),
        ("net", "synthetic", "er(steps=10)", 12),
        ("other", "small", "random(samples=20)", 60),
        ("other", "small", "er(steps=10)", 60),
    ]
    assert [row["threat"]["norm"] for row in results["rows"]] == ["l2", "l2", "linf", "linf"]
    assert [row["threat"]["epsilon"] for row in results["rows"]] == [0.4, 0.4, 0.1, 0.1]
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    for dataset, samples, available in zip(manifest["datasets"], [12, 60], [40, 60], strict=True):
        assert dataset["samples"] == samples
        assert dataset["excluded"] == [{"reason": "not finite", "count": 0}]
        assert f"the first {samples} of {available}" in dataset["notes"][-1]


def test_gates_of_the_file_and_of_the_flags_both_count(holdfast, config, tmp_path):
    holdfast(*config, "--out", "run")
    done = holdfast(*config, "--gate", "top_k(k=3).low>=0.99", "--gate", "top_k(k=3)<=1", "--out", "run", code=1)
    gates = json.loads((tmp_path / "run" / "results.json").read_text())["gates"]
    assert [(gate["gate"], gate["met"]) for gate in gates] == [
        ("top_k(k=3)>=0", True),
        ("top_k(k=3).low>=0.99", False),
        ("top_k(k=3)<=1", True),
    ]
    assert all(len(gate["rows"]) == 4 for gate in gates)
    assert "NOT MET top_k(k=3).low>=0.99" in done.stdout


@pytest.mark.parametrize("name", ["../net", "a/b", ".hidden", "net\\u0000other"])
def test_the_name_of_a_model_leads_to_no_other_folder(holdfast, config, tmp_path, name):
    (tmp_path / "audit.toml").write_text(CONFIG.replace('name = "net"', f'name = "{name}"'))
    holdfast.fails(*config, "--out", "run", saying="cannot name a folder")
    assert not (tmp_path / "run").exists()


def test_explainers_compare_with_training_rows(holdfast, config, tmp_path):
    """A background is needed; a configuration's datasets have one."""
    shap = ["--set", 'explainers=["gradient_shap"]', "--set", 'attacks=["random(samples=3)"]']
    results = holdfast.json(*config, *shap, "--out", "run", "--json")
    assert results["rows"] and all(row["explainer"].startswith("gradient_shap") for row in results["rows"])


def test_interrupted_between_cells_it_ends_with_the_same_bytes(holdfast, config, tmp_path):
    slow = [*config, "--set", "samples=40", "--set", 'attacks=["random(samples=20)","er(steps=400)"]', "--tile", "4"]
    process = holdfast.start(*slow, "--threads", "1", "--out", "broken")
    tiles = tmp_path / "broken" / "tiles"
    deadline = time.monotonic() + 60
    while not list((tiles / "0001").glob("*.safetensors")):  # the first cell is done, the second is not
        assert time.monotonic() < deadline and process.poll() is None, "the run ended before it could be interrupted"
        time.sleep(0.005)
    interrupt(process)
    assert process.returncode == 3
    assert len(list((tiles / "0000").iterdir())) == 10 and len(list((tiles / "0001").iterdir())) < 10
    assert not (tiles / "0002").exists()
    holdfast(*slow, "--threads", "2", "--out", "broken")
    holdfast(*slow, "--threads", "2", "--out", "whole")
    for name in ["results.json", "samples.csv", "models/net/model.safetensors", "arrays/0003/perturbed.npy"]:
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    assert not tiles.exists()


def test_a_changed_configuration_is_another_run(holdfast, config, tmp_path):
    holdfast(*config, "--out", "run")
    holdfast.fails(*config, "--set", "samples=13", "--out", "run", saying=["another run", "samples"])
    holdfast.fails(*config, "--set", "model.0.train.epochs=3", "--out", "run", saying=["another run", "epochs"])
    said = holdfast(*config, "--set", 'gates=["top_k(k=3)<=1"]', "--out", "run").stderr
    assert "complete" in said


def defined(rows, column):
    return np.array([float(row[column]) for row in rows if row[column] != ""])


def exact_interval(successes, count):
    return list(scipy.stats.binomtest(successes, count).proportion_ci(0.95, "exact"))


def test_aggregates_are_those_of_the_samples(holdfast, subject, tmp_path):
    """Every number of results.json again from samples.csv; half of the samples have maps of zeros, whose cosine is undefined."""
    weights = mlp_weights()
    weights["hidden1.weight"][:, 0] = 100  # below one half every unit is off, above it all of them are on
    weights["hidden1.bias"] = np.full(8, -50.0)
    save_mlp(tmp_path / "model.safetensors", weights)
    inputs = np.load(tmp_path / "inputs.npy")
    inputs[:10, 0], inputs[10:, 0] = 0.1, 0.9
    np.save(tmp_path / "inputs.npy", inputs)
    audit = ["--attack", "random(samples=60)", "--metric", "cosine", "--metric", "top_k(k=2)", "--epsilon", "0.5", "--box", "0,1"]
    results = holdfast.json("audit", *subject, *audit, "--out", "run", "--json")
    with open(tmp_path / "run" / "samples.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    for index, row in enumerate(results["rows"]):
        rows = [line for line in lines if line["metric"] == row["metric"]]
        values = defined(rows, "value")
        assert row["count"] == len(values) and row["undefined"] == 20 - len(values)
        assert row["mean"] == pytest.approx(values.mean()) and row["median"] == pytest.approx(np.median(values))
        flips = defined(rows, "label_flips")
        assert row["flips"]["samples"] == (flips > 0).sum() and row["flips"]["share"] == pytest.approx((flips > 0).mean())
        assert row["flips"]["interval"] == pytest.approx(exact_interval(int((flips > 0).sum()), 20))
        assert row["evaluations"] == pytest.approx(defined(rows, "evaluations").mean())
        assert row["most_evaluations"] == defined(rows, "evaluations").max()
        swaps = defined(rows, "first_swap")
        assert row["swapped_share"] == pytest.approx(len(swaps) / 20)
        assert row["swapped_interval"] == pytest.approx(exact_interval(len(swaps), 20))
        assert row["sensitivity"] == pytest.approx(np.abs(defined(rows, "confidence") - defined(rows, "confidence_after")).mean())
        low, high = row["sensitivity_interval"]
        assert low < row["sensitivity"] < high
        for above in ["adjusted", "specific", "lift"]:
            own = defined(rows, above)
            assert row[above] == pytest.approx(own.mean()) if len(own) else row[above] is None
        own, other = defined(rows, "own_effect"), defined(rows, "other_effect")
        assert len(own) == len(other)
        assert row["own_advantage"] == (pytest.approx((own.sum() - other.sum()) / own.sum()) if own.sum() > 0 else None)
        worst = json.loads((tmp_path / "run" / "arrays" / f"{index:04}" / "samples.json").read_text())
        assert [sample["value"] for sample in worst] == sorted(values)[:4], "the worst samples, worst first"
    assert results["rows"][0]["undefined"] > 0, "the case should have undefined values"
    assert results["rows"][1]["flips"]["samples"] > 0, "the case should have flips"
