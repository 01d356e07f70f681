"""Methods of one's own: registered by name, they work wherever a built-in one does."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import json
import math
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar, overload

import numpy as np
import torch

from . import _core
from ._catalogue import forget_catalogue
from ._core import Error

F = TypeVar("F")
P = ParamSpec("P")

# Where a decorated function says what it is.
_MARK = "holdfast_method"
# Name and digest of what was registered, by kind and name.
_OWN: dict[tuple[str, str], str] = {}
# Explainers that are objects of other libraries: each explains the model that it was made with.
OF_ONE_MODEL: set[str] = set()


class _Decorator(Protocol[P]):
    """``@metric`` above a function, or ``@metric(name="mine")``."""

    @overload
    def __call__(self, function: F, /, *args: P.args, **options: P.kwargs) -> F: ...
    @overload
    def __call__(self, function: None = None, /, *args: P.args, **options: P.kwargs) -> Callable[[F], F]: ...


def _decorator(register: Callable[Concatenate[Any, P], Any]) -> _Decorator[P]:
    @functools.wraps(register)
    def decorate(function: Any = None, /, *args: P.args, **options: P.kwargs) -> Any:
        if function is None:
            return lambda given: register(given, *args, **options)
        return register(function, *args, **options)

    return decorate


@_decorator
def metric(
    function: Any,
    *,
    name: str | None = None,
    higher_is_more_alike: bool = True,
    perfect: float = 1.0,
    floor: float | None = 0.0,
    limits: Mapping[str, tuple[float | None, float | None]] | None = None,
    citation: str = "",
) -> Any:
    """Makes a metric of a function of two batches of maps: ``[B, ...]`` each in, ``[B]`` out.

    >>> @holdfast.metric
    ... def top_kept(original, perturbed, k: int = 8):
    ...     "share of the top k that stays"
    ...     first, second = (np.argsort(-maps.reshape(len(maps), -1), 1, "stable")[:, :k] for maps in (original, perturbed))
    ...     return [len(set(a) & set(b)) / k for a, b in zip(first, second)]
    >>> holdfast.measure(torch.rand(5, 9), torch.rand(5, 9), "top_kept(k=9)").mean
    1.0

    Maps are what metrics see: magnitudes, channels summed, ``[B, features]`` or ``[B, height, width]``. An option ``k`` is
    the size of the top set: attacks take theirs from it.

    Args:
        function: The metric. Parameters after the two maps are its options: they have a default, and a type.
        name: Its name in calls; the function's when left out.
        higher_is_more_alike: False for distances.
        perfect: The value of identical maps.
        floor: The value past which nothing is left to break; None: there is none.
        limits: Smallest and largest value of options, by name; None: no limit.
        citation: Whom to cite.
    """
    own = _Own("metrics", function, 2, name, limits, citation)
    has_k = any(option["name"] == "k" and isinstance(option["default"], int) for option in own.options)
    for option in own.options:
        if has_k and option["name"] == "k":
            option.setdefault("low", 1.0)  # the size of a set

    def call(original: np.ndarray[Any, Any], perturbed: np.ndarray[Any, Any], **options: Any) -> np.ndarray[Any, Any]:
        values = _numbers(function(original, perturbed, **options), own.name)
        if values.shape != (len(original),):
            raise Error(f"{own.name}: it gave values of shape {list(values.shape)}; {len(original)} are expected, one a pair")
        return values

    facts = {
        "higher_is_more_alike": bool(higher_is_more_alike),
        "perfect": float(perfect),
        "floor": None if floor is None or math.isinf(floor) else float(floor),
        "top_count": "k" if has_k else None,
    }
    return own.register(call, facts)


@_decorator
def explainer(
    function: Any,
    *,
    name: str | None = None,
    differentiable: bool = False,
    evaluations: int = 1,
    limits: Mapping[str, tuple[float | None, float | None]] | None = None,
    citation: str = "",
    arguments: Mapping[str, Any] | None = None,
) -> Any:
    """Makes an explainer of a function ``(model, x, target)`` that gives maps of x's shape.

    >>> @holdfast.explainer(differentiable=True)
    ... def plain_gradient(model, x, target):
    ...     score = model(x).gather(1, target[:, None]).sum()
    ...     return torch.autograd.grad(score, x, create_graph=True)[0]
    >>> holdfast.explain(model, inputs, plain_gradient).shape
    torch.Size([4, 6])

    ``model`` is a function from inputs to logits, lent for the call. A Captum attribution object or a SHAP explainer can stand in
    the function's place; ``arguments`` go to its ``attribute``. These need no decorator: they are accepted wherever the name
    of an explainer is.

    Args:
        function: The explainer, or the object of another library. Parameters after the three are its options.
        name: Its name in calls; the function's when left out.
        differentiable: Whether the maps keep their graph back to x, which then requires gradients: attacks follow theirs. Without
            it only the attacks that need no gradient are run, and x carries none; a function that takes gradients for itself
            begins with ``x = x.detach().requires_grad_()``.
        evaluations: Passes through the model that one explanation costs.
        limits: Smallest and largest value of options, by name; None: no limit.
        citation: Whom to cite.
        arguments: Of another library's object: what its ``attribute`` is called with.
    """
    from ._foreign import adapted

    if (foreign := adapted(function, arguments or {})) is not None:
        function, name = foreign.function, name or foreign.name
        OF_ONE_MODEL.add(name)
    elif arguments is not None:
        raise Error("arguments: they are for objects of other libraries; give a function options instead")
    own = _Own("explainers", function, 3, name, limits, citation)

    def call(model: Any, inputs: torch.Tensor, targets: torch.Tensor, seed: int, **options: Any) -> torch.Tensor:
        asked = inputs.requires_grad or not differentiable
        x = inputs if asked else inputs.detach().requires_grad_()
        # What draws from torch's generator draws the same again for the same samples, and leaves no trace.
        with torch.random.fork_rng(devices=[inputs.device] if inputs.is_cuda else []):
            torch.manual_seed(seed % 2**63)
            try:
                maps = function(model, x, targets, **options)
            except RuntimeError as error:
                if x.requires_grad or "does not require grad" not in str(error):
                    raise
                raise Error(
                    f"{own.name}: its x carries no gradients, since it is not differentiable=True; begin with "
                    "x = x.detach().requires_grad_()"
                ) from error
        if not isinstance(maps, (torch.Tensor, np.ndarray)):
            raise Error(
                f"{own.name}: it gave a {type(maps).__name__}; maps of the inputs' shape are expected, {list(inputs.shape)}"
            )
        maps = torch.as_tensor(maps)
        if maps.shape != inputs.shape:
            raise Error(f"{own.name}: it gave maps of shape {list(maps.shape)}; the inputs have {list(inputs.shape)}")
        return (maps if asked else maps.detach()).to(inputs)

    return own.register(call, {"differentiable": bool(differentiable), "evaluations": max(1, int(evaluations))})


@_decorator
def attack_method(
    function: Any,
    *,
    name: str | None = None,
    limits: Mapping[str, tuple[float | None, float | None]] | None = None,
    citation: str = "",
) -> Any:
    """Makes an attack of a generator that proposes points.

    >>> @holdfast.attack_method
    ... def shrinking_noise(task, steps: int = 10):
    ...     generator = torch.Generator().manual_seed(task.seed)
    ...     for step in range(steps):
    ...         noise = torch.randn(task.inputs.shape, generator=generator)
    ...         yield task.inputs + task.epsilon * noise / (step + 1)
    >>> threat = holdfast.Threat("l2", 0.5)
    >>> moved = holdfast.attack(model, inputs, "shrinking_noise(steps=5)", metric="top_k(k=2)", threat=threat)
    >>> int(moved.evaluations.max()) <= 6
    True

    Every point is brought into the threat model, explained, charged, judged and verified by the engine; the worst of a sample is
    kept. ``values = yield points`` gives the metric at the points, NaN where the prediction did not stay.

    ``task`` has ``inputs``, ``targets``, ``ids``, ``norm``, ``epsilon``, ``k`` (of the metric, or None) and ``seed``, and the
    functions ``logits(points)``, ``explain(points)``, ``pullback(points, cotangent)`` (the input gradient of the sum of cotangent
    times map) and ``project(points)``. What they cost is charged too.
    """
    own = _Own("attacks", function, 1, name, limits, citation)

    def call(task: Any, **options: Any) -> Callable[[Any], torch.Tensor | None]:
        proposed = function(task, **options)
        if isinstance(proposed, (torch.Tensor, np.ndarray)) or not hasattr(proposed, "__iter__"):
            raise Error(f"{own.name}: it returned a {type(proposed).__name__}; points are proposed with yield")
        points: Iterator[Any] = iter(proposed)
        send = getattr(points, "send", lambda values: next(points))

        def advance(values: torch.Tensor | None) -> torch.Tensor | None:
            try:
                found = send(values)
            except StopIteration:
                return None
            return found if isinstance(found, torch.Tensor) else torch.as_tensor(np.asarray(found))

        return advance

    return own.register(call, {})


@_decorator
def measure_method(
    function: Any,
    *,
    name: str | None = None,
    higher_is_better: bool = True,
    uses_explainer: bool = True,
    limits: Mapping[str, tuple[float | None, float | None]] | None = None,
    citation: str = "",
) -> Any:
    """Makes a measure of a function of a task: one value for each sample.

    >>> @holdfast.measure_method
    ... def map_spread(task, points: int = 4):
    ...     "how far the map moves under noise"
    ...     generator = torch.Generator().manual_seed(task.seed)
    ...     clean = task.explain(task.inputs)
    ...     moved = [task.explain(task.inputs + 0.01 * torch.randn(clean.shape, generator=generator)) for _ in range(points)]
    ...     return torch.stack([(other - clean).flatten(1).norm(dim=1) for other in moved]).mean(0)
    >>> holdfast.measure_model(model, inputs, "map_spread").count
    4

    ``task`` has ``inputs``, ``targets``, ``ids``, ``epsilon`` and ``seed``, and the functions ``logits``, ``explain`` and
    ``pullback`` of :func:`attack_method`. A dictionary may be given: ``value`` and named columns beside it.
    """
    own = _Own("measures", function, 1, name, limits, citation)

    def call(task: Any, **options: Any) -> tuple[list[float], list[tuple[str, list[float]]]]:
        found = function(task, **options)
        columns = dict(found) if isinstance(found, Mapping) else {"value": found}
        if "value" not in columns:
            raise Error(f"{own.name}: its dictionary has no 'value'")
        lists = {key: _numbers(values, own.name) for key, values in columns.items()}
        for key, values in lists.items():
            if values.shape != (len(task.inputs),):
                raise Error(
                    f"{own.name}: {key} has shape {list(values.shape)}; {len(task.inputs)} values are expected, one a sample"
                )
        value = lists.pop("value")
        return value.tolist(), [(key, values.tolist()) for key, values in lists.items()]

    return own.register(call, {"higher_is_better": bool(higher_is_better), "uses_explainer": bool(uses_explainer)})


@_decorator
def objective_method(
    function: Any,
    *,
    name: str | None = None,
    terms: Mapping[str, float | str] | None = None,
    limits: Mapping[str, tuple[float | None, float | None]] | None = None,
    citation: str = "",
) -> Any:
    """Makes an objective of a function ``(model, x, y)`` that gives a loss for each sample.

    >>> @holdfast.objective_method(terms={"ce": 1, "small": "weight"})
    ... def flat_loss(model, x, y, weight: float = 0.1):
    ...     x = x.clone().requires_grad_()
    ...     ce = torch.nn.functional.cross_entropy(model(x), y, reduction="none")
    ...     gradient = torch.autograd.grad(ce.sum(), x, create_graph=True)[0]
    ...     return {"ce": ce, "small": gradient.flatten(1).square().sum(1)}
    >>> loss, parts = holdfast.objective("flat_loss(weight=0.5)")(model, inputs, [0, 1, 2, 0])
    >>> sorted(parts)
    ['ce', 'small']

    ``model(x)`` gives logits in evaluation mode, ``model.training(x)`` in training mode, ``model.progress`` is the share of the
    training that is done.

    Args:
        function: The objective. It gives a tensor ``[B]``, or a dictionary with one for each term.
        name: Its name in calls; the function's when left out.
        terms: The weight of each term: a number, or the option that holds it. Weight 0: reported only.
        limits: Smallest and largest value of options, by name; None: no limit.
        citation: Whom to cite.
    """
    own = _Own("objectives", function, 3, name, limits, citation)
    weights = dict(terms or {"loss": 1.0})
    reals = [option["name"] for option in own.options if isinstance(option["default"], float)]
    for term, weight in weights.items():
        if isinstance(weight, str) and weight not in reals:
            raise Error(f"terms: {term} has the weight {weight!r}, which is no option with a float default ({', '.join(reals)})")

    def call(model: Any, inputs: torch.Tensor, labels: torch.Tensor, **options: Any) -> list[torch.Tensor]:
        found = function(model, inputs, labels, **options)
        values = dict(found) if isinstance(found, Mapping) else {"loss": found}
        if set(values) != set(weights):
            raise Error(f"{own.name}: it gave the terms {sorted(values)}; its decorator names {sorted(weights)}")
        for term, value in values.items():
            if not isinstance(value, torch.Tensor) or value.shape != (len(inputs),):
                shape = list(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
                raise Error(f"{own.name}: {term} is {shape}; a tensor of {len(inputs)} values, one for each sample, is expected")
        return [values[term] for term in weights]

    listed = [{"name": term, "weight": weight if isinstance(weight, str) else float(weight)} for term, weight in weights.items()]
    return own.register(call, {"terms": listed})


class _Own:
    """A function on its way to the registry."""

    def __init__(self, kind: str, function: Any, given: int, name: str | None, limits: Any, citation: str) -> None:
        self.kind, self.function, self.citation = kind, function, citation
        self.name: str = name or str(getattr(function, "__name__", type(function).__name__))
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", self.name):
            raise Error(f"name: {self.name!r} must be letters, digits and _; give another with name=")
        self.options = _options(self.name, function, given, dict(limits or {}))

    def register(self, call: Callable[..., Any], facts: dict[str, Any]) -> Any:
        text = inspect.getdoc(self.function) or ""
        summary, _, notes = text.partition("\n")
        info = {
            "name": self.name,
            "summary": summary.strip().rstrip(".") or "a method of your own",
            "citation": self.citation,
            "options": self.options,
            "needs": [],
            "notes": notes.strip(),
        }
        _core.extend(self.kind, json.dumps(info), call, json.dumps(facts))
        _OWN[self.kind, self.name] = _digest(self.function, facts)
        forget_catalogue()
        with contextlib.suppress(AttributeError):  # an object that takes no attributes: its name is enough
            setattr(self.function, _MARK, (self.kind, self.name))
        return self.function


def _options(name: str, function: Any, given: int, limits: dict[str, Any]) -> list[dict[str, Any]]:
    parameters = list(inspect.signature(function).parameters.values())
    if len(parameters) < given:
        raise Error(f"{name}: it takes {len(parameters)} arguments; the engine gives it {given}")
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # an annotation that cannot be evaluated says nothing
        hints = {}
    options = []
    for parameter in parameters[given:]:
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            raise Error(f"{name}: options are named, with a default; *{parameter.name} is not")
        value, hint = parameter.default, hints.get(parameter.name)
        if value is parameter.empty:
            raise Error(
                f"{name}: the engine gives it {given} {'argument' if given == 1 else 'arguments'}, and option {parameter.name} "
                f"has no default; write {parameter.name}: int = 8"
            )
        if hint is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, (bool, int, float, str)):
            raise Error(f"{name}: the default of {parameter.name} is {value!r}; options are true or false, numbers or words")
        option: dict[str, Any] = {"name": parameter.name, "default": value, "help": _help(function, parameter.name)}
        if typing.get_origin(hint) is Literal:
            option["words"] = [str(word) for word in typing.get_args(hint)]
        low, high = limits.pop(parameter.name, (None, None))
        option |= {key: float(limit) for key, limit in (("low", low), ("high", high)) if limit is not None}
        options.append(option)
    if limits:
        raise Error(f"limits: {name} has no option {next(iter(limits))}")
    return options


def _help(function: Any, option: str) -> str:
    """What the docstring says behind the option's name."""
    found = re.search(rf"^\s*{re.escape(option)}:\s*(.+)$", inspect.getdoc(function) or "", re.MULTILINE)
    return found[1].rstrip(".") if found else ""


