"""Models: what the caller has, ready for the engine, and left as it was."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import torch

from . import _core
from ._core import Error
from ._data import Given, read_inputs
from ._estimator import EitherFunction, estimator_function, is_estimator, is_method_of_estimator
from ._inputs import Form, array_form, packed_form, several_inputs
from ._pipeline import PreparedNetwork, is_network_pipeline, pipeline_model
from ._session import HoldfastWarning, listening, warn


class Model:
    """A model that runs without Python: made by :func:`load_model`, taken wherever a model is.

    Calling it gives logits, differentiable by the inputs.
    """

    def __init__(self, native: _core.Model) -> None:
        self._native = native
        # How its file was read, for inputs that are packed; None: it has none.
        self._file: tuple[Any, ...] | None = None
        # The kinds of inputs that the file was last read for, and what was read.
        self._packed: tuple[Any, _core.PackedFile | None] | None = None
        self._special_tokens: tuple[int, ...] = ()
        # Of a copied module whose inputs are packed: where its file lies as long as the copy lives.
        self._folder: str | None = None
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

    def __reduce__(self) -> Any:
        raise TypeError(f"a model that runs without Python cannot be copied or pickled; make {self.name} again with load_model")

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
        return f"<holdfast.AdaptedModel {name_of(self.model)}>"


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
    if isinstance(model, torch.export.ExportedProgram):
        raise Error("as_model: give a program of torch.export to load_model, with the output_kind")
    if not callable(model) and not is_estimator(model) and not is_network_pipeline(model):
        raise Error(f"as_model: a {type(model).__name__} cannot be called; give a torch.nn.Module or a function to logits")
    if output_kind not in OUTPUT_KINDS:
        raise Error(f"output_kind: {output_kind!r} must be one of {', '.join(OUTPUT_KINDS)}")
    return AdaptedModel(model, output_kind, str(output_name), str(embedding), tuple(special_tokens))


OUTPUT_KINDS = ("auto", "logits", "logit", "probabilities", "probability", "value")


def load_model(
    model: str | os.PathLike[str] | torch.nn.Module | torch.export.ExportedProgram,
    example: Any = None,
    *,
    device: str | torch.device | None = None,
    output_kind: str = "auto",
    output_name: str = "",
    embedding: str = "",
    special_tokens: Sequence[int] = (),
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
            ``ARCHITECTURE:pretrained``, a module, or what ``torch.export.export`` gave.
        example: For modules only: a batch of inputs in any form that :func:`explain` takes, also token ids, a tuple or a
            dictionary.
        device: Where it computes; the CPU, or where the module is.
        output_kind: What it gives, as in :func:`as_model`. A softmax or sigmoid at its end is found and cut.
        output_name: Which output counts, of a model with several.
        embedding: The embedding that token ids go to; found when left out.
        special_tokens: Ids that are never ranked, beside the embedding's padding.
    """
    reading: dict[str, Any] = {"output_kind": output_kind, "output_name": output_name}
    if isinstance(model, torch.nn.Module):
        if example is None:
            raise Error("load_model: a module is exported; give a batch of samples, example=inputs")
        from ._copied import copied  # which needs this file

        adapted = as_model(model, **reading, embedding=embedding, special_tokens=special_tokens)
        made, said = copied(adapted, example, device)
        warn(said)
        return made
    if example is not None:
        raise Error("load_model: an example is for modules only")
    folder = None
    if isinstance(model, torch.export.ExportedProgram):
        folder = tempfile.mkdtemp(prefix="holdfast_")
        text = str(Path(folder) / "ExportedProgram.pt2")
        torch.export.save(model, text)
    else:
        try:
            text = os.fspath(model)
        except TypeError:
            raise Error(f"load_model: a {type(model).__name__} is neither a file's path nor a torch.nn.Module") from None
    where = device_of(device or "cpu")
    name = text if folder is None else Path(text).stem
    try:
        with listening() as warned:
            loaded = Model(_core.load_model(text, where, **reading))
    except Error as error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise Error(str(error).replace(text, name)) from None
    warn([message.replace(text, name) for message in warned])
    loaded._native.rename(name)
    if folder is not None:
        loaded._folder = folder
        weakref.finalize(loaded, shutil.rmtree, folder, ignore_errors=True)  # its file is read again for other inputs
    loaded._file, loaded._special_tokens = (text, where, output_kind, output_name, str(embedding)), tuple(special_tokens)
    return loaded


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


