"""Frames of pandas: names, categories and types become the schema."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ._core import Error


def is_frame(thing: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(thing, pandas.DataFrame)


@dataclass(frozen=True)
class _Column:
    name: str
    #: Of a category; None for numbers.
    levels: list[Any] | None
    whole: bool = False
    low: float = 0.0
    high: float = 1.0
    deviation: float = 0.0

    @property
    def width(self) -> int:
        return 1 if self.levels is None else len(self.levels)

    @property
    def names(self) -> list[str]:
        return [self.name] if self.levels is None else [f"{self.name}={level}" for level in self.levels]


class Encoding:
    """One column for a number, one for each level of a category, in the frame's order."""

    def __init__(self, frame: Any) -> None:
        if not len(frame):
            raise Error("inputs: the frame has no rows")
        if not len(frame.columns):
            raise Error("inputs: the frame has no columns")
        names = [str(name) for name in frame.columns]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise Error(f"inputs: two columns of the frame are called {twice!r}")
        self.columns = [self._column(str(name), frame[name]) for name in frame.columns]
        self.names = [name for column in self.columns for name in column.names]
        self._types = frame.dtypes
        self._index = frame.index

    @staticmethod
    def _column(name: str, values: Any) -> _Column:
        import pandas

        values = _with_type(values)
        if isinstance(values.dtype, pandas.CategoricalDtype):
            levels = list(values.cat.categories)
        elif pandas.api.types.is_bool_dtype(values.dtype):
            return _Column(name, None, whole=True, deviation=float(values.astype(float).std(ddof=0)))
        elif pandas.api.types.is_numeric_dtype(values.dtype):
            numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
            finite = numbers[np.isfinite(numbers)]
            if not len(finite):
                raise Error(f"inputs: column {name!r} has no number")
            whole = pandas.api.types.is_integer_dtype(values.dtype)
            low, high = float(finite.min()), float(finite.max())
            return _Column(name, None, whole=whole, low=low, high=high, deviation=float(finite.std()))
        elif values.dtype.kind in "mM" or isinstance(values.dtype, (pandas.DatetimeTZDtype, pandas.PeriodDtype)):
            raise Error(f"inputs: column {name!r} holds times; turn them into numbers first")
        else:
            levels = _levels_of_text(name, values)
        if values.isna().any():
            raise Error(f"inputs: column {name!r} has rows without a category; name them, fillna('unknown')")
        return _Column(name, levels)

    def tensor(self, frame: Any) -> torch.Tensor:
        """[rows, columns] float32."""
        parts = []
        for column in self.columns:
            values = _with_type(frame[self._key(frame, column.name)])
            if column.levels is None:
                parts.append(values.to_numpy(dtype=np.float32, na_value=np.nan)[:, np.newaxis])
            else:
                places = {level: i for i, level in enumerate(column.levels)}
                parts.append(np.eye(column.width, dtype=np.float32)[[places[value] for value in values]])
        return torch.from_numpy(np.concatenate(parts, axis=1))

    @staticmethod
    def _key(frame: Any, name: str) -> Any:
        return next(key for key in frame.columns if str(key) == name)

    def frame(self, rows: np.ndarray[Any, Any]) -> Any:
        """The rows as a frame like the one that was given: a category is its largest level."""
        import pandas

        made, at = {}, 0
        for column, dtype in zip(self.columns, self._types, strict=True):
            part = rows[:, at : at + column.width]
            at += column.width
            if column.levels is None:
                numbers = part[:, 0].astype(np.float64)
                made[column.name] = numbers >= 0.5 if pandas.api.types.is_bool_dtype(dtype) else numbers
            else:
                chosen = [column.levels[i] for i in part.argmax(axis=1)]
                categorical = isinstance(dtype, pandas.CategoricalDtype)
                made[column.name] = pandas.Categorical(chosen, dtype=dtype) if categorical else np.array(chosen, dtype=object)
        return pandas.DataFrame(made)

    def named(self, values: np.ndarray[Any, Any], names: list[str]) -> Any:
        """One row for each of the frame's."""
        import pandas

        return pandas.DataFrame(values, index=self._index, columns=names) if len(values) == len(self._index) else values

    def schema(self) -> dict[str, Any]:
        features, groups, at = [], [], 0
        for column in self.columns:
            if column.levels is None:
                step = {"step": 1.0} if column.whole else {}
                limits = {"low": column.low, "high": column.high, "deviation": column.deviation}
                features.append({"name": column.name, **limits, **step})
            else:
                features += [{"name": name, "low": 0.0, "high": 1.0} for name in column.names]
                groups.append(
                    {
                        "name": column.name,
                        "columns": list(range(at, at + column.width)),
                        "levels": [str(level) for level in column.levels],
                    }
                )
            at += column.width
        return {"layout": {"kind": "vector", "length": at}, "features": features, "groups": groups}

    def giver(self, frame: Any) -> Callable[[torch.Tensor], Any]:
        """Results with the frame's index: a column for each feature, or one value for each row."""
        import pandas

        def give(tensor: torch.Tensor) -> Any:
            values = tensor.detach().cpu().numpy()
            if values.ndim == 1:
                return pandas.Series(values, index=frame.index)
            if values.ndim == 2 and values.shape[1] == len(self.names) and len(values) == len(frame):
                return pandas.DataFrame(values, index=frame.index, columns=self.names)
            return values

        return give


def _with_type(values: Any) -> Any:
    """A column of Python's own numbers or booleans as one of NumPy's."""
    if values.dtype != object or not all(isinstance(value, numbers.Number) for value in values.dropna()):
        return values
    import pandas

    known = values.infer_objects()
    return known if known.dtype != object else pandas.to_numeric(values)


# More levels than this, and in more than half of the rows another one, are no category but names or free text.
_MANY_LEVELS = 20


def _levels_of_text(name: str, values: Any) -> list[Any]:
    known = values.dropna()
    try:
        levels = sorted(known.unique(), key=str)
    except TypeError:
        kind = type(known.iloc[0]).__name__
        raise Error(
            f"inputs: column {name!r} holds values of type {kind}; numbers, booleans or categories are expected"
        ) from None
    if len(levels) > _MANY_LEVELS and 2 * len(levels) > len(values):
        raise Error(
            f"inputs: column {name!r} has {len(levels)} different texts in {len(values)} rows, which is no category; leave it "
            f"out, or say that it is one: frame.astype({{{name!r}: 'category'}})"
        )
    return levels
