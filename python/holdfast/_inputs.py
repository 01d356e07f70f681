"""Inputs of any form as the one array of numbers that the engine takes, and results in the form of the inputs.

Most inputs are one array, which goes through as it is. Two kinds are packed:

- Token ids become embedded tokens ``[samples, tokens, width]``, which can be explained and perturbed.
- Of several inputs those that are explained come first; the others travel with each sample as context (``Layout`` in C++).

A packed array carries everything that the model reads, so that the engine may repeat, reorder and cut samples as it likes.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch

from . import _core
from ._arrays import as_given, may_be_tokens, to_tensor
from ._core import Error
from ._data import Given
from ._schema import Schema, to_native


@dataclass
class Form:
    """One array for the engine, and the ways between it and what the caller has."""

    #: ``[samples, ...]``.
    array: torch.Tensor
    #: What the engine is told about it.
    schema: Any
    #: The model of that array, a function or the engine's own; None: the caller's takes it.
    function: Callable[[torch.Tensor], Any] | _core.Model | None
    #: Maps as the caller sees them: one value for each token, one map for each explained input.
    maps: Callable[[torch.Tensor], Any]
    #: Perturbed inputs as the caller sees them.
    points: Callable[[torch.Tensor], Any]
    #: Turns numbers of samples into what the caller works with.
    give: Callable[[torch.Tensor], Any]
    #: What was read, where it is one array: labels that came with it, and the encoding of a frame.
    given: Given | None = None


def packed_form(
    model: Any,
    inputs: Mapping[str, Any] | tuple[Any, ...],
    schema: Any = None,
    *,
    embedding: str = "",
    special_tokens: Sequence[int] = (),
) -> Form:
    """Several inputs. ``model`` is a module, a function, or what `load_model` read from a file."""
    named = named_inputs(inputs)
    if hasattr(model, "_native"):
        form = _FilePacking(model, named, inputs, schema).form()
        if form is None:
            raise Error(f"inputs: {model.name} takes one array, not {len(named)}")
        return form
    return _Packing(model, named, inputs, schema, embedding, special_tokens).form()


def array_form(
    model: Any,
    given: Given,
    schema: Any = None,
    *,
    embedding: str = "",
    special_tokens: Sequence[int] = (),
) -> Form:
    """One array, which may hold token ids. ``schema`` is the caller's: that of tokens need not have a layout."""
    if may_be_tokens(given.tensor) and isinstance(model, torch.nn.Module):
        packing = _Packing(model, {0: given.tensor}, given.tensor, schema, embedding, special_tokens, given.give)
        if packing.tokens is not None:
            return replace(packing.form(), given=given)
    if may_be_tokens(given.tensor) and getattr(model, "_file", None) is not None:
        form = _FilePacking(model, {0: given.tensor}, given.tensor, schema, given.give).form()
        if form is not None:
            return replace(form, given=given)
    if schema is not None:
        given = replace(given, schema=to_native(schema))
    return Form(given.tensor, given.schema, None, given.maps, given.give, given.give, given)


def several_inputs(inputs: Any) -> bool:
    """A dictionary of them by name, or a tuple by position."""
    return isinstance(inputs, (Mapping, tuple))


def named_inputs(inputs: Mapping[str, Any] | tuple[Any, ...]) -> dict[str | int, torch.Tensor]:
    if isinstance(inputs, Mapping):
        if not inputs:
            raise Error("inputs: the dictionary is empty")
        return {str(name): to_tensor(value, f"inputs[{name!r}]") for name, value in inputs.items()}
    if not inputs:
        raise Error("inputs: the tuple is empty")
    return {place: to_tensor(value, f"inputs[{place}]") for place, value in enumerate(inputs)}


def _check_counts(named: dict[str | int, torch.Tensor]) -> None:
    sizes = {name: len(value) if value.dim() else 0 for name, value in named.items()}
    if len(set(sizes.values())) != 1:
        raise Error(f"inputs: they have different numbers of samples: {sizes}")


def _check_names(model: Any, named: dict[str | int, torch.Tensor]) -> None:
    """Inputs that the model does not take, or that are missing, where what it takes can be seen."""
    parameters = _parameters_of(model)
    if parameters is None:
        return
    takes = ", ".join(parameters)
    if any(isinstance(name, int) for name in named):
        if len(named) > len(parameters):
            raise Error(f"inputs: there are {len(named)}, but the model takes {len(parameters)}: {takes}")
    else:
        for name in named:
            if name not in parameters:
                raise Error(f"inputs: {name!r} is not one that the model takes: {takes}")
    given = {name if isinstance(name, str) else list(parameters)[name] for name in named}
    for name, parameter in parameters.items():
        if name not in given and parameter.default is parameter.empty:
            raise Error(f"inputs: {name!r} is missing; the model takes {takes}")