def _numbers(values: Any, name: str) -> np.ndarray[Any, Any]:
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
    try:
        return np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise Error(f"{name}: it gave a {type(values).__name__}; numbers are expected, one for each sample") from None


def _digest(function: Any, facts: Any) -> str:
    """Tells one definition from another: a run with a changed method is another run."""
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        source = repr((code.co_code, code.co_consts, code.co_names)) if code else repr(type(function))
    return hashlib.sha256((source + json.dumps(facts)).encode()).hexdigest()


def call_text(call: Any, kind: str, what: str) -> str:
    """A call as text: itself, or the name of a decorated function."""
    if isinstance(call, str):
        return call
    if isinstance(call, (list, tuple)):
        raise Error(f"{what}: {list(call)!r} is a list, and one is taken here; holdfast.audit takes several")
    marked = getattr(call, _MARK, None)
    if marked is not None and marked[0] == kind:
        return str(marked[1])
    if marked is not None:
        raise Error(f"{what}: {marked[1]} is one of the {marked[0]}, not of the {kind}")
    decorator = {"explainers": "explainer", "metrics": "metric"}.get(kind, f"{kind[:-1]}_method")
    if callable(call) and kind != "methods":
        name = getattr(call, "__name__", type(call).__name__)
        raise Error(f"{what}: {name} is a function that holdfast does not know; put @holdfast.{decorator} above it")
    raise Error(f"{what}: {call!r} is no text, and was not made with a decorator of holdfast")


def own_digests(calls: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Kind and name of every method of one's own among the calls, and what it is."""
    found = {}
    for kind, texts in calls.items():
        for text in texts:
            name = text.partition("(")[0].strip()
            if (kind, name) in _OWN:
                found[f"{kind}/{name}"] = _OWN[kind, name]
    return found


def own_digests_of_text(text: str) -> dict[str, str]:
    """The same for methods that a configuration names."""
    return {f"{kind}/{name}": digest for (kind, name), digest in _OWN.items() if re.search(rf"\b{name}\b", text)}


def forget(kind: str, name: str) -> None:
    """Takes a method of one's own out of the registry."""
    _core.forget(kind, name)
    _OWN.pop((kind, name), None)
    forget_catalogue()
