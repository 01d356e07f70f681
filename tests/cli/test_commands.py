"""Every command does what the design says, as files and JSON."""

import json
import re
import shlex

import numpy as np
import pytest
from conftest import ROOT, mlp_weights

ATTACK = ["--norm", "l2", "--epsilon", "0.3", "--metric", "top_k(k=2)"]


def reference_logits(inputs):
    weights = mlp_weights()
    hidden = np.maximum(inputs @ weights["hidden1.weight"].T + weights["hidden1.bias"], 0)
    return hidden @ weights["output.weight"].T + weights["output.bias"]


def reference_saliency(inputs):
    """|d p_c / dx| of the predicted class, written out for one hidden layer of ReLUs."""
    weights = mlp_weights()
    before = inputs @ weights["hidden1.weight"].T + weights["hidden1.bias"]
    logits = reference_logits(inputs)
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    rows = np.arange(len(inputs))
    chosen = logits.argmax(1)
    cotangent = -p[rows, chosen][:, None] * p
    cotangent[rows, chosen] += p[rows, chosen]
    return np.abs(((cotangent @ weights["output.weight"]) * (before > 0)) @ weights["hidden1.weight"])


def test_list_json_has_every_kind(holdfast):
    listing = holdfast.json("list", "--json")
    kinds = ["explainers", "attacks", "metrics", "measures", "objectives", "recipes", "models", "datasets", "experiments"]
    assert list(listing) == kinds
    assert "top_k" in [entry["name"] for entry in listing["metrics"]]
    for entries in listing.values():
        for entry in entries:
            assert entry["summary"] and not entry["summary"].endswith("."), entry["name"]
            for option in entry["options"]:
                assert option["help"], (entry["name"], option["name"])


def test_methods_of_every_kind_can_be_described(holdfast):
    for kind, entries in holdfast.json("list", "--json").items():
        described = holdfast.json("describe", entries[0]["name"], "--json")
        described = described if isinstance(described, list) else [described]
        assert {"kind": kind, **entries[0]} in described


def test_explain_gives_the_gradient_of_the_probability(holdfast, subject, tmp_path):
    holdfast("explain", *subject, "--explainer", "saliency", "--out", "maps.npy")
    inputs = np.load(tmp_path / "inputs.npy")
    np.testing.assert_allclose(
        np.load(tmp_path / "maps.npy"), reference_saliency(inputs.astype(np.float64)), rtol=1e-4, atol=1e-6
    )


def test_explain_draws_pictures(holdfast, subject, tmp_path):
    holdfast("explain", *subject, "--out", "maps.npy", "--png", "pictures", "--png-count", "3")
    pictures = sorted((tmp_path / "pictures").iterdir())
    assert [picture.name for picture in pictures] == ["00000.png", "00001.png", "00002.png"]
    assert pictures[0].read_bytes().startswith(b"\x89PNG")


def test_attack_stays_in_the_ball_and_keeps_the_class(holdfast, subject, tmp_path):
    holdfast("attack", *subject, "--attack", "er(steps=20)", *ATTACK, "--box", "0,1", "--out", "attacked")
    inputs, moved = np.load(tmp_path / "inputs.npy"), np.load(tmp_path / "attacked" / "perturbed.npy")
    assert np.linalg.norm((moved - inputs).astype(np.float64), axis=1).max() <= 0.3 * (1 + 1e-6)
    assert moved.min() >= 0 and moved.max() <= 1
    np.testing.assert_array_equal(reference_logits(inputs).argmax(1), reference_logits(moved.astype(np.float64)).argmax(1))
    result = json.loads((tmp_path / "attacked" / "result.json").read_text())
    assert len(result["samples"]) == 20
    assert {"prediction", "prediction_after", "norm", "metrics", "first_swap", "label_flips", "evaluations"} <= set(
        result["samples"][0]
    )

    # The metric can be computed again from the files.
    original = np.load(tmp_path / "attacked" / "original_attributions.npy")
    after = np.load(tmp_path / "attacked" / "perturbed_attributions.npy")
    overlap = [
        len(set(np.argsort(-a, kind="stable")[:2]) & set(np.argsort(-b, kind="stable")[:2])) / 2
        for a, b in zip(original, after, strict=True)
    ]
    np.testing.assert_allclose([sample["metrics"]["top_k(k=2)"] for sample in result["samples"]], overlap)
    assert result["metric"]["mean"] == pytest.approx(np.mean(overlap))


