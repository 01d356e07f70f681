"""How alike two sets of maps are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from . import _core
from ._arrays import Array, as_given, class_tensor, to_tensor
from ._core import Error
from ._extend import call_text
from ._question import count
from ._record import Record
from ._schema import AnySchema, to_native


class Similarity(Record):
    """A metric's mean over the samples with its 95 % interval and the levels that make it mean something.

    Its fields are the keys of ``holdfast measure --json``; what is undefined is None, in ``values`` NaN.
    """

    #: What a random map scores, and the mean corrected for it.
    chance: float | None
    #: False: sampled.
    chance_is_exact: bool
    adjusted: float | None
    #: What clean maps of different samples score (of one class, where labels are given), and the mean corrected for it.
    between: float | None
    between_same_class: float | None
    specific: float | None
    #: mean - between, with its 95 % interval. ``specific`` rewards nearly constant maps: read it with these.
    lift: float | None
    lift_interval: list[float] | None
    #: exp of the entropy of the top-k sets; sets that did not hold count as one. None for images and metrics of whole maps.
    effective_sets: float | None
    effective_sets_interval: list[float] | None
    #: How much more the own attacked top k matters to the prediction than another sample's; None without a model.
    own_advantage: float | None
    own_advantage_interval: list[float] | None
    #: "holds", "does not hold" or "not decided"; None where one of the three is None.
    robust_and_specific: str | None
    distinct_top_sets: int
    #: Share of the original and of the perturbed maps whose top set was decided by the order of equal values.
    tied_share: float
    tied_perturbed: float
    #: Mean size of the original and of the perturbed maps' diverse sets, which may be below k; None for other metrics.
    found: float | None
    found_perturbed: float | None


@overload
def measure(
    original: Array,
    perturbed: Array,
    metrics: str | Callable[..., Any],
    *,
    schema: AnySchema | None = ...,
    labels: Any = ...,
    seed: int = ...,
    levels: bool = ...,
) -> Similarity: ...
@overload
def measure(
    original: Array,
    perturbed: Array,
    metrics: list[Any] | tuple[Any, ...],
    *,
    schema: AnySchema | None = ...,
    labels: Any = ...,
    seed: int = ...,
    levels: bool = ...,
) -> list[Similarity]: ...
def measure(
    original: Array,
    perturbed: Array,
    metrics: Any,
    *,
    schema: AnySchema | None = None,
    labels: Any = None,
    seed: int = 0,
    levels: bool = True,
) -> Similarity | list[Similarity]:
    """Compares two sets of maps, with the levels that make a similarity mean something.

    >>> found = holdfast.measure(maps, other, "top_k(k=2)")
    >>> found.mean, found["chance"], found.values.shape
    (1.0, 0.3333333333333333, torch.Size([4]))

    Args:
        original: Maps, ``[samples, ...]``.
        perturbed: Maps of the same shape.
        metrics: A name with options, or several; ``holdfast.list("metrics")`` shows them.
        schema: Layout, one-hot groups and neighbours of the maps; a dictionary, or the path of a schema file.
        labels: A class for each sample, for the level between samples of one class.
        seed: Of the intervals and of the pairs of samples.
        levels: False gives ``values``, ``mean``, ``count`` and ``undefined`` alone, as fast as they can be had.

    Returns:
        One :class:`Similarity`, or a list of them in the order of ``metrics``.
    """
    first = to_tensor(original, "original")
    second = to_tensor(perturbed, "perturbed")
    one = not isinstance(metrics, (list, tuple))
    if not one and not metrics:
        raise Error("metrics: there is none")
    calls = [call_text(call, "metrics", "metrics") for call in ([metrics] if one else metrics)]
    samples = first.shape[0] if first.dim() else 0
    classes = class_tensor(labels, samples, "labels")
    give = as_given(original)
    results = []
    for compared in _core.measure(first, second, calls, to_native(schema), classes, count(seed, "seed"), bool(levels)):
        results.append(Similarity(compared.summary, values=give(compared.values)))
    return results[0] if one else results
