"""Several epsilons in one attack: the point found at one starts the next."""

import itertools
import json

import numpy as np
import pytest

ATTACK = ["--attack", "gauntlet(effort=light)", "--norm", "l2", "--metric", "top_k(k=2)"]


def result(folder):
    return json.loads((folder / "result.json").read_text())


def values(folder):
    return np.array([sample["metrics"]["top_k(k=2)"] for sample in result(folder)["samples"]])


def test_more_epsilon_never_finds_less(holdfast, subject, tmp_path):
    holdfast("attack", *subject, *ATTACK, "--epsilon", "0.05,0.1,0.2,0.4", "--out", "out")
    out = tmp_path / "out"
    folders = [out / "epsilon-0.05", out / "epsilon-0.1", out / "epsilon-0.2", out]
    clean = np.load(tmp_path / "inputs.npy").astype(np.float64)
    for folder, epsilon in zip(folders, [0.05, 0.1, 0.2, 0.4], strict=True):
        moved = np.load(folder / "perturbed.npy").astype(np.float64)
        assert np.linalg.norm(moved - clean, axis=1).max() <= epsilon * (1 + 1e-6)
        assert result(folder)["threat"]["epsilon"] == epsilon
    for smaller, larger in itertools.pairwise(folders):
        assert (values(larger) <= values(smaller)).all()
    assert values(out).mean() < values(folders[0]).mean()
    curve = result(out)["epsilons"]
    assert [point["epsilon"] for point in curve] == [0.05, 0.1, 0.2, 0.4]
    for point in curve:
        assert point["metric"]["mean"] == pytest.approx(values(out / point["folder"]).mean())


def test_one_epsilon_writes_what_it_always_did(holdfast, subject, tmp_path):
    holdfast("attack", *subject, *ATTACK, "--epsilon", "0.1,0.2", "--out", "out")
    holdfast("attack", *subject, *ATTACK, "--epsilon", "0.2", "--out", "out")
    assert sorted(path.name for path in (tmp_path / "out").glob("*") if path.is_dir()) == []
    assert "epsilons" not in result(tmp_path / "out")


@pytest.mark.parametrize(
    "epsilon, message",
    [
        ("0.2,0.1", "--epsilon 0.2,0.1: 0.1 does not exceed the number before it"),
        ("0.2,", "--epsilon: '' is not a number"),
    ],
)
def test_lists_that_make_no_sense_are_refused(holdfast, subject, epsilon, message):
    assert message in holdfast("attack", *subject, *ATTACK, "--epsilon", epsilon, "--out", "out", code=2).stderr


def test_an_audit_takes_one(holdfast, subject):
    run = holdfast("audit", *subject, *ATTACK, "--epsilon", "0.1,0.2", "--out", "out", code=2)
    assert "--epsilon 0.1,0.2: write one number; only attack takes several" in run.stderr
