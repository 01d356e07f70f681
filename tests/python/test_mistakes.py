"""What cannot be answered is refused in one sentence that says why."""

import warnings

import holdfast
import numpy as np
import pytest
import torch
from conftest import make_network

CASES = {
    "unknown explainer": (dict(explainer="salincy"), "did you mean 'saliency'"),
    "unknown option": (dict(explainer="saliency(steps=3)"), "steps"),
    "empty batch": (dict(inputs=torch.zeros(0, 6)), "empty"),
    "one sample": (dict(inputs=torch.zeros(6)), "[samples, ...]"),
    "not finite": (dict(inputs=torch.tensor([[0.0] * 6, [float("nan")] * 6])), "sample 1 holds NaN"),
    "booleans": (dict(inputs=torch.zeros(2, 6, dtype=torch.bool)), "bool"),
    "complex": (dict(inputs=torch.zeros(2, 6, dtype=torch.complex64)), "real numbers"),
    "sparse": (dict(inputs=torch.zeros(2, 6).to_sparse()), "dense"),
    "text": (dict(inputs=np.array([["a"] * 6])), "must be numbers"),
    "ragged": (dict(inputs=[[1.0], [1.0, 2.0]]), "inputs: is no array"),
    "class out of range": (dict(targets=3), "class 3 of sample 0 is not in 0 to 2"),
    "negative class": (dict(targets=[0] * 19 + [-1]), "class -1 of sample 19"),
    "too few classes": (dict(targets=[0, 1]), "has 2 classes for 20 samples"),
    "fractional classes": (dict(targets=torch.zeros(20)), "must be integers"),
    "negative seed": (dict(seed=-1), "seed: -1 must be at least 0"),
    "fractional tile": (dict(tile=1.5), "tile: 1.5 is no whole number"),
    "schema of another shape": (dict(schema={"layout": {"kind": "vector", "length": 5}}), "schema describes [5]"),
    "schema without layout": (dict(schema={}), "layout"),
    "missing schema file": (dict(schema="nowhere.json"), "cannot read nowhere.json"),
    "no schema": (dict(schema=3), "schema: is a int"),
    "no model": (dict(model=3), "cannot be called"),
    "projection without groups": (
        dict(explainer="saliency(project=groups)"),
        "no one-hot groups; name them in a schema (schema=)",
    ),
    "no baseline": (dict(explainer="integrated_gradients(baseline=given)"), "no baseline was given (baseline=)"),
    "no background": (dict(explainer="gradient_shap"), "(background=)"),
}


@pytest.mark.parametrize("case", CASES)
def test_explain_refuses(network, inputs, case):
    change, saying = CASES[case]
    arguments = {"model": network, "inputs": inputs, **change}
    with pytest.raises(holdfast.Error) as caught:
        holdfast.explain(**arguments)
    assert saying in str(caught.value) and "\n" not in str(caught.value)
    assert isinstance(caught.value, ValueError)


OUTPUTS = {
    "empty tuple": (lambda z: (), "gave a tuple, which holds no tensor"),
    "number": (lambda z: 3.0, "gave a float"),
    "nothing": (lambda z: None, "gave a NoneType"),
    "no batch": (lambda z: z[0], "shape [3] for 1 sample"),
    "a matrix each": (lambda z: z.unsqueeze(1), "at least two classes, or one number for each sample"),
    "integers": (lambda z: z.argmax(1, keepdim=True).repeat(1, 2), "floating-point"),
    "not finite": (lambda z: z / 0, "not finite"),
    "no gradient": (lambda z: z.detach(), "no gradients by its inputs"),
    "mixed samples": (lambda z: z - z.mean(0), "depends on the other samples"),
    "dropout that stays on": (lambda z: torch.nn.functional.dropout(z, 0.5), "or on random numbers"),
}


@pytest.mark.parametrize("case", OUTPUTS)
@pytest.mark.parametrize("attacked", [False, True], ids=["explain", "attack"])
def test_outputs_that_are_no_logits_are_refused(network, inputs, threat, case, attacked):
    change, saying = OUTPUTS[case]
    model = lambda x: change(network(x))  # noqa: E731
    with pytest.raises(holdfast.Error) as caught:
        if attacked:
            holdfast.attack(model, inputs, metric="top_k(k=2)", threat=threat)
        else:
            holdfast.explain(model, inputs)
    assert saying in str(caught.value) and "\n" not in str(caught.value)


