"""What an attack on a GPU spends its time on: kernels and graphs turned off, lower precisions, and the start of the program.

    python bench/cuda_details.py [--holdfast build-cuda/holdfast] [--json FILE]

Times of one iteration come from two runs with different numbers of steps. Models have random weights, as in cuda_attack.py, whose
cases these are. Each line is also a row of the JSON file.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from cuda_attack import CASES

WAYS = {
    "default": {},
    "without kernels": {"HOLDFAST_NO_KERNELS": "1"},
    "without graphs": {"HOLDFAST_NO_GRAPHS": "1"},
    "without both": {"HOLDFAST_NO_KERNELS": "1", "HOLDFAST_NO_GRAPHS": "1"},
}


# What may change how long CUDA takes to start.
SETTINGS = [
    {"DISABLE_ADDMM_CUDA_LT": "1"},
    {"CUDA_MODULE_LOADING": "EAGER"},
    {"CUDA_MODULE_DATA_LOADING": "LAZY"},
    {"HOLDFAST_NO_KERNELS": "1"},
]

# How long the first use of each part takes in plain PyTorch, in a process of its own.
FIRST_USES = """
import time, torch
def first(what, work):
    started = time.perf_counter()
    work()
    torch.cuda.synchronize()
    print(f"first {what} {time.perf_counter() - started:.3f} s")
first("context", lambda: torch.zeros(1, device="cuda"))
x, w = torch.zeros(64, 32, device="cuda"), torch.zeros(32, 32, device="cuda")
first("addition", lambda: x + 1)
first("product", lambda: x @ w)
first("product with a bias", lambda: torch.nn.functional.linear(x, w, w[0]))
first("product in double", lambda: x.double() @ w.double())
first("sort", lambda: x.sort(1, stable=True))
first("convolution", lambda: torch.nn.functional.conv2d(x.view(2, 1, 32, 32), w.view(1, 1, 32, 32)[..., :5, :5]))
first("graph", lambda: torch.cuda.CUDAGraph())
"""


class Bench:
    def __init__(self, program, folder):
        self.program, self.folder, self.rows = program, folder, []

    def add(self, **row):
        self.rows.append(row)
        shown = [f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()]
        print("  ".join(shown), flush=True)

    def run(self, name, attack, *flags, device="cuda", environment=None):
        case = CASES[name]
        out = f"{self.folder}/{name}-out"
        command = [self.program, "attack", "--model", f"{self.folder}/{name}.pt", "--inputs", f"{self.folder}/{name}.npy"]
        command += ["--attack", attack, "--norm", "l2", "--epsilon", str(case["epsilon"]), "--metric", case["metric"]]
        command += ["--device", device, "--json", "--out", out, *flags]
        command += [] if "HOLDFAST_LOG" in (environment or {}) else ["--quiet"]
        started = time.perf_counter()
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=os.environ | (environment or {}),
        )
        seconds = time.perf_counter() - started
        if done.returncode:
            raise SystemExit(f"{name} {attack} {flags} {environment}: {done.stderr}")
        result = json.loads(Path(f"{out}/result.json").read_text())
        values = [sample["value"] for sample in result["samples"] if sample["value"] is not None]
        return seconds, float(np.mean(values)), done.stderr

    def iteration(self, name, label, flags=(), environment=None):
        few, many = CASES[name]["steps"]
        times = {}
        for steps in (few, many):
            runs = [self.run(name, f"er(steps={steps})", "--no-random", *flags, environment=environment) for _ in range(2)]
            times[steps] = min(seconds for seconds, _, _ in runs)
        warned = [line for line in runs[0][2].splitlines() if "warning" in line]
        ms = 1e3 * (times[many] - times[few]) / (many - few)
        self.add(work=f"er, {name}", way=label, ms=ms, mean=runs[0][1], start_s=times[few] - few * ms / 1e3, warned=warned[:1])

    def start(self, name):
        seconds = [self.timed([self.program, "--version"]) for _ in range(3)]
        self.add(work="start", way="--version", s=statistics.median(seconds))
        for device in ("cpu", "cuda"):
            for attack in ("er(steps=1)", "gauntlet(effort=light)"):
                if device == "cpu" and attack != "er(steps=1)":
                    continue
                first = self.run(name, attack, device=device)
                again = self.run(name, attack, device=device)
                self.add(work=f"start, {name}", way=f"{attack} {device}", s=again[0], first_s=first[0], mean=again[1])
        for setting in SETTINGS:
            seconds = min(self.run(name, "er(steps=1)", environment=setting)[0] for _ in range(2))
            self.add(work=f"start, {name}", way=f"er(steps=1) cuda {setting}", s=seconds)
        first = subprocess.run([sys.executable, "-c", FIRST_USES], capture_output=True, text=True)
        for line in (first.stdout or first.stderr[-300:]).splitlines():
            self.add(work="plain PyTorch", way=line)
        log = self.run(name, "gauntlet(effort=light)", environment={"HOLDFAST_LOG": "debug"})[2]
        for line in re.findall(r"[0-9.]+ s: .*", log):
            self.add(work="start, when", way=line)

    @staticmethod
    def timed(command):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        return time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--holdfast", default="build-cuda/holdfast")
    parser.add_argument("--json")
    parser.add_argument("--only", nargs="*", default=["er", "start", "precision"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            torch.manual_seed(0)
            model = case["make"]().eval()
            x = torch.rand(case["shape"]) if name == "cnn" else torch.randn(case["shape"])
            torch.jit.trace(model, x[:2]).save(f"{folder}/{name}.pt")
            np.save(f"{folder}/{name}.npy", x.numpy())
        bench = Bench(given.holdfast, folder)
        if "er" in given.only:
            bench.add(work="er, mlp", way="cpu", mean=bench.run("mlp", "er(steps=1200)", "--no-random", device="cpu")[1])
            for label, environment in WAYS.items():
                bench.iteration("mlp", label, environment=environment)
            for label in ("default", "without kernels"):
                bench.iteration("cnn", label, environment=WAYS[label])
        if "start" in given.only:
            bench.start("mlp")
        if "precision" in given.only:
            for precision in ("float32", "tf32", "bf16"):
                bench.iteration("cnn", precision, ("--precision", precision))
            for precision in ("float32", "tf32", "bf16"):
                seconds, mean, _ = bench.run("cnn", "gauntlet(effort=light)", "--precision", precision)
                bench.add(work="gauntlet(effort=light), cnn", way=precision, s=seconds, mean=mean)
    if given.json:
        Path(given.json).write_text(
            json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": bench.rows}, indent=1)
        )


if __name__ == "__main__":
    main()
