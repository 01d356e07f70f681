"""What an audit at ImageNet's scale would take: `audit --plan` of a ResNet-50 with random weights on images of 224 x 224.

    python bench/imagenet_plan.py [--holdfast build-cuda/holdfast] [--device cuda] [--samples 512]

The plan tries a tile of samples and multiplies. Its seconds are multiplied once more here, from the images that it is given to
50,000, and divided by the number of devices: so it is an estimate of an estimate.
"""

import argparse
import re
import subprocess
import tempfile

import numpy as np
import torch
from torch import nn

IMAGES = 50_000


class Block(nn.Module):
    def __init__(self, ins, width, stride):
        super().__init__()
        outs = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(ins, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, outs, 1, bias=False),
            nn.BatchNorm2d(outs),
        )
        self.skip = nn.Sequential()
        if stride != 1 or ins != outs:
            self.skip = nn.Sequential(nn.Conv2d(ins, outs, 1, stride, bias=False), nn.BatchNorm2d(outs))
        self.last = nn.ReLU()

    def forward(self, x):
        return self.last(self.body(x) + self.skip(x))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    ins = 64
    for stage, count in enumerate([3, 4, 6, 3]):
        for block in range(count):
            layers.append(Block(ins, 64 << stage, 2 if stage > 0 and block == 0 else 1))
            ins = 256 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(ins, 1000)).eval()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--holdfast", default="build-cuda/holdfast")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--attack", default="gauntlet(effort=light)")
    given = parser.parse_args()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        torch.jit.trace(resnet50(), torch.rand(2, 3, 224, 224)).save(f"{folder}/resnet50.pt")
        np.save(f"{folder}/images.npy", torch.rand(given.samples, 3, 224, 224).numpy())
        command = [given.holdfast, "audit", "--plan", "--model", f"{folder}/resnet50.pt", "--inputs", f"{folder}/images.npy"]
        command += ["--attack", given.attack, "--metric", "lens_precision(k=1000,w=3)", "--norm", "linf", "--epsilon", "8/255"]
        done = subprocess.run([*command, "--device", given.device], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    print(done.stdout, end="")
    estimate = next(line for line in done.stdout.splitlines() if line.startswith("estimated from a short trial"))
    seconds = [float(number) for number in re.findall(r"([0-9]+) s ", estimate + " ")]
    print(f"\n| devices | hours for {IMAGES:,} images (estimate) |\n|---|---|")
    for devices in (1, 2, 4, 8):
        print(f"| {devices} | {seconds[0] * IMAGES / given.samples / devices / 3600:.1f} |")


if __name__ == "__main__":
    main()
