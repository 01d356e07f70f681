"""What a model file gives: --output-kind and --output-name."""

import json

import numpy as np
import pytest
import torch


class Head(torch.nn.Module):
    """Six inputs, one linear layer, and whatever comes after it."""

    def __init__(self, outputs, after):
        super().__init__()
        self.linear = torch.nn.Linear(6, outputs)
        self.after = after
        with torch.no_grad():
            self.linear.weight.copy_(torch.linspace(-2, 3, outputs * 6).view(outputs, 6).sin())
            self.linear.bias.fill_(-0.3)

    def forward(self, x):
        return self.after(self.linear(x))


def save(path, outputs, after):
    model = Head(outputs, after)
    torch.jit.trace(model, torch.zeros(2, 6), strict=False).save(str(path))
    return model.linear


def saliency(linear, x, kind):
    x = torch.tensor(x).requires_grad_()
    z = linear(x)
    scores = z[:, 0]
    if kind != "value":
        scores = (torch.cat([-z / 2, z / 2], 1) if z.shape[1] == 1 else z).softmax(1).max(1).values
    return torch.autograd.grad(scores.sum(), x)[0].abs().numpy()


CASES = {
    "logit": (1, lambda z: z, []),
    "flat logit": (1, lambda z: z[:, 0], []),
    "sigmoid": (1, torch.sigmoid, []),
    "flat sigmoid": (1, lambda z: torch.sigmoid(z).squeeze(1), []),
    "sigmoid that is said": (1, torch.sigmoid, ["--output-kind", "probability"]),
    "written sigmoid": (1, lambda z: 1 / (1 + torch.exp(-z)), ["--output-kind", "probability"]),
    "value": (1, lambda z: z, ["--output-kind", "value"]),
    "softmax": (3, lambda z: torch.softmax(z, 1), []),
    "written softmax": (3, lambda z: torch.exp(z) / torch.exp(z).sum(1, keepdim=True), []),
    "tuple": (3, lambda z: (z, 2 * z), []),
    "dictionary": (3, lambda z: {"features": 2 * z, "logits": z}, []),
    "softmax in a dictionary": (3, lambda z: {"features": 2 * z, "logits": torch.softmax(z, 1)}, []),
    "named": (3, lambda z: {"a": 2 * z, "b": z}, ["--output-name", "b"]),
}


@pytest.mark.parametrize("case", CASES)
def test_the_explanation_is_that_of_the_logits(holdfast, subject, tmp_path, case):
    outputs, after, flags = CASES[case]
    linear = save(tmp_path / "model.pt", outputs, after)
    holdfast("explain", "--model", "model.pt", *subject[2:], *flags, "--out", "maps.npy")
    expected = saliency(linear, np.load(tmp_path / "inputs.npy"), case)
    np.testing.assert_allclose(np.load(tmp_path / "maps.npy"), expected, rtol=2e-4, atol=1e-7)


def test_what_was_assumed_is_said_once_and_kept(holdfast, subject, tmp_path):
    save(tmp_path / "model.pt", 1, lambda z: z)
    flags = ["--attack", "er(steps=5)", "--epsilon", "0.2", "--metric", "top_k(k=2)"]
    said = holdfast("audit", "--model", "model.pt", *subject[2:], *flags, "--out", "run").stderr
    assert said.count("what it gives is taken as one logit, positive for class 1 (output kind logit)") == 1
    assert json.loads((tmp_path / "run" / "results.json").read_text())["models"][0]["output"] == "logit"
    holdfast("verify", "run")
    (tmp_path / "audit.toml").write_text(
        'samples = 5\nattacks = ["er(steps=5)"]\nmetrics = ["top_k(k=2)"]\n[threat]\nepsilon = 0.2\ntolerance = 3.0\n'
        '[[dataset]]\nname = "synthetic(samples=40,linear=2,additive=2,pairs=1,noise=0,levels=0)"\n'
        '[[model]]\nname = "m"\nfile = "model.pt"\noutput_kind = "value"\n'
    )
    holdfast("audit", "audit.toml", "--out", "other")
    assert json.loads((tmp_path / "other" / "results.json").read_text())["models"][0]["output"] == "value"
    holdfast("verify", "other")


