"""Epsilons, k and a threshold for one's own data."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any, Literal

from . import _core
from ._attack import Threat
from ._foreign import explainer_calls
from ._model import AnyModel, input_form, prepared
from ._question import make_question, real, word
from ._schema import AnySchema
from ._session import listening, warn


@dataclass(frozen=True)
class Suggestion:
    """What :func:`choose_threat` proposes, and why. ``print`` it to read the reasons."""

    threat: Threat
    #: Size of the top set, and the metric that follows from it.
    k: int
    metric: str
    gates: list[str]
    #: One sentence each.
    reasons: list[str]
    #: What was measured: rounding, noise, neighbour, between, and the curve of value against epsilon.
    facts: dict[str, Any]

    def __str__(self) -> str:
        return "\n".join(self.reasons)

    def _repr_html_(self) -> str:
        return f"<ul>{''.join(f'<li>{html.escape(reason)}</li>' for reason in self.reasons)}</ul>"


def choose_threat(
    model: AnyModel,
    inputs: Any,
    *,
    explainer: Any = "saliency",
    norm: Literal["l2", "linf", "l1"] | None = None,
    noise: float | None = None,
    tolerance: float | None = None,
    schema: AnySchema | None = None,
    background: Any = None,
    seed: int = 0,
    threads: int = 0,
) -> Suggestion:
    """Proposes epsilons, k and a gate for these samples and this model, and says why. ``holdfast audit --suggest`` is the same.

    >>> chosen = holdfast.choose_threat(model, inputs)
    >>> len(chosen.threat.epsilons), chosen.metric, chosen.gates
    (3, 'top_k(k=1)', ['top_k(k=1).lift >= 0.2'])

    The smallest epsilon is a change that says nothing: rounding, or the noise of measuring again. The largest is half of the
    distance to the nearest other sample. A quick attack shows what lies between.

    Args:
        model: A module or callable from inputs to logits, or what ``load_model`` gave.
        inputs: Samples, ``[samples, ...]``; also a pandas frame.
        explainer: Whose explanations are asked about.
        norm: l2, linf or l1; None: linf for images, l2 for all else.
        noise: Standard deviation of measuring a feature again, in the units of the inputs.
        tolerance: How far the predicted class's probability, or the value of a regression, may move and count as the same. When
            left out, a tenth of the standard deviation is proposed for a value.
        schema: What is known about the features.
        background: Rows of the data, to compare distances with.
        seed: Of every random number.
        threads: Tiles computed side by side; 0: one for each core.
    """
    asked = None if norm is None else word(norm, "norm")
    spread = None if noise is None else real(noise, "noise")
    same = None if tolerance is None else real(tolerance, "tolerance")
    form = input_form(model, inputs, schema)
    with prepared(model, form) as native, explainer_calls(explainer, several_allowed=False) as calls, listening() as warned:
        question = make_question(
            native,
            form,
            targets=None,
            baseline=None,
            background=background,
            seed=seed,
            threads=threads,
            tile=0,
        )
        found = _core.choose_threat(question, calls[0], asked, spread, same)
    warn(warned)
    threat = found.pop("threat")
    box = threat.get("box")
    return Suggestion(
        threat=Threat(
            threat["norm"],
            found_epsilons(threat),
            box=tuple(box) if box else None,
            valid=threat.get("valid", False),
            tolerance=threat.get("tolerance"),
        ),
        k=found.pop("k"),
        metric=found.pop("metric"),
        gates=found.pop("gates"),
        reasons=found.pop("reasons"),
        facts=found,
    )


def found_epsilons(threat: dict[str, Any]) -> list[float]:
    epsilon = threat["epsilon"]
    return list(epsilon) if isinstance(epsilon, list) else [epsilon]
