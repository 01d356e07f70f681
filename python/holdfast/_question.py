"""The arguments that explain and attack share."""

from __future__ import annotations

from typing import Any

import torch

from . import _core
from ._arrays import class_tensor, optional_tensor
from ._core import Error
from ._schema import to_schema


def count(value: Any, what: str) -> int:
    """A whole number that is not negative."""
    try:
        number = value.__index__()
    except AttributeError:
        raise Error(f"{what}: {value!r} is no whole number") from None
    if not 0 <= number < 2**63:
        raise Error(f"{what}: {number} must be at least 0")
    return number


def make_question(
    native: _core.Model,
    inputs: torch.Tensor,
    *,
    targets: Any,
    schema: Any,
    baseline: Any,
    background: Any,
    seed: int,
    threads: int,
    tile: int,
) -> _core.Question:
    samples = inputs.shape[0] if inputs.dim() else 0
    return _core.Question(
        native,
        inputs,
        class_tensor(targets, samples, "targets"),
        optional_tensor(baseline, "baseline"),
        optional_tensor(background, "background"),
        to_schema(schema),
        count(seed, "seed"),
        count(threads, "threads"),
        count(tile, "tile"),
    )
