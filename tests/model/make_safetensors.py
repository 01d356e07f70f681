"""Writes FOLDER/mlp.safetensors, the weights of a torch.nn model under Holdfast's names, and what the model computes."""

import sys

import torch
from safetensors.torch import save_file

folder = sys.argv[1]
generator = torch.Generator().manual_seed(1)
hidden, norm, output = torch.nn.Linear(5, 7), torch.nn.BatchNorm1d(7), torch.nn.Linear(7, 3)
with torch.no_grad():
    for module in (hidden, norm, output):
        for parameter in module.parameters():
            parameter.copy_(torch.rand(parameter.shape, generator=generator) - 0.5)
    norm.running_mean.copy_(torch.rand(7, generator=generator))
    norm.running_var.copy_(torch.rand(7, generator=generator) + 0.5)

model = torch.nn.Sequential(hidden, torch.nn.ReLU(), output)
inputs = torch.rand(4, 5, generator=generator)
state = {f"hidden1.{name}": value for name, value in hidden.state_dict().items()}
state |= {f"output.{name}": value for name, value in output.state_dict().items()}
save_file(state, f"{folder}/mlp.safetensors")
save_file({"inputs": inputs, "logits": model(inputs).detach()}, f"{folder}/reference.safetensors")
# With the layer that has buffers, one of them an integer counter.
save_file({f"bn.{name}": value for name, value in norm.state_dict().items()}, f"{folder}/norm.safetensors")
