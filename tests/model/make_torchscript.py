"""Writes the TorchScript files of the tests, with what Python computes from them.

    python make_torchscript.py FOLDER

For every file NAME.pt there are NAME.inputs.npy, NAME.logits.npy and NAME.gradients.npy: the input gradient of the logits
summed with weights 1/C, 2/C, ..., 1. The names of the files that must become a Network are in networks.txt, those that
must stay as they are in opaque.txt.
"""

import copy
import pathlib
import sys
import warnings

import numpy
import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")


def randomise(module: nn.Module) -> nn.Module:
    """Weights and statistics that a wrong formula would not survive; batch normalisation starts at mean 0, variance 1."""
    generator = torch.Generator().manual_seed(7)
    for name, tensor in list(module.named_parameters()) + list(module.named_buffers()):
        if not tensor.is_floating_point() or name.startswith("keep_"):
            continue
        with torch.no_grad():
            if name.endswith("running_var"):
                tensor.copy_(torch.rand(tensor.shape, generator=generator) + 0.5)
            else:
                fan_in = max(1, tensor[0].numel()) if tensor.dim() > 1 else 4
                tensor.copy_(torch.randn(tensor.shape, generator=generator) / fan_in**0.5)
    return module


# Each architecture in module, functional and in-place form, with the same parameters.
class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))

    def forward(self, x):
        return self.layers(x)


class MlpFunctional(Mlp):
    def forward(self, x):
        x = F.relu(F.linear(x, self.layers[0].weight, self.layers[0].bias))
        x = F.dropout(x, 0.5, self.training)
        return torch.addmm(self.layers[3].bias, x, self.layers[3].weight.t())


class MlpInPlace(Mlp):
    def forward(self, x):
        x = torch.matmul(x, self.layers[0].weight.t())
        x += self.layers[0].bias
        F.relu_(x)
        return self.layers[3](F.dropout(x, 0.5, self.training, inplace=True))


class Cnn(nn.Module):
    """Preprocessing inside, padding, pooling, batch normalisation."""

    def __init__(self):
        super().__init__()
        self.register_buffer("keep_mean", torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1))
        self.register_buffer("keep_deviation", torch.tensor([0.2, 0.25, 0.3]).view(1, 3, 1, 1))
        self.first = nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2)
        self.average = nn.AdaptiveAvgPool2d((1, 1))
        self.head = nn.Linear(6, 5)

    def forward(self, x):
        x = (x - self.keep_mean) / self.keep_deviation
        x = self.pool(self.relu(self.norm(self.first(x))))
        x = self.average(self.relu(self.second(x)))
        return self.head(torch.flatten(x, 1))


class CnnFunctional(Cnn):
    def forward(self, x):
        x = x.sub(self.keep_mean).div(self.keep_deviation)
        x = F.conv2d(F.pad(x, (1, 1, 1, 1)), self.first.weight)
        x = F.batch_norm(x, self.norm.running_mean, self.norm.running_var, self.norm.weight, self.norm.bias, False)
        x = F.max_pool2d(x.clamp(min=0), 2)
        x = F.relu(F.conv2d(x, self.second.weight, self.second.bias, stride=2, padding=1, groups=2))
        x = F.avg_pool2d(x, x.size()[2:])
        return F.linear(x.view(x.size(0), -1), self.head.weight, self.head.bias)


class CnnInPlace(Cnn):
    def forward(self, x):
        x -= self.keep_mean
        x /= self.keep_deviation
        x = self.norm(self.first(x))
        torch.relu_(x)
        x = F.relu(self.second(self.pool(x)), inplace=True)
        return self.head(x.mean([2, 3]))


class Block(nn.Module):
    def __init__(self, inplace=False):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.conv2, self.bn2 = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace)

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + x)


class BlockInPlace(Block):
    def __init__(self):
        super().__init__(True)

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += x
        return self.relu(y)


