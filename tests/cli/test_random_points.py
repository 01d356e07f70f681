"""Random points beside every attack: what they find is shown, and an attack that finds less is flagged."""

import json
import time

import numpy as np
import pytest
from conftest import interrupt, save_inputs

WEAK = ["--attack", "er(k=2,steps=1,step_size=0.0001)", "--epsilon", "0.5", "--metric", "top_k(k=2)"]
STRONG = ["--attack", "gauntlet(effort=light)", "--epsilon", "0.5", "--metric", "top_k(k=2)"]


def mean(folder):
    result = json.loads((folder / "result.json").read_text())
    return np.mean([sample["metrics"]["top_k(k=2)"] for sample in result["samples"]])


def test_attack_shows_random_points_and_says_when_they_win(holdfast, subject, tmp_path):
    done = holdfast("attack", *subject, *WEAK, "--out", "weak")
    result = json.loads((tmp_path / "weak" / "result.json").read_text())
    call = "random(from=sphere)"
    assert result["random"]["attack"] == call and result["random"]["samples"] == 300
    assert result["beaten_by"] == call
    assert f"after {call}" in done.stdout and f"{call} harms more" in done.stderr
    assert "points of another class met on the way, never kept: in " in done.stdout
    holdfast("attack", *subject, "--attack", call, *WEAK[2:], "--out", "random")
    assert result["random"]["mean"] == pytest.approx(mean(tmp_path / "random"))
    assert json.loads((tmp_path / "random" / "result.json").read_text())["random"] is None

    done = holdfast("attack", *subject, *STRONG, "--out", "strong")
    result = json.loads((tmp_path / "strong" / "result.json").read_text())
    assert result["beaten_by"] is None and "harms more" not in done.stderr
    assert result["metric"]["mean"] <= result["random"]["mean"]
    assert isinstance(result["converged"], bool) and result["late_gain"] >= 0
    assert ("converged" if result["converged"] else "more effort") in done.stdout


def test_audit_does_too(holdfast, subject, tmp_path):
    done = holdfast("audit", *subject, *WEAK, *STRONG[:2], "--out", "run")
    weak, strong = json.loads((tmp_path / "run" / "results.json").read_text())["rows"]
    assert weak["beaten_by"] == "random(from=sphere)" and strong["beaten_by"] is None
    assert weak["random"] == strong["random"]
    assert f"{weak['attack']} on mlp:model.safetensors, top_k(k=2): {weak['beaten_by']} harms more" in done.stdout
    assert weak["verified"]["largest_distance"] <= 0.5 * (1 + 1e-6) and weak["verified"]["in_double"]
    times = json.loads((tmp_path / "run" / "manifest.json").read_text())["components"]
    assert [time["name"] for time in times] == [component["name"] for component in strong["components"]]
    assert all(time["row"] == 1 and time["seconds"] >= 0 for time in times)


def test_costly_explanations_get_fewer_points(holdfast, subject, tmp_path):
    attack = ["--explainer", "integrated_gradients(steps=20)", "--attack", "er(steps=40)", "--epsilon", "0.1"]
    holdfast("attack", *subject, *attack, "--metric", "top_k(k=2)", "--out", "out")
    assert json.loads((tmp_path / "out" / "result.json").read_text())["random"]["samples"] == (1 + 3 * 40) // 10


def test_an_attack_without_a_gradient_says_so(holdfast, subject, tmp_path):
    still = ["--explainer", "saliency(target=logit)", "--attack", "er(steps=3)", "--epsilon", "0.1", "--metric", "top_k(k=2)"]
    done = holdfast("attack", *subject, *still, "--out", "out")
    assert "er(steps=3): no gradient to follow in 20 of 20 samples (0 not finite)" in done.stderr
    done = holdfast("audit", *subject, *still, "--out", "run")
    assert "no gradient to follow in 20 samples (0 not finite)" in done.stdout
    row = json.loads((tmp_path / "run" / "results.json").read_text())["rows"][0]
    assert row["no_gradient"] == {"samples": 20, "not_finite": 0}


def test_an_interrupted_audit_with_undefined_values_goes_on(holdfast, subject, tmp_path):
    """The metric of a sample of zeros is undefined, and so is its late gain."""
    save_inputs(tmp_path, 60)
    inputs = np.load(tmp_path / "inputs.npy")
    inputs[::2] = 0
    np.save(tmp_path / "inputs.npy", inputs)
    run = ["audit", *subject, "--explainer", "input_x_gradient", "--attack", "gauntlet", "--epsilon", "0.3"]
    run += ["--metric", "cosine", "--tile", "2", "--threads", "1"]
    process = holdfast.start(*run, "--out", "broken")
    tiles = tmp_path / "broken" / "tiles"
    deadline = time.monotonic() + 60
    while len(list(tiles.glob("*/*.safetensors"))) < 2:
        assert time.monotonic() < deadline and process.poll() is None, "the run ended before it could be interrupted"
        time.sleep(0.01)
    interrupt(process)
    holdfast(*run, "--out", "broken")
    row = json.loads((tmp_path / "broken" / "results.json").read_text())["rows"][0]
    assert row["undefined"] == 30 and row["late_gain"] >= 0 and isinstance(row["converged"], bool)
