"""Attacks through the package: inside the threat model, the prediction kept, the same as the command line's."""

import itertools
import json

import holdfast
import numpy as np
import pytest
import torch


@pytest.fixture
def moved(network, inputs, threat):
    return holdfast.attack(network, inputs, "er(steps=20)", metric="top_k(k=2)", threat=threat, trace=True)


def test_results_keep_the_contract(network, inputs, moved):
    assert moved.perturbed.shape == inputs.shape
    sizes = (moved.perturbed - inputs).norm(dim=1)
    assert sizes.max() <= 0.5 * (1 + 1e-6) and sizes.max() > 0
    torch.testing.assert_close(moved.norm, sizes.double(), rtol=1e-5, atol=1e-7)
    assert torch.equal(moved.prediction, network(inputs).argmax(1))
    assert torch.equal(moved.prediction_after, network(moved.perturbed).argmax(1))
    assert torch.equal(moved.prediction, moved.prediction_after)
    torch.testing.assert_close(moved.original_maps, holdfast.explain(network, inputs, targets=moved.targets))
    torch.testing.assert_close(moved.perturbed_maps, holdfast.explain(network, moved.perturbed, targets=moved.targets))


def test_a_result_is_shown_in_one_line(moved):
    assert repr(moved).startswith("<er(steps=20) on saliency, ") and "top_k(k=2) " in repr(moved)
    assert "\n" not in repr(moved) and len(repr(moved)) < 120


def test_an_ensemble_says_who_found_what(network, inputs, threat, moved):
    found = holdfast.attack(
        network, inputs, "gauntlet(effort=light)", explainer="input_x_gradient", metric="top_k(k=2)", threat=threat
    )
    assert {part["name"] for part in found.components} >= {"random", "gaps"}
    won = sum(part["won"] for part in found.components)
    assert won == pytest.approx(np.mean([name != "" for name in found.component]))
    assert all(part["evaluations"] > 0 and part["seconds"] > 0 for part in found.components)
    assert (found.late_gain >= 0).all()
    assert moved.components is None and moved.late_gain.isnan().all()


def test_values_are_the_metric_between_the_maps(moved):
    compared = holdfast.measure(moved.original_maps, moved.perturbed_maps, "top_k(k=2)", labels=moved.targets)
    assert torch.equal(compared.values, moved.value)
    of_the_model = ("own_advantage", "own_advantage_interval", "robust_and_specific")  # maps alone do not say these
    assert {**compared, "values": 0} == {**moved.summary, "values": 0, **dict.fromkeys(of_the_model)}
    assert moved.summary.own_advantage is not None and moved.summary.robust_and_specific is not None
    assert moved.summary.mean == pytest.approx(moved.value.mean().item()) and moved.summary.mean < 1


def test_outcomes_of_samples(moved):
    still = moved.norm == 0
    assert (moved.iteration[still] == 0).all() and (moved.iteration[~still] > 0).all()
    assert ((moved.first_swap > 0) | (moved.first_swap == -1)).all()
    assert (moved.first_swap[moved.value < 1] > 0).all()
    assert (moved.evaluations > 0).all() and (moved.label_flips <= 20).all()
    for trace, value in zip(moved.trace, moved.value.tolist(), strict=True):
        assert trace[-1] == value and all(a >= b for a, b in itertools.pairwise(trace))


def test_box_and_norm(network, inputs):
    threat = holdfast.Threat(norm="linf", epsilon=0.2, box=(0, 1))
    moved = holdfast.attack(network, inputs, "er(steps=10)", metric="top_k(k=2)", threat=threat)
    assert (moved.perturbed - inputs).abs().max() <= 0.2 * (1 + 1e-6)
    assert moved.perturbed.min() >= 0 and moved.perturbed.max() <= 1


def test_frozen_features_stay(network, inputs, threat):
    features = [{"name": f"f{i}", "low": 0, "high": 1, "frozen": i < 3} for i in range(6)]
    schema = holdfast.Schema({"layout": {"kind": "vector", "length": 6}, "features": features})
    moved = holdfast.attack(network, inputs, "er(steps=10)", metric="top_k(k=2)", threat=threat, schema=schema)
    assert torch.equal(moved.perturbed[:, :3], inputs[:, :3]) and not torch.equal(moved.perturbed, inputs)


def test_the_command_line_gives_the_same_attack(network, inputs, threat, saved, program):
    flags = ["--attack", "er(steps=20)", "--metric", "top_k(k=2)", "--norm", "l2", "--epsilon", "0.5", "--trace"]
    program("attack", "--model", "mlp:model.safetensors", "--inputs", "inputs.npy", *flags, "--out", "out")
    native = holdfast.load_model(f"mlp:{saved / 'model.safetensors'}")
    moved = holdfast.attack(native, inputs.numpy(), "er(steps=20)", metric="top_k(k=2)", threat=threat, trace=True)
    np.testing.assert_array_equal(moved.perturbed, np.load(saved / "out/perturbed.npy"))
    np.testing.assert_array_equal(moved.original_maps, np.load(saved / "out/original_attributions.npy"))
    np.testing.assert_array_equal(moved.perturbed_maps, np.load(saved / "out/perturbed_attributions.npy"))
    written = json.loads((saved / "out/result.json").read_text())
    assert written["metric"] == {key: value for key, value in dict(moved.summary).items() if key != "values"}
    for i, sample in enumerate(written["samples"]):
        assert sample["norm"] == moved.norm[i] and sample["metrics"] == {"top_k(k=2)": moved.value[i]}
        assert sample["first_swap"] == (None if moved.first_swap[i] < 0 else moved.first_swap[i])
        for key in ("prediction", "prediction_after", "label_flips", "evaluations", "iteration"):
            assert sample[key] == getattr(moved, key)[i], key
        assert sample["trace"] == moved.trace[i]


def test_a_python_module_is_attacked_as_its_native_copy_is(network, inputs, threat, moved):
    native = holdfast.attack(holdfast.load_model(network, inputs), inputs, "er(steps=20)", metric="top_k(k=2)", threat=threat)
    torch.testing.assert_close(moved.value, native.value)
    torch.testing.assert_close(moved.perturbed, native.perturbed, rtol=1e-3, atol=1e-4)


def test_numpy_in_numpy_out(network, inputs, threat):
    moved = holdfast.attack(network, inputs.numpy(), "random(samples=4)", metric="top_k(k=2)", threat=threat)
    for name in ("perturbed", "original_maps", "value", "norm", "targets", "first_swap"):
        assert isinstance(getattr(moved, name), np.ndarray), name
    assert moved.trace is None
