"""Small models of the kinds that people bring, with weights that do not depend on torch's generator."""

import warnings

import torch
from torch import nn


def settled(module: nn.Module) -> nn.Module:
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if tensor.is_floating_point():
                spread = torch.randn(tensor.shape, generator=generator) / max(1, tensor[0].numel()) ** 0.5
                tensor.copy_(spread.abs() + 0.5 if name.endswith("running_var") else spread)
    return module.eval()


class Mlp(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))


class Cnn(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 6, 3),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(6, 3),
        )


class Transformer(nn.Module):
    """An encoder of torch's own layers; in evaluation mode they take a path of their own."""

    def __init__(self, width=8, layers=1, heads=2, tokens=4, features=3, classes=3):
        super().__init__()
        self.embed = nn.Linear(features, width)
        self.register_buffer("position", torch.zeros(tokens, width))
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.encoder(self.embed(x) + self.position).mean(1))


class Vit(nn.Module):
    """Patches of an image, a token for the class, attention."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(1, 8, 4, stride=4)
        self.token = nn.Parameter(torch.zeros(1, 1, 8))
        self.norm = nn.LayerNorm(8)
        self.attention = nn.MultiheadAttention(8, 2, dropout=0.1, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        patches = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(x.shape[0], -1, -1), patches], 1)
        normal = self.norm(tokens)
        return self.head((tokens + self.attention(normal, normal, normal, need_weights=False)[0])[:, 0])


class Recurrent(nn.Module):
    def __init__(self, layer=nn.LSTM):
        super().__init__()
        self.layer = layer(3, 6, batch_first=True)
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.layer(x)[0][:, -1])


SHAPES = {"mlp": (6,), "cnn": (1, 8, 8), "transformer": (4, 3), "vit": (1, 8, 8), "lstm": (5, 3), "gru": (5, 3), "rnn": (5, 3)}
MAKERS = {
    "mlp": Mlp,
    "cnn": Cnn,
    "transformer": Transformer,
    "vit": Vit,
    "lstm": Recurrent,
    "gru": lambda: Recurrent(nn.GRU),
    "rnn": lambda: Recurrent(nn.RNN),
}


def make(name):
    """A module and five samples for it."""
    return settled(MAKERS[name]()), torch.rand(5, *SHAPES[name], generator=torch.Generator().manual_seed(1))


def save(module, inputs, path):
    """The module in the form that the file's name says. ``inputs``: one tensor, or several by name."""
    named = inputs if isinstance(inputs, dict) else {"x": inputs}
    values = tuple(named.values())
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        if path.suffix == ".pt":
            torch.jit.trace(module, values, check_trace=False).save(str(path))
        elif path.suffix == ".pt2":
            dynamic = tuple({0: torch.export.Dim.AUTO} for _ in values)
            torch.export.save(torch.export.export(module, values, dynamic_shapes=dynamic), path)
        else:
            torch.backends.mha.set_fastpath_enabled(False)  # ONNX has no operator for it
            axes = {name: {0: "batch"} for name in named}
            names = list(named)
            torch.onnx.export(module, values, str(path), dynamo=False, input_names=names, dynamic_axes=axes, opset_version=17)
            torch.backends.mha.set_fastpath_enabled(True)
    return path


def save_files(module, named, folder, endings=(".pt2", ".pt", ".onnx")):
    """Files of a module with named inputs, by ending."""
    return {ending: save(module, named, folder / f"model{ending}") for ending in endings}
