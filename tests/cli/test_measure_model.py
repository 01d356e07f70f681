"""holdfast measure --model, and measures in audits."""

import csv
import json

import numpy as np
import pytest
from conftest import mlp_weights, save_inputs, save_mlp
from scipy import stats

MEASURES = ["--measure", "thickness(k=2,endpoints=8,points=4)", "--measure", "curvature", "--epsilon", "0.5"]


def read_columns(path):
    with path.open() as lines:
        rows = list(csv.DictReader(lines))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def probabilities(x):
    weights = mlp_weights()
    hidden = np.maximum(x @ weights["hidden1.weight"].T + weights["hidden1.bias"], 0)
    logits = hidden @ weights["output.weight"].T + weights["output.bias"]
    p = np.exp(logits - logits.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True)


def finite_difference_maps(points, clean, step=1e-6):
    """|d p_c / dx| at the points, c the class predicted at the clean inputs."""
    chosen = probabilities(clean).argmax(1)[:, None]
    maps = np.empty(points.shape)
    for i, unit in enumerate(np.eye(points.shape[1])):
        there, back = probabilities(points + step * unit), probabilities(points - step * unit)
        maps[:, i] = np.abs(np.take_along_axis(there - back, chosen, 1)[:, 0]) / (2 * step)
    return maps


def save_other_model(tmp_path):
    weights = {name: value * 0.7 for name, value in mlp_weights().items()}
    save_mlp(tmp_path / "other.safetensors", weights)


def test_measures_are_the_same_as_numbers_tables_and_files(holdfast, subject, tmp_path):
    result = holdfast.json("measure", *subject, *MEASURES, "--json", "--out", "samples.csv")
    assert result["samples"] == 20 and result["explainer"] == "saliency"
    thickness, curvature = result["measures"]
    assert thickness["name"] == "thickness(k=2,endpoints=8,points=4)" and thickness["higher_is_better"]
    assert 0.5 < thickness["mean"] <= 1 and set(thickness["parts"]) == {"error", "label_flips"}
    assert curvature["median"] == pytest.approx(np.median(curvature["values"]))
    assert curvature["low"] < curvature["mean"] < curvature["high"]
    columns = read_columns(tmp_path / "samples.csv")
    np.testing.assert_array_equal(columns["curvature"], curvature["values"])
    np.testing.assert_array_equal(columns["thickness(k=2,endpoints=8,points=4): error"], thickness["parts"]["error"]["values"])
    quotient = holdfast.json("measure", *subject, *MEASURES[:-1], "1/2", "--json")["measures"]
    assert quotient == result["measures"]
    table = holdfast("measure", *subject, *MEASURES).stdout
    assert "20 samples of mlp:model.safetensors, saliency" in table and "label_flips" in table


def test_curvature_is_that_of_a_hessian_by_finite_differences(holdfast, subject, tmp_path):
    inputs = np.load(tmp_path / "inputs.npy").astype(np.float64)[:5]
    chosen = probabilities(inputs).argmax(1)[:, None]
    values = holdfast.json("measure", *subject, "--measure", "curvature", "--json")["measures"][0]["values"]
    step, unit = 1e-4, np.eye(6)
    hessian = np.zeros((5, 6, 6))
    for i in range(6):
        for j in range(6):
            for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
                p = probabilities(inputs + step * (a * unit[i] + b * unit[j]))
                hessian[:, i, j] += a * b * np.take_along_axis(p, chosen, 1)[:, 0] / (4 * step * step)
    np.testing.assert_allclose(values[:5], np.linalg.norm(hessian, axis=(1, 2)), rtol=1e-3, atol=1e-6)


