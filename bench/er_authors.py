"""The attack `er` against the authors' scheme and against a batched loop in PyTorch: n-32-2 MLP, 1000 samples, 1000 iterations.

usage: er_authors.py [HOLDFAST [ROUNDS]]        HOLDFAST: the program, default build/holdfast

    ours      the whole command `holdfast attack`, reading and writing files too: on both cores; and on one thread, where
              processor time is compared
    authors   one sample at a time, as in R2ET's code: three forwards, two gradients and one double backward an iteration;
              both cores are torch's to use. It would take a quarter of an hour: it runs on a few samples and is scaled up
    batched   all samples at once on one thread: one forward, one gradient and one double backward an iteration

Results are compared first: the last iterate before a label flip. Over a thousand steps rounding may cross a ReLU boundary a step
earlier or later, so a few samples may end elsewhere. Exits 1 when more do, or when a speed is below its limit.
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "build/holdfast"
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
SAMPLES, FEATURES, STEPS, STEP, TOP = 1000, 30, 1000, 1e-3, 8
AUTHORS_SAMPLES = 10
OVER_AUTHORS, OVER_BATCHED = 500, 1.5


def make_model():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2)).eval()
    with torch.no_grad():
        model[2].weight.mul_(8)  # as confident as a trained one
    return model.requires_grad_(False)


def saliency(model, x, c, create_graph):
    p = torch.softmax(model(x), 1)[0, c]
    return torch.autograd.grad(p, x, create_graph=create_graph)[0][0]


def attack_one(model, clean):
    """The authors' scheme: the last iterate before the label flips, and P@k there."""
    x = clean.clone().requires_grad_()
    c = model(x).argmax(1).item()
    clean_map = saliency(model, x, c, False)
    order = clean_map.abs().argsort(descending=True)
    top, following, signs = order[:TOP], order[TOP : 2 * TOP], clean_map.sign()
    last, kept = clean, 1.0
    for _ in range(STEPS):
        ranked = saliency(model, x, c, True) * signs
        objective = ranked[top].sum() - ranked[following].sum()
        gradient = torch.autograd.grad(objective, x)[0]
        x = (x - STEP * gradient / gradient.norm()).detach()
        if model(x).argmax(1).item() != c:
            break
        x.requires_grad_()
        now = saliency(model, x, c, False).abs().topk(TOP).indices
        last, kept = x.detach(), torch.isin(top, now).float().mean().item()
    return last, kept


def attack_batch(model, clean):
    """The same for all samples at once; what is known at one iterate is used for the next step."""
    x = clean.clone().requires_grad_()
    rows = torch.arange(len(clean))
    c = model(x).argmax(1)
    last, running = clean.clone(), torch.ones(len(clean), dtype=torch.bool)
    cotangent = top = None
    kept = torch.ones(len(clean))
    for step in range(STEPS + 1):
        logits = model(x)
        maps = torch.autograd.grad(torch.softmax(logits, 1)[rows, c].sum(), x, create_graph=True)[0]
        magnitudes = maps.detach().abs()
        if step == 0:
            order = magnitudes.argsort(dim=1, descending=True)
            top = torch.zeros_like(magnitudes).scatter_(1, order[:, :TOP], 1)
            cotangent = maps.detach().sign() * (top - torch.zeros_like(top).scatter_(1, order[:, TOP : 2 * TOP], 1))
        else:
            running &= logits.argmax(1) == c
            share = top.gather(1, magnitudes.topk(TOP, dim=1).indices).mean(1)
            kept = torch.where(running, share, kept)
            last[running] = x.detach()[running]
            if not running.any():
                break
        if step < STEPS:
            gradient = torch.autograd.grad(maps, x, cotangent)[0]
            x = (x.detach() - STEP * gradient / gradient.norm(dim=1, keepdim=True).clamp_min(1e-30)).requires_grad_()
    return last, kept


def seconds(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def attack_ours(folder, threads, run):
    out = folder / f"out{run}"
    flags = {
        "model": folder / "model.pt",
        "inputs": folder / "inputs.npy",
        "attack": f"er(steps={STEPS},step_size={STEP},pairs=next-k)",
        "metric": f"top_k(k={TOP})",
        "select": "last",
        "norm": "l2",
        "epsilon": STEPS * STEP,
        "threads": threads,
        "tile": SAMPLES // threads,
        "out": out,
    }
    command = [PROGRAM, "attack", "--quiet", "--no-random"]
    for flag, value in flags.items():
        command += [f"--{flag}", str(value)]
    used = children_seconds()
    taken, _ = seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
    used = children_seconds() - used
    samples = json.loads((out / "result.json").read_text())["samples"]
    values = [sample["metrics"][f"top_k(k={TOP})"] for sample in samples]
    return taken, used, torch.from_numpy(np.load(out / "perturbed.npy")), torch.tensor(values)


def check_same(name, ours, theirs, allowed):
    apart = ((ours - theirs).abs().flatten(1).amax(1) > 1e-3).sum().item()
    print(f"{name}: {apart} of {len(theirs)} samples ended elsewhere (allowed {allowed})")
    return apart <= allowed


def main():
    model = make_model()
    inputs = torch.rand(SAMPLES, FEATURES)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        torch.jit.trace(model, inputs[:2]).save(folder / "model.pt")
        np.save(folder / "inputs.npy", inputs.numpy())
        both, one, batched, batched_used = [], [], [], []
        for run in range(ROUNDS):
            taken, _, ours, values = attack_ours(folder, 2, 2 * run)
            both.append(taken)
            one.append(attack_ours(folder, 1, 2 * run + 1)[1])
            torch.set_num_threads(1)
            used = time.process_time()
            taken, (theirs, kept) = seconds(lambda: attack_batch(model, inputs))
            batched.append(taken)
            batched_used.append(time.process_time() - used)
        torch.set_num_threads(2)
        taken, rows = seconds(lambda: [attack_one(model, x[None]) for x in inputs[:AUTHORS_SAMPLES]])

    same = check_same("batched", ours, theirs, SAMPLES // 20)
    same &= check_same("authors", ours[:AUTHORS_SAMPLES], torch.cat([x for x, _ in rows]), AUTHORS_SAMPLES // 5)
    print(f"P@{TOP}: ours {values.mean():.4f}, batched {kept.mean():.4f}")

    both, one, batched, used = map(statistics.median, (both, one, batched, batched_used))
    authors = taken * SAMPLES / AUTHORS_SAMPLES
    print(f"ours {both:.2f} s on both cores; batched loop {batched:.2f} s on one thread")
    print(f"authors' scheme {taken:.1f} s for {AUTHORS_SAMPLES} samples: {authors:.0f} s for {SAMPLES}")
    print(f"{authors / both:.0f} times the authors' scheme (limit {OVER_AUTHORS})")
    print(f"{batched / both:.2f} times the batched loop (limit {OVER_BATCHED})")
    print(f"on one thread {one:.2f} s of processor time against {used:.2f} s: {used / one:.2f} times")
    return 0 if same and authors / both >= OVER_AUTHORS and batched / both >= OVER_BATCHED else 1


if __name__ == "__main__":
    sys.exit(main())
