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


@pytest.mark.parametrize("attack", ["er(k=2,steps=5)", "random(samples=3)", "random_sign(steps=3)"])
@pytest.mark.parametrize("metric", ["l2", "cosine"])
def test_every_attack_starts_where_it_ended_before(holdfast, subject, tmp_path, attack, metric):
    """Two epsilons that are almost one: by themselves many samples would find less at the larger."""
    flags = [*subject, "--attack", attack, "--norm", "l2", "--metric", metric]
    holdfast("attack", *flags, "--epsilon", "0.30,0.31", "--out", "both")
    holdfast("attack", *flags, "--epsilon", "0.31", "--out", "alone")
    sign = -1 if metric == "l2" else 1  # l2 is a distance

    def harm(folder):
        return sign * np.array([sample["metrics"][metric] for sample in result(tmp_path / folder)["samples"]])

    assert (harm("both") <= harm("both/epsilon-0.3") + 1e-9).all()
    components = {sample["component"] for sample in result(tmp_path / "both")["samples"]}
    if (harm("alone") > harm("both/epsilon-0.3") + 1e-9).any():
        assert "start" in components
    assert components <= {"start", result(tmp_path / "both")["attack"], None}
    assert "component" not in result(tmp_path / "alone")["samples"][0]


def test_an_audit_has_a_row_for_each(holdfast, subject, tmp_path):
    attack = ["--attack", "random(samples=3)", "--norm", "l2", "--metric", "l2", "--tile", "8"]
    results = holdfast.json("audit", *subject, *attack, "--epsilon", "1/10,0.2", "--out", "run", "--json")
    assert [row["threat"]["epsilon"] for row in results["rows"]] == [0.1, 0.2]
    holdfast("attack", *subject, *attack, "--epsilon", "0.1,0.2", "--out", "out")
    lines = [line.split(",") for line in (tmp_path / "run" / "samples.csv").read_text().splitlines()]
    header, lines = lines[0], lines[1:]
    value, epsilon = header.index("value"), header.index("epsilon")
    found = {at: np.array([float(line[value]) for line in lines if line[epsilon] == at]) for at in ["0.1", "0.2"]}
    assert (found["0.2"] >= found["0.1"]).all()
    for at, folder in [("0.1", "out/epsilon-0.1"), ("0.2", "out")]:
        expected = [sample["metrics"]["l2"] for sample in result(tmp_path / folder)["samples"]]
        np.testing.assert_allclose(found[at], expected, rtol=1e-6)
    table = holdfast("audit", *subject, *attack, "--epsilon", "1/10,0.2", "--gate", "l2<=0", "--out", "run", code=1).stdout
    assert "epsilon 0.1: " in table and "epsilon 0.2: " in table, "a gate holds for every epsilon"


def test_a_configuration_takes_several(holdfast, tmp_path):
    (tmp_path / "audit.toml").write_text(
        """
        samples = 6
        attacks = ["er(steps=3)"]
        [threat]
        norm = "linf"
        epsilon = ["2/255", 0.1]
        [[dataset]]
        name = "synthetic(samples=60)"
        [[model]]
        name = "flat"
        architecture = "linear"
        train.epochs = 1
        """
    )
    results = holdfast.json("audit", "audit.toml", "--out", "run", "--json")
    assert [row["threat"]["epsilon"] for row in results["rows"]] == [pytest.approx(2 / 255), 0.1]
    falling = ["--set", "threat.epsilon=[0.2, 0.1]", "--out", "other"]
    holdfast.fails("audit", "audit.toml", *falling, saying="threat.epsilon: 0.1 does not exceed the number before it")