def test_measure_json_has_the_levels(holdfast, tmp_path):
    random = np.random.default_rng(0)
    np.save(tmp_path / "a.npy", random.normal(size=(30, 12)))
    np.save(tmp_path / "b.npy", random.normal(size=(30, 12)).astype(np.float32))
    result = holdfast.json("measure", "a.npy", "b.npy", "--metric", "top_k(k=3)", "--metric", "top_k(k=12)", "--json")
    assert result["samples"] == 30
    first, whole = result["metrics"]
    assert first["name"] == "top_k(k=3)" and len(first["values"]) == 30
    assert first["chance"] == pytest.approx(3 / 12)
    assert first["low"] <= first["mean"] <= first["high"]
    assert first["adjusted"] == pytest.approx(np.mean([(v - 0.25) / 0.75 for v in first["values"]]))
    # All features are in the top 12 of 12: the level is 1 and nothing can be adjusted for it.
    assert whole["mean"] == 1 and whole["chance"] == 1 and whole["adjusted"] is None and whole["specific"] is None


def test_audit_from_flags_writes_the_run_folder(holdfast, subject, tmp_path):
    table = holdfast(
        "audit",
        *subject,
        "--attack",
        "random(samples=20)",
        "--attack",
        "er(steps=10)",
        *ATTACK,
        "--gate",
        "top_k(k=2)>=0",
        "--out",
        "run",
    ).stdout
    run = tmp_path / "run"
    assert {path.name for path in run.iterdir()} == {
        "manifest.json",
        "results.json",
        "samples.csv",
        "arrays",
        "report.html",
        "junit.xml",
    }
    results = json.loads((run / "results.json").read_text())
    assert [row["attack"] for row in results["rows"]] == ["random(samples=20)", "er(steps=10)"]
    assert all(row["attack"] in table for row in results["rows"])
    assert (run / "samples.csv").read_text().count("\n") == 1 + 2 * 20
    assert 'failures="0"' in (run / "junit.xml").read_text()
    page = (run / "report.html").read_text()
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=\"http", page), "the page must open offline"


def test_a_gate_that_is_not_met_exits_with_1_and_names_the_value(holdfast, subject, tmp_path):
    done = holdfast("audit", *subject, *ATTACK, "--gate", "top_k(k=2)>1", "--out", "run", code=1)
    assert "NOT MET top_k(k=2)>1\n        mlp:model.safetensors, saliency, gauntlet(effort=light): " in done.stdout
    # Other gates may be held against the finished run.
    holdfast("audit", *subject, *ATTACK, "--gate", "top_k(k=2)>=0", "--out", "run")
    holdfast("audit", *subject, *ATTACK, "--gate", "top_k(k=2)>1", "--out", "run", code=1)
    assert 'failures="1"' in (tmp_path / "run" / "junit.xml").read_text()


def test_report_is_made_again_from_the_files(holdfast, subject, tmp_path):
    holdfast("audit", *subject, *ATTACK, "--out", "run")
    holdfast("report", "run", "--out", "again.html")
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "run" / "report.html").read_bytes()


def test_audit_counts_samples_that_are_not_finite(holdfast, subject, tmp_path):
    inputs = np.load(tmp_path / "inputs.npy")
    inputs[3, 1] = np.nan
    np.save(tmp_path / "inputs.npy", inputs)
    holdfast("audit", *subject, *ATTACK, "--out", "run")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["datasets"][0]["excluded"] == [{"reason": "not finite", "count": 1}]
    assert json.loads((tmp_path / "run" / "results.json").read_text())["rows"][0]["count"] == 19


def test_a_metric_named_twice_is_one_row(holdfast, subject, tmp_path):
    twice = ["--metric", "top_k(k=2)", "--metric", "top_k( k = 2 )", "--attack", "er(steps=5)", "--attack", "er(steps=5)"]
    results = holdfast.json("audit", *subject, "--epsilon", "0.3", *twice, "--out", "run", "--json")
    assert [row["metric"] for row in results["rows"]] == ["top_k(k=2)"]


def test_the_selection_that_was_made_is_recorded(holdfast, subject, tmp_path):
    attacks = ["--attack", "random(samples=5)", "--attack", "er(steps=5)"]
    results = holdfast.json("audit", *subject, *ATTACK, *attacks, "--select", "last", "--out", "run", "--json")
    assert [row["select"] for row in results["rows"]] == ["worst", "last"]  # random points have no last one
    result = holdfast.json("attack", *subject, *ATTACK, *attacks[:2], "--select", "last", "--out", "one", "--json")
    assert result["select"] == "worst"


def test_describe_counts_the_parameters_of_any_file(holdfast, subject, opaque_file):
    for model, kind in [("mlp:model.safetensors", "network"), (str(opaque_file), "opaque")]:
        described = holdfast.json("describe", model, "--json")
        assert described["kind"] == kind
        assert described["parameters"] == 8 * 6 + 8 + 3 * 8 + 3
    assert "float32 on the CPU" in described["description"]


