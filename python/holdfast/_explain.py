"""Explanations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, overload

import torch

from . import _core
from ._arrays import Array
from ._foreign import explainer_calls
from ._model import AnyModel, input_form, prepared
from ._question import make_question
from ._schema import AnySchema
from ._session import listening, warn


@dataclass(frozen=True)
class Explained:
    """Maps with what was found on the way; one row, or one value, for each sample."""

    maps: Array
    #: Logarithm of each map's scale. It is part of ``maps``; where that underflows, this still tells it.
    log_scale: Array
    logits: Array
    #: The classes that were explained.
    targets: Array
    #: What is missing when a map is added up (integrated_gradients, deep_lift, lrp); None for other explainers.
    delta: Array | None
    #: Share of the squared gradient that was projected away with the means of one-hot groups; None where nothing was.
    gauge_share: Array | None


@overload
def explain(
    model: AnyModel,
    inputs: Any,
    explainer: Any = ...,
    *,
    targets: Any = ...,
    schema: AnySchema | None = ...,
    baseline: Array | None = ...,
    background: Array | None = ...,
    seed: int = ...,
    threads: int = ...,
    tile: int = ...,
    return_details: Literal[False] = ...,
) -> Array: ...
@overload
def explain(
    model: AnyModel,
    inputs: Any,
    explainer: Any = ...,
    *,
    targets: Any = ...,
    schema: AnySchema | None = ...,
    baseline: Array | None = ...,
    background: Array | None = ...,
    seed: int = ...,
    threads: int = ...,
    tile: int = ...,
    return_details: Literal[True],
) -> Explained: ...
def explain(
    model: AnyModel,
    inputs: Any,
    explainer: Any = "saliency",
    *,
    targets: Any = None,
    schema: AnySchema | None = None,
    baseline: Array | None = None,
    background: Array | None = None,
    seed: int = 0,
    threads: int = 0,
    tile: int = 0,
    return_details: bool = False,
) -> Array | Explained:
    """Maps of the inputs' shape: how much each element matters for the explained class.

    >>> maps = holdfast.explain(model, inputs, "integrated_gradients(steps=50)")
    >>> maps.shape == inputs.shape
    True

    Args:
        model: A module or callable from inputs to logits, or what ``load_model`` gave. A module runs in evaluation mode and is
            left in the mode it was in.
        inputs: Samples, ``[samples, ...]``: tensors, arrays, lists, a pandas frame, a Dataset or DataLoader.
        explainer: Its name with options; ``holdfast.list("explainers")`` shows them. Also a Captum attribution object or a SHAP
            explainer.
        targets: The classes to explain, one for each sample or one for all; those predicted when left out.
        schema: What is known about the features: one-hot groups, layout; a dictionary, or the path of a schema file.
        baseline: One sample to compare with, for explainers with ``baseline=given``.
        background: Rows of the data, for explainers that compare with them.
        seed: Of every random number.
        threads: Tiles computed side by side; 0: one for each core. Python's models run on the calling thread.
        tile: Samples computed at once; 0: chosen by the size of a sample.
        return_details: Gives an :class:`Explained` instead of the maps alone.
    """
    form = input_form(model, inputs, schema)
    with prepared(model, form) as native, explainer_calls(explainer, several_allowed=False) as calls:
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
            batch = _core.explain(question, calls[0])
    warn(warned)
    give: Callable[[torch.Tensor], Array] = form.give
    maps: Array = form.maps(batch.maps)
    if not return_details:
        return maps
    return Explained(
        maps=maps,
        log_scale=give(batch.log_scale),
        logits=give(batch.logits),
        targets=give(batch.targets),
        delta=None if batch.delta is None else give(batch.delta),
        gauge_share=None if batch.gauge_share is None else give(batch.gauge_share),
    )
