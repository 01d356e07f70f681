"""Saliency and integrated gradients against Captum, the same torch modules, one thread each.

usage: explain_captum.py [ROUNDS]

Maps are compared first (relative difference below 1e-4), then medians of rounds that alternate between the two. Captum's "best"
is the quickest of its internal batch sizes, found by trying; "default" is what it does when nothing is said. Speed = Captum's
time / ours. On the large network both do the same passes; for saliency of the module itself, one pass over 32 images, one image
more goes through it before any work, to see what it gives, and at its first call two small batches. Exits 1 when maps differ or a
speed is below its limit.
"""

import statistics
import sys
import time
import warnings

import holdfast
import torch
from captum.attr import IntegratedGradients, Saliency

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 9


def mlp():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(30, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    return model.eval(), torch.rand(1000, 30)


def cnn_chen():
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(
        *(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(3136, 1024), nn.ReLU(), nn.Linear(1024, 10)),
    )
    return model.eval(), torch.rand(32, 1, 28, 28)


def seconds(work, repeats=1):
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - start) / repeats


def captum_ig(model, inputs, targets, steps, batch):
    return IntegratedGradients(model).attribute(inputs, target=targets, n_steps=steps, internal_batch_size=batch)


def best_batch(model, inputs, targets, steps):
    sizes = [None] + [size for size in (32, 64, 128, 256, 512, 1024, 4096, 16384) if size <= steps * len(inputs)]
    return min(sizes, key=lambda size: seconds(lambda: captum_ig(model, inputs, targets, steps, size)))


def compare(name, ours, rivals, rounds=ROUNDS):
    """Rivals: (label, work, lowest speed that passes)."""
    expected = ours()
    for label, work, _ in rivals:
        found = work().detach()
        apart = ((found - expected).abs().max() / expected.abs().max()).item()
        assert apart < 1e-4, f"{name}: {label} differs by {apart}"
    times = {label: [] for label, _, _ in rivals}
    own = []
    repeats = max(1, int(0.02 / seconds(ours)))  # a turn lasts at least 20 ms
    for _ in range(rounds):
        own.append(seconds(ours, repeats))
        for label, work, _ in rivals:
            times[label].append(seconds(work, repeats))
    passed = True
    mine = statistics.median(own)
    for label, _, limit in rivals:
        theirs = statistics.median(times[label])
        passed &= theirs / mine >= limit
        rival = f"Captum {label}"
        print(f"{name:56} {mine * 1e3:9.2f} ms, {rival:29} {theirs * 1e3:9.2f} ms: {theirs / mine:6.2f} times (limit {limit})")
    return passed


def main():
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="Internal batch size")
    passed = True
    # A network of many small passes, where overhead is everything, and one of few large ones, where passes are: the module's own
    # are Captum's too, those of the model that load_model makes of it are not.
    for label, (model, inputs), native, saliency, best, default in (
        ("mlp 30-32-2, 1000 samples", mlp(), False, 10, 25, 25),
        ("cnn_chen, 32 images, the module", cnn_chen(), False, 1, 1, 1.5),
        ("cnn_chen, 32 images, load_model", cnn_chen(), True, 1, 1, 1.5),
    ):
        with torch.no_grad():
            targets = model(inputs).argmax(1)
        subject = holdfast.load_model(model, example=inputs) if native else model

        def explain(call, subject=subject, inputs=inputs, targets=targets):
            return holdfast.explain(subject, inputs, call, targets=targets, threads=1, tile=len(inputs))

        def captum_saliency(model=model, inputs=inputs, targets=targets):
            return Saliency(model).attribute(inputs.clone().requires_grad_(), target=targets)

        rivals = [("", captum_saliency, saliency)]
        passed &= compare(f"{label}: saliency", lambda: explain("saliency(target=logit)"), rivals, 5 * ROUNDS)
        for steps in (50, 100):
            size = best_batch(model, inputs, targets, steps)

            def ig(batch, model=model, inputs=inputs, targets=targets, steps=steps):
                return captum_ig(model, inputs, targets, steps, batch)

            rivals = [(f"best (batch {size})", lambda size=size: ig(size), best), ("default", lambda: ig(None), default)]
            call = f"integrated_gradients(steps={steps},rule=gauss,target=logit)"
            passed &= compare(f"{label}: integrated gradients {steps}", lambda call=call: explain(call), rivals)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
