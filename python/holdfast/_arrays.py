"""Between the caller's arrays and tensors, without a copy where none is needed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch

from ._core import Error

Array: TypeAlias = "torch.Tensor | np.ndarray[Any, Any]"


def to_tensor(array: Any, what: str) -> torch.Tensor:
    """The array as a tensor that shares its memory, unless torch cannot read it as it lies."""
    if isinstance(array, torch.Tensor):
        return array
    if array is None:
        raise Error(f"{what}: is None; an array of numbers is expected")
    if isinstance(array, (str, os.PathLike)):
        raise Error(f"{what}: {os.fspath(array)!r} is text, and an array is expected; read the file first: numpy.load(path)")
    try:
        plain = np.asarray(array)
        if plain.dtype == object:  # what frames with columns of several types give
            plain = np.asarray(plain.tolist())
    except (TypeError, ValueError) as error:
        reason = "its parts have different shapes" if "inhomogeneous" in str(error) else error
        raise Error(f"{what}: is no array: {reason}") from None
    if plain.dtype.kind not in "biuf":
        kinds = {"U": "text", "S": "text", "T": "text", "M": "times", "m": "times", "c": "complex numbers"}
        advice = "; give a pandas frame itself, whose text columns are categories" if isinstance(array, np.ndarray) else ""
        found = kinds.get(plain.dtype.kind, "Python objects")
        raise Error(f"{what}: has elements that are {found}; they must be numbers{advice if found == 'text' else ''}")
    if plain.dtype == np.longdouble:
        plain = plain.astype(np.float64)
    if not plain.dtype.isnative:
        plain = plain.astype(plain.dtype.newbyteorder("="))
    if not plain.flags.c_contiguous and any(stride < 0 for stride in plain.strides):
        plain = plain.copy()
    if plain.flags.writeable:
        return torch.from_numpy(plain)
    with warnings.catch_warnings():  # nobody writes to it
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(plain)


def optional_tensor(array: Any, what: str) -> torch.Tensor | None:
    return None if array is None else to_tensor(array, what)


def class_tensor(classes: Any, samples: int, what: str) -> torch.Tensor | None:
    """Classes as a tensor; one number stands for all samples."""
    if classes is None:
        return None
    found = to_tensor(classes, what)
    return found.expand(samples) if found.dim() == 0 else found


def as_given(array: Any) -> Callable[[torch.Tensor], Any]:
    """Turns results into what the caller works with: tensors on the same device, or NumPy arrays."""
    if isinstance(array, torch.Tensor):
        return lambda tensor: tensor.to(array.device)
    return lambda tensor: tensor.numpy()


def may_be_tokens(array: torch.Tensor) -> bool:
    """Whole numbers ``[samples, tokens]``."""
    return array.dim() == 2 and not array.is_floating_point() and not array.is_complex() and array.dtype != torch.bool
