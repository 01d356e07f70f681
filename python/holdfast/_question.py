"""The arguments that explain and attack share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import _core
from ._arrays import class_tensor, optional_tensor
from ._core import Error
from ._data import check_order
from ._inputs import Form
from ._schema import to_native


def count(value: Any, what: str, limit: int = 2**63) -> int:
    """A whole number that is not negative."""
    try:
        number: int = value.__index__()
    except AttributeError:
        raise Error(f"{what}: {value!r} is no whole number") from None
    if not 0 <= number < limit:
        raise Error(f"{what}: {number} must be at least 0 and less than {limit}")
    return number


def real(value: Any, what: str) -> float:
    try:
        if isinstance(value, (bool, str)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise Error(f"{what}: {value!r} is no number") from None


def number_or_quotient(field: str, value: Any) -> float:
    """A number, or a quotient of two as text."""
    try:
        if isinstance(value, str):
            above, stroke, below = value.partition("/")
            return float(above) / (float(below) if stroke else 1.0)
        return float(value)
    except (TypeError, ValueError, ZeroDivisionError):
        raise Error(f"{field}: {value!r} is no number; give one, or text such as '8/255'") from None


@contextmanager
def labels_in_range(what: str) -> Iterator[None]:
    """Torch finds a class that the model does not have when it computes the loss: checking before would wait for a GPU."""
    try:
        yield
    except IndexError as error:
        found = re.fullmatch(r"Target (-?\d+) is out of bounds\.?", str(error))
        if found is None:
            raise
        raise Error(f"{what}: there is a class {found[1]}, which the model has no output for; classes count from 0") from error


def word(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise Error(f"{what}: {value!r} is no text")
    return value


def make_question(
    native: _core.Model,
    form: Form,
    *,
    targets: Any,
    baseline: Any,
    background: Any,
    seed: int,
    threads: int,
    tile: int,
) -> _core.Question:
    inputs = form.array
    if form.function is not None and (baseline is not None or background is not None):
        raise Error("baseline and background are not taken beside token ids or several inputs")
    if targets is not None and np.ndim(targets) > 0:
        check_order(form.given, "targets")
    question = _core.Question()
    question.model = native
    samples = question.samples
    samples.inputs = inputs
    given = {
        "targets": class_tensor(targets, inputs.shape[0] if inputs.dim() else 0, "targets"),
        "baseline": optional_tensor(baseline, "baseline"),
        "background": optional_tensor(background, "background"),
        "schema": to_native(form.schema),
    }
    for name, value in given.items():
        if value is not None:
            setattr(samples, name, value)
    question.seed = count(seed, "seed")
    question.tiles.threads = count(threads, "threads", limit=2**31)
    question.tiles.size = count(tile, "tile")
    return question