def _parameters_of(model: Any) -> dict[str, inspect.Parameter] | None:
    """The arguments of a module's forward or of a function by name; None where they cannot be seen, or any are taken."""
    try:
        signature = inspect.signature(model.forward if isinstance(model, torch.nn.Module) else model)
    except (TypeError, ValueError, AttributeError):
        return None
    free = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    if any(parameter.kind in free for parameter in signature.parameters.values()):
        return None
    return dict(signature.parameters)


@dataclass
class _Part:
    """An input that is not perturbed, as numbers of context."""

    name: str | int
    dtype: torch.dtype
    shape: tuple[int, ...]  # of a sample
    each: bool  # it has numbers for each step, [samples, steps, ...]
    numbers: int = field(init=False)

    def __post_init__(self) -> None:
        kept = self.shape[1:] if self.each else self.shape
        self.numbers = int(torch.Size(kept).numel())

    def pack(self, value: torch.Tensor, places: tuple[int, ...], last: bool) -> torch.Tensor:
        """``[samples, *places, numbers]``, or the numbers before the places."""
        flat = value.double().reshape(len(value), *([places[0]] if self.each else []), self.numbers)
        if self.each or not places:
            return flat
        spread = flat.reshape(len(value), *([1] * len(places)), self.numbers).expand(-1, *places, -1)
        return spread if last else spread.movedim(-1, 1)

    def unpack(self, packed: torch.Tensor) -> torch.Tensor:
        value = packed.reshape(len(packed), *self.shape)
        return value if self.dtype.is_floating_point else value.round().to(self.dtype)