def test_images_in_bytes_are_warned_of(holdfast, tmp_path):
    import torch

    images = np.random.default_rng(0).integers(0, 256, size=(4, 1, 5, 5))
    np.save(tmp_path / "bytes.npy", images.astype(np.uint8))
    np.save(tmp_path / "units.npy", (images / 255).astype(np.float32))
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(25, 3))
    torch.jit.trace(net, torch.rand(2, 1, 5, 5)).save(str(tmp_path / "net.pt"))
    warning = "pixels go from 0 to 255"
    for command in [["explain", "--out", "a.npy"], ["attack", *ATTACK, "--out", "out"], ["audit", *ATTACK, "--out", "run"]]:
        said = holdfast(*command, "--model", "net.pt", "--inputs", "bytes.npy").stderr
        assert said.count(warning) == 1, said
    assert warning not in holdfast("explain", "--model", "net.pt", "--inputs", "units.npy", "--out", "a.npy").stderr
    schema = {"layout": {"kind": "grid", "channels": 1, "height": 5, "width": 5}, "range": [0, 255]}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    meant = ["--model", "net.pt", "--inputs", "bytes.npy", "--schema", "schema.json"]
    assert warning not in holdfast("explain", *meant, "--out", "a.npy").stderr


def test_data_list_says_where_samples_come_from(holdfast, tmp_path):
    listing = holdfast("data", "list", env={"HOLDFAST_DATA": str(tmp_path)}).stdout
    lines = {line.split()[0]: line for line in listing.splitlines()[3:]}
    assert "not here" in lines["adult"]
    assert "made from another dataset" in lines["pairs"] and "http" not in lines["pairs"]
    for name in ["csv", "npy", "idx", "image_folder"]:
        assert "files of your own" in lines[name]
    assert "built in" in lines["synthetic"]


def test_data_check_has_a_line_for_each_file(holdfast):
    lines = holdfast("data", "check", "fashion_mnist").stdout.splitlines()
    assert len(lines) == 5 and all(": as published" in line for line in lines[:4]) and "is complete" in lines[4]


def test_every_example_in_a_help_text_runs(holdfast, tmp_path):
    """From a checkout's root, in which examples/ and configs/ lie."""
    for name in ["examples", "configs"]:
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    commands = [
        "list",
        "describe",
        "train",
        "explain",
        "attack",
        "measure",
        "audit",
        "report",
        "leaderboard",
        "verify",
        "data list",
        "data fetch",
        "data check",
        "data schema",
        "data export",
    ]
    for command in commands:
        text = holdfast(*command.split(), "--help").stdout
        example = re.search(r"Example:\n\s+holdfast (.*)", text).group(1)
        if command == "report":
            example = example.replace("runs/demo", "runs/audit")
        data = {"HOLDFAST_DATA": str(tmp_path / "data")} if command == "data fetch" else {}
        holdfast(*shlex.split(example), env=data)


def test_an_audit_flags_attacks_that_random_points_beat(holdfast, subject, tmp_path):
    attacks = ["--attack", "random(samples=2000)", "--attack", "er(steps=1,step_size=1e-6)", "--attack", "gauntlet(effort=light)"]
    holdfast("audit", *subject, *attacks, "--epsilon", "0.8", "--metric", "top_k(k=2)", "--out", "run")
    random, weak, strong = json.loads((tmp_path / "run" / "results.json").read_text())["rows"]
    assert random["mean"] < weak["random"]["mean"] < weak["mean"]
    assert weak["beaten_by"] == "random(samples=2000)", "the one that harms most"
    assert strong["mean"] <= random["mean"] and strong["beaten_by"] is None and random["beaten_by"] is None
    assert sum(component["won"] for component in strong["components"]) <= 1
    assert strong["late_gain"] >= 0 and "components" not in weak


def test_describe_says_who_refuses_a_model_and_why(holdfast, subject):
    refused = {entry["name"]: entry["why"] for entry in holdfast.json("describe", "mlp:model.safetensors", "--json")["refused"]}
    assert "grad_cam" in refused and "saliency" not in refused
    said = holdfast("describe", "mlp:model.safetensors").stdout
    assert "these refuse it" in said and refused["grad_cam"] in said
    holdfast.fails("explain", *subject, "--explainer", "grad_cam", "--out", "o.npy", saying=refused["grad_cam"])


def test_pairs_are_made_of_a_table_of_ones_own(holdfast, tmp_path):
    rows = "".join(f"{i / 40},{i % 7},{'ab'[i % 2]}\n" for i in range(40))
    (tmp_path / "t.csv").write_text("x,z,y\n" + rows)
    holdfast("data", "export", "pairs(of=csv(path=t.csv,label=y),count=40)", "--part", "all", "--out", "pairs")
    assert np.load(tmp_path / "pairs" / "inputs.npy").shape == (40, 2, 2)
    assert json.loads((tmp_path / "pairs" / "schema.json").read_text())["layout"]["sides"] == 2


def test_a_low_precision_is_for_gpus(holdfast, subject):
    holdfast.fails("attack", *subject, *ATTACK, "--precision", "tf32", "--out", "run", saying="tf32 is for GPUs")
