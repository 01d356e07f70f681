"""Stability measures against Quantus, the same torch modules and explanations, 200 points around each sample.

usage: stability_quantus.py [ROUNDS]

Scores are compared first, with Quantus' points and quantus=true: within 1e-4; for relative stability within 0.1 % at the median
sample and 1 % at all (relative changes of map elements near zero are rounding in single precision; in double precision
tests/parity/test_quantus.py asks for 1e-4). Then both draw their own
points; medians of rounds that alternate between the two. Quantus gets whole batches and a saliency without overhead; with its
default batches of 64 it takes longer on the MLP. Speed = Quantus' time on one thread / ours. Exits 1 when scores differ or a
speed is below its limit.
"""

import os
import pathlib
import statistics
import sys
import time

import holdfast
import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "parity"))
import quantus_runs

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
POINTS = 200
METHODS = {
    "max_sensitivity": "MaxSensitivity",
    "local_lipschitz": "LocalLipschitzEstimate",
    "relative_input_stability": "RelativeInputStability",
}


def mlp():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(30, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    return model.eval(), np.random.default_rng(1).uniform(0.1, 1, (200, 30)).astype(np.float32)


def cnn_chen():
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(
        *(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(3136, 1024), nn.ReLU(), nn.Linear(1024, 10)),
    )
    return model.eval(), np.random.default_rng(1).uniform(0.1, 1, (16, 1, 28, 28)).astype(np.float32)


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def check(method, model, inputs):
    scores, points = quantus_runs.run(METHODS[method], model, inputs, points=POINTS, batch_size=len(inputs))
    call = f"{method}(from=given,quantus=true{f',batch={len(inputs)}' if method == 'local_lipschitz' else ''})"
    found = holdfast.measure_model(model, inputs, call, endpoints=points, threads=1).values
    assert (np.isnan(found) == np.isnan(scores)).all(), method
    apart = np.abs(found - scores) / np.abs(scores)
    most, median = (1e-2, 1e-3) if method == "relative_input_stability" else (1e-4, 1e-4)
    assert np.nanmax(apart) < most and np.nanmedian(apart) < median, f"{method} differs by {np.nanmax(apart)}"


def compare(label, method, rival, ours):
    """Ours: (label, work, lowest speed that passes or None)."""
    times = {name: [] for name, _, _ in ours}
    theirs = []
    for _ in range(ROUNDS):
        theirs.append(seconds(rival))
        for name, work, _ in ours:
            times[name].append(seconds(work))
    passed = True
    other = statistics.median(theirs)
    for name, _, limit in ours:
        own = statistics.median(times[name])
        passed &= limit is None or other / own >= limit
        print(
            f"{label + ': ' + method:45} {name:23} {own * 1e3:8.1f} ms, Quantus {other * 1e3:8.1f} ms: {other / own:6.2f} times"
            + (f" (limit {limit})" if limit else "")
        )
    return passed


def main():
    torch.set_num_threads(1)
    passed = True
    for label, (model, inputs), limit, both in (
        ("mlp 30-32-2, 200 samples", mlp(), 60, None),
        ("cnn_chen, 16 images", cnn_chen(), 1.35, 2.3),
    ):
        native = holdfast.load_model(model, example=inputs)
        for method, rival in METHODS.items():
            check(method, model, inputs)

            def measure(subject, threads, method=method, inputs=inputs):
                # One tile for each thread.
                tile = -(-len(inputs) // threads)
                holdfast.measure_model(subject, inputs, f"{method}(samples={POINTS})", threads=threads, tile=tile)

            def quantus(rival=rival, model=model, inputs=inputs):
                quantus_runs.score(rival, model, inputs, points=POINTS, batch_size=len(inputs))

            ours = [("load_model", lambda n=native: measure(n, 1), limit), ("the module", lambda m=model: measure(m, 1), None)]
            if os.cpu_count() > 1:
                ours.append(("load_model, both cores", lambda n=native: measure(n, 2), both))
            passed &= compare(label, method, quantus, ours)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
