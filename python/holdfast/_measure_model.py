"""Numbers of a model around its samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from . import _core
from ._arrays import Array, optional_tensor
from ._extend import call_text
from ._foreign import explainer_calls
from ._model import AnyModel, input_form, prepared
from ._question import make_question, number_or_quotient
from ._record import Record
from ._schema import AnySchema
from ._session import listening, warn


class Measurement(Record):
    """A measure's mean over the samples with its 95 % interval."""

    higher_is_better: bool
    #: The columns that the measure reports beside its values.
    parts: dict[str, Array]


@overload
def measure_model(
    model: AnyModel,
    inputs: Any,
    measures: str | Callable[..., Any],
    *,
    explainer: Any = ...,
    epsilon: float | str = ...,
    endpoints: Array | None = ...,
    targets: Any = ...,
    schema: AnySchema | None = ...,
    baseline: Array | None = ...,
    background: Array | None = ...,
    seed: int = ...,
    threads: int = ...,
    tile: int = ...,
) -> Measurement: ...
@overload
def measure_model(
    model: AnyModel,
    inputs: Any,
    measures: list[Any] | tuple[Any, ...],
    *,
    explainer: Any = ...,
    epsilon: float | str = ...,
    endpoints: Array | None = ...,
    targets: Any = ...,
    schema: AnySchema | None = ...,
    baseline: Array | None = ...,
    background: Array | None = ...,
    seed: int = ...,
    threads: int = ...,
    tile: int = ...,
) -> list[Measurement]: ...
def measure_model(
    model: AnyModel,
    inputs: Any,
    measures: Any,
    *,
    explainer: Any = "saliency",
    epsilon: float | str = 0.0,
    endpoints: Array | None = None,
    targets: Any = None,
    schema: AnySchema | None = None,
    baseline: Array | None = None,
    background: Array | None = None,
    seed: int = 0,
    threads: int = 0,
    tile: int = 0,
) -> Measurement | list[Measurement]:
    """Measures a model around its samples: how thick its ranking is, how curved, faithful and stable its explanations.

    >>> thickness = holdfast.measure_model(model, inputs, "thickness(k=2)", epsilon=0.1)
    >>> thickness.values.shape
    torch.Size([4])

    Args:
        model: A module or callable from inputs to logits, or what ``load_model`` gave.
        inputs: Samples, ``[samples, ...]``: tensors, arrays, lists, a pandas frame, a Dataset or DataLoader.
        measures: A name with options, or several; ``holdfast.list("measures")`` shows them.
        explainer: The explanation that is measured, by measures that look at one.
        epsilon: Radius of the neighbourhood, for measures that name none of their own.
        endpoints: Perturbed inputs, an attack's result, for measures that look towards them.
        targets, schema, baseline, background, seed, threads, tile: As for ``explain``.

    Returns:
        One :class:`Measurement`, or a list of them in the order of ``measures``.
    """
    form = input_form(model, inputs, schema)
    one = not isinstance(measures, (list, tuple))
    choice = _core.MeasureChoice()
    choice.measures = [call_text(call, "measures", "measures") for call in ([measures] if one else measures)]
    choice.epsilon = number_or_quotient("epsilon", epsilon)
    choice.endpoints = optional_tensor(endpoints, "endpoints")
    with prepared(model, form) as native, explainer_calls(explainer, several_allowed=False) as calls:
        choice.explainer = calls[0]
        question = make_question(
            native,
            form,
            targets=targets,
            baseline=baseline,
            background=background,
            seed=seed,
            threads=threads,
            tile=tile,
        )
        with listening() as warned:
            measured = _core.measure_model(question, choice)
    warn(warned)
    give = form.give
    results = [
        Measurement(found.summary, values=give(found.values), parts={name: give(values) for name, values in found.parts})
        for found in measured
    ]
    return results[0] if one else results
