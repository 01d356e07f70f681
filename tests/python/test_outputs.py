"""What a model gives becomes logits: one number, probabilities, a value, dictionaries and objects."""

import collections
import dataclasses
import warnings

import holdfast
import pytest
import torch
from conftest import make_network, saliency

NamedPair = collections.namedtuple("NamedPair", ["features", "scores"])


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    loss: None = None


def quietly(model, inputs, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return holdfast.explain(model, inputs, **options)


def close(found, expected):
    return torch.allclose(found.double(), expected.double(), rtol=1e-4, atol=1e-7)


def two_logits(network):
    return lambda x: torch.cat([-network(x) / 2, network(x) / 2], 1)


def test_one_sigmoid_becomes_the_right_two_logits(inputs):
    network = make_network(classes=1)
    for model in (torch.nn.Sequential(network, torch.nn.Sigmoid()), lambda x: network(x).sigmoid().squeeze(1)):
        with pytest.warns(holdfast.HoldfastWarning, match="the probability of class 1"):
            found = holdfast.explain(model, inputs, return_details=True)
        assert set(found.targets.tolist()) == {0, 1}
        assert torch.equal(found.targets, (network(inputs) > 0).long().squeeze(1))
        assert close(found.maps, saliency(two_logits(network.double()), inputs))
        network.float()


def test_one_number_of_a_linear_layer_is_a_logit(inputs):
    network = make_network(classes=1)
    for model in (network, lambda x: network(x)[:, 0]):
        with pytest.warns(holdfast.HoldfastWarning, match="one logit, positive for class 1"):
            found = holdfast.explain(model, inputs, return_details=True)
        assert torch.equal(found.targets, (network(inputs) > 0).long().squeeze(1))
    said = holdfast.as_model(network, output_kind="logit")
    assert close(quietly(said, inputs), saliency(two_logits(network.double()), inputs))


def test_probabilities_are_not_put_through_a_softmax_again(network, inputs):
    expected = saliency(network.double(), inputs)
    network.float()
    ends = torch.nn.Sequential(network, torch.nn.Softmax(1))
    for model in (ends, lambda x: (lambda e: e / e.sum(1, keepdim=True))(network(x).exp())):
        with pytest.warns(holdfast.HoldfastWarning, match="a probability for each class"):
            assert close(holdfast.explain(model, inputs), expected)
    assert close(quietly(holdfast.as_model(ends, output_kind="probabilities"), inputs), expected)
    copied = holdfast.load_model(ends, example=inputs)
    assert close(holdfast.explain(copied, inputs), expected)


@pytest.mark.parametrize("kind", ["logit", "probability"])
def test_a_copy_knows_what_its_module_gives(inputs, kind):
    network = make_network(classes=1)
    module = network if kind == "logit" else torch.nn.Sequential(network, torch.nn.Sigmoid())
    copied = holdfast.load_model(module, example=inputs, output_kind=kind)
    assert copied.layers
    assert close(holdfast.explain(copied, inputs), saliency(two_logits(network.double()), inputs))


def test_a_number_between_zero_and_one_is_asked_about(inputs):
    network = make_network(classes=1)
    logistic = lambda x: 1 / (1 + (-network(x)).exp())  # noqa: E731
    with pytest.raises(holdfast.Error, match="say by the output kind whether it is a probability, a logit or a value"):
        holdfast.explain(logistic, inputs)
    said = holdfast.as_model(logistic, output_kind="probability")
    assert close(quietly(said, inputs), saliency(two_logits(network.double()), inputs))


def test_several_sigmoids_are_no_classes(inputs):
    with pytest.raises(holdfast.Error, match="a sigmoid for each of 3 labels"):
        holdfast.explain(torch.nn.Sequential(make_network(), torch.nn.Sigmoid()), inputs)


HOLDERS = {
    "tuple": (lambda z: (z, z * 2), ""),
    "dict": (lambda z: {"logits": z, "features": z * 2}, ""),
    "dict of one": (lambda z: {"anything": z}, ""),
    "named in a dict": (lambda z: {"a": z * 2, "b": z}, "b"),
    "named tuple": (lambda z: NamedPair(z * 2, z), "scores"),
    "second of a tuple": (lambda z: (z * 2, z), "1"),
    "dataclass": (lambda z: Output(z), ""),
    "object": (lambda z: type("Anything", (), {"logits": z})(), ""),
}


@pytest.mark.parametrize("case", HOLDERS)
def test_the_output_is_found_in_what_holds_it(network, inputs, case):
    hold, name = HOLDERS[case]
    model = holdfast.as_model(lambda x: hold(network(x)), output_name=name) if name else lambda x: hold(network(x))
    assert torch.equal(quietly(model, inputs), quietly(network, inputs))


def test_mistakes_about_outputs(network, inputs):
    pair = lambda x: {"a": network(x), "b": network(x)}  # noqa: E731
    with pytest.raises(holdfast.Error, match=r"a dict of a, b; say which .* output_name='a'"):
        holdfast.explain(pair, inputs)
    with pytest.raises(holdfast.Error, match="a dict without 'c'; it has a, b"):
        holdfast.explain(holdfast.as_model(pair, output_name="c"), inputs)
    with pytest.raises(holdfast.Error, match="output_kind: 'logitz' must be one of auto, logits"):
        holdfast.as_model(network, output_kind="logitz")
    with pytest.raises(holdfast.Error, match="a value is one number for each sample"):
        holdfast.explain(holdfast.as_model(network, output_kind="value"), inputs)


def test_a_value_is_explained_and_stays_within_its_tolerance(inputs, tmp_path):
    network = make_network(classes=1)
    value = holdfast.as_model(lambda x: 10 * network(x), output_kind="value")
    x = inputs.clone().requires_grad_()
    expected = torch.autograd.grad((10 * network(x)).sum(), x)[0].abs()
    assert close(quietly(value, inputs), expected)
    for explainer in ("integrated_gradients", "occlusion", "input_x_gradient"):
        assert quietly(value, inputs, explainer=explainer).shape == inputs.shape

    with pytest.raises(holdfast.Error, match="Give a tolerance, in its units"):
        holdfast.attack(value, inputs, metric="top_k(k=2)", threat=holdfast.Threat(epsilon=0.5))
    threat = holdfast.Threat(epsilon=0.5, tolerance=1.5)
    for attack in ("er(steps=20)", "gauntlet(effort=light)"):
        moved = holdfast.attack(value, inputs, attack, metric="top_k(k=2)", threat=threat)
        change = (10 * (network(moved.perturbed) - network(inputs))).abs().squeeze(1)
        assert change.max() <= 1.5 and moved.norm.max() <= 0.5 + 1e-6
        assert torch.allclose((moved.confidence_after - moved.confidence).abs(), change.double(), atol=1e-4)
    assert moved.value.mean() < 0.9
    assert holdfast.measure_model(value, inputs, "comp").values.isfinite().all()

    run = holdfast.audit(value, inputs, attack="er(steps=5)", metric="top_k(k=2)", threat=threat, out=tmp_path / "run")
    assert run.results["models"][0]["output"] == "value"
