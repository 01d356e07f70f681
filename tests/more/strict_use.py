"""A user's script that mypy --strict checks; it is never run."""

from __future__ import annotations

import holdfast
import numpy as np
import numpy.typing as npt
import torch
from holdfast.testing import assert_explanations_hold, check

model = torch.nn.Linear(4, 2)
rows = torch.rand(3, 4)


@holdfast.metric
def same_top(original: npt.NDArray[np.float64], perturbed: npt.NDArray[np.float64], k: int = 8) -> npt.NDArray[np.float64]:
    return np.ones(len(original))


@holdfast.explainer(differentiable=True)
def mine(model: torch.nn.Module, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return x


check(same_top)
values = same_top(np.ones((1, 2)), np.ones((1, 2)), k=1)  # a decorated function keeps its type

maps = holdfast.explain(model, rows, mine)

found: float | None = holdfast.measure(maps, maps, same_top).mean

several: list[holdfast.Similarity] = holdfast.measure(maps, maps, ["top_k(k=2)", same_top])

moved = holdfast.attack(model, rows, "er(steps=3)", metric="top_k(k=2)", threat=holdfast.Threat("l2", "8/255"))

chosen = holdfast.choose_threat(model, rows)
run = holdfast.audit({"a": model}, rows, threat=chosen.threat, metric=chosen.metric, gates=chosen.gates)
frame = run.to_frame()
worst = run.worst(3)
figure = worst.plot()
other = holdfast.load_run("runs/mine")
passed: bool = run.passed
print(holdfast.compare(run, other), run.report("r.html"))
trained = holdfast.train("mlp", rows, [0, 1, 1], recipe="r2et")

module = holdfast.train(model, rows, [0, 1, 1])

loss, parts = holdfast.objective("r2et(top_k=8)")(model, rows, torch.zeros(3), progress=0.5)
assert_explanations_hold(model, rows, threat=holdfast.Threat("l2", 0.1), metric="top_k(k=2)", at_least=0.5)
written: str = holdfast.attacks.er(steps=3)
number: float = parts["ce"]
