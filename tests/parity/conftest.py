"""How the two tools are compared."""

import warnings

import holdfast
import pytest
import torch
from subjects import Cnn, Mlp, Probability, Residual, made, samples

# Of the largest value, in double precision.
TOLERANCE = 1e-9
# Where Captum keeps weights of its own in single precision.
SINGLE = 1e-6


class Case:
    """A network, samples and classes, and both tools' view of the network."""

    def __init__(self, network):
        self.module = network
        self.inputs = samples(network)
        with torch.no_grad():
            self.targets = network(self.inputs).argmax(1)
        self.model = holdfast.load_model(network, example=self.inputs)
        assert self.model.layers

    def ours(self, explainer, **options):
        options.setdefault("targets", self.targets)
        return holdfast.explain(self.model, self.inputs, explainer, **options)

    def output(self, target):
        """The module whose output number `targets` is what `target` explains."""
        return self.module if target == "logit" else Probability(self.module)


def assert_same(ours, theirs, tolerance=TOLERANCE):
    assert ours.shape == theirs.shape
    size = theirs.abs().max()
    assert size > 0
    difference = ((ours - theirs).abs().max() / size).item()
    assert difference < tolerance, f"relative difference {difference:.2g}"


def assert_different(ours, theirs):
    """Where the definition and Captum part, and the test says why."""
    assert ((ours - theirs).abs().max() / theirs.abs().max()).item() > 1e-3


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Captum's, about the hooks it sets
        yield


@pytest.fixture(params=[Mlp, Cnn, Residual], ids=["mlp", "cnn", "residual"])
def case(request):
    return Case(made(request.param()))


@pytest.fixture(params=[Cnn, Residual], ids=["cnn", "residual"])
def image_case(request):
    return Case(made(request.param()))
