"""The conformance suite: what the engine relies on in every method, tried on a method of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from . import _core
from ._attack import Threat, attack
from ._core import Error
from ._explain import explain
from ._extend import _MARK, call_text
from ._measure import measure
from ._measure_model import measure_model
from ._objective import Objective

Row = tuple[str, Callable[[], bool]]


def check(method: Any) -> None:
    """Raises AssertionError that names every row of the suite which the method does not meet.

    >>> holdfast.testing.check("top_k")

    A decorated function, or the name of any method with options. Models and samples are small ones of the suite.
    """
    kind, name = _kind_of(method)
    failed = []
    first: Exception | None = None  # with the traceback through the method
    rows = _ROWS[kind](name)
    row = "it can be called"
    while True:
        try:
            row, holds = next(rows, ("", None))
            if holds is None:
                break
            if not holds():
                failed.append(row)
        except Exception as error:
            first = first or error
            failed.append(f"{row}: {error}" if isinstance(error, Error) else f"{row}: {type(error).__name__}: {error}")
    if failed:
        raise AssertionError(f"{name} does not conform:\n" + "\n".join(f"  {row}" for row in failed)) from first


def _kind_of(method: Any) -> tuple[str, str]:
    marked = getattr(method, _MARK, None)
    if marked is not None:
        return marked[0], marked[1]
    text = call_text(method, "methods", "method")
    for kind in _ROWS:
        try:
            return kind, _core.canonical(kind, text)
        except Error as error:
            if "unknown" not in str(error):
                raise
    raise Error(f"method: nothing is called {text!r} among {', '.join(_ROWS)}")


def _network() -> torch.nn.Module:
    generator = torch.Generator().manual_seed(5)
    network = torch.nn.Sequential(torch.nn.Linear(12, 10), torch.nn.Softplus(), torch.nn.Linear(10, 3)).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return network


def _rows(count: int = 8) -> torch.Tensor:
    return torch.rand(count, 12, generator=torch.Generator().manual_seed(6), dtype=torch.float64)


def _same(first: Any, second: Any, tolerance: float = 0.0) -> bool:
    return np.allclose(np.asarray(first), np.asarray(second), rtol=tolerance, atol=tolerance, equal_nan=True)


def _metric_rows(name: str) -> Iterator[Row]:
    generator = np.random.default_rng(3)
    first, second = generator.random((9, 12)), generator.random((9, 12))

    def values(a: Any, b: Any) -> Any:
        return measure(a, b, name, levels=False).values

    def of_itself() -> Any:
        found = values(first, first)
        return found[~np.isnan(found)]

    yield "identical maps have one value", lambda: len(of_itself()) > 0 and bool(np.ptp(of_itself()) < 1e-9)
    yield "twice the same is the same", lambda: _same(values(first, second), values(first, second))
    yield (
        "a batch is what its pairs are one by one",
        lambda: _same(values(first, second), [values(first[i : i + 1], second[i : i + 1])[0] for i in range(9)]),
    )
    yield "the scale of a map does not matter", lambda: _same(values(first, second), values(first, second * 1000), 1e-9)
    levels = measure(first, first, name)
    yield (
        "identical maps have the perfect value",
        lambda: levels.adjusted is None or abs(levels.adjusted - 1) < 1e-6,
    )

    def worse() -> bool:
        moved, same = np.nanmean(values(first, second)), np.nanmean(of_itself())
        higher = measure(first, second, name)
        chance = higher.adjusted
        return moved != same and (chance is None or chance < 1 + 1e-9)

    yield "other maps are less alike", worse
    images = generator.random((3, 2, 6, 6))
    yield "images have one value each", lambda: values(images, images[::-1].copy()).shape == (3,)


def _explainer_rows(name: str) -> Iterator[Row]:
    network, rows = _network(), _rows()
    maps: Any = explain(network, rows, name)
    yield "maps have the inputs' shape", lambda: maps.shape == rows.shape
    yield "maps are finite", lambda: bool(torch.isfinite(maps).all())
    yield "twice the same is the same", lambda: _same(maps, explain(network, rows, name))
    yield (
        "a batch is what its samples are one by one",
        lambda: _same(maps, np.concatenate([explain(network, rows[i : i + 1], name) for i in range(len(rows))]), 1e-9),
    )
    yield (
        "the class that is asked for is explained",
        lambda: not _same(explain(network, rows, name, targets=0), explain(network, rows, name, targets=1)),
    )
    before = [parameter.detach().clone() for parameter in network.parameters()]

    def left_alone() -> bool:
        network.train()
        explain(network, rows, name)
        same = all(torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))
        return same and network.training and all(parameter.grad is None for parameter in network.parameters())

    yield "the model is left as it was", left_alone
    threat = Threat("l2", 0.3)
    call = "gauntlet(effort=light)"
    yield (
        "it can be attacked",
        lambda: bool(
            (attack(network, rows[:3], call, explainer=name, metric="top_k(k=3)", threat=threat).norm <= 0.3 + 1e-6).all()
        ),
    )


def _attack_rows(name: str) -> Iterator[Row]:
    network, rows = _network(), _rows()

    def attacked(box: tuple[float, float] | None = None, norm: str = "l2") -> Any:
        threat = Threat(norm, 0.3, box=box)
        return attack(network, rows, name, metric="top_k(k=3)", threat=threat, random_points=False)

    found = attacked()
    yield "points are inside the ball", lambda: bool((found.norm <= 0.3 * (1 + 1e-6)).all())
    yield "predictions stay", lambda: bool((found.prediction == found.prediction_after).all())
    yield "never better for the defender than the clean input", lambda: bool((found.value <= 1 + 1e-12).all())
    yield "twice the same is the same", lambda: _same(found.perturbed, attacked().perturbed)
    yield "work is charged", lambda: bool((found.evaluations > 0).all())
    boxed = attacked(box=(0.0, 1.0), norm="linf")
    yield "points are inside the box", lambda: bool((boxed.perturbed >= 0).all() and (boxed.perturbed <= 1).all())


def _measure_rows(name: str) -> Iterator[Row]:
    network, rows = _network(), _rows()
    found = measure_model(network, rows, name, epsilon=0.1)
    yield "one value for each sample", lambda: found.values.shape == (len(rows),)
    yield "some value is defined", lambda: found.count > 0
    yield "twice the same is the same", lambda: _same(found.values, measure_model(network, rows, name, epsilon=0.1).values)


def _objective_rows(name: str) -> Iterator[Row]:
    network, rows, labels = _network(), _rows(), torch.arange(8) % 3
    objective = Objective(name)
    loss, parts = objective(network, rows, labels)
    yield "the loss is a finite number", lambda: loss.dim() == 0 and bool(torch.isfinite(loss))
    yield "its parts are finite", lambda: all(np.isfinite(value) for value in parts.values())

    def reaches() -> bool:
        found = torch.autograd.grad(loss, list(network.parameters()), allow_unused=True, retain_graph=True)
        return any(one is not None and bool(one.abs().max() > 0) for one in found)

    yield "its gradient reaches the parameters", reaches
    yield "twice the same is the same", lambda: float(loss.detach()) == float(objective(network, rows, labels)[0].detach())
    yield (
        "a batch is the mean of its samples",
        lambda: _same(
            [float(loss.detach())],
            [np.mean([float(objective(network, rows[i : i + 1], labels[i : i + 1])[0].detach()) for i in range(8)])],
            1e-6,
        ),
    )


_ROWS: dict[str, Callable[[str], Iterator[Row]]] = {
    "metrics": _metric_rows,
    "explainers": _explainer_rows,
    "attacks": _attack_rows,
    "measures": _measure_rows,
    "objectives": _objective_rows,
}
