"""Attacks on explanations."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, fields
from typing import Any, Literal

from . import _core
from ._arrays import Array
from ._core import Error
from ._extend import call_text
from ._foreign import explainer_calls
from ._measure import Similarity
from ._model import AnyModel, input_form, prepared
from ._question import make_question, number_or_quotient, word
from ._schema import AnySchema
from ._session import listening, warn


@dataclass(frozen=True)
class Threat:
    """What an attacker may do to an input: stay within ``epsilon`` of it in ``norm``, and inside ``box``.

    >>> threat = holdfast.Threat(norm="linf", epsilon=8 / 255, box=(0, 1))

    Features that the schema calls frozen are left alone.
    """

    #: l2, linf or l1.
    norm: str = "l2"
    #: In the units of the inputs: a number, or text as on the command line ("8/255"). Several are for audits.
    epsilon: float | str | Sequence[float | str] = 1.0
    #: Range of every element, (low, high).
    box: tuple[float, float] | None = None
    #: Perturbed rows of a table stay valid: one level in each one-hot group, whole steps of features that have them.
    valid: bool = False
    #: Which side of a pair may be perturbed: both, first or second.
    sides: str = "both"
    #: Graphs: edges may become negative though none of the sample's is.
    negative_weights: bool = False
    #: The predicted class's probability moves by no more than this; None: its staying the predicted class is enough. Of a model
    #: that gives a value, how far that may move, in its units; it must be given.
    tolerance: float | None = None
    #: Tables: how many categories may take another level; other one-hot columns stay, and the ball is for numbers only.
    switches: int | None = None

    def __post_init__(self) -> None:
        self.values()
        for field, known in (("norm", ("l2", "linf", "l1")), ("sides", ("both", "first", "second"))):
            if getattr(self, field) not in known:
                raise Error(f"{field}: {getattr(self, field)!r} must be one of {', '.join(known)}")

    @property
    def epsilons(self) -> list[float]:
        """Every epsilon as a number."""
        given = self.epsilon
        single = isinstance(given, (str, bytes)) or not isinstance(given, Iterable) or getattr(given, "ndim", None) == 0
        several: list[Any] = [given] if single else [*given]  # type: ignore[misc]
        if not several:
            raise Error("epsilon: there is none")
        return [number_or_quotient("epsilon", one) for one in several]

    def values(self) -> dict[str, Any]:
        """Every field as the engine takes it."""
        taken: dict[str, Any] = {field.name: _value(field, getattr(self, field.name)) for field in fields(self)}
        return taken | {"epsilon": self.epsilons, "box": _bounds(self.box)}


@dataclass(frozen=True, repr=False)
class Attacked:
    """What an attack came to; one row, or one value, for each sample."""

    #: Inputs inside the threat model, predicted as the clean ones are; the clean input where nothing was found.
    perturbed: Array
    original_maps: Array
    perturbed_maps: Array
    logits: Array
    perturbed_logits: Array
    #: One value for each sample, by name; each is an attribute too, so that ``moved.value`` is ``moved.columns["value"]``:
    #: ``target`` (the class that was explained), ``prediction``, ``prediction_after``, ``confidence``, ``confidence_after``
    #: (probabilities of the target), ``norm`` (size of the perturbation in the threat's norm), ``value`` (the metric between the
    #: two maps), ``first_swap`` (iteration at which a feature first left the top k; -1: never), ``label_flips`` (iterates met
    #: whose predicted class had changed), ``evaluations`` (gradient evaluations used), ``iteration`` (at which the perturbed
    #: input was found; 0: it is the clean one), ``projections`` (steps that left ball or box and were brought back),
    #: ``non_finite`` (iterates whose map or gradient was not finite), ``followed`` (steps along a gradient), ``no_gradient``
    #: (steps that found none), ``clean_margin`` and ``margin`` (logit of the predicted class above the runner-up, before and
    #: after), ``late_gain`` (how far an ensemble's value still moved in the last fifth of the work; NaN for other attacks),
    #: ``restart_gap`` (how far the worse one of its two independent restarts stayed behind the value).
    columns: dict[str, Array]
    #: Of an ensemble: which attack found the perturbed input, a name for each sample; None for other attacks.
    component: list[str] | None
    #: Of an ensemble: name, share of the samples won, evaluations a sample and seconds of each; None for other attacks.
    components: list[dict[str, Any]] | None
    #: The metric after every iteration, a list for each sample; None unless asked for.
    trace: list[list[float]] | None
    #: The metric over all samples with its levels.
    summary: Similarity
    #: What random points on the surface of the ball found: attack, samples, mean, low, high; None where they were not asked for,
    #: and beside ``random`` itself. An attack that finds less than they do says nothing about robustness.
    random: dict[str, Any] | None
    attack: str
    explainer: str
    metric: str
    #: Which iterate was really kept; attacks without an order of iterates keep the worst.
    select: str

    @property
    def targets(self) -> Array:
        """The classes that were explained."""
        return self.columns["target"]

    def __getattr__(self, name: str) -> Array:
        # Looked up in the instance's dictionary: copying and unpickling ask before there are columns.
        columns = self.__dict__.get("columns", {})
        if name in columns:
            found: Array = columns[name]
            return found
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}; its columns are {', '.join(columns)}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.columns]

    def __repr__(self) -> str:
        found = self.summary
        mean = "undefined" if found.mean is None else f"{found.mean:.4g}"
        interval = "" if found.low is None else f" [{found.low:.4g}, {found.high:.4g}]"
        return f"<{self.attack} on {self.explainer}, {len(self.value)} samples: {self.metric} {mean}{interval}>"


def _value(field: Field[Any], value: Any) -> Any:
    """What a field holds as a plain value: NumPy has booleans and numbers of its own."""
    if field.type == "bool":
        return bool(value)
    if field.type == "int | None" and value is not None:
        try:
            number = operator.index(value)
        except TypeError:
            raise Error(f"{field.name}: {value!r} is no whole number") from None
        if number < 0 or isinstance(value, bool):
            raise Error(f"{field.name}: {value!r} is no whole number of at least 0")
        return number
    return number_or_quotient(field.name, value) if field.type == "float | None" and value is not None else value


def native_threat(threat: Threat | Mapping[str, Any]) -> _core.Threat:
    """The threat as the engine takes it; a dictionary has the fields of :class:`Threat`."""
    if isinstance(threat, Mapping):
        known = [field.name for field in fields(Threat)]
        for key in threat:
            if key not in known:
                raise Error(f"threat: {key!r} is not one of {', '.join(known)}")
        threat = Threat(**threat)
    if not isinstance(threat, Threat):
        raise Error(f"threat: {threat!r} is no holdfast.Threat; write holdfast.Threat('l2', 0.1)")
    native = _core.Threat()
    for name, value in threat.values().items():
        setattr(native, name, value)
    return native


def make_trial(attack: Any, explainer: str, metric: Any, threat: Threat | Mapping[str, Any]) -> _core.Trial:
    """One explainer, attack and metric under one threat; the explainer as the engine calls it."""
    trial = _core.Trial()
    trial.attacks, trial.metrics = [call_text(attack, "attacks", "attack")], [call_text(metric, "metrics", "metric")]
    trial.explainers, trial.threat = [explainer], native_threat(threat)
    return trial


def _bounds(box: Any) -> tuple[float, float] | None:
    if box is None:
        return None
    try:
        low, high = (float(bound) for bound in box)
    except (TypeError, ValueError):
        raise Error(f"box: {box!r} must be two numbers, (low, high)") from None
    return low, high


def attack(
    model: AnyModel,
    inputs: Any,
    attack: Any = "gauntlet(effort=light)",
    *,
    explainer: Any = "saliency",
    metric: Any = "top_k",
    threat: Threat | Mapping[str, Any],
    targets: Any = None,
    schema: AnySchema | None = None,
    baseline: Array | None = None,
    background: Array | None = None,
    select: Literal["worst", "last"] = "worst",
    precision: Literal["float32", "tf32", "bf16"] = "float32",
    trace: bool = False,
    random_points: bool = True,
    seed: int = 0,
    threads: int = 0,
    tile: int = 0,
) -> Attacked:
    """Moves the explanation while the prediction stays.

    >>> threat = holdfast.Threat(norm="l2", epsilon=0.5)
    >>> moved = holdfast.attack(model, inputs, "er(steps=20)", metric="top_k(k=2)", threat=threat)
    >>> bool((moved.prediction == moved.prediction_after).all()), bool((moved.norm <= 0.5 + 1e-6).all())
    (True, True)

    Every result was verified: it lies inside the threat model, and its predicted class is the clean one's.

    Args:
        model: A module or callable from inputs to logits, or what ``load_model`` gave. A module runs in evaluation mode and is
            left in the mode it was in.
        inputs: Samples, ``[samples, ...]``: tensors, arrays, lists, a pandas frame, a Dataset or DataLoader.
        attack: Its name with options; ``holdfast.list("attacks")`` shows them.
        explainer: The explanation to attack; also a Captum attribution object or a SHAP explainer.
        metric: The similarity to break. Without a k: that of the metric, or the one that the explainer usually takes.
        threat: What the attacker may do.
        targets: The classes to explain, one for each sample or one for all; those predicted when left out.
        schema: What is known about the features: one-hot groups, frozen features; a dictionary, or the path of a schema file.
        baseline: One sample to compare with, for explainers with ``baseline=given``.
        background: Rows of the data, for explainers that compare with them.
        select: Which iterate to keep: the worst for the defender, or the last as the papers do.
        precision: How precisely directions are computed, for models on a GPU. Points are judged and verified in float32.
        trace: Record the metric after every iteration.
        random_points: Try random points beside the attack, and warn where they find more.
        seed: Of every random number.
        threads: Tiles computed side by side; 0: one for each core. Python's models run on the calling thread.
        tile: Samples computed at once; 0: chosen by the size of a sample.
    """
    form = input_form(model, inputs, schema)
    with prepared(model, form) as native, explainer_calls(explainer, several_allowed=False) as calls:
        trial = make_trial(attack, calls[0], metric, threat)
        if len(trial.threat.epsilon) != 1:
            raise Error(f"epsilon: {trial.threat.epsilon} are several; holdfast.audit takes them, attack takes one")
        trial.select, trial.precision = word(select, "select"), word(precision, "precision")
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
            found = _core.attack(question, trial, bool(trace), bool(random_points))
    warn(warned)
    give = form.give
    columns = {name: give(values) for name, values in found.columns.items()}
    return Attacked(
        perturbed=form.points(found.perturbed),
        original_maps=form.maps(found.original_maps),
        perturbed_maps=form.maps(found.perturbed_maps),
        logits=give(found.logits),
        perturbed_logits=give(found.perturbed_logits),
        columns=columns,
        component=found.component if any(found.component) else None,
        components=found.components or None,
        trace=found.trace if trace else None,
        summary=Similarity(found.summary, values=columns["value"]),
        random=found.random,
        attack=found.attack,
        explainer=found.explainer,
        metric=found.metric,
        select=found.select,
    )
