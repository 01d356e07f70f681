"""Lift, effective sets and own advantage against NumPy, from their definitions (docs/metrics.md)."""

import holdfast
import numpy as np
import pytest
import torch
from torch import nn

GROUP = [2, 3, 4]  # columns of one category
SCHEMA = {
    "layout": {"kind": "vector", "length": 7},
    "groups": [{"name": "colour", "columns": GROUP, "levels": ["red", "green", "blue"]}],
}
THREAT = holdfast.Threat(norm="l2", epsilon=0.4)


def rows(count, seed):
    made = np.random.default_rng(seed).uniform(0, 1, (count, 7)).astype(np.float32)
    made[:, GROUP] = np.eye(3, dtype=np.float32)[np.random.default_rng(seed + 1).integers(0, 3, count)]
    return made


def network():
    """Half of the rows are of each class, whatever the machine draws."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 2)).double()
    with torch.no_grad():
        logits = model(torch.as_tensor(rows(60, 0)).double())
        model[2].bias[0] -= (logits[:, 0] - logits[:, 1]).median()
    return model


def probabilities(model, inputs):
    with torch.no_grad():
        logits = model(torch.as_tensor(inputs, dtype=torch.float64)).numpy()
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def top(row, k):
    return frozenset(np.argsort(-np.abs(row), kind="stable")[:k].tolist())


def with_whole_groups(features):
    return sorted(set(features) | (set(GROUP) if set(features) & set(GROUP) else set()))


def attacked(model, inputs, **options):
    return holdfast.attack(model, inputs, "er(steps=40)", metric="top_k(k=3)", threat=THREAT, schema=SCHEMA, seed=5, **options)


def effect(model, row, features, put_in, target):
    mixed = row.copy()
    columns = with_whole_groups(features)
    mixed[columns] = put_in[columns]
    both = probabilities(model, np.stack([row, mixed]))
    return abs(both[0, target] - both[1, target])


def test_own_advantage_where_nothing_is_left_to_chance():
    """Two samples a class and one row of the data: there is one other sample and one row to draw."""
    model = network()
    many = rows(60, 0).astype(np.float64)
    classes = probabilities(model, many).argmax(1)
    inputs = np.concatenate([many[classes == 0][:2], many[classes == 1][:2]])
    background = rows(1, 9).astype(np.float64)
    moved = attacked(model, inputs, background=background)
    sets = [top(row, 3) for row in moved.perturbed_maps]
    own = [effect(model, inputs[i], sets[i], background[0], i // 2) for i in range(4)]
    other = [effect(model, inputs[i], sets[i ^ 1], background[0], i // 2) for i in range(4)]
    assert sum(own) > 0 and sets[0] != sets[1]
    assert moved.summary.own_advantage == pytest.approx((sum(own) - sum(other)) / sum(own), abs=1e-9)
    low, high = moved.summary.own_advantage_interval
    assert low <= moved.summary.own_advantage <= high


def test_own_advantage_over_many_samples_and_rows():
    """The mean over all other samples of the class and over all rows, which draws come near to."""
    model = network()
    inputs, background = rows(200, 1).astype(np.float64), rows(30, 2).astype(np.float64)
    moved = attacked(model, inputs, background=background)
    classes = probabilities(model, inputs).argmax(1)
    sets = [with_whole_groups(top(row, 3)) for row in moved.perturbed_maps]
    masks = np.array([[column in chosen for column in range(7)] for chosen in sets])
    clean = probabilities(model, inputs)[np.arange(200), classes]
    own, other = 0.0, 0.0
    for i in range(200):
        others = [j for j in np.flatnonzero(classes == classes[i]) if j != i]
        kinds, counts = np.unique(masks[[i, *others]], axis=0, return_counts=True)
        moves = []
        for kind in kinds:
            mixed = np.where(kind, background, inputs[i])
            moves.append(np.abs(probabilities(model, mixed)[:, classes[i]] - clean[i]).mean())
        mine = int(np.flatnonzero((kinds == masks[i]).all(1))[0])
        counts[mine] -= 1
        own += moves[mine]
        other += np.dot(counts, moves) / len(others)
    low, high = moved.summary.own_advantage_interval
    assert low < (own - other) / own < high
    assert high - low < 0.5, "the interval says something"


def test_lift_and_effective_sets():
    model = network()
    inputs = rows(40, 4).astype(np.float64)
    moved = attacked(model, inputs)
    before, after = [[top(row, 3) for row in maps] for maps in (moved.original_maps, moved.perturbed_maps)]
    values = [len(a & b) / 3 for a, b in zip(before, after, strict=True)]
    between = np.mean([len(a & b) / 3 for i, a in enumerate(before) for j, b in enumerate(before) if i != j])
    assert moved.summary.lift == pytest.approx(np.mean(values) - moved.summary.between, abs=1e-12)
    assert moved.summary.lift == pytest.approx(np.mean(values) - between, abs=0.05)  # 1,000 of 1,560 pairs
    kinds = ["broken" if a != b else tuple(sorted(a)) for a, b in zip(before, after, strict=True)]
    shares = np.unique(np.array([str(kind) for kind in kinds]), return_counts=True)[1] / len(kinds)
    assert "broken" in kinds and len(shares) > 2
    assert moved.summary.effective_sets == pytest.approx(np.exp(-(shares * np.log(shares)).sum()), rel=1e-12)
    again = holdfast.measure(moved.original_maps, moved.perturbed_maps, "top_k(k=3)", schema=SCHEMA, seed=5)
    assert again.effective_sets == moved.summary.effective_sets and again.lift == moved.summary.lift
    assert again.own_advantage is None and again.robust_and_specific is None


def test_one_explanation_for_all_is_not_specific():
    """A linear model has one set, nothing above between, and its own features are everybody's."""
    model = nn.Sequential(nn.Linear(7, 2)).double()
    found = attacked(model, rows(50, 6).astype(np.float64)).summary
    assert found.mean == 1 and found.lift == 0 and found.effective_sets == 1 and found.own_advantage == 0
    assert found.specific is None and found.robust_and_specific == "does not hold"
