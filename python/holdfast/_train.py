"""Training with the engine's own loop."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from . import _core
from ._core import Error
from ._data import read_inputs, read_labels
from ._extend import call_text
from ._layers import layers_of
from ._model import Model, device_of
from ._question import count, labels_in_range, real
from ._schema import AnySchema
from ._session import listening, warn


def train(
    model: str | torch.nn.Module,
    inputs: Any,
    labels: Any = None,
    *,
    recipe: str = "vanilla",
    objective: Any = None,
    activation: str | None = None,
    epochs: int = 30,
    batch_size: int = 64,
    optimizer: str = "adam",
    learning_rate: float = 1e-3,
    weight_decay: float | None = None,
    schedule: str = "constant",
    early_stopping: Mapping[str, Any] | None = None,
    validation: float = 0.2,
    test: float = 0.2,
    schema: AnySchema | None = None,
    name: str = "inputs",
    seed: int = 0,
    split_seed: int = 0,
    device: str | torch.device | None = None,
    threads: int = 0,
    out: str | os.PathLike[str] | None = None,
    restart: bool = False,
    progress: bool | None = None,
) -> Any:
    """Trains a model so that its explanations hold, with the loop of ``holdfast train``.

    >>> rows = torch.rand(60, 6)
    >>> trained = holdfast.train("mlp(hidden=8)", rows, rows[:, 0] > 0.5, recipe="r2et(top_k=2)", epochs=2)
    >>> trained.layers, len(trained.history)
    (True, 2)

    Args:
        model: An architecture's call (``holdfast.list("models")``), trained from fresh weights; or a module whose layers can be
            seen, trained from the weights it has, which are written back to it.
        inputs: Samples, ``[samples, ...]``; also a pandas frame.
        labels: Their classes, from 0.
        recipe: Objective, activation and weight decay under one name; ``holdfast.list("recipes")`` shows them.
        objective: In the recipe's place.
        activation: In the recipe's place, for architectures that take one.
        epochs: How often every training sample is seen.
        batch_size: Samples in a step.
        optimizer: ``adam`` or ``sgd(momentum=0.9)``.
        learning_rate: At the start.
        weight_decay: In the recipe's place.
        schedule: ``constant``, ``cosine(warmup=1)`` or ``step(at=30x60)``.
        early_stopping: ``{"metric": "loss", "patience": 5, "restore_best": True}``, of the validation samples; metric may also be
            auc or accuracy.
        validation: Share of the samples that decide which epoch is kept.
        test: Share of the samples that are kept apart.
        schema: What is known about the features.
        name: What the samples are called in results.
        seed: Of the weights and the order of samples.
        split_seed: Of the split.
        device: Where to train; the CPU, or where the module is.
        threads: For predictions; 0: one for each core.
        out: Folder for weights, history and results, as ``holdfast train`` writes it; an interrupted training in it goes on.
        restart: Train again from the start though ``out`` holds a training.
        progress: A bar (of tqdm, where it is installed); None: in terminals and notebooks.

    Returns:
        A :class:`Model` with ``history`` and ``results``, or the module that was given.
    """
    given = read_inputs(inputs, schema)
    samples = given.tensor
    classes = read_labels(labels, given)
    if classes is None:
        raise Error("labels: there are none; give a class for each sample")
    module = model if isinstance(model, torch.nn.Module) else None
    if module is not None and out is not None:
        raise Error("out: a module's weights are written back to it; out= is for architectures")
    if module is None and not isinstance(model, str):
        raise Error(f"model: a {type(model).__name__} cannot be trained; give an architecture's call or a torch.nn.Module")
    if early_stopping is not None and not isinstance(early_stopping, Mapping):
        raise Error(f"early_stopping: {early_stopping!r} is no dictionary; write {{'patience': 5}}")
    settings: dict[str, dict[str, Any]] = {
        "": {"seed": count(seed, "seed")},
        "dataset": {"name": "npy", "seed": count(split_seed, "split_seed")},
        "model": {"architecture": "mlp" if module is not None else model, "activation": activation},
        "train": {
            "recipe": recipe,
            "objective": None if objective is None else call_text(objective, "objectives", "objective"),
            "epochs": count(epochs, "epochs"),
            "batch_size": count(batch_size, "batch_size"),
            "optimizer": optimizer,
            "learning_rate": learning_rate,
            "weight_decay": weight_decay,
            "schedule": schedule,
        },
        "early_stopping": dict(early_stopping or {}),
    }
    layers = None
    where = device_of(device or "cpu")
    if module is not None:
        layers = layers_of(module, samples[:2].float())
        layers.read(module)
        where = where if device else next(iter(module.parameters())).device
    with listening(progress) as warned, _own_words(), labels_in_range("labels"):
        native, results, history = _core.train(
            _toml(settings),
            str(name) if module is None else type(module).__name__,
            samples,
            classes,
            given.schema,
            real(validation, "validation"),
            real(test, "test"),
            None if layers is None else layers.model._native,
            where,
            count(threads, "threads", limit=2**31),
            "" if out is None else os.fspath(out),
            bool(restart),
        )
    warn(warned)
    if module is not None and layers is not None:
        layers.write(module, native)
        return module
    found = Model(native)
    found.results, found.history = results, history
    return found


@contextmanager
def _own_words() -> Iterator[None]:
    """The reader of configurations names a line and a table; the caller wrote neither."""
    try:
        yield
    except Error as error:
        raise Error(re.sub(r"^train:\d+: (?:\w+\.)?", "", str(error))) from None


def _toml(settings: dict[str, dict[str, Any]]) -> str:
    """As a configuration file holds it: its reader checks every value."""
    lines = []
    for table, values in settings.items():
        if table:
            lines.append(f"[{table}]")
        for key, value in values.items():
            if value is None:
                continue
            if hasattr(value, "item"):  # numbers of NumPy and torch
                value = value.item()
            if not isinstance(value, (bool, int, float, str)):
                raise Error(f"{key}: {value!r} is neither a number nor text")
            lines.append(f"{key} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"