def test_a_model_that_writes_to_its_inputs_only_sometimes_is_refused(network, inputs):
    def model(x):
        return network(x.mul_(2) if len(x) > 3 and not x.requires_grad else x)

    with pytest.raises(holdfast.Error, match="wrote to its inputs"):
        holdfast.explain(model, inputs)


def test_a_model_without_second_derivatives_cannot_be_attacked_by_gradient(network, inputs, threat):
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, gradient):
            return gradient * ctx.saved_tensors[0].exp()

    def model(x):
        return network(Once.apply(x))

    with pytest.raises(holdfast.Error, match="cannot be differentiated twice; use gauntlet or random"):
        holdfast.attack(model, inputs, "er", metric="top_k(k=2)", threat=threat)
    assert holdfast.attack(model, inputs, "random(samples=5)", metric="top_k(k=2)", threat=threat).norm.max() <= 0.5


def test_words_of_a_threat_are_checked_when_it_is_made():
    with pytest.raises(holdfast.Error, match="norm: 'l3' must be one of l2, linf, l1"):
        holdfast.Threat(norm="l3")
    with pytest.raises(holdfast.Error, match="sides: 'left'"):
        holdfast.Threat(sides="left")
    assert holdfast.Threat(epsilon=["8/255", 0.5]).epsilons == [8 / 255, 0.5]
    with pytest.raises(holdfast.Error, match=r"tolerance: 'a' is no number"):
        holdfast.Threat(tolerance="a")
    with pytest.raises(holdfast.Error, match="box: 3 must be two numbers"):
        holdfast.Threat(box=3)
    for wrong in (None, "8/", "1/0", [0.1, "x"], {}):
        with pytest.raises(ValueError, match="epsilon: "):
            holdfast.Threat(epsilon=wrong)


def test_an_attack_takes_one_epsilon(network, inputs):
    with pytest.raises(holdfast.Error, match=r"holdfast\.audit takes them"):
        holdfast.attack(network, inputs, threat=holdfast.Threat(epsilon=[0.1, 0.2]), metric="top_k(k=2)")


def test_bad_threats(network, inputs):
    for threat, saying in [
        (holdfast.Threat(epsilon=-1), "epsilon"),
        (holdfast.Threat(epsilon=float("nan")), "epsilon"),
        (holdfast.Threat(box=(0.4, 0.6)), "outside the box"),
    ]:
        with pytest.raises(holdfast.Error, match=saying):
            holdfast.attack(network, inputs, metric="top_k(k=2)", threat=threat)


def test_bad_choices_of_an_attack(network, inputs, threat):
    for change, saying in [
        (dict(attack="err"), "did you mean 'er'"),
        (dict(metric="top_k(k=7)"), "choose k <= 6"),
        (dict(select="best"), "worst or last"),
    ]:
        with pytest.raises(holdfast.Error, match=saying):
            holdfast.attack(network, inputs, **{"metric": "top_k(k=2)", "threat": threat, **change})


def test_measures_name_the_arguments_that_are_missing(network, inputs):
    for call, argument in [("thickness(k=2)", "epsilon="), ("thickness(k=2,from=given)", "endpoints=")]:
        with pytest.raises(holdfast.Error) as caught:
            holdfast.measure_model(network, inputs, call)
        assert f"({argument}" in str(caught.value) and "--" not in str(caught.value)


def test_only_names_of_the_package_are_visible():
    # holdfast.testing is there once it was imported.
    assert {name for name in dir(holdfast) if not name.startswith("_")} - {"testing"} == {
        name for name in holdfast.__all__ if not name.startswith("_")
    }


def test_names_that_do_not_exist():
    with pytest.raises(holdfast.Error, match="no kind 'explainer'"):
        holdfast.list("explainer")
    with pytest.raises(holdfast.Error, match="did you mean 'saliency'"):
        holdfast.describe("salency")
    with pytest.raises(AttributeError, match="among the explainers"):
        _ = holdfast.explainers.salency
    with pytest.raises(holdfast.Error, match="unexpected keyword"):
        holdfast.explainers.saliency(sign=True)


def test_what_is_said_several_times_is_warned_about_once(inputs):
    network = make_network(classes=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        holdfast.attack(network, inputs, "random(samples=3)", metric="top_k(k=2)", threat=holdfast.Threat("l2", 0.1))
    said = [str(warning.message) for warning in caught]
    assert any("taken as one logit" in one for one in said) and len(said) == len(set(said))
