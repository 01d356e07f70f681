"""Networks that both tools can look into, with weights that are not special.

Captum hooks modules, so every activation and pool is a module of its own, used once, and sums are its Addition_Module.
Between a rectifier and a max pool the Cnn multiplies by 1: where two hooked modules share a tensor, Captum's DeepLift forgets
the rule of the second one (test_layers.py).
"""

import torch
from captum.attr._utils.custom_modules import Addition_Module
from torch import nn


class Mlp(nn.Module):
    sample = (7,)

    def __init__(self, activation=nn.ReLU, bias=True):
        super().__init__()
        self.first, self.act1 = nn.Linear(7, 12, bias=bias), activation()
        self.second, self.act2 = nn.Linear(12, 9, bias=bias), activation()
        self.last = nn.Linear(9, 4, bias=bias)

    def forward(self, x):
        return self.last(self.act2(self.second(self.act1(self.first(x)))))


class Cnn(nn.Module):
    sample = (2, 10, 9)

    def __init__(self, bias=True):
        super().__init__()
        self.conv1, self.act1 = nn.Conv2d(2, 6, 3, padding=1, bias=bias), nn.ReLU()
        self.pool1 = nn.MaxPool2d(2)
        self.conv2, self.act2 = nn.Conv2d(6, 8, 3, stride=1, bias=bias), nn.ReLU()
        self.pool2 = nn.AvgPool2d(2)
        self.dense, self.act3 = nn.Linear(8, 10, bias=bias), nn.ReLU()
        self.last = nn.Linear(10, 4, bias=bias)

    def forward(self, x):
        x = self.pool1(1 * self.act1(self.conv1(x)))
        x = self.pool2(self.act2(self.conv2(x)))
        return self.last(self.act3(self.dense(x.flatten(1))))


class Residual(nn.Module):
    """Batch normalisation behind a convolution, a residual sum, a mean over positions."""

    sample = (3, 8, 8)

    def __init__(self):
        super().__init__()
        self.conv1, self.norm1, self.act1 = nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU()
        self.conv2, self.norm2, self.act2 = nn.Conv2d(6, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU()
        self.sum = Addition_Module()
        self.act3, self.pool = nn.ReLU(), nn.AdaptiveAvgPool2d(1)
        self.last = nn.Linear(6, 4)

    def forward(self, x):
        x = self.act1(self.norm1(self.conv1(x)))
        x = self.act3(self.sum(self.act2(self.norm2(self.conv2(x))), x))
        return self.last(self.pool(x).flatten(1))


class Probability(nn.Module):
    """Probabilities in place of logits: what target=probability explains."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return torch.softmax(self.model(x), 1)


def made(network, seed=0):
    """Evaluation mode, in double precision, every parameter and statistic drawn at random."""
    generator = torch.Generator().manual_seed(seed)
    network = network.double().eval()
    with torch.no_grad():
        for name, tensor in network.state_dict().items():
            if not tensor.is_floating_point():
                continue
            noise = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
            if name.endswith("running_var") or ".norm" in name or name.startswith("norm"):
                tensor.copy_(1 + 0.2 * noise if not name.endswith(("mean", "bias")) else 0.2 * noise)
            elif tensor.dim() > 1:
                tensor.copy_(noise * (2 / tensor[0].numel()) ** 0.5)
            else:
                tensor.copy_(0.2 * noise)
    return network


def samples(network, count=5, seed=1):
    """In [0, 1], as images are."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(count, *network.sample, generator=generator, dtype=torch.float64)
