"""What `gauntlet` costs on tables: 500 samples, n-32-2 networks, one thread, standard effort, in seconds of processor time.

usage: gauntlet_tables.py [HOLDFAST]        HOLDFAST: the program, default build/holdfast

Networks of relu, with about as many features as COMPAS and Adult have when encoded, which `cells` mostly decides exactly; and of
softplus, where walks do all the work. Trained on a rule of thresholds. The result is checked first: gauntlet must be well below
the worst of 1000 random points. Limits are a third of the time that was measured first, the start of the
program included.
"""

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "build/holdfast"
SAMPLES = 500
# Features, activation, epsilon, seconds at most, and how far below random points the result must be.
SUBJECTS = [
    (16, "relu", 1, 2.1, 0.05),
    (104, "relu", 1, 6.8, 0.05),
    (30, "softplus", 0.3, 2.2, 0.03),
    (104, "softplus", 1, 4.5, 0.05),
]


def make_model(features, activation="relu"):
    """An n-32-2 network that learned a rule of thresholds of its features."""
    generator = torch.Generator().manual_seed(features)
    rows = torch.rand(4000, features, generator=generator)
    planes = torch.randn(12, features, generator=generator)
    labels = ((rows - 0.5) @ planes.T > 0).float() @ torch.randn(12, generator=generator) > 0
    torch.manual_seed(features)
    bend = torch.nn.Softplus() if activation == "softplus" else torch.nn.ReLU()
    model = torch.nn.Sequential(torch.nn.Linear(features, 32), bend, torch.nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(300):
        loss = torch.nn.functional.cross_entropy(model(rows), labels.long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval().requires_grad_(False), rows[:SAMPLES]


def attack(folder, name, epsilon):
    """Mean value and processor seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subject = ["--model", folder / "model.pt", "--inputs", folder / "inputs.npy"]
    what = ["--attack", name, "--norm", "l2", "--epsilon", str(epsilon), "--metric", "top_k(k=8)", "--threads", "1", "--quiet"]
    subprocess.run(
        [PROGRAM, "attack", *subject, *what, "--no-random", "--out", folder / "out"], check=True, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = json.loads((folder / "out" / "result.json").read_text())
    return result["metric"]["mean"], after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    torch.set_num_threads(1)
    failed = False
    for features, activation, epsilon, limit, ahead in SUBJECTS:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            model, inputs = make_model(features, activation)
            torch.jit.script(model).save(folder / "model.pt")
            np.save(folder / "inputs.npy", inputs.numpy())
            random, _ = attack(folder, "random(samples=1000)", epsilon)
            strong, seconds = attack(folder, "gauntlet", epsilon)
        print(f"gauntlet, MLP {features}-32-2 of {activation}, {SAMPLES} samples: ", end="")
        print(f"{seconds:.1f} s of one core (limit {limit:g}); ", end="")
        print(f"top_k(k=8) {strong:.3f}, worst of 1000 random points {random:.3f}")
        failed |= seconds > limit or strong > random - ahead
    sys.exit(failed)


if __name__ == "__main__":
    main()
