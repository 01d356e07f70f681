"""Models: what the caller has, ready for the engine, and left as it was."""

from __future__ import annotations

import itertools
import logging
import os
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import torch

from . import _core
from ._arrays import Array, to_tensor
from ._core import Error
from ._data import read_inputs
from ._estimator import estimator_function, is_estimator
from ._inputs import Form, array_form, packed_form, several_inputs


class Model:
    """A model that runs without Python: made by :func:`load_model`, taken wherever a model is.

    Calling it gives logits, differentiable by the inputs.
    """

    def __init__(self, native: _core.Model) -> None:
        self._native = native
        #: Of a model that was trained here: quality on the samples that were kept apart, and a record of every epoch.
        self.results: dict[str, Any] | None = None
        self.history: list[dict[str, Any]] | None = None

    def parameters(self) -> list[torch.Tensor]:
        """The trainable tensors of a model whose layers are seen: an optimiser that writes to them trains it."""
        return [tensor.requires_grad_() for _, tensor, trainable in self._native.parameters() if trainable]

    def __call__(self, inputs: torch.Tensor) -> torch.Tensor:
        return self._native.logits(inputs)

    @property
    def name(self) -> str:
        """How it was asked for."""
        return self._native.name

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self._native.device

    @property
    def dtype(self) -> torch.dtype:
        """The precision it computes in."""
        return self._native.dtype

    @property
    def layers(self) -> bool:
        """Whether its layers are known, so that surrogates and layer-wise explainers work on it."""
        return self._native.layers

    def describe(self) -> str:
        """One paragraph: its kind, its operations, what it cannot do and why."""
        return self._native.describe()

    def __repr__(self) -> str:
        return f"<holdfast.Model {self.name}>"


@dataclass(frozen=True, repr=False)
class AdaptedModel:
    """A model with what cannot be seen of it; made by :func:`as_model`, taken wherever a model is."""

    model: torch.nn.Module | Callable[..., Any]
    output_kind: str = "auto"
    output_name: str = ""
    embedding: str = ""
    special_tokens: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"<holdfast.AdaptedModel {_name_of(self.model)}>"


AnyModel: TypeAlias = "Model | AdaptedModel | torch.nn.Module | Callable[..., Any]"


def as_model(
    model: torch.nn.Module | Callable[..., Any],
    *,
    output_kind: str = "auto",
    output_name: str = "",
    embedding: str = "",
    special_tokens: Sequence[int] = (),
) -> AdaptedModel:
    """Says about a model what cannot be seen of it, or what is seen wrongly.

    >>> scores = torch.nn.Sequential(torch.nn.Linear(6, 1), torch.nn.Sigmoid())
    >>> maps = holdfast.explain(holdfast.as_model(scores, output_kind="probability"), inputs)

    Without it, outputs that are never negative and sum to 1 are probabilities, and one number is a logit unless a sigmoid made
    it. What was assumed is said in a warning.

    Args:
        model: A module or callable, or an estimator with ``predict_proba`` or ``predict``.
        output_kind: ``logits`` (one for each class), ``logit`` (one number, positive for class 1), ``probabilities``,
            ``probability`` (of class 1), or ``value`` (regression: the number itself is explained). ``auto``: it is found out.
        output_name: Which part of a dictionary, dataclass or tuple holds the output; ``logits``, else the only tensor or a
            tuple's first when left out.
        embedding: The name of the ``torch.nn.Embedding`` that token ids go to; found when left out.
        special_tokens: Ids that are never ranked, beside the embedding's padding and those of a ``config``.
    """
    if isinstance(model, Model):
        raise Error("as_model: what load_model gave is known already; give load_model the output_kind")
    if not callable(model) and not is_estimator(model):
        raise Error(f"as_model: a {type(model).__name__} cannot be called; give a torch.nn.Module or a function to logits")
    if output_kind not in OUTPUT_KINDS:
        raise Error(f"output_kind: {output_kind!r} must be one of {', '.join(OUTPUT_KINDS)}")
    return AdaptedModel(model, output_kind, str(output_name), str(embedding), tuple(special_tokens))


OUTPUT_KINDS = ("auto", "logits", "logit", "probabilities", "probability", "value")


