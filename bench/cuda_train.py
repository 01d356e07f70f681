"""Training on a GPU against the same passes in plain PyTorch: ResNet9 on random images of 3 x 32 x 32, batches of 256.

    python bench/cuda_train.py [--holdfast build-cuda/holdfast] [--json FILE] [--steps 16]

Three objectives: cross-entropy (vanilla), R2ET without curvature, R2ET with it; each in full float32 and with TF32. The terms of
the loss are compared with those of the plain passes with the same weights. The time of a step is that of an epoch after the first
one, divided by its steps; there are no validation samples. Holdfast trains with deterministic kernels of cuDNN; the plain loop is
timed without and with them.
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
from torch.nn import functional as F

TOP_K, GAP, CURVATURE, KAPPA = 100, 0.01, 0.001, 1e-2
RECIPES = {
    "vanilla": "vanilla",
    "r2et_no_h": f"r2et_no_h(top_k={TOP_K},gap={GAP})",
    "r2et": f"r2et(top_k={TOP_K},gap={GAP},curvature={CURVATURE},kappa={KAPPA})",
}


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.bn = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return self.bn(self.conv(x)).relu()


class Resnet9(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.4914, 0.4822, 0.4465]).view(3, 1, 1))
        self.register_buffer("deviation", torch.tensor([0.2470, 0.2435, 0.2616]).view(3, 1, 1))
        self.conv1, self.conv2 = Block(3, 64), Block(64, 128)
        self.res1 = nn.Sequential(Block(128, 128), Block(128, 128))
        self.conv3, self.conv4 = Block(128, 256), Block(256, 512)
        self.res2 = nn.Sequential(Block(512, 512), Block(512, 512))
        self.classifier = nn.Linear(512, 10)

    def forward(self, x):
        x = F.max_pool2d(self.conv2(self.conv1((x - self.mean) / self.deviation)), 2)
        x = x + self.res1(x)
        x = F.max_pool2d(self.conv4(F.max_pool2d(self.conv3(x), 2)), 2)
        x = x + self.res2(x)
        return self.classifier(F.max_pool2d(x, 4).flatten(1))


def gradient_at(model, x, classes=None):
    x = x.detach().requires_grad_()
    logits = model(x)
    classes = logits.argmax(1, keepdim=True) if classes is None else classes
    return torch.autograd.grad(logits.softmax(1).gather(1, classes).sum(), x, create_graph=True)[0], classes


def terms_of(model, x, y, name):
    """The terms of the loss, each with its weight. Those about explanations are in evaluation mode, and come first."""
    if name == "vanilla":
        model.train()
        return {"ce": (F.cross_entropy(model(x), y), 1)}
    terms = {}
    model.eval()
    gradient, classes = gradient_at(model, x)
    maps = gradient.abs().sum(1).flatten(1)
    n = maps.size(1)
    weights = torch.full_like(maps, -1 / (n - TOP_K)).scatter_(1, maps.detach().topk(TOP_K, 1).indices, 1 / TOP_K)
    terms["gap"] = ((maps * weights).sum(1).mean(), -GAP)
    if name == "r2et":
        signs = gradient.detach().sign()
        direction = signs / signs.flatten(1).norm(dim=1).clamp_min(1).view(-1, 1, 1, 1)
        there, _ = gradient_at(model, x + KAPPA * direction, classes)
        terms["curvature"] = ((there - gradient).flatten(1).norm(dim=1).mean() / KAPPA, CURVATURE)
    model.train()
    terms["ce"] = (F.cross_entropy(model(x), y), 1)
    return terms


def load_file(path):
    """The float32 tensors of a safetensors file: the length of a JSON text, the text, the bytes."""
    data = Path(path).read_bytes()
    length = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32", entry
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32).view(entry["shape"])
    return tensors


def load_plain(path):
    model = Resnet9()
    known = model.state_dict()
    stored = {name: value for name, value in load_file(path).items() if name in known}
    missing = [name for name in known if name not in stored and not name.endswith("num_batches_tracked")]
    assert sorted(missing) == ["deviation", "mean"], missing
    model.load_state_dict(stored, strict=False)
    return model


def wait_for(device):
    if device == "cuda":
        torch.cuda.synchronize()


def plain_step_seconds(model, x, y, name, given, tf32, deterministic=False):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.deterministic = deterministic
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=True)
    times = []
    for _ in range(3):
        wait_for(given.device)
        started = time.perf_counter()
        for _ in range(given.steps):
            rows = torch.randint(len(x), (given.batch,), device=given.device)
            loss = sum(weight * value for value, weight in terms_of(model, x[rows], y[rows], name).values())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        wait_for(given.device)
        times.append((time.perf_counter() - started) / given.steps)
    return min(times[1:])


def train(given, folder, name, precision, epochs, rate, out, data="all"):
    config = f"""
