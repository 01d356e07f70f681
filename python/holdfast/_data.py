"""The data that people have: arrays, lists, pandas frames, data loaders; as one tensor and what is known about it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from . import _core
from ._arrays import as_given, may_be_tokens, to_tensor
from ._core import Error
from ._frames import Encoding, is_frame
from ._schema import to_native

# Samples that are read from a dataset at once.
_BATCH = 256


@dataclass
class Given:
    """Samples as the engine takes them, and the way back."""

    tensor: torch.Tensor
    schema: _core.Schema | None
    #: Turns results of the samples' shape, or one value for each, into what was given.
    give: Callable[[torch.Tensor], Any]
    #: Classes that came with the samples, from data loaders.
    labels: torch.Tensor | None = None
    encoding: Encoding | None = field(default=None, repr=False)
    #: The loader draws another order each time, so that nothing beside it belongs to its samples.
    shuffled: bool = False

    def __post_init__(self) -> None:
        if self.tensor.dim() == 0:
            raise Error("inputs: is a single number; [samples, ...] is expected")

    def maps(self, maps: torch.Tensor) -> Any:
        """Maps as what was given; those with one value for each feature of the table have its names too."""
        own = self.give(maps)
        if self.encoding is None or self.schema is None or not isinstance(own, np.ndarray) or own.ndim != 2:
            return own
        return self.encoding.named(own, self.schema.map_names(own.shape[1]))


def read_inputs(inputs: Any, schema: Any, what: str = "inputs") -> Given:
    """Any kind of samples."""
    if is_frame(inputs):
        encoding = Encoding(inputs)
        known = to_native(schema) or to_native(encoding.schema())
        return Given(encoding.tensor(inputs), known, encoding.giver(inputs), encoding=encoding)
    if isinstance(inputs, (torch.utils.data.DataLoader, torch.utils.data.Dataset)):
        tensor, labels = _stream(inputs, what)
        shuffled = isinstance(getattr(inputs, "sampler", None), torch.utils.data.RandomSampler)
        return Given(tensor, to_native(schema), as_given(tensor), labels, shuffled=shuffled)
    if isinstance(inputs, list) and inputs and all(isinstance(one, torch.Tensor) for one in inputs):  # a tuple: several inputs
        shapes = {tuple(one.shape) for one in inputs}
        if len(shapes) > 1:
            raise Error(f"{what}: the samples have {len(shapes)} different shapes, {sorted(shapes)[0]} and {sorted(shapes)[1]}")
        inputs = torch.stack(inputs)
    return Given(to_tensor(inputs, what), to_native(schema), as_given(inputs))


def _stream(source: Any, what: str) -> tuple[torch.Tensor, torch.Tensor | None]:
    """All samples of a loader or dataset, batch by batch into a file that is mapped: they are never all in memory."""
    loader = source
    if isinstance(source, torch.utils.data.Dataset):
        loader = torch.utils.data.DataLoader(source, batch_size=_BATCH)
    labels: list[torch.Tensor] = []
    may_be_classes = True
    shape: tuple[int, ...] | None = None
    dtype = torch.float32
    count = 0
    with tempfile.NamedTemporaryFile(prefix="holdfast_", suffix=".samples", delete=False) as file:
        try:
            for batch in loader:
                rows, classes = _parts(batch, what)
                if shape is not None and tuple(rows.shape[1:]) != shape:
                    raise Error(f"{what}: a batch has samples of shape {list(rows.shape[1:])}, those before {list(shape)}")
                if shape is None and may_be_tokens(rows):
                    dtype = torch.int64
                shape = tuple(rows.shape[1:])
                count += len(rows)
                if classes is not None and (may_be_classes := may_be_classes and _are_classes(classes)):
                    labels.append(classes.detach().cpu().reshape(-1))
                rows.detach().to("cpu", dtype).contiguous().numpy().tofile(file)
            if shape is None:
                raise Error(f"{what}: there are no samples")
            file.flush()
            elements = count * int(np.prod(shape))
            mapped = torch.from_file(file.name, shared=False, size=elements, dtype=dtype)
        finally:
            os.unlink(file.name)  # what is mapped stays
    if not may_be_classes:
        return mapped.view(count, *shape), None
    if labels and sum(map(len, labels)) != count:
        raise Error(f"{what}: there are {sum(map(len, labels))} labels for {count} samples")
    return mapped.view(count, *shape), torch.cat(labels).long() if labels else None


def _are_classes(labels: torch.Tensor) -> bool:
    """One whole number for each sample. What else comes with samples, values of a regression say, is no class."""
    if labels.shape[1:].numel() != 1:
        return False
    return not labels.is_floating_point() or bool((labels == labels.round()).all())


def _parts(batch: Any, what: str) -> tuple[torch.Tensor, torch.Tensor | None]:
    arrays = (torch.Tensor, np.ndarray)
    if isinstance(batch, arrays):
        return to_tensor(batch, what), None
    if isinstance(batch, (list, tuple)) and batch and isinstance(batch[0], arrays):
        classes = batch[1] if len(batch) > 1 and isinstance(batch[1], arrays) else None
        return to_tensor(batch[0], what), None if classes is None else to_tensor(classes, "labels")
    if isinstance(batch, Mapping):
        raise Error(
            f"{what}: a batch is a dict; put its inputs together: {{name: torch.cat([b[name] for b in loader]) for name in ...}}"
        )
    raise Error(f"{what}: a batch is a {type(batch).__name__}; a tensor or (samples, labels) is expected")


def check_order(given: Given | None, what: str) -> None:
    if given is not None and given.shuffled:
        raise Error(f"{what}: the loader shuffles its samples, so these belong to others; use a loader with shuffle=False")


def read_labels(labels: Any, given: Given | None) -> torch.Tensor | None:
    """True classes: those given, or those that came with the samples. Categories of pandas are classes in their order."""
    if labels is None:
        return None if given is None else given.labels
    check_order(given, "labels")
    if hasattr(labels, "cat"):
        labels = labels.cat.codes.where(labels.notna(), np.nan)
    elif hasattr(labels, "codes"):  # pandas.Categorical
        labels = np.where(labels.codes < 0, np.nan, labels.codes)
    if hasattr(labels, "to_numpy"):
        labels = labels.to_numpy()
    if isinstance(labels, Iterable) and not isinstance(labels, (str, torch.Tensor)):
        plain = np.asarray(labels)
        if any(isinstance(one, str) for one in plain.reshape(-1)[:1].tolist()):
            raise Error(
                "labels: are text; give the number of each class, from 0 in the order of the model's outputs: "
                "pandas.factorize(labels, sort=True)[0]"
            )
        labels = plain
    found = to_tensor(labels, "labels")
    if found.dim() == 2 and found.shape[1] == 1:  # a column of a frame
        found = found[:, 0]
    if found.dim() == 1 and found.is_floating_point():  # pandas makes them so where a value was missing
        wrong = (found != found.round()).nonzero()  # NaN is unlike itself
        if len(wrong):
            first = int(wrong[0])
            value = float(found[first])
            raise Error(
                f"labels: sample {first} has {'none' if value != value else f'{value:g}'}; classes are whole numbers from 0"
            )
        return found.long()
    return found.long() if found.dtype == torch.bool else found
