"""Prints what the Python package finds for every method, on a module and on its native copy, as JSON."""

import json
import sys

import holdfast
import numpy as np
import torch
from safetensors.torch import load_file
from shorten import shorten, shorten_array

SMALL = {"samples": 5, "steps": 5, "effort": "light", "endpoints": 4, "points": 3, "random": 1}  # options that make methods fast
TOP = 4
FEW = 6  # samples that are attacked and measured
THREAT = holdfast.Threat(norm="l2", epsilon=0.5, box=(-1, 2))
NARROW_THREAT = holdfast.Threat(norm="linf", epsilon=0.3, valid=True, tolerance=0.2)
GRAPH_THREAT = holdfast.Threat(norm="l1", epsilon=1.5, sides="first", negative_weights=True)
METRIC = f"top_k(k={TOP})"
ATTACKS_OF_MODULES = ("random", "er", "gauntlet", "mass_center")


def load_network():
    network = torch.nn.Sequential(torch.nn.Linear(15, 16), torch.nn.Softplus(beta=2), torch.nn.Linear(16, 2))
    weights = load_file("fixtures/softplus.safetensors")
    for layer, name in ((network[0], "hidden1"), (network[2], "output")):
        layer.weight.data, layer.bias.data = weights[f"{name}.weight"], weights[f"{name}.bias"]
    return network


def call_of(kind, name):
    """The method with options that make it fast, and a k that suits 15 features."""
    options = {option["name"] for option in holdfast.describe(name)["options"]}
    small = {key: value for key, value in SMALL.items() if key in options}
    if "k" in options and kind in ("metrics", "measures"):
        small["k"] = TOP
    return f"{name}({','.join(f'{key}={value}' for key, value in small.items())})" if small else name


def short(value):
    """Tensors and arrays in short; records as objects."""
    if isinstance(value, torch.Tensor | np.ndarray):
        return shorten_array(torch.as_tensor(value).detach().numpy())
    if hasattr(value, "keys"):
        return {key: short(value[key]) for key in value.keys()}  # noqa: SIM118  (a record is no mapping)
    if hasattr(value, "__dataclass_fields__"):
        fields = {key: short(getattr(value, key)) for key in value.__dataclass_fields__}
        fields.pop("random", None)  # not asked for
        if columns := fields.pop("columns", None):  # an attack's columns are attributes too
            fields.update(columns, targets=short(value.targets))
        return fields
    return shorten(value)


class Subject:
    """A model with inputs, and what is asked about it."""

    def __init__(self, model, inputs, threads):
        self.model, self.inputs = model, inputs
        self.common = {"schema": "examples/schema.json", "background": inputs, "threads": threads}

    def explain(self, call):
        return holdfast.explain(self.model, self.inputs, call, return_details=True, **self.common)

    def attack(self, call, **options):
        return holdfast.attack(self.model, self.inputs[:FEW], call, metric=METRIC, random_points=False, **options, **self.common)

    def plain_attack(self, call):
        return self.attack(call, threat=THREAT, trace=call.startswith("er"))

    def measure(self, call):
        return holdfast.measure_model(self.model, self.inputs[:FEW], call, epsilon=0.3, **self.common)


def answers(ask, kind, names=None):
    """What is found for each method, or that it was refused."""
    found = {}
    for name in names or holdfast.list(kind):
        try:
            found[name] = short(ask(call_of(kind, name)))
        except holdfast.Error:
            found[name] = "refused"
    return found


def all_answers(subject, attacks=None):
    return {
        "explain": answers(subject.explain, "explainers"),
        "attack": answers(subject.plain_attack, "attacks", attacks),
        "measure_model": answers(subject.measure, "measures"),
    }


def similarities():
    maps, other = np.load("examples/original_attributions.npy"), np.load("examples/perturbed_attributions.npy")
    metrics = [call_of("metrics", name) for name in holdfast.list("metrics")]
    return {record.name: short(record) for record in holdfast.measure(maps, other, metrics)}


def main():
    threads = int(sys.argv[1])
    torch.set_num_threads(1)
    network = load_network()
    inputs = torch.from_numpy(np.load("examples/inputs.npy"))[:20]
    module = Subject(network, inputs, threads)
    native = Subject(holdfast.load_model(network, example=inputs), inputs, threads)
    arrays = Subject(native.model, inputs.numpy(), threads)
    found = {
        "module": all_answers(module, ATTACKS_OF_MODULES),
        "native": all_answers(native),
        "measure": similarities(),
        "last iterate": short(arrays.attack("er(steps=5)", threat=NARROW_THREAT, select="last", targets=1, seed=2)),
    }
    graphs = Subject(
        holdfast.load_model("siamese_gcn:fixtures/graphs.safetensors"), torch.from_numpy(np.load("fixtures/graphs.npy")), threads
    )
    graphs.common = {"threads": threads}
    found["graphs"] = short(graphs.attack("random(samples=10)", threat=GRAPH_THREAT))
    print(json.dumps(found))


main()
