"""Objectives in one's own training loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import _core
from ._arrays import class_tensor, to_tensor
from ._core import Error
from ._extend import call_text
from ._layers import loss_through_layers
from ._model import Model, evaluating
from ._question import count, labels_in_range, real
from ._schema import AnySchema, to_native

# Modules that act differently in training; those of other libraries may too.
_TWO_MODES = (
    torch.nn.modules.batchnorm._NormBase,
    torch.nn.modules.dropout._DropoutNd,
    torch.nn.RNNBase,
    torch.nn.MultiheadAttention,
    torch.nn.RReLU,
)


class Objective:
    """What a training makes small, as a function of a model and a batch. :func:`objective` gives one."""

    def __init__(self, call: Any) -> None:
        #: The canonical call.
        self.name: str = _core.canonical("objectives", call_text(call, "objectives", "objective"))

    def __call__(
        self,
        model: Any,
        x: Any,
        y: Any,
        *,
        progress: float = 1.0,
        schema: AnySchema | None = None,
        seed: int = 0,
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """The loss of a batch, to call ``backward()`` on, and its parts as numbers.

        Args:
            model: A module, a function from x to logits, or what ``load_model`` gave.
            x: A batch of inputs, ``[samples, ...]``.
            y: Their classes.
            progress: Share of the training that is done, 0 to 1: objectives that rise slowly need it.
            schema: What is known about the features.
            seed: Of what an objective draws.
        """
        inputs = to_tensor(x, "x")
        labels = class_tensor(y, inputs.shape[0] if inputs.dim() else 0, "y")
        if labels is None:
            raise Error("y: there is none; give a class for each sample")
        step = _core.TrainStep(inputs, labels, to_native(schema), count(seed, "seed"), real(progress, "progress"))
        with labels_in_range("y"):
            loss, parts = self._loss(model, inputs, step)
        return loss, {name: float(value) for name, value in parts}

    def _loss(self, model: Any, inputs: torch.Tensor, step: _core.TrainStep) -> tuple[torch.Tensor, Any]:
        if isinstance(model, Model):
            return _core.network_loss(self.name, model._native, step)
        if not callable(model):
            raise Error(f"model: a {type(model).__name__} cannot be called; give a torch.nn.Module or a function to logits")
        if not isinstance(model, torch.nn.Module):
            return _core.module_loss(self.name, _to_logits(model), _to_logits(model), False, step)
        if _core.needs_layers(self.name):
            return loss_through_layers(model, inputs, lambda native: _core.network_loss(self.name, native, step))

        def evaluated(rows: torch.Tensor) -> torch.Tensor:
            with evaluating(model):
                return _to_logits(model)(rows)

        return _core.module_loss(self.name, _to_logits(model), evaluated, _modes_differ(model), step)

    def __repr__(self) -> str:
        return f"<holdfast.objective {self.name}>"


def objective(call: Any) -> Objective:
    """An objective for a training loop of one's own.

    >>> r2et = holdfast.objective("r2et(top_k=2)")
    >>> loss, parts = r2et(model, inputs, torch.tensor([0, 1, 2, 0]), progress=0.5)
    >>> loss.requires_grad, "gap" in parts
    (True, True)

    Args:
        call: Its name with options; ``holdfast.list("objectives")`` shows them.
    """
    return Objective(call)


def _modes_differ(module: torch.nn.Module) -> bool:
    if not any(part.training for part in module.modules()):
        return False
    return any(isinstance(part, _TWO_MODES) or not type(part).__module__.startswith("torch.nn") for part in module.modules())


def _to_logits(model: Callable[..., Any]) -> Callable[[torch.Tensor], torch.Tensor]:
    def call(rows: torch.Tensor) -> torch.Tensor:
        found = model(rows)
        found = getattr(found, "logits", found)
        if not isinstance(found, torch.Tensor):
            raise Error(f"the model gave a {type(found).__name__}, not a tensor; it must give logits, [samples, classes]")
        if found.dim() != 2:
            raise Error(f"the model gave logits of shape {list(found.shape)}; [samples, classes] is expected")
        return found

    return call
