"""A result with named fields."""

from __future__ import annotations

from collections.abc import KeysView
from typing import Any

from ._arrays import Array


class Record:
    """Fields as attributes; also by key, and ``dict(record)`` gives them all."""

    name: str
    #: Mean of the values that are defined, with its 95 % interval; None where there are none.
    mean: float | None
    low: float | None
    high: float | None
    median: float | None
    #: How many values are defined.
    count: int
    #: One for each sample; NaN where undefined.
    values: Array

    def __init__(self, fields: dict[str, Any], **more: Any) -> None:
        self.__dict__ = fields | more

    def keys(self) -> KeysView[str]:
        return self.__dict__.keys()

    def __getitem__(self, key: str) -> Any:
        return self.__dict__[key]

    def __contains__(self, key: object) -> bool:
        return key in self.__dict__

    def __repr__(self) -> str:
        shown = {key: value for key, value in self.__dict__.items() if key not in ("name", "values", "parts")}
        return f"<{self.name}: {', '.join(f'{key} {_short(value)}' for key, value in shown.items())}>"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
