"""Models: what the caller has, ready for the engine, and left as it was."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch

from . import _core
from ._core import Error


class Model:
    """A model that runs without Python: made by :func:`load_model`, taken wherever a model is.

    Calling it gives logits, differentiable by the inputs.
    """

    def __init__(self, native: _core.Model) -> None:
        self._native = native

    def __call__(self, inputs: torch.Tensor) -> torch.Tensor:
        return self._native.logits(inputs)

    @property
    def name(self) -> str:
        """How it was asked for."""
        return self._native.name

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self._native.device

    @property
    def dtype(self) -> torch.dtype:
        """The precision it computes in."""
        return self._native.dtype

    @property
    def layers(self) -> bool:
        """Whether its layers are known, so that surrogates and layer-wise explainers work on it."""
        return self._native.layers

    def describe(self) -> str:
        """One paragraph: its kind, its operations, what it cannot do and why."""
        return self._native.describe()

    def __repr__(self) -> str:
        return f"<holdfast.Model {self.name}>"


AnyModel: TypeAlias = "Model | torch.nn.Module | Callable[[torch.Tensor], torch.Tensor]"


def load_model(model: str | os.PathLike[str], *, device: str | torch.device = "cpu") -> Model:
    """Loads ``ARCHITECTURE:weights.safetensors``, ``ARCHITECTURE:pretrained`` or a TorchScript file.

    >>> holdfast.load_model("mlp:examples/model.safetensors")
    <holdfast.Model mlp:examples/model.safetensors>
    """
    return Model(_core.load_model(os.fspath(model), torch.device(device)))


@contextmanager
def _evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode, and afterwards every part of the module back in the mode it was in."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


def _computes_in(module: torch.nn.Module, inputs: torch.Tensor) -> tuple[torch.device, torch.dtype]:
    for tensor in itertools.chain(module.parameters(), module.buffers()):
        if tensor.is_floating_point():
            return tensor.device, tensor.dtype
    return _of_inputs(inputs)


def _of_inputs(inputs: torch.Tensor) -> tuple[torch.device, torch.dtype]:
    return inputs.device, torch.float64 if inputs.dtype == torch.float64 else torch.float32


@contextmanager
def prepared(model: Any, inputs: torch.Tensor) -> Iterator[_core.Model]:
    """The model as the engine takes it."""
    if isinstance(model, Model):
        yield model._native
    elif isinstance(model, torch.nn.Module):
        with _evaluating(model):
            yield _core.python_model(model, *_computes_in(model, inputs), type(model).__name__)
    elif callable(model):
        name = getattr(model, "__qualname__", type(model).__name__)
        yield _core.python_model(model, *_of_inputs(inputs), name)
    else:
        raise Error(f"model: a {type(model).__name__} cannot be called; give a torch.nn.Module or a function to logits")
