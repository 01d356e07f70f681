"""For tests of one's own: explanations that must hold, as an assertion and as a fixture of pytest.

>>> from holdfast.testing import assert_explanations_hold
>>> run = assert_explanations_hold(model, inputs, threat=holdfast.Threat(epsilon=1e-6), metric="top_k(k=2)", at_least=0.9)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ._attack import Threat
from ._audit import audit
from ._conformance import check
from ._model import AnyModel
from ._question import real
from ._run import Run

__all__ = ["assert_explanations_hold", "check"]


def assert_explanations_hold(
    model: AnyModel,
    inputs: Any,
    *,
    threat: Threat | Mapping[str, Any],
    at_least: float,
    explainer: Any = "saliency",
    attack: Any = "gauntlet(effort=light)",
    metric: Any = "top_k",
    **more: Any,
) -> Run:
    """Attacks the explanations and raises AssertionError where the metric falls below ``at_least`` at some epsilon.

    The message shows the value with its interval, the levels it must be read against, the worst sample and the call that
    reproduces it. ``more`` goes to :func:`holdfast.audit`; the finished run comes back.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    at_least = real(at_least, "at_least")
    run = audit(model, inputs, explainer=explainer, attack=attack, metric=metric, threat=threat, progress=False, **more)
    failed = [i for i, row in enumerate(run.rows) if row["mean"] is None or not _holds(row, at_least)]
    if failed:
        told = "".join(f", {name}={value!r}" for name, value in more.items() if isinstance(value, (int, float, str)))
        raise AssertionError("\n".join(_message(run, i, at_least, told) for i in failed))
    return run


def _holds(row: dict[str, Any], limit: float) -> bool:
    return bool(row["mean"] >= limit if row["direction"] == "higher" else row["mean"] <= limit)


def _message(run: Run, index: int, limit: float, more: str) -> str:
    row = run.rows[index]
    sign = "at least" if row["direction"] == "higher" else "at most"
    value = "undefined" if row["mean"] is None else f"{row['mean']:.4f} [{row['low']:.4f}, {row['high']:.4f}]"
    threat = row["threat"]
    lines = [
        f"{row['metric']} of {row['explainer']} under {row['attack']}, {threat['norm']} {threat['epsilon']:g}: "
        f"{value}, {sign} {limit:g} is asked for",
        "  levels: " + ", ".join(f"{key} {_short(row.get(key))}" for key in _LEVELS),
    ]
    if worst := _worst_sample(run, index):
        lines.append(f"  worst sample: {worst}")
    lines.append(
        f"  again: holdfast.audit(model, inputs, explainer={row['explainer']!r}, attack={row['attack']!r}, "
        f"metric={row['metric']!r}, threat=holdfast.Threat({_threat_arguments(threat)}){more})"
    )
    lines.append(f"  report: {run.report()}")
    return "\n".join(lines)


def _threat_arguments(threat: Mapping[str, Any]) -> str:
    """``'l2', 0.1, switches=1``: what makes the row's threat again."""
    known = [field.name for field in fields(Threat) if field.name not in ("norm", "epsilon")]
    more = [f"{name}={threat[name]!r}" for name in known if threat.get(name) is not None]
    return ", ".join([repr(threat["norm"]), repr(threat["epsilon"]), *more])


def _worst_sample(run: Run, index: int) -> str:
    worst = run.worst(1, row=index)
    if not len(worst):
        return ""
    one = worst.samples[0]
    before, after = (worst._features(one[key]) for key in ("top_original", "top_perturbed"))
    return f"{one['sample']}, value {_short(one['value'])}: top {before} became {after}"


def _short(value: Any) -> str:
    return "-" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


# Numbers of a row that the message shows beside its value.
_LEVELS = ("chance", "between", "lift", "effective_sets", "own_advantage", "specific")
# Rows whose worst sample the fixture's message shows.
_WORST_SHOWN = 3


class Auditor:
    """What the fixture ``holdfast_audit`` gives: :func:`holdfast.audit` with the test's own folder.

    Its gates are asserted: ``holdfast_audit(model, inputs, threat=threat, gates=["top_k(k=8) >= 0.6"])``.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._count = 0

    def __call__(self, models: Any, inputs: Any, **more: Any) -> Run:
        __tracebackhide__ = True
        self._count += 1
        more.setdefault("out", self._folder / f"run_{self._count}")
        more.setdefault("progress", False)
        run = audit(models, inputs, **more)
        missed = [gate for gate in run.gates if not gate["met"]]
        if missed:
            rows = [
                f"  {gate['gate']}: {', '.join(_short(one['value']) for one in gate['rows'] if not one['met'])}"
                for gate in missed
            ]
            failed = list(dict.fromkeys(one["row"] for gate in missed for one in gate["rows"] if not one["met"] and "row" in one))
            worst = [f"  {run.rows[i]['model']}: {text}" for i in failed[:_WORST_SHOWN] if (text := _worst_sample(run, i))]
            lines = ["gates were missed:", *rows, *(["worst samples:", *worst] if worst else []), str(run)]
            raise AssertionError("\n".join([*lines, f"report: {run.report()}"]))
        return run
