"""Copies of modules that run without Python: exported by torch, or traced where that fails, and held against the module."""

from __future__ import annotations

import copy
import functools
import io
import logging
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import torch

from . import _core
from ._arrays import to_tensor
from ._core import Error
from ._inputs import Form, named_inputs, several_inputs, special_tokens_of
from ._model import AdaptedModel, Model, computes_in, device_of, evaluating, input_form, without_fast_path

# Of the logits' size: how far the copy may be from the module.
_TOLERANCE = 1e-4
# Samples that the module is followed with.
_FOLLOWED = 3


def copied(adapted: AdaptedModel, example: Any, device: str | torch.device | None) -> tuple[Model, list[str]]:
    """The module of ``adapted`` as it is now, and what was assumed. ``example``: inputs in a form that :func:`explain` takes."""
    module: Any = adapted.model
    if not several_inputs(example):
        example = to_tensor(example, "example")
    form = input_form(adapted, example, None)
    where, dtype = computes_in(module, form.array)
    chosen = device_of(device or where)
    folder = tempfile.mkdtemp(prefix="holdfast_")
    try:
        made, said = _copied_by(module, adapted, example, form, where, dtype, chosen, Path(folder))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if made._file is None:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        weakref.finalize(made, shutil.rmtree, folder, ignore_errors=True)  # its file is read again for other inputs
    return made, said


def _copied_by(
    module: Any,
    adapted: AdaptedModel,
    example: Any,
    form: Form,
    where: torch.device,
    dtype: torch.dtype,
    chosen: torch.device,
    folder: Path,
) -> tuple[Model, list[str]]:
    path = folder / type(module).__name__
    with evaluating(module), torch.no_grad(), without_fast_path():
        if form.function is None:
            example = form.array.detach().to(where, dtype)
            form.array = example
        args, kwargs = _arguments(example, where)
        plain, reading = _with_one_output(module, adapted, args, kwargs)
        expected = _logits_of_module(module, adapted, form, where)
        try:
            file = _exported(plain, args, kwargs, path.with_suffix(".pt2"))
            native = _core.load_model(file, chosen, **reading)
        except Exception:  # whatever torch.export does not follow, tracing may
            try:
                file = _traced(plain, args, kwargs, path.with_suffix(".pt"))
                native = _core.load_model(file, chosen, **reading)
            except Exception as error:
                why = str(error).replace(f"{path.with_suffix('.pt')}: ", "").strip().partition("\n")[0]
                raise Error(f"load_model: {type(module).__name__} can neither be exported nor traced: {why}") from error
    said = [message.replace(file, type(module).__name__) for message in _core.take_warnings()]
    made = Model(native)
    native.rename(type(module).__name__)
    if form.function is not None:  # its inputs are packed, as they come
        made._file = (file, chosen, reading["output_kind"], reading["output_name"], adapted.embedding)
        made._folder = str(folder)
        made._special_tokens = tuple({*adapted.special_tokens, *special_tokens_of(module, torch.nn.Module())})
    _check(made, example, form, expected)
    return made, said


def _logits_of_module(module: Any, adapted: AdaptedModel, form: Form, where: torch.device) -> torch.Tensor:
    own: Any = module if form.function is None else form.function
    reading = {"output_kind": adapted.output_kind, "output_name": adapted.output_name}
    original = _core.python_model(own, where, form.array.dtype, type(module).__name__, False, False, **reading)
    original.look_at(form.array)
    _core.take_warnings()  # what is assumed is said when the copy is used
    return _comparable(original.logits(form.array))


def _check(made: Model, example: Any, form: Form, expected: torch.Tensor) -> None:
    packed = form if form.function is None else input_form(made, example, None)
    native: Any = made._native if packed.function is None else packed.function
    found = _comparable(native.logits(packed.array.to(made.device))).to(expected)
    if found.shape != expected.shape or (found - expected).abs().max() > _TOLERANCE * (1 + expected.abs().max()):
        raise Error(f"load_model: a copy of {made.name} gives other logits; its forward decides by the values of its inputs")


def _comparable(logits: torch.Tensor) -> torch.Tensor:
    """Logits that predict the same are the same: a softmax takes no notice of what is added to all of them."""
    return logits if logits.shape[1] == 1 else logits.log_softmax(1)


def _arguments(example: Any, where: torch.device) -> tuple[tuple[torch.Tensor, ...], dict[str, torch.Tensor]]:
    """A few samples of each input, by position and by name."""
    named = named_inputs(example) if several_inputs(example) else {0: example}
    few = {name: value[torch.arange(_FOLLOWED) % len(value)].to(where) for name, value in named.items()}
    if isinstance(example, Mapping):
        return (), {str(name): value for name, value in few.items()}
    return tuple(few.values()), {}


def _with_one_output(
    module: torch.nn.Module, adapted: AdaptedModel, args: tuple[torch.Tensor, ...], kwargs: dict[str, torch.Tensor]
) -> tuple[torch.nn.Module, dict[str, Any]]:
    """The module, or one that gives only what counts of several outputs: torch follows no dataclasses. And how it is read."""
    reading: dict[str, Any] = {"output_kind": adapted.output_kind, "output_name": adapted.output_name}
    try:
        if isinstance(module(*args, **kwargs), torch.Tensor):
            return module, reading
    except Exception:  # it will be said better when its outputs are looked at
        return module, reading
    forward = module.forward

    @functools.wraps(forward)
    def one_output(*own: Any, **named: Any) -> torch.Tensor:
        return _core.chosen_output(forward(*own, **named), adapted.output_name)

    plain = copy.copy(module)  # the same parameters
    plain.forward = one_output
    return plain, reading | {"output_name": ""}


def _exported(module: torch.nn.Module, args: tuple[torch.Tensor, ...], kwargs: dict[str, torch.Tensor], path: Path) -> str:
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # what it cannot follow is traced: no reason for its long messages
    any_size = {0: torch.export.Dim.AUTO}
    sizes: Any = dict.fromkeys(kwargs, any_size) if kwargs else tuple(any_size for _ in args)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            program = torch.export.export(module, args, kwargs, dynamic_shapes=sizes)
            torch.export.save(program, path)
    finally:
        logging.disable(disabled)
    return str(path)


def _traced(module: torch.nn.Module, args: tuple[torch.Tensor, ...], kwargs: dict[str, torch.Tensor], path: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # tracing is
        given: Any = {"example_kwarg_inputs": kwargs} if kwargs else {"example_inputs": args}
        torch.jit.trace(module, **given).save(str(path))  # type: ignore[no-untyped-call]
    return str(path)
