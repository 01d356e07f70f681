"""A transformer's explanations against the same passes in plain PyTorch, one thread.

usage: transformer_passes.py [ROUNDS]

Four layers of nn.TransformerEncoder, 128 wide, 4 heads, 64 tokens of 16 features, 32 samples. The classes are given. Saliency is
one forward and one backward pass; integrated gradients of 8 steps are 8 of them. The model is read from a .pt2, an ONNX and a
TorchScript file, and is the module itself. Maps are compared first (1e-5 of the largest value), then medians of rounds that
alternate, in seconds of processor time. Ratio = ours / PyTorch's. Exits 1 when maps differ or a ratio is above its limit.
"""

import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

import holdfast
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))
import some_models

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 9
STEPS = 8
LIMIT = 1.1


def saliency(module, inputs, targets):
    x = inputs.clone().requires_grad_()
    score = torch.softmax(module(x), 1).gather(1, targets.unsqueeze(1)).sum()
    return torch.autograd.grad(score, x)[0].abs()


def integrated_gradients(module, inputs, targets):
    total = torch.zeros_like(inputs)
    for step in range(1, STEPS + 1):
        x = (inputs * (step / STEPS)).requires_grad_()
        total += torch.autograd.grad(torch.softmax(module(x), 1).gather(1, targets.unsqueeze(1)).sum(), x)[0]
    return inputs * total / STEPS


def seconds(work):
    start = time.process_time()
    work()
    return time.process_time() - start


def main():
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    module = some_models.settled(some_models.Transformer(width=128, layers=4, heads=4, tokens=64, features=16, classes=10))
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    inputs = torch.rand(32, 64, 16, generator=torch.Generator().manual_seed(1))
    torch.backends.mha.set_fastpath_enabled(False)  # it has no derivative
    with torch.no_grad():
        targets = module(inputs).argmax(1)
    with tempfile.TemporaryDirectory() as folder:
        files = {end: some_models.save(module, inputs[:3], Path(folder) / f"model{end}") for end in (".pt2", ".onnx", ".pt")}
        models = {end: holdfast.load_model(path) for end, path in files.items()}
    models["module"] = module
    checks = [
        compare("saliency", lambda: saliency(module, inputs, targets), models, inputs, targets),
        compare(
            f"integrated_gradients(steps={STEPS})", lambda: integrated_gradients(module, inputs, targets), models, inputs, targets
        ),
    ]
    return all(checks)


def compare(explainer, plain, models, inputs, targets):
    def ours(model):
        return holdfast.explain(model, inputs, explainer, targets=targets, threads=1, tile=len(inputs))

    expected = plain()
    for name, model in models.items():
        apart = ((ours(model) - expected).abs().max() / expected.abs().max()).item()
        assert apart < 1e-5, f"{explainer}, {name}: maps differ by {apart}"
    times = {name: [] for name in models}
    base = []
    for _ in range(ROUNDS):
        base.append(seconds(plain))
        for name, model in models.items():
            times[name].append(seconds(lambda model=model: ours(model)))
    theirs = statistics.median(base)
    passed = True
    for name, own in times.items():
        mine = statistics.median(own)
        limited = name in (".pt2", "module")
        passed &= not limited or mine / theirs <= LIMIT
        limit = f"limit {LIMIT}" if limited else "no limit"
        print(f"{explainer:32} {name:8} {mine * 1e3:8.1f} ms, PyTorch {theirs * 1e3:8.1f} ms: {mine / theirs:.2f} ({limit})")
    return passed


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