class _Packing:
    def __init__(
        self,
        model: Any,
        named: dict[str | int, torch.Tensor],
        inputs: Any,
        schema: Any,
        embedding: str,
        special: Sequence[int],
        give: Callable[[torch.Tensor], Any] | None = None,
    ) -> None:
        self.model, self.named, self.inputs = model, named, inputs
        self.give = give
        _check_counts(named)
        _check_names(model, named)
        self.schema, fixed = _without_fixed(schema)
        for name in fixed:
            if name not in named:
                raise Error(f"schema: fixed: {name!r} is not one of the inputs {', '.join(map(repr, named))}")
        self.tokens = self._find_tokens(fixed, embedding, special)
        if self.tokens is not None:
            self.explained = [self.tokens.name]
        else:
            self.explained = [name for name, value in named.items() if value.is_floating_point() and name not in fixed]
        self.fixed = [name for name in named if name not in self.explained]

    def _find_tokens(self, fixed: Sequence[Any], embedding: str, special: Sequence[int]) -> _Tokens | None:
        candidates = {name: ids for name, ids in self.named.items() if may_be_tokens(ids) and name not in fixed}
        if not isinstance(self.model, torch.nn.Module) or not candidates:
            return None
        found = _embeddings_of(self.model, self.named, candidates, embedding)
        if not found:
            return None
        name, path, transposed = found
        mask = next((self.named[key] for key in ("attention_mask", "mask") if key in self.named), None)
        return _Tokens(self.model, name, path, self.named[name], transposed, special, mask)

    def form(self) -> Form:
        if not self.explained:
            raise Error("inputs: there is none to explain; one must hold floating-point numbers, or token ids for an embedding")
        if self.tokens is not None:
            body = self.tokens.embedded()
            layout: dict[str, Any] = {"kind": "tokens", "length": body.shape[1], "width": body.shape[2]}
        elif len(self.explained) == 1:
            body = self.named[self.explained[0]]
            layout = _layout_of(body, self.schema)
            if layout["kind"] == "grid" and body.dim() == 3:
                body = body.unsqueeze(1)
        else:
            body = torch.cat([self.named[name].flatten(1) for name in self.explained], 1)
            layout = {"kind": "vector", "length": body.shape[1]}
        steps = layout["kind"] in ("sequence", "tokens")
        places = () if layout["kind"] == "vector" else tuple(body.shape[1:2] if steps else body.shape[2:])
        parts = [_part(name, self.named[name], places if steps else ()) for name in self.fixed]
        if self.tokens is not None:
            parts += [_Part("ids", torch.int64, places, True), _Part("ranked", torch.bool, places, True)]
        values = {**self.named}
        if self.tokens is not None:
            values |= {"ids": self.tokens.ids, "ranked": self.tokens.ranked}
        last = steps or not places
        context = [part.pack(values[part.name], places, last).to(body.device) for part in parts]
        array = torch.cat([body, *(one.to(body.dtype) for one in context)], -1 if last else 1) if context else body
        numbers = sum(part.numbers for part in parts)
        schema = {
            **({} if self.schema is None else _as_dict(self.schema)),
            "layout": layout | ({"context": numbers} if numbers else {}),
        }
        self._width, self._parts, self._steps, self._last = body.shape[-1 if last else 1], parts, steps, last
        give = self.give or as_given(self.named[self.explained[0]])
        return Form(array, Schema(schema), self._call, self._maps(give), self._points(give), give)

    def _split(self, packed: torch.Tensor) -> tuple[torch.Tensor, dict[str | int, torch.Tensor]]:
        dim = -1 if self._last else 1
        body, *rest = torch.split(packed, [self._width, *(part.numbers for part in self._parts)], dim)
        fixed = {}
        for part, own in zip(self._parts, rest, strict=True):
            if not part.each and not (self._last and not self._steps):  # the same numbers at every place
                own = own[:, 0] if self._steps else own.flatten(2)[:, :, 0]
            fixed[part.name] = part.unpack(own.detach())
        return body, fixed

    def _call(self, packed: torch.Tensor) -> Any:
        body, values = self._split(packed)
        if self.tokens is not None:
            values[self.tokens.name] = values.pop("ids")
            with self.tokens.replaced_by(body, values[self.tokens.name], values.pop("ranked")):
                return self._run(values)
        return self._run(values | self._explained_parts(body))

    def _run(self, values: dict[str | int, torch.Tensor]) -> Any:
        if all(isinstance(name, int) for name in values):
            return self.model(*(values[place] for place in sorted(values)))
        return self.model(**{str(name): value for name, value in values.items()})

    def _explained_parts(self, body: torch.Tensor) -> dict[str | int, torch.Tensor]:
        if len(self.explained) == 1:
            name = self.explained[0]
            return {name: body.reshape(len(body), *self.named[name].shape[1:])}
        sizes = [self.named[name][0].numel() for name in self.explained]
        pieces = zip(self.explained, torch.split(body, sizes, 1), strict=True)
        return {name: piece.reshape(len(body), *self.named[name].shape[1:]) for name, piece in pieces}

    def _points(self, give: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor], Any]:
        def points(packed: torch.Tensor) -> Any:
            body, _ = self._split(packed)
            if self.tokens is not None:
                return give(body.contiguous())
            parts = {name: give(value.contiguous()) for name, value in self._explained_parts(body).items()}
            return _in_form_of(self.inputs, parts)

        return points

    def _maps(self, give: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor], Any]:
        points = self._points(give)
        if self.tokens is None:
            return points
        return lambda packed: give(self._split(packed)[0].abs().sum(-1))


class _FilePacking:
    """Inputs of a model file; the engine packs them."""

    def __init__(
        self,
        model: Any,
        named: dict[str | int, torch.Tensor],
        inputs: Any,
        schema: Any,
        give: Callable[[torch.Tensor], Any] | None = None,
    ) -> None:
        if model._file is None:
            raise Error(
                f"inputs: this copy of {model.name} was made for one array; make it with all inputs, "
                "load_model(module, example=inputs)"
            )
        self.model, self.named, self.inputs = model, named, inputs
        _check_counts(named)
        self.schema, self.fixed = _without_fixed(schema)
        self.give = give

    def form(self) -> Form | None:
        schema = "" if self.schema is None else json.dumps(_as_dict(self.schema))
        packed = self._read(schema)
        if packed is None:
            return None
        array, known, names = packed.pack(list(self.named.values())), packed.schema, packed.names
        layout = json.loads(known)["layout"]
        self.tokens = layout["kind"] == "tokens"
        self.dim = 1 if layout["kind"] == "grid" else -1
        self.width = array.shape[self.dim] - layout["context"] if "context" in layout else array.shape[self.dim]
        ordered = list(self.named) if isinstance(self.inputs, tuple) else names if isinstance(self.inputs, Mapping) else [0]
        self.explained = [name for name in ordered if self.named[name].is_floating_point() and name not in self.fixed]
        give = self.give or as_given(next(iter(self.named.values())))
        return Form(array, Schema(json.loads(known)), packed.model, self._maps(give), self._points(give), give)

    def _read(self, schema: str) -> _core.PackedFile | None:
        """The file, read for inputs of these kinds; once for as long as they stay the same."""
        kinds = [
            ("" if isinstance(name, int) else name, value.dtype, list(value.shape[1:]), name in self.fixed)
            for name, value in self.named.items()
        ]
        wanted = (kinds, schema)
        known = self.model._packed
        if known is not None and known[0] == wanted:
            return cast("_core.PackedFile | None", known[1])
        text, device, output_kind, output_name, embedding = self.model._file
        special = list(self.model._special_tokens)
        try:
            packed = _core.load_packed_model(text, device, output_kind, output_name, embedding, kinds, schema, special)
        except Error as error:
            raise Error(str(error).replace(text, self.model.name)) from None  # a copy's file is nobody's business
        if packed is not None and self.model._folder is not None:  # a copy: what was assumed was said when it was made
            _core.take_warnings()
            packed.model.rename(self.model.name)
        self.model._packed = (wanted, packed)
        return packed

    def _points(self, give: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor], Any]:
        def points(packed: torch.Tensor) -> Any:
            body = packed.narrow(self.dim, 0, self.width)
            if self.tokens:
                return give(body.contiguous())
            sizes = [self.named[name][0].numel() for name in self.explained]
            pieces = zip(self.explained, torch.split(body.flatten(1), sizes, 1), strict=True)
            parts = {name: give(piece.reshape(len(body), *self.named[name].shape[1:])) for name, piece in pieces}
            return _in_form_of(self.inputs, parts)

        return points

    def _maps(self, give: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor], Any]:
        if not self.tokens:
            return self._points(give)
        return lambda packed: give(packed.narrow(self.dim, 0, self.width).abs().sum(-1))


