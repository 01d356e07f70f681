"""Explanations with one value for each feature of a table, and attacks that switch its categories."""

import holdfast
import numpy as np
import pytest
import torch
from holdfast.testing import assert_explanations_hold

SCHEMA = {
    "layout": {"kind": "vector", "length": 6},
    "features": [
        {"name": "age", "low": -3, "high": 3, "deviation": 1.0},
        {"name": "hours", "low": -3, "high": 3, "deviation": 0.5},
        {"name": "sex=f", "step": 1},
        {"name": "sex=m", "step": 1},
        {"name": "job=a", "step": 1},
        {"name": "job=b", "step": 1},
    ],
    "groups": [
        {"name": "sex", "columns": [2, 3], "levels": ["f", "m"]},
        {"name": "job", "columns": [4, 5], "levels": ["a", "b"]},
    ],
}


@pytest.fixture(scope="module")
def subject():
    generator = torch.Generator().manual_seed(3)
    module = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    rows = torch.zeros(10, 6)
    rows[:, :2] = torch.randn(10, 2, generator=generator).clamp(-2, 2)
    for i in range(10):
        rows[i, 2 + i % 2] = 1
        rows[i, 4 + i // 2 % 2] = 1
    return module, rows


def margins(module, rows, classes):
    logits = module(rows).double()
    return (logits.gather(1, classes[:, None]) - logits.gather(1, 1 - classes[:, None])).squeeze(1)


def test_effects_are_differences_of_the_margin(subject):
    module, rows = subject
    maps = holdfast.explain(module, rows, "valid_effect", schema=SCHEMA)
    assert maps.shape == (10, 4)
    classes = module(rows).argmax(1)
    switched = rows.clone()
    switched[:, 2:4] = 1 - switched[:, 2:4]
    with torch.no_grad():
        expected = (margins(module, switched, classes) - margins(module, rows, classes)).abs()
    torch.testing.assert_close(maps[:, 2].double(), expected, rtol=1e-4, atol=1e-5)


def test_attacks_switch_as_many_categories_as_they_may(subject):
    module, rows = subject
    for switches in (0, 1):
        threat = holdfast.Threat(norm="l2", epsilon=0.2, switches=switches)
        moved = holdfast.attack(module, rows, "gauntlet(effort=light)", explainer="valid_effect", threat=threat, schema=SCHEMA)
        assert moved.metric == "top_k(k=2)" and moved.original_maps.shape == (10, 4)
        groups = [np.abs(np.asarray(moved.perturbed - rows))[:, columns].max(1) > 0 for columns in ([2, 3], [4, 5])]
        assert np.sum(groups, axis=0).max() <= switches
        assert np.linalg.norm(np.asarray(moved.perturbed - rows)[:, :2], axis=1).max() <= 0.2 * (1 + 1e-5)


def test_an_audit_names_features_of_the_table(subject, tmp_path):
    module, rows = subject
    run = holdfast.audit(
        {"plain": module},
        rows,
        explainer="valid_effect",
        attack="random(samples=20)",
        threat=holdfast.Threat(epsilon=0.2, switches=1),
        schema=SCHEMA,
        out=tmp_path / "run",
    )
    assert run.rows[0]["metric"] == "top_k(k=2)" and run.rows[0]["threat"]["switches"] == 1
    assert run.worst(1, row=0).names == ["age", "hours", "sex", "job"]
    assert '"sex"' in run.report(tmp_path / "report.html").read_text()


def test_a_gate_without_k_is_about_the_k_of_the_explainer(subject, tmp_path):
    module, rows = subject
    study = {"explainer": "valid_effect", "attack": "random(samples=20)", "schema": SCHEMA}
    threat = holdfast.Threat(epsilon=0.2, switches=1)
    run = holdfast.audit({"plain": module}, rows, threat=threat, gates=["top_k.lift>=-1"], out=tmp_path / "run", **study)
    assert run.passed and run.rows[0]["metric"] == "top_k(k=2)"
    with pytest.raises(holdfast.Error, match=r"no row of this run has metric top_k\(k=3\); the first has top_k\(k=2\)"):
        holdfast.audit({"plain": module}, rows, threat=threat, gates=["top_k(k=3)>=0"], out=tmp_path / "other", **study)
    assert not (tmp_path / "other" / "results.json").exists()


def test_maps_of_features_are_measured_with_the_schema_of_the_table(subject):
    module, rows = subject
    maps = holdfast.explain(module, rows, "valid_effect", schema=SCHEMA)
    assert holdfast.measure(maps, maps, "top_k(k=2)", schema=SCHEMA).mean == 1


def test_a_failed_assertion_shows_what_specific_must_not_be_read_without(subject):
    module, rows = subject
    threat = holdfast.Threat(epsilon=1.0, switches=2)
    with pytest.raises(AssertionError) as raised:
        assert_explanations_hold(
            module, rows, threat=threat, explainer="valid_effect", attack="random(samples=50)", schema=SCHEMA, at_least=1.0
        )
    text = str(raised.value)
    assert "lift" in text and "effective_sets" in text and "own_advantage" in text
    assert "holdfast.Threat('l2', 1.0, switches=2)" in text


def test_mistakes_are_one_sentence(subject):
    module, rows = subject
    for wrong in (-1, True):
        with pytest.raises(holdfast.Error, match=f"switches: {wrong} is no whole number of at least 0"):
            holdfast.Threat(switches=wrong)
    with pytest.raises(holdfast.Error, match="the schema has no categories; list the one-hot columns of each"):
        holdfast.attack(module, rows, "er", threat=holdfast.Threat(switches=1), metric="top_k(k=2)")
    with pytest.raises(holdfast.Error, match=r"switches: 1\.5 is no whole number"):
        holdfast.Threat(switches=1.5)
    with pytest.raises(holdfast.Error, match="choose switches <= 2"):
        holdfast.attack(module, rows, "er", threat=holdfast.Threat(switches=3), schema=SCHEMA, metric="top_k(k=2)")
    without = SCHEMA | {"features": [{"name": "age"}, *SCHEMA["features"][1:]]}
    with pytest.raises(holdfast.Error, match="feature 'age' has no deviation in the schema; add"):
        holdfast.explain(module, rows, "valid_effect", schema=without)