def load_model(
    model: str | os.PathLike[str] | torch.nn.Module,
    example: Array | None = None,
    *,
    device: str | torch.device | None = None,
    output_kind: str = "auto",
    output_name: str = "",
) -> Model:
    """A model that runs without Python: tiles of samples run side by side, and layer-wise explainers see its layers.

    >>> holdfast.load_model("mlp:examples/model.safetensors")
    <holdfast.Model mlp:examples/model.safetensors>

    A module is exported with the example (``torch.export``), or traced where that fails, and copied as it is now: training it
    further does not change the copy. Where an operation is not known, the copy runs as it is and :meth:`Model.describe` says
    which.

    >>> module = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    >>> holdfast.load_model(module, example=torch.rand(2, 6)).layers
    True

    Args:
        model: A ``torch.export`` (``.pt2``), TorchScript or ONNX file, ``ARCHITECTURE:weights.safetensors``,
            ``ARCHITECTURE:pretrained``, or a module.
        example: A batch of samples; for modules only.
        device: Where it computes; the CPU, or where the module is.
        output_kind: What it gives, as in :func:`as_model`. A softmax or sigmoid at its end is found and cut.
        output_name: Which output counts, of a model with several.
    """
    reading = {"output_kind": output_kind, "output_name": output_name}
    if isinstance(model, torch.nn.Module):
        if example is None:
            raise Error("load_model: a module is exported; give a batch of samples, example=inputs")
        return _copied(as_model(model, **reading), to_tensor(example, "example"), device)
    if example is not None:
        raise Error("load_model: an example is for modules only")
    try:
        text = os.fspath(model)
    except TypeError:
        raise Error(f"load_model: a {type(model).__name__} is neither a file's path nor a torch.nn.Module") from None
    return Model(_core.load_model(text, torch.device(device or "cpu"), **reading))


# Of the logits' size: how far the copy may be from the module.
_TRACED_TOLERANCE = 1e-4


def _copied(adapted: AdaptedModel, example: torch.Tensor, device: str | torch.device | None) -> Model:
    module, reading = adapted.model, {"output_kind": adapted.output_kind, "output_name": adapted.output_name}
    where, dtype = _computes_in(module, example)
    rows = example.detach().to(where, dtype)
    name = type(module).__name__
    with tempfile.TemporaryDirectory() as folder, evaluating(module), torch.no_grad(), _without_fast_path():
        original = _core.python_model(module, where, dtype, name, False, False, **reading)
        original.look_at(rows)
        _core.take_warnings()  # what is assumed is said when the copy is used
        expected = _comparable(original.logits(rows))
        few = rows[torch.arange(3) % len(rows)]
        chosen = torch.device(device or where)
        try:
            native = _core.load_model(_exported(module, few, Path(folder) / f"{name}.pt2"), chosen, **reading)
        except Exception:  # whatever torch.export does not follow, tracing may
            native = _core.load_model(_traced(module, few, Path(folder) / f"{name}.pt"), chosen, **reading)
    native.rename(name)
    found = _comparable(native.logits(rows.to(native.device))).to(expected)
    if found.shape != expected.shape or (found - expected).abs().max() > _TRACED_TOLERANCE * (1 + expected.abs().max()):
        raise Error(f"load_model: a copy of {name} gives other logits; its forward decides by the values of its inputs")
    return Model(native)


def _exported(module: torch.nn.Module, rows: torch.Tensor, path: Path) -> str:
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # what it cannot follow is traced: no reason for its long messages
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.export.export(module, (rows,), dynamic_shapes=({0: torch.export.Dim.AUTO},))
            torch.export.save(program, path)
    finally:
        logging.disable(disabled)
    return str(path)


