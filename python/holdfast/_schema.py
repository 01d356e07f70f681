"""What is known about the features of a sample."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from . import _core
from ._core import Error


class Schema:
    """Names, one-hot groups, ranges, frozen features and the layout of a sample.

    From a dictionary with the keys of a schema file, or from the path of one. Functions that take a schema take either, too.

    >>> schema = holdfast.Schema({"layout": {"kind": "vector", "length": 3}, "groups": [{"name": "sex", "columns": [1, 2]}]})
    >>> schema.layout
    'vector of 3 features'
    """

    def __init__(self, source: Mapping[str, Any] | str | os.PathLike[str]) -> None:
        self._native = _read(source)

    @property
    def layout(self) -> str:
        """What a sample is, in words."""
        return self._native.layout

    def feature_name(self, feature: int) -> str:
        """The name of a feature of a map, or its place: ``pixel (3, 4)``."""
        return self._native.feature_name(feature)

    def to_dict(self) -> dict[str, Any]:
        """As a schema file holds it."""
        return self._native.to_dict()

    def __repr__(self) -> str:
        return f"<holdfast.Schema of a {self.layout}>"


AnySchema: TypeAlias = "Schema | Mapping[str, Any] | str | os.PathLike[str]"


def _read(source: Any) -> _core.Schema:
    if isinstance(source, Mapping):
        try:
            return _core.Schema(json.dumps(source), "schema")
        except TypeError as error:  # what JSON cannot hold
            raise Error(f"schema: {error}") from None
    try:
        path = os.fspath(source)
        return _core.Schema(Path(path).read_text(), path)
    except TypeError:
        raise Error(f"schema: is a {type(source).__name__}; give a dictionary or the path of a file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Error(f"cannot read {path}: {getattr(error, 'strerror', None) or 'it is no text'}") from None


def to_native(schema: AnySchema | _core.Schema | None) -> _core.Schema | None:
    if schema is None or isinstance(schema, _core.Schema):
        return schema
    return schema._native if isinstance(schema, Schema) else _read(schema)