class BlockFunctional(Block):
    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return torch.add(self.bn2(self.conv2(y)), x).relu()


class Resnet(nn.Module):
    def __init__(self, block=Block):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.one, self.two = block(), block()
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        x = self.two(self.one(self.stem(x)))
        return self.head(F.avg_pool2d(x, x.size()[3]).squeeze(-1).squeeze(-1))


class Siamese(nn.Module):
    """Both sides of a pair through one encoder."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3, stride=2)
        self.encode = nn.Linear(27, 4)
        self.head = nn.Linear(4, 2)

    def side(self, x):
        return self.encode(F.relu(self.conv(x)).flatten(1))

    def forward(self, x):
        return self.head(torch.abs(self.side(x[:, 0]) - self.side(x[:, 1])))


class SiameseFunctional(Siamese):
    def forward(self, x):
        left, right = x.unbind(1)
        return self.head((self.side(left).sub(self.side(right))).abs())


class SiameseInPlace(Siamese):
    def forward(self, x):
        left, right = torch.chunk(x, 2, 1)
        difference = self.side(left.squeeze(1))
        difference -= self.side(right.squeeze(1))
        return self.head(difference.abs_())


FORMS = {
    "mlp": ((6,), Mlp, MlpFunctional, MlpInPlace),
    "cnn": ((3, 8, 8), Cnn, CnnFunctional, CnnInPlace),
    "resnet": (
        (3, 8, 8),
        Resnet,
        lambda: Resnet(BlockFunctional),
        lambda: Resnet(BlockInPlace),
    ),
    "siamese": ((2, 1, 8, 8), Siamese, SiameseFunctional, SiameseInPlace),
}


class Activations(nn.Module):
    """Every activation, one after the other, with a layer between."""

    def __init__(self):
        super().__init__()
        self.activations = nn.ModuleList(
            [
                nn.ReLU6(), nn.Hardtanh(0.0, 6.0), nn.LeakyReLU(0.2), nn.PReLU(), nn.Softplus(beta=3), nn.ELU(0.7), nn.GELU(),
                nn.SiLU(), nn.Tanh(), nn.Sigmoid(), nn.Hardswish(), nn.Hardsigmoid(), nn.Threshold(0.0, 0.0),
            ]
        )  # fmt: skip
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in self.activations])
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        for layer, activation in zip(self.layers, self.activations):  # noqa: B905 (TorchScript has no strict)
            x = activation(layer(x) * 3) + x
        return self.head(x)


class Arithmetic(nn.Module):
    """Constants on either side, of numbers, channels and whole samples."""

    def __init__(self):
        super().__init__()
        self.register_buffer("keep_image", torch.linspace(0, 1, 48).view(3, 4, 4))
        self.register_buffer("keep_columns", torch.linspace(1, 2, 4))
        self.conv = nn.Conv2d(3, 2, 3)
        self.gate = nn.Conv2d(3, 2, 3)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        x = 1 - (x * 255 - self.keep_image) / 127.5
        x = x.flip(1) * self.keep_columns + 0.5
        y = self.conv(x) * torch.sigmoid(self.gate(x))
        z = torch.add(y, y, alpha=-0.25) - 2 * y.pow(2)
        return (-self.head(z.reshape(z.shape[0], 8)),)


class Dense(nn.Module):
    """Concatenation, slices, permutation, reshaping, constant branches."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(4, 4, 1)
        self.left, self.right = nn.Conv2d(2, 2, 1), nn.Conv2d(2, 3, 3, padding="same")
        self.norm = nn.BatchNorm1d(80)
        self.head = nn.Linear(16, 3, bias=False)

    def forward(self, x):
        if x.dim() != 4:
            raise ValueError("images only")
        x = self.stem(x)[:, 1:3]
        x = torch.cat([self.left(x), self.right(x)], dim=1)
        x = F.pad(x, [0, 0, 1, 0], value=0.5)[:, :, 1:, :]
        x = self.norm(x.contiguous().view(-1, 80)).view(-1, 5, 16)
        if self.training:
            x = x * 2
        return self.head(x.permute(0, 2, 1).transpose(1, 2).mean(1))


