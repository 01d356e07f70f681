"""The methods of a kind as functions that write calls: for completion, help and checking in an editor or notebook."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ._catalogue import catalogue, list_methods
from ._core import Error

_TYPES = {"flag": bool, "integer": int, "real": float, "word": str}


class Methods:
    """The methods of one kind.

    >>> holdfast.explainers.saliency(signed=True)
    'saliency(signed=true)'
    >>> help(holdfast.explainers.saliency)  # doctest: +SKIP
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __getattr__(self, name: str) -> Callable[..., str]:
        for method in catalogue()[self._kind]:
            if method["name"] == name:
                return _writer(method)
        raise AttributeError(f"there is no {name} among the {self._kind}: {', '.join(list_methods(self._kind))}")

    def __dir__(self) -> list[str]:
        return list_methods(self._kind)

    def __repr__(self) -> str:
        return f"<holdfast.{self._kind}: {', '.join(dir(self))}>"


def _parameters(method: dict[str, Any]) -> list[inspect.Parameter]:
    options = [(option["name"], option["default"], _TYPES[option["type"]]) for option in method["options"]]
    if method["presets"]:
        options.append(("preset", None, str))
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, default, kind in options
    ]


def _documentation(method: dict[str, Any]) -> str:
    lines = [method["summary"][:1].upper() + method["summary"][1:] + ".", ""]
    if method["notes"]:
        lines += [method["notes"], ""]
    if method["citation"]:
        lines += [f"Cite: {method['citation']}", ""]
    lines += [
        f"{option['name']}: {option['help']} (default {option['default']}; {option['range']})" for option in method["options"]
    ]
    lines += [f"preset={preset['name']}: {preset['help']}" for preset in method["presets"]]
    return "\n".join(lines)


def _writer(method: dict[str, Any]) -> Callable[..., str]:
    name = method["name"]
    signature = inspect.Signature(_parameters(method), return_annotation=str)

    def write(**options: Any) -> str:
        try:
            given = signature.bind(**options).arguments
        except TypeError as error:
            raise Error(f"{name}: {error} (known: {', '.join(signature.parameters)})") from None
        written = ",".join(f"{option}={_text(value)}" for option, value in given.items())
        return f"{name}({written})" if written else name

    write.__name__ = write.__qualname__ = name
    write.__doc__ = _documentation(method)
    write.__signature__ = signature  # type: ignore[attr-defined]
    return write


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
