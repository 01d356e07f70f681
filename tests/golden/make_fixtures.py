"""Writes fixtures/: small models and inputs for methods that the files in examples/ do not suit.

The files are committed, so that golden values do not depend on the versions of NumPy and torch that wrote them.
Run this only to add a file, and make all golden values again afterwards.
"""

import json
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file

FOLDER = Path(__file__).resolve().parent / "fixtures"
RANDOM = np.random.RandomState(0)
FEATURES = 15  # of examples/inputs.npy


def normal(*shape, scale=1.0):
    return (scale * RANDOM.normal(size=shape)).astype(np.float32)


def uniform(*shape):
    return RANDOM.uniform(size=shape).astype(np.float32)


def save_softplus():
    """A smooth network for the example inputs: bounds of curvature exist for it."""
    weights = {
        "hidden1.weight": normal(16, FEATURES, scale=0.7),
        "hidden1.bias": normal(16, scale=0.3),
        "output.weight": normal(2, 16, scale=0.7),
        "output.bias": normal(2, scale=0.3),
    }
    architecture = f"mlp(inputs={FEATURES},hidden=16,classes=2,activation=softplus,beta=2)"
    save_file(weights, FOLDER / "softplus.safetensors", metadata={"architecture": architecture})


class Opaque(torch.nn.Module):
    """A network for the example inputs with an operation that is not imported, so that its layers stay unknown."""

    def __init__(self):
        super().__init__()
        self.hidden = torch.nn.Parameter(torch.from_numpy(normal(12, FEATURES)))
        self.output = torch.nn.Parameter(torch.from_numpy(normal(2, 12)))

    def forward(self, x):
        return torch.einsum("bi,oi->bo", torch.relu(torch.einsum("bi,oi->bo", x, self.hidden)), self.output)


def save_image():
    """A convolutional network of three classes for images of 10 x 10 pixels, and images."""
    network = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(4, 6, 3),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(54, 3),
    )
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.from_numpy(normal(*parameter.shape, scale=0.4)))
    torch.jit.script(network.eval()).save(str(FOLDER / "image.pt"))
    np.save(FOLDER / "images.npy", uniform(12, 1, 10, 10))
    np.save(FOLDER / "image_maps.npy", normal(12, 10, 10))
    np.save(FOLDER / "other_image_maps.npy", normal(12, 10, 10))


def save_graphs():
    """A network for pairs of graphs of 6 nodes, and pairs without negative weights."""
    weights = {
        "conv1.weight": normal(5, 6),
        "conv1.bias": normal(5, scale=0.3),
        "conv2.weight": normal(5, 5),
        "conv2.bias": normal(5, scale=0.3),
        "output.weight": normal(2, 5),
        "output.bias": normal(2, scale=0.3),
    }
    save_file(weights, FOLDER / "graphs.safetensors", metadata={"architecture": "siamese_gcn(nodes=6,hidden=5,classes=2)"})
    np.save(FOLDER / "graphs.npy", uniform(10, 2, FEATURES))
    np.save(FOLDER / "graph_labels.npy", np.arange(10) % 2)
    schema = {"layout": {"kind": "graph", "nodes": 6, "sides": 2}, "classes": ["same", "different"]}
    (FOLDER / "graphs.json").write_text(json.dumps(schema) + "\n")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    save_softplus()
    torch.jit.script(Opaque()).save(str(FOLDER / "opaque.pt"))
    save_image()
    save_graphs()
    inputs = np.load(FOLDER.parents[2] / "examples" / "inputs.npy")
    np.save(FOLDER / "endpoints.npy", inputs + normal(*inputs.shape, scale=0.1))
