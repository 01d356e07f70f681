"""holdfast certify: certificates below, an attack above, and why some do not apply; the certified column of audits."""

import csv
import json
import re

import numpy as np
import pytest
from conftest import mlp_weights, save_inputs
from safetensors.numpy import save_file

TOP_2 = ["--metric", "top_k(k=2)"]


@pytest.fixture
def subject(tmp_path):
    """Flags for a 6-8-2 network with random weights and 20 inputs in [0, 1]."""
    weights = {
        name: np.asarray(value[:2] if name.startswith("output") else value, np.float32) for name, value in mlp_weights().items()
    }
    save_file(weights, tmp_path / "model.safetensors", metadata={"architecture": "mlp(inputs=6,hidden=8,classes=2)"})
    save_inputs(tmp_path)
    return ["--model", "mlp:model.safetensors", "--inputs", "inputs.npy"]


def certify(holdfast, subject, *flags, **more):
    return json.loads(holdfast("certify", *subject, *flags, "--json", **more).stdout)


def test_the_best_certificate_is_below_the_attack(holdfast, subject):
    found = certify(holdfast, subject, *TOP_2, "--norm", "l2", "--epsilon", "0.1")
    names = [certificate["name"] for certificate in found["certificates"]]
    assert any(name.startswith("certified_overlap") for name in names) and "exact" in names
    values = np.array([certificate["values"] for certificate in found["certificates"]])
    np.testing.assert_array_equal(found["best"]["values"], values.max(0))
    assert found["best"]["mean"] == pytest.approx(np.mean(found["best"]["values"]))
    assert (np.array(found["best"]["values"]) <= found["attacked"]["values"]).all()
    assert found["best"]["mean"] < 1, "a case in which nothing moves shows nothing"
    (other,) = found["inapplicable"]
    assert other["name"] == "smoothed_overlap" and "smooth_top(k=2,sigma=0.1,of=saliency)" in other["why"]


def test_several_epsilons_give_a_curve_that_falls(holdfast, subject):
    found = certify(holdfast, subject, *TOP_2, "--epsilon", "0.05,0.1,0.4")
    assert [point["epsilon"] for point in found["curve"]] == [0.05, 0.1, 0.4]
    assert found["best"] == found["curve"][-1]["best"] and found["epsilon"] == 0.4
    for side in ("best", "attacked"):
        means = [point[side]["mean"] for point in found["curve"]]
        assert means == sorted(means, reverse=True)
    shown = holdfast("certify", *subject, *TOP_2, "--epsilon", "0.05,0.1,0.4").stdout
    assert "the best of them, sample by sample" in shown and "smoothed_overlap does not apply: " in shown
    assert re.search(r"0\.4 +at most +gauntlet\(effort=light\)", shown)


def test_linf_balls_and_smoothing(holdfast, subject):
    found = certify(holdfast, subject, *TOP_2, "--norm", "linf", "--epsilon", "0.01")
    assert (np.array(found["best"]["values"]) <= found["attacked"]["values"]).all()
    smooth = ["--explainer", "smooth_top(k=2,sigma=0.3,samples=300)", "--attack", "random(samples=5)"]
    found = certify(holdfast, subject, *TOP_2, *smooth, "--epsilon", "0.02")
    (smoothed,) = found["certificates"]
    assert smoothed["name"].startswith("smoothed_overlap(k=2") and set(smoothed["parts"]) >= {"abstained", "prediction", "both"}
    why = {other["name"]: other["why"] for other in found["inapplicable"]}
    assert set(why) == {"certified_overlap", "exact"}
    assert not any(reason.startswith(name) for name, reason in why.items()) and "of=smooth_top" not in why["certified_overlap"]
    said = holdfast("certify", *subject, *TOP_2, *smooth, "--epsilon", "0.02").stderr
    assert "600 noisy copies of each sample; 300 of them certify at most radius" in said and "radius 0.02 needs at least" in said
    far = certify(holdfast, subject, *TOP_2, *smooth, "--epsilon", "1")
    assert far["best"] is None and any("copies or a sigma of at least" in other["why"] for other in far["inapplicable"])
    curve = holdfast("certify", *subject, *TOP_2, *smooth, "--norm", "linf", "--epsilon", "0.01,1").stdout
    assert "radius=0.0244949,sigma=0.3" in curve, "0.01 times the root of 6, rounded up"
    assert "radius: of the l2 ball that holds the linf ball" in curve and "nothing is proven" in curve
    assert "at epsilon 1, smoothed_overlap does not apply" in curve and "\nexact does not apply" in curve


def test_what_has_no_bound_says_so(holdfast, subject):
    found = certify(holdfast, subject, "--metric", "spearman", "--epsilon", "0.1", "--attack", "random(samples=5)")
    assert found["best"] is None and found["certificates"] == []
    assert all("top_k" in other["why"] for other in found["inapplicable"])
    rank = certify(holdfast, subject, "--metric", "kendall", "--epsilon", "0.1", "--attack", "random(samples=5)")
    assert [certificate["name"] for certificate in rank["certificates"]] == ["exact"]
    assert -1 <= rank["best"]["mean"] <= rank["attacked"]["mean"] < 1
    assert "l1" in holdfast("certify", *subject, *TOP_2, "--norm", "l1", "--epsilon", "1", code=2).stderr


def test_audits_have_a_certified_column_and_gates_on_it(holdfast, subject, tmp_path):
    audit = ["audit", *subject, *TOP_2, "--epsilon", "0.1", "--attack", "er(steps=5,k=2)", "--attack", "exact"]
    done = holdfast(*audit, "--gate", "top_k(k=2).certified>=0", "--out", "run")
    weak, exact = json.loads((tmp_path / "run" / "results.json").read_text())["rows"]
    assert weak["certified_by"].startswith("certified_overlap(k=2") and weak["certified"] <= exact["certified"] <= exact["mean"]
    assert exact["certified_interval"][0] <= exact["certified"] <= exact["certified_interval"][1]
    assert "certified" in done.stdout
    with open(tmp_path / "run" / "samples.csv", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert all(float(row["certified"]) <= float(row["value"]) for row in rows)
    assert all(row["proven"] == "" for row in rows if row["attack"] != "exact")
    holdfast(*audit, "--gate", "top_k(k=2).certified>=1", "--out", "run", code=1)
    refused = holdfast(*audit, "--gate", "top_k(k=2).certified>=2", "--out", "other", code=2)
    assert "out of its reach" in refused.stderr
