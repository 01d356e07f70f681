"""Models that run without Python."""

import dataclasses

import holdfast
import pytest
import torch
from conftest import make_network


def test_a_module_becomes_a_network_with_the_same_logits(network, inputs):
    network.train()
    model = holdfast.load_model(network, example=inputs)
    assert model.layers and model.name == "Sequential" and network.training
    torch.testing.assert_close(model(inputs), network(inputs))
    x = inputs.clone().requires_grad_()
    torch.testing.assert_close(
        torch.autograd.grad(model(x).sum(), x)[0], torch.autograd.grad(network(x).sum(), x)[0], rtol=1e-5, atol=1e-6
    )
    with torch.no_grad():
        assert not model(x).requires_grad


def test_the_copy_stays_when_the_module_is_trained(network, inputs):
    model = holdfast.load_model(network, inputs)
    expected = model(inputs)
    with torch.no_grad():
        network[0].weight.mul_(2)
    assert torch.equal(model(inputs), expected)


def test_a_module_with_unknown_operations_runs_as_it_is(inputs):
    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = make_network()

        def forward(self, x):
            return torch.einsum("bi,ij->bj", self.network(x), torch.eye(3))

    model = holdfast.load_model(Own(), inputs)
    assert not model.layers and "runs as it is" in model.describe()
    torch.testing.assert_close(holdfast.explain(model, inputs), holdfast.explain(Own(), inputs))


