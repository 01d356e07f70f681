"""What is proven about explanations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from . import _core
from ._arrays import Array
from ._attack import Threat, make_trial
from ._foreign import explainer_calls
from ._model import AnyModel, input_form, prepared
from ._question import make_question
from ._schema import AnySchema
from ._session import listening, warn


@dataclass(frozen=True)
class Certified:
    """What no point of the ball is below, and what an attack came down to."""

    epsilon: float
    #: Every certificate that applies: ``name``, ``mean``, ``values`` (one for each sample) and ``parts``, columns beside them.
    certificates: list[dict[str, Any]]
    #: The highest of them, sample by sample: ``name`` (of the one with the highest mean), ``mean``, ``values``. None: nothing
    #: applies.
    best: dict[str, Any] | None
    #: The lowest values that were found: ``name`` of the attack, ``mean``, ``values``.
    attacked: dict[str, Any]
    #: ``name`` of each certificate that does not apply, and ``why``.
    inapplicable: list[dict[str, str]]
    #: One for each epsilon, where there are several; the fields above are the largest one's.
    curve: list[Certified] | None = None

    def __repr__(self) -> str:
        best = "nothing" if self.best is None else f"{self.best['mean']:.4g} by {self.best['name']}"
        return f"<epsilon {self.epsilon:g}: certified {best}, attacked {self.attacked['mean']:.4g}>"


def certify(
    model: AnyModel,
    inputs: Array,
    *,
    explainer: Any = "saliency",
    metric: Any = "top_k(k=8)",
    threat: Threat | Mapping[str, Any],
    attack: Any = "gauntlet(effort=light)",
    targets: Any = None,
    schema: AnySchema | None = None,
    baseline: Array | None = None,
    background: Array | None = None,
    seed: int = 0,
    threads: int = 0,
    tile: int = 0,
) -> Certified:
    """Proves how much of an explanation holds in a ball, with every certificate that applies, and attacks it.

    >>> threat = holdfast.Threat(norm="l2", epsilon=0.1)
    >>> native = holdfast.load_model(model, inputs)
    >>> found = holdfast.certify(native, inputs, explainer="saliency(target=logit)", metric="top_k(k=2)", threat=threat)
    >>> bool((found.best["values"] <= found.attacked["values"]).all())
    True

    Args:
        model: A module or callable from inputs to logits, or what ``load_model`` gave.
        inputs: Samples, ``[samples, ...]``.
        explainer: The explanation that should hold.
        metric: The similarity that is bounded from below.
        threat: The ball, l2 or linf; several epsilons give a curve.
        attack: What the certificates are bracketed with.
        targets, schema, baseline, background, seed, threads, tile: As for ``attack``.
    """
    form = input_form(model, inputs, schema)
    with prepared(model, form) as native, explainer_calls(explainer, several_allowed=False) as calls:
        trial = make_trial(attack, calls[0], metric, threat)
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
            found = _core.certify(question, trial)
    warn(warned)
    give = form.give
    curve = [_certified(point, give) for point in found.get("curve", [])]
    return _certified(found, give, curve or None)


def _certified(found: dict[str, Any], give: Any, curve: list[Certified] | None = None) -> Certified:
    def arrays(part: dict[str, Any]) -> dict[str, Any]:
        values = {"values": give(torch.tensor(part["values"], dtype=torch.float64))}
        if "parts" in part:
            values["parts"] = {key: give(torch.tensor(own, dtype=torch.float64)) for key, own in part["parts"].items()}
        return {**part, **values}

    return Certified(
        epsilon=found["epsilon"],
        certificates=[arrays(part) for part in found["certificates"]],
        best=found["best"] and arrays(found["best"]),
        attacked=arrays(found["attacked"]),
        inapplicable=found["inapplicable"],
        curve=curve,
    )
