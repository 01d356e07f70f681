"""What the fault tests run: small commands of every kind that writes, and what they leave."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("HOLDFAST_BINARY", str(ROOT / "build" / "holdfast"))


def prepare(folder: Path) -> None:
    """A 6-8-3 network, 12 samples, a finished audit for `report`, a finished training, and configurations."""
    random = np.random.default_rng(0)
    sizes = {"hidden1.weight": (8, 6), "hidden1.bias": 8, "output.weight": (3, 8), "output.bias": 3}
    weights = {name: random.normal(size=size).astype(np.float32) for name, size in sizes.items()}
    save_file(weights, folder / "model.safetensors", metadata={"architecture": "mlp(inputs=6,hidden=8,classes=3)"})
    np.save(folder / "inputs.npy", random.uniform(size=(12, 6)).astype(np.float32))
    (folder / "train.toml").write_text(
        '[dataset]\nname = "synthetic(samples=200)"\n[model]\narchitecture = "mlp(hidden=8)"\n[train]\nepochs = 3\n'
    )
    (folder / "table.toml").write_text(TABLE)
    made = run([*COMMANDS["audit"][:-1], "finished"], folder)
    assert made.returncode in (0, 1), made.stderr
    trained = run(TRAINED, folder)
    assert trained.returncode == 0, trained.stderr


# A table of one's own, on samples that every machine has.
TABLE = """
name = "mine/synthetic"
paper = "r2et"
summary = "P@2 of two methods"
methods = ["Vanilla", "SP"]
[[setting]]
like = "table"
name = "synthetic"
dataset = "synthetic"
data = "synthetic(samples=200)"
epochs = 2
members = 2
samples = 8
k = 2
[[table]]
name = "P@2"
keys = ["dataset: {name}", "method: {method}"]
column = [
  {name = "P@2, er", metric = "top_k(k={k})", attack = "er", select = "last"},
  {name = "thickness", measure = "thickness(k={k},epsilon={epsilon},endpoints=4,points=4)"},
  {name = "AUC", of = "AUC"},
]
"""
SUBJECT = ["--model", "mlp:model.safetensors", "--inputs", "inputs.npy"]
THREAT = ["--attack", "er(steps=4)", "--epsilon", "0.3", "--metric", "top_k(k=2)", "--threads", "1", "--tile", "4"]
TRAINED = ["train", "train.toml", "--threads", "1", "--out", "trained"]
COMMANDS = {
    "audit": ["audit", *SUBJECT, *THREAT, "--measure", "curvature", "--gate", "top_k(k=2)>=0.1", "--out", "out"],
    "attack": ["attack", *SUBJECT, *THREAT, "--out", "out"],
    "explain": ["explain", *SUBJECT, "--out", "out/maps.npy"],
    "train": [*TRAINED[:-1], "out"],
    "reproduce": ["reproduce", "table.toml", "--scale", "quick", "--threads", "1", "--out", "out"],
    "report": ["report", "finished", "--out", "out/report.html"],
}


PATIENCE = 600  # seconds


def in_full(arguments: list[str]) -> list[str]:
    return [BINARY, *arguments, "--quiet"] if arguments[0] != "report" else [BINARY, *arguments]


def run(arguments: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        in_full(arguments),
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=PATIENCE,
        env={**os.environ, **environment},
    )


# Of manifests: when, how long, and how much of it this call did itself.
_OF_THE_CALL = re.compile(rb'"(seconds|started|ended|loading|training|this call|trained|computed|kept)": ?("[^"]*"|[0-9.e+-]+)')


def contents(folder: Path) -> dict[str, str]:
    """The digest of every file below the folder; what a manifest says of the call itself does not count."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        if path.suffix == ".safetensors":  # a checkpoint's history has durations
            data = b"".join(name.encode() + array.tobytes() for name, array in sorted(load_file(path).items()))
        else:
            data = _OF_THE_CALL.sub(rb'"\1": 0', path.read_bytes())
        found[str(path.relative_to(folder))] = hashlib.sha256(data).hexdigest()
    return found


def leftovers(folder: Path) -> list[str]:
    """What a finished command must not leave."""
    return [str(path) for path in folder.rglob("*") if path.name.endswith(".tmp") or path.name == "tiles"]


def last_line(done: subprocess.CompletedProcess) -> str:
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def read_json(path: Path):
    return json.loads(path.read_text())
