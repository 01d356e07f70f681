"""A small network, and inputs for it."""

import os
import subprocess
from pathlib import Path

import holdfast
import numpy as np
import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("HOLDFAST_BINARY", str(ROOT / "build" / "holdfast"))


def make_network(seed=0, inputs=6, hidden=8, classes=3):
    generator = torch.Generator().manual_seed(seed)
    network = torch.nn.Sequential(torch.nn.Linear(inputs, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, classes))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return network


@pytest.fixture
def network():
    return make_network()


@pytest.fixture
def inputs():
    return torch.rand(20, 6, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def threat():
    return holdfast.Threat(norm="l2", epsilon=0.5)


def saliency(model, inputs):
    """The definition, in float64: magnitude of the gradient of the predicted class's probability."""
    x = inputs.detach().double().requires_grad_()
    probabilities = torch.softmax(model(x), 1)
    return torch.autograd.grad(probabilities.max(1).values.sum(), x)[0].abs()


@pytest.fixture
def program(tmp_path):
    """Runs the command line in a folder of its own."""

    def run(*arguments):
        done = subprocess.run([BINARY, *map(str, arguments)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def saved(tmp_path, network, inputs):
    """The network and the inputs as files that the command line reads."""
    from safetensors.numpy import save_file

    names = ["hidden1.weight", "hidden1.bias", "output.weight", "output.bias"]
    weights = {name: value.detach().numpy() for name, value in zip(names, network.parameters(), strict=True)}
    save_file(weights, tmp_path / "model.safetensors", metadata={"architecture": "mlp(inputs=6,hidden=8,classes=3)"})
    np.save(tmp_path / "inputs.npy", inputs.numpy())
    return tmp_path
