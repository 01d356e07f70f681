"""Audits from Python: the same engine, folder and bytes as the command line."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import holdfast
import numpy as np
import pytest
import torch
from conftest import make_network
from holdfast.testing import Auditor, assert_explanations_hold

pytestmark = pytest.mark.filterwarnings("ignore::holdfast.HoldfastWarning")
FAST = {"attack": "er(steps=5)", "metric": "top_k(k=2)"}


def audit(models, inputs, **more):
    return holdfast.audit(models, inputs, **{**FAST, "threat": holdfast.Threat(epsilon=0.3), "progress": False, **more})


def test_the_same_bytes_as_the_command_line(saved, inputs, program, monkeypatch):
    monkeypatch.chdir(saved)
    study = ["--attack", "er(steps=5)", "--attack", "random(samples=9)", "--metric", "top_k(k=2)", "--measure", "curvature"]
    program("audit", "--model", "mlp:model.safetensors", "--inputs", "inputs.npy", "--epsilon", "0.1,0.3", *study, "--out", "cli")
    run = audit(
        {"mlp:model.safetensors": holdfast.load_model("mlp:model.safetensors")},
        inputs,
        attack=["er(steps=5)", "random(samples=9)"],
        measure="curvature",
        threat=holdfast.Threat(epsilon=[0.1, 0.3]),
        name="inputs.npy",
        out="python",
    )
    for file in ("results.json", "samples.csv", "measures.csv", "arrays/0000/perturbed.npy", "arrays/0003/samples.json"):
        assert (saved / "cli" / file).read_bytes() == (saved / "python" / file).read_bytes(), file
    assert len(run.rows) == 4
    found = holdfast.load_run("cli")
    assert found.rows == run.rows and str(found) == str(run)


def test_frames_have_a_row_for_each_combination(network, inputs):
    run = audit(
        {"plain": network, "other": make_network(seed=3)},
        inputs,
        labels=np.zeros(20, dtype=int),
        explainer=["saliency", "input_x_gradient"],
        metric=["top_k(k=2)", "top_k(k=3)"],
        threat={"norm": "linf", "epsilon": ["1/10", 0.2]},
    )
    frame = run.to_frame()
    names = ["model", "explainer", "attack", "metric", "epsilon"]
    assert len(frame) == 16 and not frame.duplicated(names).any()
    assert frame["random_mean"].notna().all() and set(frame["norm"]) == {"linf"}
    samples = run.samples()
    assert len(samples) == 16 * 20
    means = samples.groupby(names)["value"].mean()
    for row in run.rows:
        key = (*(row[name] for name in names[:4]), row["threat"]["epsilon"])
        assert means[key] == pytest.approx(row["mean"], abs=1e-12)
    compared = run.comparisons()
    assert len(compared) == 8 and set(compared["model"]) == {"plain"} and set(compared["against"]) == {"other"}
    assert (compared["low"] <= compared["difference"]).all() and (compared["difference"] <= compared["high"]).all()


def test_gates_decide_and_can_change_on_a_finished_run(network, inputs, tmp_path):
    run = audit(network, inputs, gates=["top_k(k=2) >= 0.0"], out=tmp_path / "run")
    assert run.passed and (tmp_path / "run" / "junit.xml").exists() and run.report().exists()
    before = (tmp_path / "run" / "samples.csv").read_bytes()
    again = audit(network, inputs, gates=["top_k(k=2) >= 0.999"], out=tmp_path / "run")
    assert not again.passed and again.gates[0]["rows"][0]["value"] == run.rows[0]["mean"]
    assert (tmp_path / "run" / "samples.csv").read_bytes() == before
    assert "NOT MET" in str(again) and "failed" in again._repr_html_()


def test_a_run_is_its_models_and_samples(network, inputs, tmp_path):
    audit(network, inputs, out=tmp_path / "run")
    with pytest.raises(holdfast.Error, match="holds another run"):
        audit(network, inputs + 0.01, out=tmp_path / "run")
    with torch.no_grad():
        network[0].weight[0, 0] += 0.5
    with pytest.raises(holdfast.Error, match=r"holds another run.*restart="):
        audit(network, inputs, out=tmp_path / "run")
    with pytest.raises(holdfast.Error, match="holds another run"):  # a function has no weights: its logits tell it apart
        audit({"Sequential": lambda x: network(x) * 2}, inputs, out=tmp_path / "run")
    assert len(audit(network, inputs, out=tmp_path / "run", restart=True).rows) == 1


def test_a_changed_file_is_no_run(network, inputs, tmp_path):
    run = audit(network, inputs, out=tmp_path / "run")
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    results["rows"][0]["mean"] = 1.0
    (tmp_path / "run" / "results.json").write_text(json.dumps(results))
    with pytest.raises(holdfast.Error, match=r"results\.json"):
        holdfast.load_run(run.folder)
    with pytest.raises(holdfast.Error, match="holds no complete run"):
        holdfast.load_run(tmp_path / "nothing")


def test_warnings_are_pythons(network, inputs):
    weak = {**FAST, "attack": "er(steps=1)", "threat": holdfast.Threat(epsilon=1.0)}
    with pytest.warns(holdfast.HoldfastWarning, match="random.* harms more"):
        run = audit(network, inputs, **weak)
    assert len(run.warnings) == 1 and holdfast.load_run(run.folder).warnings == run.warnings
    with pytest.warns(holdfast.HoldfastWarning, match="harms more"):
        moved = holdfast.attack(network, inputs, **weak)
    assert moved.random["mean"] == run.rows[0]["random"]["mean"] < moved.summary.mean
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert holdfast.attack(network, inputs, random_points=False, **weak).random is None


def test_runs_are_compared_sample_by_sample(network, inputs):
    first, second = (audit({"it": model}, inputs) for model in (network, make_network(seed=3)))
    found = holdfast.compare(first, second)
    both = audit({"a": network, "b": make_network(seed=3)}, inputs).comparisons()
    assert len(found) == 1
    for key in ("difference", "low", "high", "p_value"):
        assert found[key][0] == pytest.approx(both[key][0], abs=1e-12), key
    with pytest.raises(holdfast.Error, match="no row and sample in common"):
        holdfast.compare(first, audit({"it": network}, inputs, metric="top_k(k=3)"))


def test_pictures(network, inputs):
    import matplotlib

    matplotlib.use("Agg")
    run = audit(network, inputs)
    assert run.plot().axes[0].get_xlabel() == "epsilon"
    worst = run.worst(3)
    assert len(worst) == 3 and len(worst.plot().axes) == 3
    assert worst.samples[0]["value"] == run.samples()["value"].min()
    assert repr(worst).count("\n") == 3 and "top before feature" in repr(worst)
    torch.manual_seed(0)
    images = torch.rand(4, 1, 5, 5)
    conv = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(18, 2))
    assert len(audit(conv, images).worst(2).plot().axes) == 8


def test_rows_that_are_not_finite_are_left_out(network, inputs):
    broken = inputs.clone()
    broken[3, 0] = float("nan")
    run = audit(network, broken, labels=torch.zeros(20, dtype=torch.long))
    assert run.rows[0]["count"] == 19 and 3 not in set(run.samples()["sample"])
    assert run.manifest["datasets"][0]["excluded"][0]["count"] == 1


@pytest.mark.parametrize(
    ("wrong", "saying"),
    [
        ({"attack": "err"}, "did you mean 'er'"),
        ({"attack": []}, "attack: there is none"),
        ({"gates": ["top_k(k=3) >= 0.5"]}, r"top_k\(k=3\)"),
        ({"gates": ["nonsense"]}, "nonsense"),
        ({"threat": {"epsilon": "a/b"}}, "epsilon: 'a/b' is no number"),
        ({"threat": {"epsilon": []}}, "epsilon: there is none"),
        ({"threat": {"eps": 1}}, "'eps' is not one of"),
        ({"threat": 0.3}, "is no holdfast.Threat"),
        ({"labels": np.zeros(3, dtype=int)}, "labels: has 3 classes for 20 samples"),
        ({"worst": -1}, "worst"),
        ({"metric": "top_k(k=7)"}, "7"),
    ],
)
def test_mistakes_are_found_before_any_work(network, inputs, tmp_path, wrong, saying):
    with pytest.raises(holdfast.Error, match=saying):
        audit(network, inputs, out=tmp_path / "run", **wrong)
    assert not (tmp_path / "run").exists()


def test_models_need_names(inputs):
    with pytest.raises(holdfast.Error, match="there is none"):
        audit({}, inputs)
    with pytest.raises(holdfast.Error, match="is no name"):
        audit({1: make_network()}, inputs)


def test_the_assertion_says_what_moved(network, inputs):
    with pytest.raises(AssertionError) as raised:
        assert_explanations_hold(network, inputs, threat=holdfast.Threat(epsilon=1.0), at_least=0.999, **FAST)
    text = str(raised.value)
    assert "at least 0.999 is asked for" in text and "between" in text and "worst sample" in text and "holdfast.audit(" in text
    run = assert_explanations_hold(network, inputs, threat=holdfast.Threat(epsilon=1e-7), at_least=0.999, **FAST)
    assert run.rows[0]["mean"] == 1


def test_the_fixture_asserts_gates(network, inputs, tmp_path):
    auditor = Auditor(tmp_path)
    assert auditor(network, inputs, threat=holdfast.Threat(epsilon=0.1), gates=["top_k(k=2) >= 0"], **FAST).passed
    with pytest.raises(AssertionError, match="gates were missed"):
        auditor(network, inputs, threat=holdfast.Threat(epsilon=1.0), gates=["top_k(k=2) >= 0.999"], **FAST)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run_1", "run_2"]


def test_pytest_finds_the_fixture(tmp_path):
    (tmp_path / "test_mine.py").write_text(
        textwrap.dedent("""
        import holdfast, torch
        def test_mine(holdfast_audit):
            model = torch.nn.Linear(4, 2)
            holdfast_audit(model, torch.rand(3, 4), attack="random(samples=3)", metric="top_k(k=1)",
                           threat=holdfast.Threat(epsilon=0.1), gates=["top_k(k=1) >= 0.9"])
        """)
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "holdfast._pytest_plugin", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_progress_is_shown_where_it_is_asked_for(network, inputs, capsys):
    audit(network, inputs, attack="gauntlet(effort=light)", progress=True)
    assert "audit" in capsys.readouterr().err
    audit(network, inputs)
    assert capsys.readouterr().err == ""


def test_ctrl_c_keeps_what_is_done_and_the_same_call_goes_on(network, inputs, tmp_path):
    calls = {"count": 0, "stop_at": -1}

    def model(x):
        calls["count"] += 1
        if calls["count"] == calls["stop_at"]:
            os.kill(os.getpid(), signal.SIGINT)
        return network(x)

    settings = {"attack": "er(steps=30)", "tile": 4}
    audit({"it": model}, inputs, out=tmp_path / "whole", **settings)
    cost = calls["count"]
    calls["stop_at"] = cost + cost // 2
    with pytest.raises(KeyboardInterrupt):
        audit({"it": model}, inputs, out=tmp_path / "run", **settings)
    assert list((tmp_path / "run").rglob("*.safetensors")) and not (tmp_path / "run" / "results.json").exists()
    assert calls["count"] <= calls["stop_at"] + 3, "it stops at the next step"
    before = calls["count"]
    audit({"it": model}, inputs, out=tmp_path / "run", **settings)
    assert calls["count"] - before < 0.8 * cost, "finished tiles are not computed again"
    for file in ("results.json", "samples.csv"):
        assert (tmp_path / "run" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_the_bar_beats_inside_a_long_tile(network, inputs, monkeypatch):
    from holdfast import _session

    monkeypatch.setattr(_session._Bar, "_SECONDS_BETWEEN_BEATS", 0.05)
    beats = []

    class Slow(torch.nn.Module):
        def forward(self, x):
            time.sleep(0.02)
            return network(x)

    import tqdm

    monkeypatch.setattr(tqdm.std.tqdm, "refresh", lambda self, *a, **k: beats.append(self.n))
    audit({"it": Slow()}, inputs, attack="er(steps=20)", progress=True)
    assert len({beat for beat in beats if 0 < beat < 900}) >= 3, "it moves inside the only tile"


def test_nothing_shows_a_temporary_file_or_pybinds_words(network, inputs):
    wrong = [
        lambda: audit("model.pt", inputs),
        lambda: audit(network, inputs, threads="two"),
        lambda: audit(network, object()),
        lambda: audit(network, inputs, attack=3),
        lambda: audit(network, inputs, gates=[3]),
        lambda: audit(network, inputs, gates=3),
        lambda: audit(network, inputs, select="best"),
        lambda: audit(network, inputs, select=3),
        lambda: audit(network, 3),
        lambda: holdfast.choose_threat(network, inputs, norm=3),
        lambda: holdfast.choose_threat(network, inputs, noise="much"),
        lambda: holdfast.certify(network, inputs, metric=3, threat={"epsilon": 0.1}),
        lambda: holdfast.measure_model(network, inputs, "thickness(k=2)", epsilon="far"),
        lambda: holdfast.Threat("l3"),
        lambda: holdfast.Threat("l2", {"a": 1}),
    ]
    for call in wrong:
        with pytest.raises(holdfast.Error) as raised:
            call()
        text = str(raised.value)
        assert "\n" not in text and "/tmp" not in text and "incompatible" not in text and "pybind" not in text, text


def test_large_results_lie_in_the_run_folder_and_not_in_memory(tmp_path):
    """20 MB of maps and points: while the model runs they are mapped from files without a name, which leave nothing."""
    seen = set()

    def model(x):
        with open("/proc/self/maps") as maps:
            seen.update("run" for line in maps if str(tmp_path / "run") in line)
        return torch.stack([x.flatten(1).mean(1), x.flatten(1).square().mean(1)], 1)

    images = np.random.default_rng(0).random((70, 3, 160, 160), dtype=np.float32)
    run = holdfast.audit(
        {"plain": model},
        images,
        explainer="saliency",
        attack="random(samples=1)",
        metric="cosine",
        threat=holdfast.Threat("l2", 0.5),
        out=tmp_path / "run",
    )
    assert seen == {"run"} and run.to_frame().shape[0] == 1
    assert not [path for path in (tmp_path / "run").rglob("*") if path.suffix == ".tmp"]
