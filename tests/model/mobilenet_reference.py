"""Writes FOLDER/mobilenet.safetensors: two inputs and the logits that MobileNet v1 0.75's published weights give for them,
computed with torch's functions straight from the file of weights."""

import csv
import os
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

folder = sys.argv[1]
stem = os.path.join(os.environ["HOLDFAST_DATA"], "models", "mobilenet_v1_075_224")
values = torch.frombuffer(bytearray(Path(stem + ".f32").read_bytes()), dtype=torch.float32)
weights = {}
for row in csv.DictReader(Path(stem + ".csv").read_text().splitlines()):
    start = int(row["offset_floats"])
    shape = [int(size) for size in row["shape"].split("x")]
    weights[row["name"]] = values[start : start + int(row["count"])].view(shape)


def same(x, kernel, stride):
    missing = max((-(-x.shape[2] // stride) - 1) * stride + kernel - x.shape[2], 0)
    before = missing // 2
    return F.pad(x, (before, missing - before, before, missing - before))


def layer(x, name, kernel, stride=1, groups=1):
    x = F.conv2d(same(x, kernel.shape[2], stride), kernel, stride=stride, groups=groups)
    parts = [weights[f"{name}_bn/{part}"] for part in ("moving_mean", "moving_variance", "gamma", "beta")]
    return F.relu6(F.batch_norm(x, *parts, eps=1e-3))


def logits(x):
    x = layer(x * 2 - 1, "conv1", weights["conv1/kernel"].permute(3, 2, 0, 1), stride=2)
    for i, stride in enumerate([1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1], start=1):
        depthwise = weights[f"conv_dw_{i}/depthwise_kernel"].permute(2, 3, 0, 1)
        x = layer(x, f"conv_dw_{i}", depthwise, stride, groups=x.shape[1])
        x = layer(x, f"conv_pw_{i}", weights[f"conv_pw_{i}/kernel"].permute(3, 2, 0, 1))
    return x.mean((2, 3)) @ weights["conv_preds/kernel"][0, 0] + weights["conv_preds/bias"]


inputs = torch.rand(2, 3, 224, 224, generator=torch.Generator().manual_seed(0))
save_file({"inputs": inputs, "logits": logits(inputs)}, f"{folder}/mobilenet.safetensors")
