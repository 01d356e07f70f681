"""What the way through Python costs. Results are compared before a time is reported.

    bench/python_calls.py BUILD/holdfast

- measure of one small map: at most 50 microseconds a call
- audit of a module against the same model from the command line: at most 1.1 times as long
- a metric of Python on 1000 maps against calling it in a loop: at most 1.2 times as long
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import holdfast
import numpy as np
import torch


def best(work, repeats=5):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def small_map():
    first, second = np.random.default_rng(0).random((2, 1, 30))
    top = [set(np.argsort(-row[0], kind="stable")[:8]) for row in (first, second)]
    assert holdfast.measure(first, second, "top_k(k=8)", levels=False).mean == len(top[0] & top[1]) / 8
    calls = 100
    seconds = best(lambda: [holdfast.measure(first, second, "top_k(k=8)") for _ in range(calls)], repeats=50) / calls
    return "measure of one small map, with its levels", seconds * 1e6, "microseconds", 50


def own_metric():
    @holdfast.metric(name="bench_angle")
    def angle(original, perturbed):
        return (original * perturbed).sum(1) / np.sqrt((original**2).sum(1) * (perturbed**2).sum(1))

    first, second = np.random.default_rng(0).random((2, 1000, 200))
    loop = [angle(first[i : i + 1], second[i : i + 1])[0] for i in range(1000)]
    np.testing.assert_allclose(holdfast.measure(first, second, "bench_angle", levels=False).values, loop, rtol=1e-12)
    through = best(lambda: holdfast.measure(first, second, "bench_angle", levels=False))
    alone = best(lambda: [angle(first[i : i + 1], second[i : i + 1]) for i in range(1000)])
    return "a metric of Python on 1000 maps against a loop", through / alone, "times", 1.2


def audit(binary):
    model = torch.nn.Sequential(torch.nn.Linear(30, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
    inputs = torch.rand(200, 30, generator=torch.Generator().manual_seed(0))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        np.save(path / "inputs.npy", inputs.numpy())
        torch.jit.trace(model, inputs[:2]).save(path / "model.pt")
        study = ["--attack", "er(steps=300)", "--epsilon", "0.5", "--metric", "top_k(k=8)", "--threads", "1", "--quiet"]
        command = [binary, "audit", "--model", "model.pt", "--inputs", "inputs.npy", *study]

        def run_command(number=[0]):  # noqa: B006  (a folder of its own each time)
            number[0] += 1
            subprocess.run([*command, "--out", f"cli{number[0]}"], cwd=path, check=True, capture_output=True)
            return holdfast.load_run(path / f"cli{number[0]}")

        def run_python():
            return holdfast.audit(
                model, inputs, attack="er(steps=300)", metric="top_k(k=8)", threat={"epsilon": 0.5}, threads=1, progress=False
            )

        assert abs(run_command().rows[0]["mean"] - run_python().rows[0]["mean"]) < 0.02
        return "audit of a module against the command line", best(run_python, 3) / best(run_command, 3), "times", 1.1


def main():
    torch.set_num_threads(1)
    missed = []
    for name, value, unit, limit in (small_map(), own_metric(), audit(Path(sys.argv[1]).resolve())):
        print(f"{name}: {value:.3g} {unit} (at most {limit})")
        if value > limit:
            missed.append(name)
    sys.exit(f"python_calls: missed: {', '.join(missed)}" if missed else 0)


if __name__ == "__main__":
    main()
