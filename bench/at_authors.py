"""Adversarial training `at` against the scheme of R2ET's authors in PyTorch: a 28-32-2 MLP, batches of 20.

usage: at_authors.py [HOLDFAST [ROUNDS]]        HOLDFAST: the program, default build/holdfast

    ours      an epoch of `holdfast train`, validation, checkpoint and all, from its own history
    authors   one sample at a time: six forwards, three gradients and one double backward each, then one step of the batch

Losses are compared first: with a learning rate that moves nothing, the epoch's mean of both is that of the same weights. Exits 1
when they differ or the speed is below its limit.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file

PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "build/holdfast"
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
SAMPLES, FEATURES, BATCH, TOP, STEP, LIMIT = 2000, 28, 20, 8, 0.3, 10
CONFIG = """
[dataset]
name = "npy(inputs={folder}/inputs.npy,labels={folder}/labels.npy,validation=0,test=0)"
[model]
architecture = "mlp(hidden=32)"
[train]
objective = "at(top_k={TOP},pairs=next,step={STEP})"
epochs = 1
batch_size = {BATCH}
optimizer = "sgd"
learning_rate = 1e-12
"""


def saliency(model, x, c, create_graph):
    p = torch.softmax(model(x), 1)[0, c]
    return torch.autograd.grad(p, x, create_graph=create_graph)[0][0]


def attack_one(model, clean):
    """One step of the ranking attack, with the passes of the authors' code."""
    x = clean.clone().requires_grad_()
    c = model(x).argmax(1).item()
    order = saliency(model, x, c, False).abs().argsort(descending=True)
    top, following = order[:TOP], order[TOP : 2 * TOP]
    ranked = saliency(model, x, c, True)
    ranked = ranked * ranked.detach().sign()
    gradient = torch.autograd.grad(ranked[top].sum() - ranked[following].sum(), x)[0]
    moved = (x - STEP * gradient / gradient.norm()).detach().requires_grad_()
    model(moved).argmax(1).item()
    now = saliency(model, moved, c, False).abs().topk(TOP).indices
    torch.isin(top, now).float().mean().item()
    model(moved).argmax(1).item()
    return moved.detach()


def authors_epoch(model, inputs, labels, optimizer):
    total = 0.0
    for x, y in zip(inputs.split(BATCH), labels.split(BATCH), strict=True):
        first = x.clone().requires_grad_()
        torch.autograd.grad(torch.nn.functional.cross_entropy(model(first), y), first)
        moved = torch.cat([attack_one(model, row[None]) for row in x])
        loss = torch.nn.functional.cross_entropy(model(moved), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    return total / len(inputs)


def train_ours(folder, run):
    command = [PROGRAM, "train", str(folder / "config.toml"), "--out", str(folder / f"run{run}"), "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return json.loads((folder / f"run{run}" / "history.jsonl").read_text().splitlines()[-1])


def network(weights):
    """The same layers, whatever their names: weights and biases in order of their shapes."""
    by_shape = {tuple(value.shape): value for value in weights.values()}
    model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    for parameter in model.parameters():
        parameter.data.copy_(by_shape[tuple(parameter.shape)])
    return model


def main():
    torch.set_num_threads(1)
    inputs = torch.rand(SAMPLES, FEATURES, generator=torch.Generator().manual_seed(0))
    labels = (inputs[:, :3].sum(1) > 1.5).long()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "inputs.npy", inputs.numpy())
        np.save(folder / "labels.npy", labels.numpy())
        (folder / "config.toml").write_text(CONFIG.format(folder=folder, TOP=TOP, STEP=STEP, BATCH=BATCH))
        records = [train_ours(folder, run) for run in range(ROUNDS)]
        model = network(load_file(folder / "run0" / "model.safetensors"))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-12)
    start = time.perf_counter()
    theirs = authors_epoch(model, inputs, labels, optimizer)
    authors = time.perf_counter() - start
    ours = statistics.median(record["seconds"] for record in records)
    print(f"mean loss: ours {records[0]['loss']:.6f}, authors {theirs:.6f}")
    print(f"ours {ours:.3f} s an epoch of {SAMPLES} samples, authors' scheme {authors:.2f} s")
    print(f"{authors / ours:.0f} times the authors' scheme (limit {LIMIT})")
    return 0 if abs(records[0]["loss"] - theirs) < 1e-4 and authors / ours >= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
