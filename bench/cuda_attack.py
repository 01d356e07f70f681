"""Attacks on a GPU against the same passes in plain PyTorch: eager, and as a CUDA graph.

    python bench/cuda_attack.py [--holdfast build-cuda/holdfast] [--json FILE]

Times of one iteration come from two runs with different numbers of steps, so that starting the program does not count. They are
given twice: of the attack alone, and with the random points that are tried beside it and grow with its steps on large samples.
Before anything is timed, the attack's values are compared with those of the same attack on the CPU.
"""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn


def mlp():
    return nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 2))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 49, 1024),
        nn.ReLU(),
        nn.Linear(1024, 10),
    )


CASES = {
    "mlp": {"make": mlp, "shape": (1000, 30), "metric": "top_k(k=8)", "epsilon": 0.05, "k": 8, "steps": (200, 1200)},
    "cnn": {"make": cnn, "shape": (512, 1, 28, 28), "metric": "top_k(k=100)", "epsilon": 0.05, "k": 100, "steps": (20, 120)},
}


def attack(program, folder, case, name, steps, device, extra=()):
    started = time.perf_counter()
    call = f"er(steps={steps})" if isinstance(steps, int) else steps
    done = subprocess.run(
        [
            program,
            "attack",
            "--model",
            f"{folder}/{name}.pt",
            "--inputs",
            f"{folder}/{name}.npy",
            "--explainer",
            "saliency",
            "--attack",
            call,
            "--norm",
            "l2",
            "--epsilon",
            str(case["epsilon"]),
            "--metric",
            case["metric"],
            "--device",
            device,
            "--quiet",
            "--json",
            "--out",
            f"{folder}/{name}-{device}",
            *extra,
        ],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    result = json.loads(Path(f"{folder}/{name}-{device}/result.json").read_text())
    return time.perf_counter() - started, result


def mean_value(result):
    values = [sample["value"] if "value" in sample else sample["metrics"][0]["value"] for sample in result["samples"]]
    return float(np.mean([value for value in values if value is not None]))


def passes(model, x, clean, target, weights, epsilon, step):
    x = x.detach().requires_grad_()
    probability = model(x).softmax(1).gather(1, target).sum()
    (maps,) = torch.autograd.grad(probability, x, create_graph=True)
    (slope,) = torch.autograd.grad((maps * weights).sum(), x)
    flat = slope.flatten(1)
    moved = x.detach() - step * (flat / flat.norm(dim=1, keepdim=True).clamp_min(1e-30)).view_as(x)
    difference = (moved - clean).flatten(1)
    size = difference.norm(dim=1, keepdim=True).clamp_min(epsilon)
    return clean + (difference * (epsilon / size)).view_as(clean)


def plain_loop(case, model, x, as_graph):
    model = model.cuda()
    clean = x.cuda()
    target = model(clean).argmax(1, keepdim=True)
    weights = torch.randn_like(clean)
    point = clean.clone()
    step = case["epsilon"] / 100
    one = lambda: point.copy_(passes(model, point, clean, target, weights, case["epsilon"], step))  # noqa: E731
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(5):
            one()
    torch.cuda.synchronize()
    if as_graph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            one()
        one = graph.replay
    times = []
    for _ in range(3):
        started = time.perf_counter()
        for _ in range(50):
            one()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - started) / 50)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--holdfast", default="build-cuda/holdfast")
    parser.add_argument("--json")
    parser.add_argument("--only", nargs="*", default=list(CASES))
    parser.add_argument("--no-gauntlet", action="store_true")
    given = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in given.only:
            case = CASES[name]
            torch.manual_seed(0)
            model = case["make"]().eval()
            x = torch.rand(case["shape"]) if name == "cnn" else torch.randn(case["shape"])
            torch.jit.trace(model, x[:2]).save(f"{folder}/{name}.pt")
            np.save(f"{folder}/{name}.npy", x.numpy())
            few, many = case["steps"]
            on_gpu = mean_value(attack(given.holdfast, folder, case, name, few, "cuda")[1])
            on_cpu = mean_value(attack(given.holdfast, folder, case, name, few, "cpu")[1])
            if abs(on_gpu - on_cpu) > 0.01:
                raise SystemExit(f"{name}: mean value {on_gpu} on the GPU, {on_cpu} on the CPU")
            timed = {}
            for flags in [("--no-random",), ()]:
                short = min(attack(given.holdfast, folder, case, name, few, "cuda", flags)[0] for _ in range(2))
                long = min(attack(given.holdfast, folder, case, name, many, "cuda", flags)[0] for _ in range(2))
                timed[flags] = (long - short) / (many - few)
            ours, with_random = timed[("--no-random",)], timed[()]
            eager, graph = plain_loop(case, model, x, False), plain_loop(case, model, x, True)
            row = {
                "case": name,
                "mean": on_gpu,
                "mean_cpu": on_cpu,
                "ms": 1e3 * ours,
                "ms_with_random_points": 1e3 * with_random,
                "eager_ms": 1e3 * eager,
                "graph_ms": 1e3 * graph,
                "ratio_eager": ours / eager,
                "ratio_graph": ours / graph,
                "start_s": short - few * with_random,
            }
            if not given.no_gauntlet:
                seconds, result = attack(given.holdfast, folder, case, name, "gauntlet(effort=light)", "cuda")
                row |= {"gauntlet_s": seconds, "gauntlet_mean": mean_value(result)}
            print(json.dumps(row), flush=True)
            rows.append(row)
    if given.json:
        Path(given.json).write_text(
            json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}, indent=1)
        )


if __name__ == "__main__":
    main()
