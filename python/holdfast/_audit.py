"""Audits: models x explainers x attacks x epsilons x metrics, with a report and gates."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch

from . import _core
from ._arrays import Array
from ._attack import Threat, native_threat
from ._core import Error
from ._data import read_labels
from ._extend import OF_ONE_MODEL, call_text, own_digests, own_digests_of_text
from ._foreign import explainer_calls
from ._model import AdaptedModel, AnyModel, Model, device_of, input_form, name_of, prepared
from ._question import count, make_question, word
from ._run import Run
from ._schema import AnySchema
from ._session import listening, warn

# One method or several: names with options, or functions that were made into methods.
Calls: TypeAlias = "Any | Sequence[Any]"


def audit(
    models: AnyModel | Mapping[str, AnyModel],
    inputs: Any,
    *,
    labels: Any = None,
    explainer: Calls = "saliency",
    attack: Calls = "gauntlet(effort=light)",
    metric: Calls = "top_k",
    measure: Calls = (),
    threat: Threat | Mapping[str, Any],
    gates: str | Sequence[str] | None = (),
    targets: Any = None,
    schema: AnySchema | None = None,
    baseline: Array | None = None,
    background: Array | None = None,
    select: Literal["worst", "last"] = "worst",
    precision: Literal["float32", "tf32", "bf16"] = "float32",
    title: str = "audit",
    name: str = "inputs",
    worst: int = 4,
    out: str | os.PathLike[str] | None = None,
    restart: bool = False,
    seed: int = 0,
    threads: int = 0,
    tile: int = 0,
    progress: bool | None = None,
) -> Run:
    """Attacks the explanations of one model or several, measures what moved, and holds it against gates.

    >>> threat = holdfast.Threat(norm="l2", epsilon=[0.1, 0.3])
    >>> run = holdfast.audit({"plain": model}, inputs, attack="er(steps=5)", metric="top_k(k=2)", threat=threat,
    ...                      gates=["top_k(k=2) >= 0.1"])
    >>> len(run.rows), run.passed
    (2, True)

    It is the engine of ``holdfast audit``, and writes the same run folder. Called again with the same models, samples and
    settings it reads the finished run; an interrupted one goes on where it stopped.

    Args:
        models: A model, or several by name: modules, functions to logits, or what ``load_model`` gave.
        inputs: Samples, ``[samples, ...]``, the same for all models: tensors, arrays, lists, a pandas frame, a Dataset or
            DataLoader (read batch by batch into a file). Rows with a value that is not finite are left out.
        labels: True classes, for accuracy; when left out those of a Dataset or DataLoader, if they are whole numbers.
        explainer: One explainer or several, with options; also Captum attribution objects and SHAP explainers.
        attack: One attack or several. What random points find is measured beside each.
        metric: One metric or several.
        measure: Measures of the model around each sample; ``holdfast.list("measures")`` shows them.
        threat: What the attacker may do; several epsilons give a row each.
        gates: What must hold: ``"top_k(k=8) >= 0.6"``. ``run.passed`` says whether all did.
        targets: The classes to explain, one for each sample or one for all; those predicted when left out.
        schema: What is known about the features; a dictionary, or the path of a schema file.
        baseline: One sample to compare with, for explainers with ``baseline=given``.
        background: Rows of the data, for explainers that compare with them.
        select: Which iterate to keep: the worst for the defender, or the last as the papers do.
        precision: How precisely directions are computed, for models on a GPU. Points are judged and verified in float32.
        title: Of the report.
        name: What the samples are called in tables.
        worst: How many samples of each row the report shows.
        out: The run folder; a new temporary one when left out.
        restart: Replace another run that ``out`` holds.
        seed: Of every random number.
        threads: Tiles computed side by side; 0: one for each core. Python's models run on the calling thread.
        tile: Samples computed at once; 0: chosen by the size of a sample.
        progress: A bar (of tqdm, where it is installed); None: in terminals and notebooks.
    """
    if isinstance(models, (str, os.PathLike)):
        raise Error(f"models: {os.fspath(models)!r} is a path; read it with load_model, or a configuration with audit_config")
    named = _named(models)
    form = input_form(next(iter(named.values())), inputs, schema)
    if _is_narrow(form.array):  # a run's arrays are float32 or float64
        form = replace(form, array=form.array.float())
    if form.function is not None and len(named) > 1:
        raise Error(
            "models: an audit of token ids or several inputs takes one model at a time, since each packs them its own way; "
            "audit each, and holdfast.compare(run_a, run_b) has the differences"
        )
    choice = _core.AuditChoice()
    trial = _core.Trial()
    trial.attacks, trial.metrics = _calls(attack, "attack"), _calls(metric, "metric")
    trial.measures = _calls(measure, "measure", may_be_none=True)
    trial.threat, trial.select = native_threat(threat), word(select, "select")
    trial.precision = word(precision, "precision")
    choice.title, choice.dataset, choice.worst = str(title), str(name), count(worst, "worst")
    choice.gates, choice.restart = _texts(gates, "gates"), bool(restart)
    if (classes := read_labels(labels, form.given)) is not None:
        choice.labels = classes
    choice.out = _folder(out)
    choice.call = f"holdfast.audit({', '.join(named)})"
    with ExitStack() as stack:
        trial.explainers = stack.enter_context(explainer_calls(explainer))
        for call in trial.explainers:
            if len(named) > 1 and call.partition("(")[0] in OF_ONE_MODEL:
                raise Error(
                    f"explainer: {call} explains the one model that it was made with, and {len(named)} are audited; audit each "
                    "with its own, and holdfast.compare(run_a, run_b) has the differences"
                )
        choice.trial = trial
        choice.methods = json.dumps(_own(trial))
        natives = {key: stack.enter_context(prepared(model, form)) for key, model in named.items()}
        question = make_question(
            next(iter(natives.values())),
            form,
            targets=targets,
            baseline=baseline,
            background=background,
            seed=seed,
            threads=threads,
            tile=tile,
        )
        with listening(progress) as warned:
            _core.audit(question, [_core.NamedModel(key, natives[key], _content(named[key])) for key in named], choice)
    run = Run(choice.out, warned)
    warn(run.warnings)
    return run


def audit_config(
    path: str | os.PathLike[str],
    *,
    gates: str | Sequence[str] | None = (),
    overrides: Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    restart: bool = False,
    device: str | torch.device = "cpu",
    threads: int = 0,
    tile: int = 0,
    progress: bool | None = None,
) -> Run:
    """Runs a configuration of ``holdfast audit``; methods of one's own may be named in it.

    Args:
        path: The TOML file; docs/audit.md shows its keys.
        gates: More gates than it has.
        overrides: Keys in place of its own: ``{"threat.epsilon": 0.5}``.
        out: The run folder; a new temporary one when left out.
        restart: Replace another run that ``out`` holds.
        device: Where models compute.
        threads: Tiles computed side by side; 0: one for each core.
        tile: Samples computed at once; 0: chosen by the size of a sample.
        progress: A bar (of tqdm, where it is installed); None: in terminals and notebooks.
    """
    choice = _core.AuditChoice()
    choice.gates, choice.restart, choice.out = _texts(gates, "gates"), bool(restart), _folder(out)
    choice.call = f"holdfast.audit_config({os.fspath(path)})"
    choice.methods = json.dumps(own_digests_of_text(Path(path).read_text() if os.path.isfile(path) else ""))
    if overrides is not None and not isinstance(overrides, Mapping):
        raise Error(f"overrides: {overrides!r} is no dictionary; write {{'threat.epsilon': 0.5}}")
    changed = [f"{key}={json.dumps(value)}" for key, value in (overrides or {}).items()]
    with listening(progress) as warned:
        _core.audit_config(
            os.fspath(path), choice, changed, count(tile, "tile"), count(threads, "threads", limit=2**31), device_of(device)
        )
    run = Run(choice.out, warned)
    warn(run.warnings)
    return run


def _is_narrow(array: torch.Tensor) -> bool:
    return array.dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16)


def _folder(out: str | os.PathLike[str] | None) -> str:
    # A temporary folder itself is made by the engine, after its checks.
    return os.path.join(tempfile.gettempdir(), f"holdfast_{secrets.token_hex(8)}") if out is None else os.fspath(out)


def _own(trial: _core.Trial) -> dict[str, str]:
    kinds = {"explainers": trial.explainers, "attacks": trial.attacks, "metrics": trial.metrics, "measures": trial.measures}
    return own_digests(kinds)


def _named(models: Any) -> dict[str, Any]:
    if not isinstance(models, Mapping):
        if isinstance(models, AdaptedModel):
            return {next(iter(_named(models.model))): models}
        if isinstance(models, (list, tuple)):
            raise Error("models: is a list; give a dictionary, {name: model}, or one model")
        return {models.name if isinstance(models, Model) else name_of(models): models}
    if not models:
        raise Error("models: there is none")
    for name in models:
        if not isinstance(name, str) or not name:
            raise Error(f"models: {name!r} is no name; give a dictionary of models by name")
    return dict(models)


def _calls(calls: Any, what: str, may_be_none: bool = False) -> list[str]:
    if calls is None and may_be_none:
        return []
    several = list(calls) if isinstance(calls, (list, tuple)) else [calls]
    if not several and not may_be_none:
        raise Error(f"{what}: there is none")
    return [call_text(one, f"{what}s", what) for one in several]


def _texts(texts: Any, what: str) -> list[str]:
    if texts is None:
        return []
    if not isinstance(texts, (str, list, tuple)):
        raise Error(f"{what}: {texts!r} is neither text nor a list of texts")
    return [word(text, what) for text in ([texts] if isinstance(texts, str) else texts)]


def _content(model: Any) -> str:
    """What the weights of a module are; the logits at the samples are part of a run's identity too."""
    if isinstance(model, Model):
        return ""
    if isinstance(model, AdaptedModel):
        return f"{_content(model.model)} {model.output_kind} {model.output_name}".strip()
    if not isinstance(model, torch.nn.Module):
        return f"function {getattr(model, '__qualname__', type(model).__name__)}"
    digest = hashlib.sha256()
    for name, value in model.state_dict().items():
        digest.update(name.encode())
        if isinstance(value, torch.Tensor):
            plain = value.detach().cpu().contiguous()
            digest.update(f"{plain.dtype} {tuple(plain.shape)}".encode())
            digest.update(plain.reshape(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b"")
    return f"{type(model).__qualname__} {digest.hexdigest()}"
