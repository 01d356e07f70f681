"""What there is, from the descriptions that each method carries."""

from __future__ import annotations

import difflib
import functools
from typing import Any

from . import _core
from ._core import Error


@functools.cache
def catalogue() -> dict[str, list[dict[str, Any]]]:
    """Every method under its kind, as ``holdfast list --json`` prints them."""
    return _core.catalogue()


def forget_catalogue() -> None:
    """After a method was added or taken out."""
    catalogue.cache_clear()


def list_methods(kind: str) -> list[str]:
    """Names of all methods of a kind: explainers, attacks, metrics, measures, objectives, recipes, models, datasets.

    >>> "saliency" in holdfast.list("explainers")
    True
    """
    if kind not in catalogue():
        raise Error(f"there is no kind '{kind}' of methods (known: {', '.join(catalogue())})")
    return [method["name"] for method in catalogue()[kind]]


def describe(name: str) -> dict[str, Any]:
    """What a method does, whom to cite, and its options with defaults, ranges and meaning.

    >>> holdfast.describe("saliency")["options"][0]["name"]
    'target'
    """
    for kind, methods in catalogue().items():
        for method in methods:
            if method["name"] == name:
                return {"kind": kind, **method}
    names = [method["name"] for methods in catalogue().values() for method in methods]
    near = difflib.get_close_matches(name, names, 1)
    raise Error(f"nothing is called '{name}'" + (f" (did you mean '{near[0]}'?)" if near else ""))