def test_a_module_that_decides_by_values_is_refused(inputs):
    class Deciding(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = make_network()

        def forward(self, x):
            return self.network(x) if x.mean() > 0.5 else -self.network(x)

    inputs[:2] += 10
    with pytest.warns(torch.jit.TracerWarning):
        holdfast.load_model(Deciding(), inputs)
    inputs[2:] -= 10
    with pytest.warns(torch.jit.TracerWarning), pytest.raises(holdfast.Error, match="decides by the values of its inputs"):
        holdfast.load_model(Deciding(), inputs)


def test_file_and_architecture(saved, inputs, network):
    model = holdfast.load_model(saved / "model.safetensors")
    torch.testing.assert_close(model(inputs), network(inputs))
    assert model.device == torch.device("cpu") and model.dtype == torch.float32
    assert repr(model).endswith("model.safetensors>")


@pytest.mark.parametrize(
    ("arguments", "saying"),
    [
        (("nowhere.pt",), "cannot read nowhere.pt"),
        (("mlpp:nowhere.safetensors",), "did you mean 'mlp'"),
        ((3,), "neither a file's path nor a torch.nn.Module"),
        ((torch.nn.Linear(2, 2),), "example=inputs"),
        (("a.pt", torch.zeros(1, 2)), "for modules only"),
    ],
)
def test_refusals(arguments, saying):
    with pytest.raises(holdfast.Error, match=saying):
        holdfast.load_model(*arguments)


def test_inputs_of_another_shape_are_refused(network, inputs, saved):
    for model in (holdfast.load_model(saved / "model.safetensors"), holdfast.load_model(network, inputs)):
        with pytest.raises(holdfast.Error, match="5"):
            holdfast.explain(model, torch.rand(3, 5))


class Reviews(torch.nn.Module):
    """Token ids, and a mask of those that count."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(40, 8, padding_idx=0)
        self.head = torch.nn.Linear(8, 3)

    def forward(self, ids, mask=None):
        words = torch.tanh(self.words(ids))
        return self.head((words if mask is None else words * mask.unsqueeze(2)).sum(1))


class Two(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.network = make_network(inputs=4)

    def forward(self, x, scale):
        return self.network(x) * scale


def two_inputs():
    generator = torch.Generator().manual_seed(1)
    return torch.rand(5, 4, generator=generator), torch.rand(5, 1, generator=generator) + 0.5


def some_ids():
    ids = torch.randint(1, 40, (5, 7), generator=torch.Generator().manual_seed(1))
    ids[0, 5:] = 0
    return ids


EXAMPLES = {
    "ids": lambda: (Reviews(), some_ids()),
    "ids and a mask by name": lambda: (Reviews(), {"ids": some_ids(), "mask": (some_ids() != 0).float()}),
    "two by position": lambda: (Two(), two_inputs()),
    "two by name": lambda: (Two(), dict(zip(("x", "scale"), two_inputs(), strict=True))),
}


@pytest.mark.parametrize("case", EXAMPLES)
def test_a_module_of_other_inputs_is_copied_too(case):
    module, inputs = EXAMPLES[case]()
    threat = holdfast.Threat("l2", 0.2)
    expected = (
        holdfast.explain(module, inputs),
        holdfast.attack(module, inputs, "er(steps=3)", metric="top_k(k=2)", threat=threat),
    )
    copy = holdfast.load_model(module, example=inputs)
    with torch.no_grad():  # the copy stays as it is
        next(module.parameters()).mul_(2)
    for found, own in zip(flat(holdfast.explain(copy, inputs)), flat(expected[0]), strict=True):
        torch.testing.assert_close(found, own, rtol=0, atol=1e-5)
    moved = holdfast.attack(copy, inputs, "er(steps=3)", metric="top_k(k=2)", threat=threat)
    assert torch.equal(moved.value, expected[1].value)
    assert repr(copy) == f"<holdfast.Model {type(module).__name__}>"
    run = holdfast.audit(copy, inputs, attack="random(samples=3)", metric="top_k(k=2)", threat=threat, progress=False)
    assert run.results["models"][0]["name"] == type(module).__name__


def flat(maps):
    parts = maps if isinstance(maps, tuple) else maps.values() if isinstance(maps, dict) else [maps]
    return [part for part in parts if part is not None]


def test_special_tokens_of_a_copy():
    module, ids = Reviews(), some_ids()
    copy = holdfast.load_model(module, example=ids, special_tokens=[int(ids[1, 0])])
    maps = holdfast.explain(copy, ids)
    assert not maps[ids == ids[1, 0]].any() and not maps[ids == 0].any() and maps[1].any()


def test_a_copy_for_one_array_says_how_to_copy_for_more(network, inputs):
    copy = holdfast.load_model(network, inputs)
    with pytest.raises(
        holdfast.Error, match=r"made for one array; make it with all inputs, load_model\(module, example=inputs\)"
    ):
        holdfast.explain(copy, (inputs, inputs))
    copy = holdfast.load_model(Two(), two_inputs())
    with pytest.raises(holdfast.Error, match="Two takes x, scale; scale is missing"):  # not the file that it lies in
        holdfast.explain(copy, {"x": two_inputs()[0]})


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    hidden: torch.Tensor


@pytest.mark.parametrize("kind", ["dataclass", "dict", "second of a tuple"])
def test_one_output_of_several_is_copied(network, inputs, kind):
    class Holder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, x):
            z = self.network(x)
            return {"dataclass": Output(z, x), "dict": {"hidden": x, "logits": z}}.get(kind, (x, z))

    copy = holdfast.load_model(Holder(), inputs, output_name="1" if kind.startswith("second") else "")
    assert copy.layers
    torch.testing.assert_close(copy(inputs), network(inputs))


def test_what_is_said_of_a_copy_names_the_module(network, inputs):
    with pytest.warns(holdfast.HoldfastWarning, match="^Sequential: logits are what goes into the softmax"):
        holdfast.load_model(torch.nn.Sequential(network, torch.nn.Softmax(1)), inputs)


def test_a_path_is_no_model_by_itself(inputs):
    with pytest.raises(holdfast.Error, match=r"'model.pt2' is a path; holdfast.load_model reads files"):
        holdfast.explain("model.pt2", inputs)


def test_an_exported_program_is_a_model(network, inputs):
    free = torch.export.export(network, (inputs,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    fixed = torch.export.export(network, (inputs[:1],))  # made for one sample
    expected = holdfast.explain(network, inputs)
    for program in (free, fixed, holdfast.load_model(free)):
        torch.testing.assert_close(holdfast.explain(program, inputs), expected, rtol=0, atol=1e-6)
    assert repr(holdfast.load_model(free)) == "<holdfast.Model ExportedProgram>" and holdfast.load_model(free).layers
    with pytest.raises(holdfast.Error, match="to load_model, with the output_kind"):
        holdfast.as_model(free, output_kind="value")


def test_an_exported_program_takes_token_ids():
    class Plain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Parameter(torch.randn(40, 8, generator=torch.Generator().manual_seed(2)))

        def forward(self, ids):
            return torch.nn.functional.embedding(ids, self.table).tanh().sum(1)

    ids = some_ids()
    program = torch.export.export(Plain(), (ids,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    maps = holdfast.explain(program, ids)
    assert maps.shape == ids.shape and (maps > 0).any()
    with pytest.raises(holdfast.Error, match=r"give torch\.export\.export\(module, \(ids,\)\)"):
        holdfast.explain(Plain(), ids)
