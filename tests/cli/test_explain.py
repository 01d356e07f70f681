"""`holdfast explain`: baselines, background, what it reports, pictures."""

import json

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def grouped(holdfast, subject, tmp_path):
    """The subject with a schema that makes its first three columns a one-hot group, and rows that keep to it."""
    features = np.load(tmp_path / "inputs.npy").shape[1]
    rows = np.random.default_rng(5).random((6, features), dtype=np.float32)
    rows[:, :3] = np.eye(3, dtype=np.float32)[np.arange(6) % 3]
    np.save(tmp_path / "valid.npy", rows)
    schema = {"layout": {"kind": "vector", "length": features}, "groups": [{"name": "colour", "columns": [0, 1, 2]}]}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    model = subject[subject.index("--model") + 1]
    return ["--model", model, "--inputs", "valid.npy", "--schema", "schema.json"]


def test_maps_add_up_to_what_is_reported(holdfast, subject, tmp_path):
    call = "integrated_gradients(steps=400,rule=middle,baseline=given)"
    np.save(tmp_path / "baseline.npy", np.load(tmp_path / "inputs.npy")[0])
    result = holdfast.json(
        "explain", *subject, "--explainer", call, "--baseline", "baseline.npy", "--out", "maps.npy", "--json", "--quiet"
    )
    assert result["explainer"] == "integrated_gradients(steps=400,rule=middle,baseline=given)"
    maps = np.load(tmp_path / "maps.npy")
    assert result["samples"] == len(maps) == len(result["delta"]["values"]) == len(result["targets"])
    assert result["delta"]["largest"] == max(abs(value) for value in result["delta"]["values"]) < 0.01
    assert np.abs(maps[0]).max() == 0, "the first sample is the baseline"
    assert np.abs(maps[1]).max() > 0
    assert result["gauge_share"] is None


def test_the_mean_of_the_background_is_a_baseline_too(holdfast, subject, tmp_path):
    rows = np.load(tmp_path / "inputs.npy")
    np.save(tmp_path / "rows.npy", rows[:5])
    np.save(tmp_path / "mean.npy", rows[:5].mean(0, keepdims=True))
    holdfast(
        "explain", *subject, "--explainer", "integrated_gradients(baseline=mean)", "--background", "rows.npy", "--out", "a.npy"
    )
    holdfast(
        "explain", *subject, "--explainer", "integrated_gradients(baseline=given)", "--baseline", "mean.npy", "--out", "b.npy"
    )
    np.testing.assert_allclose(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"), rtol=1e-4, atol=1e-7)


def test_gauge_share_is_reported_where_groups_are_projected(holdfast, grouped):
    done = holdfast("explain", *grouped, "--explainer", "saliency", "--out", "maps.npy", "--json")
    share = json.loads(done.stdout)["gauge_share"]
    assert 0 < share["mean"] <= share["largest"] < 1
    assert "gauge share" in done.stderr
    assert "convergence delta" in holdfast("explain", *grouped, "--explainer", "integrated_gradients", "--out", "maps.npy").stderr
    plain = holdfast.json("explain", *grouped, "--explainer", "saliency(project=none)", "--out", "maps.npy", "--json", "--quiet")
    assert plain["gauge_share"] is None and plain["delta"] is None


def test_what_is_missing_or_misshapen_is_one_sentence(holdfast, subject, tmp_path):
    explain = ["explain", *subject, "--out", "maps.npy", "--explainer"]
    holdfast.fails(*explain, "integrated_gradients(baseline=given)", saying="--baseline FILE")
    holdfast.fails(*explain, "integrated_gradients(baseline=mean)", saying="--background FILE")
    holdfast.fails(*explain, "gradient_shap", saying="--background FILE")
    holdfast.fails(*explain, "integrated_gradients(baseline=blurred)", saying="only images can be blurred")
    np.save(tmp_path / "odd.npy", np.zeros((2, 3), np.float32))
    holdfast.fails(*explain, "saliency", "--baseline", "odd.npy", saying=["odd.npy", "[2, 3]"])
    holdfast.fails(*explain, "saliency", "--background", "odd.npy", saying=["odd.npy", "[2, 3]"])
    assert not (tmp_path / "maps.npy").exists()


def test_attacks_take_baselines_and_refuse_explainers_without_gradients(holdfast, subject, tmp_path):
    np.save(tmp_path / "rows.npy", np.load(tmp_path / "inputs.npy")[:4])
    attack = ["attack", *subject, "--norm", "l2", "--epsilon", "0.3", "--metric", "top_k(k=2)", "--out", "attacked"]
    call = "integrated_gradients(steps=5,baseline=mean)"
    holdfast(*attack, "--explainer", call, "--background", "rows.npy", "--attack", "er(steps=5)")
    holdfast.fails(*attack, "--explainer", call, "--attack", "er(steps=5)", saying="--background FILE")
    holdfast.fails(*attack, "--explainer", "occlusion", "--attack", "er(steps=5)", saying="no gradient to follow")


def test_pictures_of_tables_have_as_many_bars_as_asked_for(holdfast, subject, tmp_path):
    draw = ["explain", *subject, "--out", "maps.npy", "--png-count", "1", "--png"]
    holdfast(*draw, "few", "--png-top", "2")
    holdfast(*draw, "all")
    assert Image.open(tmp_path / "few" / "00000.png").height == 2 * 22 + 24
    assert Image.open(tmp_path / "all" / "00000.png").height > 2 * 22 + 24
