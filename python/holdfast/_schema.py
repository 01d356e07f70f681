"""What is known about the features of a sample, from a dictionary or a file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ._core import Error, Schema

AnySchema: TypeAlias = "Schema | Mapping[str, Any] | str | os.PathLike[str]"


def to_schema(schema: Any) -> Schema | None:
    """A dictionary with the keys of a schema file, the path of one, or a Schema."""
    if schema is None or isinstance(schema, Schema):
        return schema
    if isinstance(schema, Mapping):
        return Schema.from_json(json.dumps(schema), "schema")
    try:
        text = Path(schema).read_text()
    except TypeError:
        raise Error(f"schema: a {type(schema).__name__} is none; give a dictionary or the path of a file") from None
    except OSError as error:
        raise Error(f"cannot read {os.fspath(schema)}: {error.strerror}") from None
    return Schema.from_json(text, os.fspath(schema))
