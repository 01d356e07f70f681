"""Explanations: right values, whatever the arrays and models come as."""

import holdfast
import numpy as np
import pytest
import torch
from conftest import make_network, saliency


def test_saliency_is_the_gradient_of_the_probability(network, inputs):
    maps = holdfast.explain(network, inputs)
    assert maps.dtype == torch.float32
    torch.testing.assert_close(maps.double(), saliency(network.double(), inputs), rtol=1e-4, atol=1e-6)


def test_targets_choose_the_class(network, inputs):
    x = inputs.clone().requires_grad_()
    expected = torch.autograd.grad(network(x)[:, 2].sum(), x)[0]
    for targets in (2, [2] * 20, np.full(20, 2), torch.full((20,), 2, dtype=torch.int32)):
        maps = holdfast.explain(network, inputs, "saliency(target=logit,signed=true)", targets=targets)
        torch.testing.assert_close(maps, expected, rtol=1e-5, atol=1e-6)


def test_numpy_in_numpy_out(network, inputs):
    maps = holdfast.explain(network, inputs.numpy())
    assert isinstance(maps, np.ndarray)
    np.testing.assert_array_equal(maps, holdfast.explain(network, inputs).numpy())


def test_details(network, inputs):
    explained = holdfast.explain(network, inputs, return_details=True)
    torch.testing.assert_close(explained.logits, network(inputs).detach())
    assert torch.equal(explained.targets, network(inputs).argmax(1))
    assert torch.equal(explained.maps, holdfast.explain(network, inputs))
    assert explained.delta is None and explained.gauge_share is None


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.T.contiguous().T,
        lambda x: torch.stack([x, x], 2)[:, :, 0],
        lambda x: x.numpy().astype(">f4"),
        lambda x: np.asfortranarray(x.numpy()),
        lambda x: np.ascontiguousarray(x.numpy()[::-1])[::-1],
        lambda x: x.double(),
        lambda x: x.tolist(),
        lambda x: x.clone().requires_grad_(),
    ],
    ids=["transposed", "strided", "big-endian", "fortran", "reversed", "float64", "lists", "requires-grad"],
)
def test_any_array_gives_the_same_maps(network, inputs, view):
    expected = holdfast.explain(network, inputs)
    maps = torch.as_tensor(holdfast.explain(network, view(inputs)))
    assert maps.dtype == torch.float32 and not maps.requires_grad
    torch.testing.assert_close(maps, expected, rtol=1e-5, atol=1e-7)


def test_read_only_arrays_are_read_without_a_warning(network, inputs, recwarn):
    array = inputs.numpy().copy()
    array.flags.writeable = False
    holdfast.explain(network, array)
    assert not recwarn.list


def test_integer_and_half_inputs(network):
    integers = torch.randint(0, 5, (4, 6), generator=torch.Generator().manual_seed(0))
    expected = holdfast.explain(network, integers.float())
    assert torch.equal(holdfast.explain(network, integers), expected)
    assert torch.equal(holdfast.explain(network, integers.to(torch.float16)), expected)
    np.testing.assert_array_equal(holdfast.explain(network, integers.numpy().astype(np.uint16)), expected.numpy())


def test_the_model_decides_the_precision(network, inputs):
    double = make_network().double()
    maps = holdfast.explain(double, inputs)
    assert maps.dtype == torch.float64
    torch.testing.assert_close(maps, saliency(double, inputs), rtol=1e-10, atol=1e-12)
    half = make_network().to(torch.bfloat16)
    maps = holdfast.explain(half, inputs)
    assert maps.dtype == torch.float32
    torch.testing.assert_close(maps.double(), saliency(double, inputs), rtol=0.1, atol=0.02)


def test_callables_are_models(network, inputs):
    expected = holdfast.explain(network, inputs)
    assert torch.equal(holdfast.explain(lambda x: network(x), inputs), expected)
    torch.testing.assert_close(
        holdfast.explain(network.double(), inputs.double()), holdfast.explain(lambda x: network(x), inputs.double())
    )


def test_the_command_line_gives_the_same_maps(network, inputs, saved, program):
    program("explain", "--model", "mlp:model.safetensors", "--inputs", "inputs.npy", "--out", "maps.npy")
    written = np.load(saved / "maps.npy")
    native = holdfast.load_model(f"mlp:{saved / 'model.safetensors'}")
    np.testing.assert_array_equal(holdfast.explain(native, inputs.numpy()), written)
    np.testing.assert_allclose(holdfast.explain(network, inputs.numpy()), written, rtol=1e-5, atol=1e-7)


def test_one_hot_groups_of_a_schema_are_projected(network, inputs):
    schema = {"layout": {"kind": "vector", "length": 6}, "groups": [{"name": "colour", "columns": [3, 4, 5]}]}
    explained = holdfast.explain(network, inputs, "saliency(signed=true)", schema=schema, return_details=True)
    torch.testing.assert_close(explained.maps[:, 3:].sum(1), torch.zeros(20), rtol=0, atol=1e-6)
    assert (explained.gauge_share > 0).all()


def test_gradients_can_be_taken_inside_no_grad_and_inference_mode(network, inputs):
    expected = holdfast.explain(network, inputs)
    with torch.no_grad():
        assert torch.equal(holdfast.explain(network, inputs), expected)
    with torch.inference_mode():
        assert torch.equal(holdfast.explain(network, inputs.clone()), expected)
    assert torch.is_grad_enabled()


def test_samples_are_handed_over_without_a_copy(network, inputs):
    seen = []

    def model(x):
        seen.append((x.data_ptr(), len(x)))
        return network(x)

    holdfast.explain(model, inputs)
    assert (inputs.data_ptr(), 20) in seen
    array = inputs.numpy()
    seen.clear()
    holdfast.explain(model, array)
    assert (array.ctypes.data, 20) in seen


def test_a_model_that_writes_to_its_inputs_works_on_a_copy(network, inputs):
    before = inputs.clone()
    maps = holdfast.explain(lambda x: network(x.mul_(2)), inputs)
    assert torch.equal(inputs, before)
    network.double()
    torch.testing.assert_close(maps.double(), saliency(lambda x: network(2 * x), inputs), rtol=1e-4, atol=1e-6)


def test_tiles_do_not_change_the_maps(network, inputs):
    expected = holdfast.explain(network, inputs)
    torch.testing.assert_close(holdfast.explain(network, inputs, tile=3), expected)
    native = holdfast.load_model(network, inputs)
    assert torch.equal(holdfast.explain(native, inputs, tile=3, threads=1), holdfast.explain(native, inputs, tile=3, threads=4))