class Pools(nn.Module):
    def __init__(self):
        super().__init__()
        self.max = nn.MaxPool2d(3, 2, 1, ceil_mode=True)
        self.average = nn.AvgPool2d(2, stride=1, padding=1, count_include_pad=False)
        self.adaptive = nn.AdaptiveAvgPool2d((2, 3))
        self.conv = nn.Conv2d(2, 2, 3, dilation=2)
        self.head = nn.Linear(12, 3)

    def forward(self, x):
        return self.head(self.adaptive(self.average(self.max(self.conv(x)))).flatten(1))


class WritesToItsInput(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        x.mul_(2).add_(1)
        return self.head(x)


class SharedBeforeInPlace(nn.Module):
    """The skip connection reads what the in-place activation wrote."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        y = self.first(x)
        z = self.second(F.relu_(y))
        return self.head(y + z)


OTHERS = {
    "activations": ((4,), Activations),
    "arithmetic": ((3, 4, 4), Arithmetic),
    "dense": ((4, 4, 4), Dense),
    "pools": ((2, 12, 12), Pools),
    "writes_to_its_input": ((6,), WritesToItsInput),
    "shared_before_in_place": ((6,), SharedBeforeInPlace),
}


# What stays as it is.
class Einsum(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x):
        return torch.einsum("bi,ci->bc", torch.tanh(self.first(x)), self.second.weight) + self.second.bias


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(6)
        self.key, self.value, self.head = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(24, 3)

    def forward(self, x):
        x = self.norm(x)
        weights = torch.softmax(self.key(x) @ x.transpose(1, 2), dim=-1)
        return self.head((weights @ self.value(x)).flatten(1))


class Counts(nn.Module):
    """Writes to its own attribute at every call, and reads it."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 3)
        self.register_buffer("keep_calls", torch.zeros(1))

    def forward(self, x):
        self.keep_calls += 1
        return self.head(x) * self.keep_calls


class WritesToAView(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.head = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x):
        y = self.first(x)
        y[:, :3].relu_()
        return self.head(y)


class DataBranch(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        y = self.head(x)
        if bool(y[0, 0] > 1e9):
            y = y * 2
        return y


class BatchBranch(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        if x.size(0) > 1000:
            return self.head(x) * 2
        return self.head(x)


class Detached(nn.Module):
    """Its gradient is not that of its formula."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x):
        return self.first(x) + self.second(x).detach()


class HalfPrecisionInside(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.head = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.first(x).float().cos().to(torch.float32))


OPAQUE = {
    "einsum": ((6,), Einsum),
    "attention": ((4, 6), Attention),
    "writes_to_a_view": ((6,), WritesToAView),
    "detached": ((6,), Detached),
    "single_precision_inside": ((6,), HalfPrecisionInside),
}


class Softmax(Mlp):
    def forward(self, x):
        return F.softmax(self.layers(x), dim=1)


class LogSoftmaxOpaque(Einsum):
    def forward(self, x):
        return torch.log_softmax(super().forward(x), -1)


def write(folder, name, script, model, shape, logits=None):
    """`model` is the eager module the file must agree with; `logits` computes its logits where it gives something else."""
    script.save(str(folder / f"{name}.pt"))
    inputs = torch.rand((5, *shape), generator=torch.Generator().manual_seed(1)) * 2 - 0.5
    numpy.save(folder / f"{name}.inputs.npy", inputs.numpy())
    model = model.eval()
    leaf = inputs.clone().requires_grad_()
    out = (logits or model)(leaf * 1)
    out = out[0] if isinstance(out, tuple) else out
    numpy.save(folder / f"{name}.logits.npy", out.detach().numpy())
    weights = torch.arange(1, out.shape[1] + 1) / out.shape[1]
    (gradient,) = torch.autograd.grad((out * weights).sum(), leaf)
    numpy.save(folder / f"{name}.gradients.npy", gradient.numpy())


def save_both(folder, name, make, shape, names):
    """Scripted and traced; modules are left in training mode, as people leave them, except for tracing."""
    model = randomise(make())
    example = torch.rand((2, *shape))
    write(folder, f"{name}_scripted", torch.jit.script(copy.deepcopy(model)), model, shape)
    traced = torch.jit.trace(copy.deepcopy(model).eval(), example, check_trace=False)
    write(folder, f"{name}_traced", traced, model, shape)
    names += [f"{name}_scripted", f"{name}_traced"]


def main(folder: pathlib.Path) -> None:
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    networks, opaque = [], []
    for name, (shape, *forms) in FORMS.items():
        for form, make in zip(("module", "functional", "in_place"), forms, strict=False):
            save_both(folder, f"{name}_{form}", make, shape, networks)
    for name, (shape, make) in OTHERS.items():
        save_both(folder, name, make, shape, networks)
    for name, (shape, make) in OPAQUE.items():
        save_both(folder, name, make, shape, opaque)

    # Branches, which tracing does not see.
    for name, make in (("data_branch_scripted", DataBranch), ("batch_branch_scripted", BatchBranch)):
        model = randomise(make())
        write(folder, name, torch.jit.script(copy.deepcopy(model)), model, (6,))
        opaque.append(name)

    # Traced while training: the flags are fixed in the file.
    for name, make, shape in (("training_mlp", Mlp, (6,)), ("training_cnn", Cnn, (3, 8, 8))):
        model = randomise(make())
        traced = torch.jit.trace(copy.deepcopy(model).train(), torch.rand((2, *shape)), check_trace=False)
        # Tracing moved the running statistics of the copy; the file holds the moved ones.
        state = {key: value for key, value in traced.state_dict().items()}
        model.load_state_dict(state)
        write(folder, name, traced, model, shape)
        networks.append(name)

    model = randomise(Softmax())
    write(folder, "softmax", torch.jit.script(model), model, (6,), logits=model.layers)
    model = randomise(LogSoftmaxOpaque())
    plain = Einsum()
    plain.load_state_dict(model.state_dict())
    write(folder, "log_softmax_opaque", torch.jit.trace(model, torch.rand(2, 6)), plain, (6,))

    counts = randomise(Counts())
    write(folder, "counts", torch.jit.script(copy.deepcopy(counts)), counts, (6,))

    double = randomise(Mlp()).double()
    torch.jit.script(double).save(str(folder / "double.pt"))

    broken = randomise(Mlp())
    broken.layers[3].weight.data[1, 2] = float("nan")
    torch.jit.script(broken).save(str(folder / "nan.pt"))
    torch.save(Mlp().state_dict(), folder / "state_dict.pt")
    whole = (folder / "cnn_module_scripted.pt").read_bytes()
    (folder / "truncated.pt").write_bytes(whole[: len(whole) // 2])
    (folder / "text.pt").write_text("not a model\n")
    (folder / "empty.pt").write_bytes(b"")
    torch.jit.script(TwoInputs()).save(str(folder / "two_inputs.pt"))
    torch.jit.script(Random()).save(str(folder / "random.pt"))
    torch.jit.script(TwoOutputs()).save(str(folder / "two_outputs.pt"))
    torch.jit.script(OneScore()).save(str(folder / "one_score.pt"))

    (folder / "networks.txt").write_text("\n".join(networks) + "\n")
    (folder / "opaque.txt").write_text("\n".join(opaque) + "\n")


class TwoInputs(nn.Module):
    def forward(self, x, y):
        return x + y


class Random(nn.Module):
    def forward(self, x):
        return x + torch.rand_like(x)


class TwoOutputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head(x), x


class OneScore(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 1)

    def forward(self, x):
        return self.head(x).squeeze(1)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
