"""A module's layers as the engine sees them, and which of its parameters is which."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch

from . import _core
from ._core import Error
from ._model import Model, load_model

# For each module and shape of a sample: tracing takes long, and is done once.
_KNOWN: WeakKeyDictionary[torch.nn.Module, dict[Any, Layers]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Layers:
    model: Model
    #: The network's name of a tensor, the tensor, and its name in the module.
    pairs: list[tuple[str, torch.Tensor, str]]

    def read(self, module: torch.nn.Module) -> None:
        """Takes the module's weights over."""
        state = dict(module.state_dict())
        with torch.no_grad():
            for _, tensor, name in self.pairs:
                tensor.copy_(state[name])

    def write(self, module: torch.nn.Module, trained: _core.Model) -> None:
        """Gives the weights of a trained copy of the network to the module."""
        state = module.state_dict()
        values = {key: tensor for key, tensor, _ in trained.parameters()}
        with torch.no_grad():
            for key, _, name in self.pairs:
                state[name].copy_(values[key])


def layers_of(module: torch.nn.Module, example: torch.Tensor) -> Layers:
    """The module as a network of the engine whose weights can be told apart.

    A copy with numbers of its own in every tensor is traced: what they are called in the network is read off the numbers.
    """
    shapes = tuple((name, tuple(value.shape)) for name, value in module.state_dict().items())
    key = (tuple(example.shape[1:]), example.dtype, shapes)
    known = _KNOWN.setdefault(module, {})
    if key not in known:
        known[key] = _traced(module, example)
    return known[key]


def _traced(module: torch.nn.Module, example: torch.Tensor) -> Layers:
    marked = copy.deepcopy(module).cpu().eval()
    generator = torch.Generator().manual_seed(1)
    named = {name: value for name, value in marked.state_dict().items() if value.is_floating_point()}
    with torch.no_grad():
        for value in named.values():
            value.copy_(torch.rand(value.shape, generator=generator, dtype=value.dtype) + 0.5)
    what = type(module).__name__
    model = load_model(marked, example=example.detach().cpu())
    if not model.layers:
        raise Error(f"the layers of {what} cannot be seen: {model.describe()}")
    pairs, left = [], dict(named)
    for name, tensor, trainable in model._native.parameters():
        found = next((key for key, value in left.items() if _same(value, tensor)), None)
        if found is None:
            if trainable:
                raise Error(f"{what}: {name} of its layers is no parameter of the module; its layers cannot be trained")
            continue
        left.pop(found)
        pairs.append((name, tensor, found))
    missing = [name for name in left if name in dict(module.named_parameters())]
    if missing:
        raise Error(f"{what}: parameter {missing[0]} is not in its layers as they are run; it cannot be trained through them")
    return Layers(model, pairs)


def _same(value: torch.Tensor, tensor: torch.Tensor) -> bool:
    return value.shape == tensor.shape and bool(torch.equal(value.to(tensor), tensor))


def loss_through_layers(
    module: torch.nn.Module, example: torch.Tensor, loss_of: Callable[[_core.Model], tuple[torch.Tensor, Any]]
) -> tuple[torch.Tensor, Any]:
    """The loss of the module's layers, as a function of the module's own parameters."""
    layers = layers_of(module, example)
    layers.read(module)
    loss, parts = loss_of(layers.model._native)
    own = dict(module.named_parameters())
    trained = [(tensor, own[name]) for _, tensor, name in layers.pairs if name in own and own[name].requires_grad]
    gradients = torch.autograd.grad(loss, [tensor for tensor, _ in trained], allow_unused=True)
    total = loss.detach().to(next(iter(own.values())).device)
    for (_, parameter), gradient in zip(trained, gradients, strict=True):
        if gradient is not None:  # worth nothing, but with this gradient
            total = total + (gradient.to(parameter) * (parameter - parameter.detach())).sum()
    return total, parts