# Calls that run a module without torch's kernel for whole layers of transformers, and whether it was on before the first.
_WITHOUT_FAST_PATH = [0, True]


@contextmanager
def without_fast_path() -> Iterator[None]:
    """Layers of transformers are computed operation by operation.

    Torch's one kernel for them has no derivative, so it is only taken where none is asked for; and with a padding mask it gives
    other numbers at the masked places, depending on the other samples of the batch.
    """
    with _IN_USE_LOCK:
        if _WITHOUT_FAST_PATH[0] == 0:
            _WITHOUT_FAST_PATH[1] = torch.backends.mha.get_fastpath_enabled()
            torch.backends.mha.set_fastpath_enabled(False)
        _WITHOUT_FAST_PATH[0] += 1
    try:
        yield
    finally:
        with _IN_USE_LOCK:
            _WITHOUT_FAST_PATH[0] -= 1
            if _WITHOUT_FAST_PATH[0] == 0:
                torch.backends.mha.set_fastpath_enabled(bool(_WITHOUT_FAST_PATH[1]))


def computes_in(module: torch.nn.Module, inputs: torch.Tensor) -> tuple[torch.device, torch.dtype]:
    for tensor in itertools.chain(module.parameters(), module.buffers()):
        if tensor.is_floating_point():
            return tensor.device, tensor.dtype
    return of_inputs(inputs)


def of_inputs(inputs: torch.Tensor) -> tuple[torch.device, torch.dtype]:
    return inputs.device, torch.float64 if inputs.dtype == torch.float64 else torch.float32


def name_of(model: Any) -> str:
    if isinstance(model, PreparedNetwork):
        return model.name
    if isinstance(model, torch.nn.Module):
        return type(model).__name__
    name: str = getattr(model, "__name__", type(model).__name__)
    return "function" if name == "<lambda>" else name


def _noting(function: Callable[[torch.Tensor], Any], name: str) -> Callable[[torch.Tensor], Any]:
    """The function; what it raises says what it was called with. The exception itself stays as it is."""

    def call(inputs: torch.Tensor) -> Any:
        try:
            return function(inputs)
        except Exception as error:
            if not isinstance(error, Error) and not hasattr(error, "__notes__"):
                error.add_note(f"holdfast called the model {name} with inputs of shape {list(inputs.shape)}, {inputs.dtype}")
            raise

    return call


def device_of(device: Any) -> torch.device:
    """The device, which this torch must be able to use."""
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        raise Error(f"device: {device!r} is no device of torch; cpu, cuda or cuda:0 are") from None
    if found.type == "cuda" and not torch.cuda.is_available():
        raise Error(f"device: {found} is asked for, and torch finds no GPU (torch.cuda.is_available() is False)")
    return found


# The kinds of samples (shape, device, precision) for which a module was seen not to mix those of a batch, and of how many: trying
# costs some calls, which are saved from then on. A module that is changed afterwards, so that it does, is not tried again. What
# load_model gave does not change.
_KNOWN_APART: WeakKeyDictionary[torch.nn.Module | Model, dict[tuple[Any, ...], int]] = WeakKeyDictionary()


# What was read from programs that the caller exported.
_PROGRAMS: WeakKeyDictionary[Any, Model] = WeakKeyDictionary()


def _read_program(model: Any) -> Any:
    """A program of torch.export as the model that it is in a file; anything else as it is."""
    if not isinstance(model, torch.export.ExportedProgram):
        return model
    if model not in _PROGRAMS:
        _PROGRAMS[model] = load_model(model)
    return _PROGRAMS[model]