[dataset]
name = "npy(inputs={folder}/{data}-x.npy,labels={folder}/{data}-y.npy,validation=0,test=0)"
[model]
architecture = "resnet9"
[train]
recipe = "{RECIPES[name]}"
epochs = {epochs}
batch_size = {given.batch}
learning_rate = {rate}
precision = "{precision}"
"""
    Path(f"{folder}/train.toml").write_text(config)
    command = [given.holdfast, "train", f"{folder}/train.toml", "--device", given.device, "--quiet", "--restart", "--out", out]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return [json.loads(line) for line in Path(f"{out}/history.jsonl").read_text().splitlines()]


def compare(given, folder, name, x, y):
    """One batch, with a rate of nearly nothing: the network stays as it was made, and the epoch's terms are those of one step."""
    found = train(given, folder, name, "float32", 1, 1e-30, f"{folder}/still", "first")[0]["parts"]
    model = load_plain(f"{folder}/still/model.safetensors").to(given.device)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    terms = {
        term: (found[term], value.item())
        for term, (value, _) in terms_of(model, x[: given.batch], y[: given.batch], name).items()
    }
    return all(abs(ours - plain) <= 0.01 * abs(plain) for ours, plain in terms.values()), terms


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--holdfast", default="build-cuda/holdfast")
    parser.add_argument("--json")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--only", nargs="*", default=list(RECIPES))
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--device", default="cuda", help="cpu tries this script out")
    given = parser.parse_args()
    random = np.random.default_rng(0)
    images = random.random((given.batch * given.steps, 3, 32, 32), dtype=np.float32)
    labels = random.integers(0, 10, len(images))
    x, y = torch.from_numpy(images).to(given.device), torch.from_numpy(labels).to(given.device)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for data, count in [("first", given.batch), ("all", len(images))]:
            np.save(f"{folder}/{data}-x.npy", images[:count])
            np.save(f"{folder}/{data}-y.npy", labels[:count])
        for name in given.only:
            same, compared = compare(given, folder, name, x, y)
            print(json.dumps({"recipe": name, "terms_agree": same, "terms": compared}), flush=True)
            for precision in ["float32", "tf32"]:
                history = train(given, folder, name, precision, 3, 1e-3, f"{folder}/run")
                ours = min(epoch["seconds"] for epoch in history[1:]) / given.steps
                model = load_plain(f"{folder}/still/model.safetensors").to(given.device)
                plain = plain_step_seconds(model, x, y, name, given, precision == "tf32")
                same_kernels = plain_step_seconds(model, x, y, name, given, precision == "tf32", deterministic=True)
                row = {
                    "recipe": name,
                    "precision": precision,
                    "ms": 1e3 * ours,
                    "plain_ms": 1e3 * plain,
                    "plain_deterministic_ms": 1e3 * same_kernels,
                    "ratio": ours / plain,
                }
                rows.append({**row, "terms_agree": same})
                print(json.dumps(row), flush=True)
    if given.json:
        Path(given.json).write_text(
            json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}, indent=1)
        )
    if not all(row["terms_agree"] for row in rows):
        raise SystemExit("the terms of some objective are not those of the plain passes")


if __name__ == "__main__":
    main()