def test_compare_is_a_paired_test_on_the_same_samples(holdfast, subject, tmp_path):
    save_other_model(tmp_path)
    save_inputs(tmp_path, 12)  # all 2^12 ways to exchange the two
    holdfast("measure", *subject, *MEASURES, "--out", "first.csv")
    other = ["--model", "mlp:other.safetensors", *subject[2:]]
    result = holdfast.json("measure", *other, *MEASURES, "--compare", "first.csv", "--json", "--out", "second.csv")
    comparison = result["measures"][1]["comparison"]
    first, second = read_columns(tmp_path / "first.csv"), read_columns(tmp_path / "second.csv")
    difference = second["curvature"] - first["curvature"]
    assert comparison["difference"]["mean"] == pytest.approx(difference.mean())
    expected = stats.permutation_test(
        (second["curvature"], first["curvature"]),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    assert comparison["exact"] and comparison["p_value"] == pytest.approx(expected.pvalue)
    assert comparison["corrected"] >= comparison["p_value"]
    assert "p, Holm" in holdfast("measure", *other, *MEASURES, "--compare", "first.csv").stdout


def test_an_attacks_result_as_endpoints(holdfast, subject, tmp_path):
    attack = ["--attack", "random(samples=50)", "--norm", "l2", "--epsilon", "0.5", "--metric", "top_k(k=2)"]
    holdfast("attack", *subject, *attack, "--out", "attacked")
    given = ["--measure", "thickness(k=2,from=given,points=1)", "--endpoints", "attacked/perturbed.npy"]
    measured = holdfast.json("measure", *subject, *given, "--json")["measures"][0]
    # One point: the middle of the way, where all pairs across rank 2 are counted.
    clean, moved = np.load(tmp_path / "inputs.npy"), np.load(tmp_path / "attacked" / "perturbed.npy")
    maps = finite_difference_maps(((clean + moved) / 2).astype(np.float64), clean.astype(np.float64))
    expected = []
    for original, middle in zip(finite_difference_maps(clean.astype(np.float64), clean), maps, strict=True):
        order = np.argsort(-original, kind="stable")
        expected.append(np.mean(middle[order[:2]][:, None] >= middle[order[2:]][None, :]))
    assert np.mean(expected) < 1, "a case in which nothing swaps shows nothing"
    np.testing.assert_allclose(measured["values"], expected)


def test_results_do_not_depend_on_threads(holdfast, subject):
    values = [
        holdfast.json("measure", *subject, *MEASURES, "--json", "--tile", "3", "--threads", threads)["measures"]
        for threads in ("1", "2")
    ]
    assert values[0] == values[1]


@pytest.mark.parametrize(
    ("arguments", "saying"),
    [
        ([], "--measure is required"),
        (["--measure", "thicknes"], "did you mean 'thickness'?"),
        (["--measure", "thickness(k=2)"], "epsilon"),
        (["--measure", "thickness(k=6)", "--epsilon", "1"], "the map has 6 features; choose k < 6"),
        (["--measure", "no_swap_radius(k=2)"], "relu at node"),
        (["--measure", "curvature", "--epsilon", "far"], "--epsilon: 'far' is not a number"),
        (["--measure", "curvature", "--epsilon", "-1"], "--epsilon -1: must be at least 0"),
        (["--measure", "curvature", "--metric", "top_k"], "do not go with --model"),
        (["--measure", "curvature", "--compare", "nothing.csv"], "nothing.csv"),
    ],
)
def test_bad_usage_is_one_sentence(holdfast, subject, arguments, saying):
    holdfast.fails("measure", *subject, *arguments, saying=saying)


def test_comparing_other_samples_is_refused(holdfast, subject, tmp_path):
    (tmp_path / "short.csv").write_text("sample,curvature\n0,1.5\n")
    holdfast.fails("measure", *subject, "--measure", "curvature", "--compare", "short.csv", saying="has 1 samples, but 20")
    (tmp_path / "other.csv").write_text("sample,thickness\n0,1.5\n")
    holdfast.fails("measure", *subject, "--measure", "curvature", "--compare", "other.csv", saying="curvature")


def test_audits_measure_and_gate(holdfast, subject, tmp_path):
    audit = ["audit", *subject, "--epsilon", "0.3", "--metric", "top_k(k=2)", "--attack", "er(steps=10)"]
    measures = ["--measure", "thickness(k=2,endpoints=8,points=4)", "--measure", "curvature"]
    table = holdfast(*audit, *measures, "--gate", "thickness(k=2,endpoints=8,points=4)>=0.1", "--out", "run").stdout
    assert "curvature" in table and "met     thickness" in table
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert [(row["measure"], row["explainer"]) for row in results["measures"]] == [
        ("thickness(k=2,endpoints=8,points=4)", "saliency"),
        ("curvature", "-"),
    ]
    assert results["comparisons"] == [], "one model has nobody to be compared with"
    assert {entry["measure"] for entry in results["correlations"]} <= {row["measure"] for row in results["measures"]}
    values = read_measures(tmp_path / "run" / "measures.csv", "curvature")
    assert results["measures"][1]["mean"] == pytest.approx(np.mean(values))
    alone = holdfast.json("measure", *subject, "--measure", "curvature", "--json")["measures"][0]
    np.testing.assert_allclose(values, alone["values"], rtol=1e-6)
    done = holdfast(*audit, *measures, "--gate", "curvature<=0", "--out", "run", code=1)
    assert "mlp:model.safetensors, -, curvature: " in done.stdout
    assert 'failures="1"' in (tmp_path / "run" / "junit.xml").read_text()
    holdfast.fails(*audit, "--gate", "curvature<=1", "--out", "more", saying="no row of this run has measure curvature")


def read_measures(path, measure):
    with path.open() as lines:
        return [float(row["value"]) for row in csv.DictReader(lines) if row["measure"] == measure and row["part"] == ""]


CONFIG = """
seed = 1
samples = 24
attacks = ["er(steps=10)"]
metrics = ["top_k(k=4)"]
measures = ["thickness(k=4,endpoints=8,points=4)"]
[threat]
epsilon = 0.5
[[dataset]]
name = "synthetic"
[[model]]
name = "one"
architecture = "mlp(hidden=8)"
[model.train]
epochs = 1
[[model]]
name = "two"
architecture = "mlp(hidden=8,activation=softplus,beta=1)"
[model.train]
epochs = 1
"""


def test_audits_of_several_models_compare_them(holdfast, tmp_path):
    (tmp_path / "audit.toml").write_text(CONFIG)
    table = holdfast("audit", "audit.toml", "--out", "run").stdout
    assert "models compared, same samples" in table and "one - two" in table
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    compared = results["comparisons"]
    assert [("metric" in entry, entry["models"]) for entry in compared] == [(True, ["one", "two"]), (False, ["one", "two"])]
    means = {row["model"]: row["mean"] for row in results["measures"]}
    assert compared[1]["difference"]["mean"] == pytest.approx(means["one"] - means["two"])
    assert all(entry["corrected"] >= entry["p_value"] for entry in compared)
