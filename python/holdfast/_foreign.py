"""Explainers of other libraries: Captum's attribution objects and SHAP's explainers, as they are."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ._core import Error


@dataclass(frozen=True)
class Foreign:
    name: str
    function: Callable[..., Any]


def adapted(thing: Any, arguments: Mapping[str, Any]) -> Foreign | None:
    """The object as a function (model, x, target), which asks the model it was made with; None for what is a function already."""
    library = type(thing).__module__.partition(".")[0]
    if library == "shap":
        return Foreign(_name("shap", thing), _shap_values(thing, dict(arguments)))
    if callable(getattr(thing, "attribute", None)):
        return Foreign(_name("captum" if library == "captum" else library, thing), _attributed(thing, dict(arguments)))
    return None


def _name(library: str, thing: Any) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(thing).__name__).lower()
    return f"{re.sub(r'[^a-z0-9]', '_', library.lower())}_{words}".strip("_")


def _attributed(thing: Any, arguments: dict[str, Any]) -> Callable[..., Any]:
    def explain(model: Any, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        maps = thing.attribute(x.detach().clone(), target=target, **arguments)
        first: torch.Tensor = maps[0] if isinstance(maps, tuple) else maps
        return first.detach()

    explain.__doc__ = f"{type(thing).__name__} of {type(thing).__module__.partition('.')[0]}, as it is"
    return explain


def _shap_values(thing: Any, arguments: dict[str, Any]) -> Callable[..., Any]:
    known = inspect.signature(thing.shap_values).parameters
    if "silent" in known or type(thing).__name__ in ("KernelExplainer", "Kernel"):  # the latter takes it unnamed
        arguments.setdefault("silent", True)  # else each call draws a bar of its own

    def explain(model: Any, x: torch.Tensor, target: torch.Tensor) -> np.ndarray[Any, Any]:
        rows = x.detach().cpu()
        takes_tensors = type(thing).__name__ in ("DeepExplainer", "GradientExplainer", "Deep", "Gradient")
        values: Any = thing.shap_values(rows if takes_tensors else rows.numpy(), **arguments)
        if isinstance(values, Sequence):  # one array for each class
            values = np.stack([np.asarray(one) for one in values], axis=-1)
        maps: np.ndarray[Any, Any] = np.asarray(values)
        if maps.ndim == rows.dim() + 1:
            places = target.cpu().numpy().reshape(-1, *([1] * rows.dim()))
            maps = np.take_along_axis(maps, places, axis=-1)[..., 0]
        return maps

    explain.__doc__ = f"{type(thing).__name__} of SHAP, as it is"
    return explain


@contextmanager
def explainer_calls(given: Any, what: str = "explainer", several_allowed: bool = True) -> Iterator[list[str]]:
    """The calls of explainers; objects of other libraries have a name while this lasts."""
    from . import _extend

    several = list(given) if isinstance(given, (list, tuple)) else [given]
    if not several:
        raise Error(f"{what}: there is none")
    if len(several) > 1 and not several_allowed:
        raise Error(f"{what}: {len(several)} are given, and one is taken here; holdfast.audit takes several")
    texts: list[str] = []
    added: list[str] = []
    try:
        for one in several:
            if isinstance(one, type):
                raise Error(f"{what}: {one.__name__} is a class; make an object of it for your model: {one.__name__}(model)")
            foreign = None if isinstance(one, str) or hasattr(one, _extend._MARK) else adapted(one, {})
            if foreign is None:
                texts.append(_extend.call_text(one, "explainers", what))
                continue
            name = foreign.name
            while name in added:
                name += "_again"
            _extend.explainer(foreign.function, name=name)
            _extend.OF_ONE_MODEL.add(name)
            added.append(name)
            texts.append(name)
        yield texts
    finally:
        for name in added:
            _extend.forget("explainers", name)
            _extend.OF_ONE_MODEL.discard(name)