def _in_form_of(inputs: Any, parts: dict[Any, Any]) -> Any:
    """What belongs to the explained inputs as the caller gave them: the others are None in a tuple, and left out by name."""
    if isinstance(inputs, tuple):
        return tuple(parts.get(place) for place in range(len(inputs)))
    return parts if isinstance(inputs, Mapping) else next(iter(parts.values()))


class _Tokens:
    """Token ids, and the embedding of a module that reads them."""

    def __init__(
        self,
        module: torch.nn.Module,
        name: str | int,
        path: str,
        ids: torch.Tensor,
        transposed: bool,
        special: Sequence[int],
        mask: torch.Tensor | None,
    ) -> None:
        self.name, self.ids, self.transposed = name, ids, transposed
        self.embedding = cast("torch.nn.Embedding", module.get_submodule(path))
        rows = len(self.embedding.weight)
        if ids.numel() == 0 or int(ids.min()) < 0 or int(ids.max()) >= rows:
            raise Error(
                f"inputs: token ids must be in 0 to {rows - 1}, the rows of {path}; they go from {ids.min()} to {ids.max()}"
            )
        known = {int(one) for one in special} | special_tokens_of(module, self.embedding)
        self.ranked = ~torch.isin(ids.cpu(), torch.tensor(sorted(known), dtype=ids.dtype))
        if mask is not None and mask.shape == ids.shape:
            self.ranked &= mask.cpu().bool()

    def embedded(self, ids: torch.Tensor | None = None) -> torch.Tensor:
        ids = self.ids if ids is None else ids
        weight = self.embedding.weight.detach()
        kind = torch.float64 if weight.dtype == torch.float64 else torch.float32
        return torch.nn.functional.embedding(ids.to(weight.device), weight).to(kind)

    @contextmanager
    def replaced_by(self, embedded: torch.Tensor, ids: torch.Tensor, ranked: torch.Tensor) -> Iterator[None]:
        """While it lasts the embedding gives these numbers; padding and special tokens keep their own."""
        own = torch.where(ranked.unsqueeze(-1), embedded, self.embedded(ids).to(embedded))
        own = own.to(self.embedding.weight.dtype)
        if self.transposed:
            own = own.transpose(0, 1)
        hook = self.embedding.register_forward_hook(lambda module, given, found: own if found.shape == own.shape else found)
        try:
            yield
        finally:
            hook.remove()


