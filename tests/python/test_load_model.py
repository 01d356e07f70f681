"""Models that run without Python."""

import holdfast
import pytest
import torch
from conftest import make_network


def test_a_module_becomes_a_network_with_the_same_logits(network, inputs):
    network.train()
    model = holdfast.load_model(network, example=inputs)
    assert model.layers and model.name == "Sequential" and network.training
    torch.testing.assert_close(model(inputs), network(inputs))
    x = inputs.clone().requires_grad_()
    torch.testing.assert_close(
        torch.autograd.grad(model(x).sum(), x)[0], torch.autograd.grad(network(x).sum(), x)[0], rtol=1e-5, atol=1e-6
    )
    with torch.no_grad():
        assert not model(x).requires_grad


def test_the_copy_stays_when_the_module_is_trained(network, inputs):
    model = holdfast.load_model(network, inputs)
    expected = model(inputs)
    with torch.no_grad():
        network[0].weight.mul_(2)
    assert torch.equal(model(inputs), expected)


def test_a_module_with_unknown_operations_runs_as_it_is(inputs):
    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = make_network()

        def forward(self, x):
            return torch.einsum("bi,ij->bj", self.network(x), torch.eye(3))

    model = holdfast.load_model(Own(), inputs)
    assert not model.layers and "runs as it is" in model.describe()
    torch.testing.assert_close(holdfast.explain(model, inputs), holdfast.explain(Own(), inputs))


def test_a_module_that_decides_by_values_is_refused(inputs):
    class Deciding(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = make_network()

        def forward(self, x):
            return self.network(x) if x.mean() > 0.5 else -self.network(x)

    inputs[:2] += 10
    with pytest.warns(torch.jit.TracerWarning):
        holdfast.load_model(Deciding(), inputs)
    inputs[2:] -= 10
    with pytest.warns(torch.jit.TracerWarning), pytest.raises(holdfast.Error, match="decides by the values of its inputs"):
        holdfast.load_model(Deciding(), inputs)


def test_file_and_architecture(saved, inputs, network):
    model = holdfast.load_model(saved / "model.safetensors")
    torch.testing.assert_close(model(inputs), network(inputs))
    assert model.device == torch.device("cpu") and model.dtype == torch.float32
    assert repr(model).endswith("model.safetensors>")


@pytest.mark.parametrize(
    ("arguments", "saying"),
    [
        (("nowhere.pt",), "cannot read nowhere.pt"),
        (("mlpp:nowhere.safetensors",), "did you mean 'mlp'"),
        ((3,), "neither a file's path nor a torch.nn.Module"),
        ((torch.nn.Linear(2, 2),), "example=inputs"),
        (("a.pt", torch.zeros(1, 2)), "for modules only"),
    ],
)
def test_refusals(arguments, saying):
    with pytest.raises(holdfast.Error, match=saying):
        holdfast.load_model(*arguments)


def test_inputs_of_another_shape_are_refused(network, inputs, saved):
    for model in (holdfast.load_model(saved / "model.safetensors"), holdfast.load_model(network, inputs)):
        with pytest.raises(holdfast.Error, match="5"):
            holdfast.explain(model, torch.rand(3, 5))