def input_form(model: Any, inputs: Any, schema: Any) -> Form:
    """The inputs as the engine takes them for this model."""
    model = _read_program(model)
    if several_inputs(inputs):
        adapted = _adapted(model)
        return packed_form(adapted.model, inputs, schema, embedding=adapted.embedding, special_tokens=adapted.special_tokens)
    given = read_inputs(inputs, None)  # tokens make a schema of their own from the caller's
    if given.shuffled:
        text = "inputs: the loader shuffles its samples; results are in the order of this one time, and cannot be made again"
        warnings.warn(text, HoldfastWarning, stacklevel=3)
    adapted = _adapted(model, given)
    return array_form(adapted.model, given, schema, embedding=adapted.embedding, special_tokens=adapted.special_tokens)


def _adapted(model: Any, given: Given | None = None) -> AdaptedModel:
    """The model as one of tensors; ``given`` are the rows that estimators and pipelines were made for."""
    adapted = model if isinstance(model, AdaptedModel) else AdaptedModel(model)
    if given is not None and is_network_pipeline(adapted.model):
        return replace(adapted, model=pipeline_model(adapted.model, given))
    if isinstance(adapted.model, (Model, torch.nn.Module)) or not is_estimator(adapted.model):
        return adapted
    frame = None if given is None or given.encoding is None else given.encoding.frame
    function, kind = estimator_function(adapted.model, adapted.output_kind, frame)
    return replace(adapted, model=function, output_kind=kind)


def _remember_apart(model: torch.nn.Module | Model, kind: tuple[Any, ...], samples: int) -> None:
    """To be called where no error was thrown."""
    seen = _KNOWN_APART.setdefault(model, {})
    seen[kind] = max(seen.get(kind, 0), samples)


@contextmanager
def prepared(model: Any, form: Form) -> Iterator[_core.Model]:
    """The model as the engine takes it."""
    model = _read_program(model)
    if isinstance(model, Model):
        native = form.function if isinstance(form.function, _core.Model) else model._native
        kind: tuple[Any, ...] = (form.array.shape[1:], form.array.dtype)
        if not native.layers and _KNOWN_APART.get(model, {}).get(kind, 0) >= len(form.array):
            native = _core.known_apart(native)
        yield native
        _remember_apart(model, kind, len(form.array))
        return
    adapted_from = model.model if isinstance(model, AdaptedModel) else model
    adapted, inputs = _adapted(model, form.given), form.array
    model = adapted.model
    if isinstance(model, type):
        raise Error(f"model: {model.__name__} is a class; make a model of it first: {model.__name__}(...)")
    reading: dict[str, Any] = {"output_kind": adapted.output_kind, "output_name": adapted.output_name}
    name, known_apart = name_of(model), False
    if isinstance(model, torch.nn.Module):
        with evaluating(model), without_fast_path():
            packed, place = form.function is not None, computes_in(model, inputs)
            if packed:
                place = place[0], inputs.dtype
            kind = (packed, inputs.shape[1:], *place)
            recurrent = any(isinstance(part, torch.nn.RNNBase) for part in model.modules())
            known_apart = _KNOWN_APART.get(model, {}).get(kind, 0) >= len(inputs)
            function: Any = form.function if packed else model
            yield _core.python_model(_noting(function, name), *place, name, known_apart, recurrent, **reading)
        _remember_apart(model, kind, len(inputs))
    elif callable(model):
        function = EitherFunction(model) if form.function is None else form.function
        device, dtype = of_inputs(inputs)
        # Estimators take row by row, and some refuse the strange rows that would be tried.
        known_apart = is_estimator(adapted_from) or is_method_of_estimator(adapted_from)
        with without_fast_path():
            kept = inputs.dtype if form.function else dtype
            yield _core.python_model(_noting(function, name), device, kept, name, known_apart, **reading)
    elif isinstance(model, (str, os.PathLike)):
        raise Error(f"model: {os.fspath(model)!r} is a path; holdfast.load_model reads files")
    else:
        raise Error(f"model: a {type(model).__name__} cannot be called; give a torch.nn.Module or a function to logits")
