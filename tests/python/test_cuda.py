"""On a GPU: the model decides where it is computed, the inputs where the results go."""

import holdfast
import pytest
import torch
from conftest import make_network

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device")


def test_results_go_where_the_inputs_are(network, inputs, threat):
    expected = holdfast.explain(network, inputs)
    moved = network.cuda()
    for samples in (inputs, inputs.cuda()):
        maps = holdfast.explain(moved, samples)
        assert maps.device == samples.device
        torch.testing.assert_close(maps.cpu(), expected, rtol=1e-3, atol=1e-5)
        attacked = holdfast.attack(moved, samples, "er(steps=5)", metric="top_k(k=2)", threat=threat)
        assert attacked.perturbed.device == attacked.value.device == samples.device
        assert (attacked.norm <= 0.5 * (1 + 1e-6)).all()


def test_callables_compute_where_the_inputs_are(network, inputs):
    network.cuda()
    maps = holdfast.explain(lambda x: network(x), inputs.cuda())
    torch.testing.assert_close(maps, holdfast.explain(network, inputs.cuda()))


def test_maps_on_the_gpu_are_measured():
    maps = torch.rand(8, 30, generator=torch.Generator().manual_seed(0))
    found = holdfast.measure(maps.cuda(), maps.flip(1).cuda(), "top_k(k=8)")
    assert found.values.is_cuda and found.mean == holdfast.measure(maps, maps.flip(1), "top_k(k=8)").mean


def test_native_copies(inputs):
    native = holdfast.load_model(make_network().cuda(), inputs)
    assert native.device.type == "cuda" and native.layers
    torch.testing.assert_close(native(inputs).cpu(), make_network()(inputs), rtol=1e-3, atol=1e-4)