def test_a_value_needs_a_tolerance_and_keeps_it(holdfast, subject, tmp_path):
    linear = save(tmp_path / "model.pt", 1, lambda z: z)
    flags = ["--explainer", "input_x_gradient", "--attack", "er", "--metric", "top_k(k=2)", "--epsilon", "0.5"]
    model = ["--model", "model.pt", "--output-kind", "value", *subject[2:], *flags]
    holdfast.fails("attack", *model, "--out", "a", saying="model.pt gives a value: how far may it move")
    holdfast("attack", *model, "--tolerance", "0.05", "--out", "a")
    moved, clean = (torch.tensor(np.load(tmp_path / name)) for name in ("a/perturbed.npy", "inputs.npy"))
    assert (linear(moved) - linear(clean)).abs().max() <= 0.05 and (moved - clean).norm(dim=1).max() > 0.1
    assert json.loads((tmp_path / "a" / "result.json").read_text())["output"] == "value"


def test_mistakes(holdfast, subject, tmp_path):
    save(tmp_path / "pair.pt", 3, lambda z: {"a": 2 * z, "b": z})
    save(tmp_path / "narrow.pt", 1, lambda z: z.clamp(0, 1))
    save(tmp_path / "matrix.pt", 3, lambda z: z.unsqueeze(1))
    rest = [*subject[2:], "--out", "o.npy"]
    holdfast.fails("explain", "--model", "pair.pt", *rest, "--output-name", "c", saying="no output 'c'; it has a, b")
    holdfast.fails("explain", "--model", "pair.pt", *rest, saying="gives a, b; say which holds its logits: --output-name a")
    holdfast.fails("explain", "--model", "narrow.pt", *rest, saying="lies in [0, 1] for each of 20 samples")
    holdfast.fails("explain", "--model", "matrix.pt", *rest, saying="or one number for each sample")
    holdfast.fails(
        "explain", *subject, "--out", "o.npy", "--output-kind", "logit", saying="an architecture gives logits, not a logit"
    )
    holdfast.fails("explain", *subject, "--out", "o.npy", "--output-kind", "logitz", saying="logitz")


@pytest.mark.parametrize("case", ["tuple", "dictionary", "softmax in a dictionary", "named"])
def test_layers_are_seen_where_the_logits_are_one_of_several_outputs(holdfast, subject, tmp_path, case):
    outputs, after, flags = CASES[case]
    linear = save(tmp_path / "model.pt", outputs, after)
    flags = [*flags, "--explainer", "lrp(rule=epsilon)"]  # needs the layers
    holdfast("explain", "--model", "model.pt", *subject[2:], *flags, "--out", "maps.npy")
    assert np.load(tmp_path / "maps.npy").shape == np.load(tmp_path / "inputs.npy").shape
    assert linear.out_features == outputs


def test_describe_takes_one_number_for_a_logit(holdfast, subject, tmp_path):
    save(tmp_path / "model.pt", 1, torch.sigmoid)
    said = holdfast("describe", "model.pt").stdout
    assert "one logit, positive for class 1" in said and "1 classes" not in said
    save(tmp_path / "model.pt", *CASES["written softmax"][:2])
    assert "taken as a probability for each class" in holdfast("describe", "model.pt").stdout


@pytest.mark.parametrize("after", [lambda z: z, torch.sigmoid, lambda z: torch.sigmoid(z).squeeze(1), lambda z: z[:, 0]])
def test_one_logit_is_proven_as_two_are(holdfast, subject, tmp_path, after):
    hidden, last, both = torch.nn.Linear(6, 8), torch.nn.Linear(8, 1), torch.nn.Linear(8, 2)
    with torch.no_grad():
        for layer, scale in ((hidden, 1.0), (last, 2.0)):
            for tensor in layer.parameters():
                tensor.copy_((torch.arange(tensor.numel()) * scale + 0.3).sin().view(tensor.shape))
        both.weight.copy_(torch.cat([-last.weight, last.weight]) / 2)
        both.bias.copy_(torch.cat([-last.bias, last.bias]) / 2)
    body = torch.nn.Sequential(hidden, torch.nn.ReLU())

    class One(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.last = body, last

        def forward(self, x):
            return after(self.last(self.body(x)))

    torch.jit.trace(One(), torch.zeros(2, 6)).save(str(tmp_path / "one.pt"))
    torch.jit.trace(torch.nn.Sequential(body, both), torch.zeros(2, 6)).save(str(tmp_path / "two.pt"))
    flags = [*subject[2:], "--metric", "top_k(k=2)", "--norm", "l2", "--epsilon", "0.1", "--json"]
    one, two = (json.loads(holdfast("certify", "--model", f"{name}.pt", *flags).stdout) for name in ("one", "two"))
    for found in (one, two):
        assert [entry["name"] for entry in found["inapplicable"]] == ["smoothed_overlap"]
    names = [entry["name"] for entry in two["certificates"]]
    assert names == [entry["name"] for entry in one["certificates"]] and "exact" in names
    assert [entry["values"] for entry in one["certificates"]] == [entry["values"] for entry in two["certificates"]]
