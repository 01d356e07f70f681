"""Pipelines of scikit-learn: what comes before the network is preprocessing; what is perturbed is the raw row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from ._data import Given

# How far the affine copy of a preprocessing may be from it, of the size of its values.
_TOLERANCE = 1e-5


def is_network_pipeline(model: Any) -> bool:
    """It ends in a module of torch, its own or skorch's; other pipelines are estimators like any."""
    return hasattr(model, "named_steps") and hasattr(model, "steps") and _network_of(model.steps[-1][1]) is not None


def _network_of(last: Any) -> torch.nn.Module | None:
    return last if isinstance(last, torch.nn.Module) else getattr(last, "module_", None)


def pipeline_model(pipeline: Any, given: Given) -> Any:
    """A module where the preprocessing can be differentiated, else a function that gradients do not pass.

    Scalers, encoders of categories and what is put together of them are affine in the rows: their matrix is read off by asking,
    and held against the preprocessing itself on all samples. Anything else is called as it is.
    """
    *before, (_, last) = pipeline.steps
    network = _network_of(last)
    assert network is not None
    name = "_".join(type(step).__name__ for _, step in pipeline.steps)

    def prepare(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        values: Any = rows if given.encoding is None else given.encoding.frame(rows)
        for _, step in before:
            if step not in (None, "passthrough"):
                values = step.transform(values)
        if hasattr(values, "toarray"):
            values = values.toarray()
        return np.asarray(values, dtype=np.float64)

    affine = _affine(prepare, given)
    if affine is None:

        def logits(rows: np.ndarray[Any, Any]) -> Any:
            with torch.no_grad():
                parameter = next(iter(network.parameters()))
                return network(torch.as_tensor(prepare(rows), dtype=parameter.dtype, device=parameter.device)).cpu()

        network.eval()
        return _function(logits, name)
    return PreparedNetwork(network, *affine, name)


def _function(call: Callable[[np.ndarray[Any, Any]], Any], name: str) -> Callable[[torch.Tensor], torch.Tensor]:
    def logits(rows: torch.Tensor) -> torch.Tensor:
        found = call(rows.detach().cpu().numpy())
        return torch.as_tensor(found, dtype=rows.dtype, device=rows.device)

    logits.__name__ = logits.__qualname__ = name
    return logits


class PreparedNetwork(torch.nn.Module):
    """The network behind an affine preprocessing."""

    matrix: torch.Tensor
    shift: torch.Tensor

    def __init__(self, network: torch.nn.Module, matrix: torch.Tensor, shift: torch.Tensor, name: str) -> None:
        super().__init__()
        self.network = network
        like = next(iter(network.parameters()))
        self.register_buffer("matrix", matrix.to(like))
        self.register_buffer("shift", shift.to(like))
        self.name = name

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.network(rows.to(self.shift) @ self.matrix + self.shift)
        return found


def _affine(
    prepare: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]], given: Given
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """matrix [features, outputs] and shift [outputs]; None where the preprocessing is not affine."""
    if given.tensor.dim() != 2:
        return None
    rows = given.tensor.numpy().astype(np.float64)
    rows = rows[np.isfinite(rows).all(axis=1)]
    if not len(rows):
        return None
    base = rows[0].copy()
    probes = [base]
    groups = [] if given.encoding is None else _groups(given)
    grouped = {column for group in groups for column in group}
    scale = np.maximum(np.ptp(rows, axis=0), 1e-3)
    scale = np.where(base + scale > np.maximum(rows.max(axis=0), base), -scale, scale)  # towards values that occur
    for i in range(rows.shape[1]):
        probe = base.copy()
        if i in grouped:
            group = next(group for group in groups if i in group)
            probe[group] = 0
            probe[i] = 1
        else:
            probe[i] += scale[i]
        probes.append(probe)
    outputs = prepare(np.stack(probes).astype(np.float32).astype(np.float64))
    matrix = np.zeros((rows.shape[1], outputs.shape[1]))
    for i in range(rows.shape[1]):
        # A level's effect is that of its row: the levels of a group add up to 1.
        matrix[i] = outputs[i + 1] - outputs[0] if i in grouped else (outputs[i + 1] - outputs[0]) / scale[i]
    shift = outputs[0] - base @ matrix
    found = rows @ matrix + shift
    wanted = prepare(rows)
    if found.shape != wanted.shape or np.abs(found - wanted).max() > _TOLERANCE * (1 + np.abs(wanted).max()):
        return None
    return torch.from_numpy(matrix), torch.from_numpy(shift)


def _groups(given: Given) -> list[list[int]]:
    found, at = [], 0
    for column in given.encoding.columns:  # type: ignore[union-attr]
        if column.levels is not None:
            found.append(list(range(at, at + column.width)))
        at += column.width
    return found
