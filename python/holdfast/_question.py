"""The arguments that explain and attack share."""

from __future__ import annotations

from typing import Any

import torch

from . import _core
from ._arrays import class_tensor, optional_tensor
from ._core import Error
from ._schema import to_native


def count(value: Any, what: str, limit: int = 2**63) -> int:
    """A whole number that is not negative."""
    try:
        number = value.__index__()
    except AttributeError:
        raise Error(f"{what}: {value!r} is no whole number") from None
    if not 0 <= number < limit:
        raise Error(f"{what}: {number} must be at least 0 and less than {limit}")
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
    question = _core.Question()
    question.model = native
    question.inputs = inputs
    question.targets = class_tensor(targets, samples, "targets")
    question.baseline = optional_tensor(baseline, "baseline")
    question.background = optional_tensor(background, "background")
    question.schema = to_native(schema)
    question.seed = count(seed, "seed")
    question.threads = count(threads, "threads", limit=2**31)
    question.tile = count(tile, "tile")
    return question
