"""holdfast.certify: the command line's answer, as arrays."""

import holdfast
import numpy as np
import pytest
import torch
from conftest import make_network


def test_certificates_are_below_the_attack(network, inputs):
    threat = holdfast.Threat(epsilon=[0.05, 0.2])
    native = holdfast.load_model(network, inputs)
    found = holdfast.certify(native, inputs, explainer="saliency(target=logit)", metric="top_k(k=2)", threat=threat)
    assert [point.epsilon for point in found.curve] == [0.05, 0.2] and found.epsilon == 0.2
    assert {part["name"] for part in found.certificates} == {"exact"}
    assert bool((found.best["values"] <= found.attacked["values"]).all())
    assert found.best["mean"] == pytest.approx(float(found.best["values"].mean()))
    assert {part["name"] for part in found.inapplicable} == {"certified_overlap", "smoothed_overlap"}
    assert "certified" in repr(found)


def test_arrays_are_what_was_given(network, inputs):
    found = holdfast.certify(
        network,
        inputs.numpy(),
        explainer="smooth_top(k=2,sigma=0.3,samples=100)",
        metric="top_k(k=2)",
        threat={"epsilon": 0.01},
        attack="random(samples=3)",
    )
    assert isinstance(found.best["values"], np.ndarray) and found.curve is None
    assert set(found.certificates[0]["parts"]) >= {"abstained", "both"}


def test_a_callable_has_no_cells(inputs):
    found = holdfast.certify(
        lambda x: torch.stack([x.sum(1), -x.sum(1)], 1),
        inputs,
        metric="top_k(k=2)",
        threat={"epsilon": 0.1},
        attack="random(samples=3)",
    )
    assert found.best is None and any("layers" in part["why"] for part in found.inapplicable)


def test_of_a_value_smoothing_alone_proves_something(inputs):
    network = make_network(classes=1)
    value = holdfast.load_model(network, inputs, output_kind="value")
    options = {"metric": "top_k(k=2)", "threat": holdfast.Threat("l2", 0.01, tolerance=0.1), "attack": "random(samples=3)"}
    found = holdfast.certify(value, inputs, explainer="saliency", **options)
    why = {part["name"]: part["why"] for part in found.inapplicable}
    sentence = "it is for classes, and Sequential gives a value; smoothed_overlap takes any model"
    assert found.best is None and why["certified_overlap"] == why["exact"] == sentence
    smoothed = holdfast.certify(value, inputs, explainer="smooth_top(k=2,sigma=0.3,samples=100)", **options)
    assert [part["name"].partition("(")[0] for part in smoothed.certificates] == ["smoothed_overlap"]
    assert bool((smoothed.best["values"] <= smoothed.attacked["values"]).all())
