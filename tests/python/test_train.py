"""Objectives in one's own loop, and the engine's own loop."""

import json
import runpy

import holdfast
import numpy as np
import pytest
import torch
from conftest import ROOT, make_network
from holdfast._layers import layers_of

pytestmark = pytest.mark.filterwarnings("ignore::holdfast.HoldfastWarning")


def rows(count=90):
    x = torch.rand(count, 6, generator=torch.Generator().manual_seed(2))
    return x, (x[:, 0] + x[:, 1] > 1).long()


# Others see by its layers what the model does, and take another way where they cannot: steady_map.
# own_top needs deviations of the numbers.
OBJECTIVES = sorted(set(holdfast.list("objectives")) - {"steady_map", "own_top"})
CALLS = {"cl": "cl(top_k=2,count=2)"}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_on_a_module_is_that_on_its_network(name):
    """The same loss and the same gradients, whether the layers are seen or not."""
    x, y = rows(12)
    module = make_network(classes=2)
    has_top_k = any(one["name"] == "top_k" for one in holdfast.describe(name)["options"])
    call = CALLS.get(name, f"{name}(top_k=2)" if has_top_k else name)
    objective = holdfast.objective(call)
    loss, parts = objective(module, x, y, progress=1.0)
    gradients = torch.autograd.grad(loss, list(module.parameters()), allow_unused=True)
    native = holdfast.load_model(module, example=x)
    parameters = native.parameters()
    other, other_parts = objective(native, x, y, progress=1.0)
    assert float(loss) == pytest.approx(float(other), rel=1e-4, abs=1e-6)
    assert parts == pytest.approx(other_parts, rel=1e-3, abs=1e-5)
    for mine, theirs in zip(gradients, torch.autograd.grad(other, parameters, allow_unused=True), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=2e-3, atol=1e-5)


def test_plain_cross_entropy():
    x, y = rows()
    module = make_network(classes=2)
    loss, parts = holdfast.objective("ce")(module, x, y)
    expected = torch.nn.functional.cross_entropy(module(x), y)
    assert float(loss) == pytest.approx(float(expected)) and parts == {"ce": pytest.approx(float(expected))}
    loss.backward()
    own = [parameter.grad.clone() for parameter in module.parameters()]
    module.zero_grad()
    expected.backward()
    for mine, theirs in zip(own, module.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs.grad)


def test_modes_are_the_modules_own_and_stay():
    x, y = rows(16)
    module = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).train()
    before = module[1].running_mean.clone()
    holdfast.objective("r2et(top_k=2)")(module, x, y)
    assert module.training and module[1].training and not torch.equal(before, module[1].running_mean)


def test_mistakes():
    x, y = rows(8)
    with pytest.raises(holdfast.Error, match="did you mean 'r2et'"):
        holdfast.objective("r2ett")
    objective = holdfast.objective("r2et(top_k=2)")
    with pytest.raises(holdfast.Error, match="y: has 8 classes for 5 samples"):
        objective(make_network(), x[:5], y)
    with pytest.raises(holdfast.Error, match="progress: 2"):
        objective(make_network(), x, y, progress=2)
    with pytest.raises(holdfast.Error, match="cannot be called"):
        objective(3, x, y)
    with pytest.raises(holdfast.Error, match="reach rank 10, but a sample has 6 features"):
        holdfast.objective("r2et(top_k=9)")(make_network(), x, y)
    with pytest.raises(holdfast.Error, match="the model gave a dict"):
        objective(lambda x: {}, x, y)
    with pytest.raises(holdfast.Error, match="cannot be trained"):
        holdfast.train(3, x, y)
    with pytest.raises(holdfast.Error, match=r"epochs.*0"):
        holdfast.train("mlp", x, y, epochs=0)
    with pytest.raises(holdfast.Error, match=r"^recipe: .*did you mean 'r2et'"):
        holdfast.train("mlp", x, y, recipe="r2ett")


def test_the_same_bytes_as_the_command_line(tmp_path, program, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, y = rows()
    np.save("x.npy", x.numpy())
    np.save("y.npy", y.numpy())
    name = "npy(inputs=x.npy,labels=y.npy)"
    (tmp_path / "train.toml").write_text(
        f'seed = 3\n[dataset]\nname = "{name}"\n[model]\narchitecture = "mlp(hidden=8)"\n'
        '[train]\nrecipe = "r2et(top_k=2)"\nepochs = 3\nbatch_size = 16\n'
    )
    program("train", "train.toml", "--out", "cli")
    model = holdfast.train(
        "mlp(hidden=8)", x, y, recipe="r2et(top_k=2)", epochs=3, batch_size=16, seed=3, name=name, out="python", progress=False
    )
    for file in ("model.safetensors", "results.json", "test/inputs.npy"):
        assert (tmp_path / "cli" / file).read_bytes() == (tmp_path / "python" / file).read_bytes(), file
    assert len(model.history) == 3 and model.results["test"]["accuracy"]["mean"] <= 1
    memory = holdfast.train(
        "mlp(hidden=8)", x, y, recipe="r2et(top_k=2)", epochs=3, batch_size=16, seed=3, name=name, progress=False
    )
    assert torch.equal(memory(x), model(x))


def test_a_module_gets_its_weights_back():
    x, y = rows()
    module = make_network(classes=2)
    before = float(torch.nn.functional.cross_entropy(module(x), y))
    found = holdfast.train(module, x, y, recipe="vanilla", epochs=20, learning_rate=0.02, progress=False)
    assert found is module and float(torch.nn.functional.cross_entropy(module(x), y)) < before - 0.1
    with pytest.raises(holdfast.Error, match="out= is for architectures"):
        holdfast.train(module, x, y, out="x")


def test_layers_are_told_apart_though_their_values_are_alike():
    x, _ = rows()
    sizes = [(6, 6), (6, 6), (6, 2)]
    layers = [part for size in sizes for part in (torch.nn.Linear(*size), torch.nn.ReLU())][:-1]
    module = torch.nn.Sequential(*layers)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(0.1)
    seen = layers_of(module, x)
    torch.manual_seed(4)
    for layer in module[::2]:
        layer.reset_parameters()
    seen.read(module)
    torch.testing.assert_close(seen.model(x), module(x))


def test_the_example_trains_and_its_gate_passes(capsys):
    runpy.run_path(str(ROOT / "examples" / "pytorch_training.py"), run_name="__main__")
    said = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert said["r2et"]["top_k"] > said["plain"]["top_k"]