def _traced(module: torch.nn.Module, rows: torch.Tensor, path: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # tracing is
        torch.jit.trace(module, rows).save(str(path))  # type: ignore[no-untyped-call]
    return str(path)


@contextmanager
def _without_fast_path() -> Iterator[None]:
    """Layers of transformers are computed operation by operation: torch's one kernel for them has no derivative."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


def _comparable(logits: torch.Tensor) -> torch.Tensor:
    """Logits that predict the same are the same: a softmax takes no notice of what is added to all of them."""
    return logits if logits.shape[1] == 1 else logits.log_softmax(1)


# Parts of modules that are in use: how often, and the mode that each was in before. Threads may share a module, and modules a
# part: who comes first sets a part's mode, and who leaves last gives it back.
_IN_USE: dict[torch.nn.Module, list[Any]] = {}
_IN_USE_LOCK = threading.Lock()


@contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode, and afterwards every part of the module back in the mode it was in."""
    parts = list(module.modules())
    with _IN_USE_LOCK:
        for part in parts:
            _IN_USE.setdefault(part, [0, part.training])[0] += 1
            if part.training:  # setting an attribute of a module is slow
                part.training = False
    try:
        yield
    finally:
        with _IN_USE_LOCK:
            for part in parts:
                use = _IN_USE[part]
                use[0] -= 1
                if use[0] == 0:
                    del _IN_USE[part]
                    if part.training != use[1]:
                        part.training = use[1]


def _computes_in(module: torch.nn.Module, inputs: torch.Tensor) -> tuple[torch.device, torch.dtype]:
    for tensor in itertools.chain(module.parameters(), module.buffers()):
        if tensor.is_floating_point():
            return tensor.device, tensor.dtype
    return _of_inputs(inputs)


def _of_inputs(inputs: torch.Tensor) -> tuple[torch.device, torch.dtype]:
    return inputs.device, torch.float64 if inputs.dtype == torch.float64 else torch.float32


def _name_of(model: Any) -> str:
    return type(model).__name__ if isinstance(model, torch.nn.Module) else getattr(model, "__qualname__", type(model).__name__)


# The kinds of samples (shape, device, precision) for which a module was seen not to mix those of a batch, and of how many: trying
# costs some calls, which are saved from then on. A module that is changed afterwards, so that it does, is not tried again.
_KNOWN_APART: WeakKeyDictionary[torch.nn.Module, dict[tuple[Any, ...], int]] = WeakKeyDictionary()


def input_form(model: Any, inputs: Any, schema: Any) -> Form:
    """The inputs as the engine takes them for this model."""
    if several_inputs(inputs):
        adapted = _adapted(model)
        return packed_form(adapted.model, inputs, schema, embedding=adapted.embedding, special_tokens=adapted.special_tokens)
    given = read_inputs(inputs, None)  # tokens make a schema of their own from the caller's
    adapted = _adapted(given.model(model))
    return array_form(adapted.model, given, schema, embedding=adapted.embedding, special_tokens=adapted.special_tokens)


def _adapted(model: Any) -> AdaptedModel:
    adapted = model if isinstance(model, AdaptedModel) else AdaptedModel(model)
    if isinstance(adapted.model, (Model, torch.nn.Module)) or not is_estimator(adapted.model):
        return adapted
    function, kind = estimator_function(adapted.model, adapted.output_kind)
    return replace(adapted, model=function, output_kind=kind)


@contextmanager
def prepared(model: Any, form: Form) -> Iterator[_core.Model]:
    """The model as the engine takes it."""
    if isinstance(model, Model):
        yield model._native
        return
    adapted, inputs = _adapted(form.model(model)), form.array
    model = adapted.model
    reading = {"output_kind": adapted.output_kind, "output_name": adapted.output_name}
    if form.function is not None:
        device, _ = _computes_in(model, inputs) if isinstance(model, torch.nn.Module) else _of_inputs(inputs)
        with evaluating(model) if isinstance(model, torch.nn.Module) else nullcontext():
            yield _core.python_model(form.function, device, inputs.dtype, _name_of(model), False, **reading)
    elif isinstance(model, torch.nn.Module):
        computes_in = _computes_in(model, inputs)
        kind = (inputs.shape[1:], *computes_in)
        recurrent = any(isinstance(part, torch.nn.RNNBase) for part in model.modules())
        with evaluating(model):
            known_apart = _KNOWN_APART.get(model, {}).get(kind, 0) >= len(inputs)
            yield _core.python_model(model, *computes_in, _name_of(model), known_apart, recurrent, **reading)
        seen = _KNOWN_APART.setdefault(model, {})
        seen[kind] = max(seen.get(kind, 0), len(inputs))  # an error would have left before
    elif callable(model):
        yield _core.python_model(model, *_of_inputs(inputs), _name_of(model), **reading)
    else:
        raise Error(f"model: a {type(model).__name__} cannot be called; give a torch.nn.Module or a function to logits")