def _embeddings_of(
    module: torch.nn.Module, named: dict[str | int, torch.Tensor], candidates: dict[str | int, torch.Tensor], asked: str
) -> tuple[str | int, str, bool] | None:
    """Which input goes to which embedding: (input, embedding, transposed), from one run of the first sample."""
    modules = {path: part for path, part in module.named_modules() if isinstance(part, torch.nn.Embedding)}
    if asked:
        if asked not in modules:
            raise Error(f"embedding: {asked!r} is not one of the module's: {', '.join(modules) or 'it has none'}")
        modules = {asked: modules[asked]}
    if not modules:
        return None
    found: dict[str, tuple[str | int, str, bool]] = {}
    where = next(iter(modules.values())).weight.device
    first = {name: value[:1].to(where) for name, value in named.items()}

    def watch(path: str) -> Callable[..., None]:
        def hook(part: torch.nn.Module, given: tuple[Any, ...]) -> None:
            for name in candidates:
                ids = first[name]
                if given and isinstance(given[0], torch.Tensor) and given[0].dim() == 2:
                    if given[0].shape == ids.shape and torch.equal(given[0], ids):
                        found[path] = (name, path, False)
                    elif given[0].shape == ids.T.shape and torch.equal(given[0], ids.T):
                        found[path] = (name, path, True)

        return hook

    from ._model import evaluating, without_fast_path  # which needs this file

    hooks = [part.register_forward_pre_hook(watch(path)) for path, part in modules.items()]
    try:
        with evaluating(module), without_fast_path(), torch.no_grad():
            if all(isinstance(name, int) for name in first):
                module(*(first[place] for place in sorted(first)))
            else:
                module(**{str(name): value for name, value in first.items()})
    except IndexError:
        if not found:  # else an id has no row, which is said in words of its own
            raise
    finally:
        for hook in hooks:
            hook.remove()
    if len(found) > 1:
        found = _of_words(module, found)
    if len(found) > 1:
        names = ", ".join(found)
        raise Error(
            f"embedding: the token ids go to {names}; say which: holdfast.as_model(model, embedding={next(iter(found))!r})"
        )
    if not found and asked:
        raise Error(f"embedding: {asked} does not read the token ids as they are")
    return next(iter(found.values()), None)


def _of_words(module: torch.nn.Module, found: dict[str, tuple[str | int, str, bool]]) -> dict[str, tuple[str | int, str, bool]]:
    """Those of several embeddings that read words: the one that a Hugging Face model names, or else not those of other ids.

    Tokenizers give token_type_ids, segment_ids and position_ids beside the tokens.
    """
    named = getattr(module, "get_input_embeddings", None)
    try:
        own = named() if callable(named) else None
    except NotImplementedError:
        own = None
    of_model = {path: one for path, one in found.items() if module.get_submodule(path) is own}
    if of_model:
        return of_model
    parameters = list(_parameters_of(module) or ())

    def is_other(name: str | int) -> bool:
        text = name if isinstance(name, str) else parameters[name] if name < len(parameters) else ""
        return any(word in text for word in ("type", "segment", "position"))

    words = {path: one for path, one in found.items() if not is_other(one[0])}
    return words or found


def special_tokens_of(module: torch.nn.Module, embedding: torch.nn.Module) -> set[int]:
    """Padding of the embedding, and what a Hugging Face configuration names."""
    config = getattr(module, "config", None)
    names = ("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")
    ids = [getattr(config, name, None) for name in names] + [getattr(embedding, "padding_idx", None)]
    return {one for one in ids if isinstance(one, int)}


def _part(name: str | int, value: torch.Tensor, places: tuple[int, ...]) -> _Part:
    if value.dim() == 0 or value.is_complex():
        raise Error(f"inputs[{name!r}]: must hold numbers for each sample, [samples, ...]")
    each = bool(places) and value.dim() >= 2 and value.shape[1] == places[0]
    return _Part(name, value.dtype, tuple(value.shape[1:]), each)


def _layout_of(body: torch.Tensor, schema: Any) -> dict[str, Any]:
    if schema is not None and "layout" in _as_dict(schema):
        layout = dict(_as_dict(schema)["layout"])
        if layout["kind"] == "graph" or layout.get("sides", 1) != 1:
            raise Error("inputs: graphs and pairs take no fixed inputs beside them")
        return layout
    if body.dim() == 2:
        return {"kind": "vector", "length": body.shape[1]}
    if body.dim() in (3, 4):
        channels = 1 if body.dim() == 3 else body.shape[1]
        return {"kind": "grid", "channels": channels, "height": body.shape[-2], "width": body.shape[-1]}
    raise Error(f"inputs: samples of shape {list(body.shape[1:])} need a schema that says what they are (schema=)")


def _as_dict(schema: Any) -> dict[str, Any]:
    if isinstance(schema, Mapping):
        return dict(schema)
    native = to_native(schema)
    return {} if native is None else native.to_dict()


def _without_fixed(schema: Any) -> tuple[Any, list[Any]]:
    """The schema less its ``fixed``, the names or positions of inputs that are not perturbed."""
    if not isinstance(schema, Mapping) or "fixed" not in schema:
        return schema, []
    rest = {key: value for key, value in schema.items() if key != "fixed"}
    return rest or None, list(schema["fixed"])
