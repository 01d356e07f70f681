"""Every registered method can be asked for from Python, for a module and for its native copy."""

import holdfast
import numpy as np
import pytest
import torch


@pytest.fixture(scope="module")
def subject():
    """A small convolutional network, with images for it."""
    generator = torch.Generator().manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.Softplus(), torch.nn.AdaptiveAvgPool2d(3), torch.nn.Flatten(), torch.nn.Linear(36, 3)
    )
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 2)
    images = torch.rand(4, 1, 8, 8, generator=generator)
    rows = torch.rand(6, 1, 8, 8, generator=generator)
    return module, holdfast.load_model(module, images), images, rows


LAYERS = r"holdfast\.load_model\(module, example=inputs\) shows the layers of a torch module"


def module_as_native(module, native, ask, compare):
    """The module gives what its copy gives, or says that its layers must be shown."""
    expected = ask(native)
    try:
        found = ask(module)
    except holdfast.Error as error:
        assert "layers" in str(error)
        with pytest.raises(holdfast.Error, match=LAYERS):
            ask(module)
        return
    compare(found, expected)


# valid_effect is for tables: tests/python/test_valid_effect.py.
@pytest.mark.parametrize("name", [name for name in holdfast.list("explainers") if name != "valid_effect"])
def test_explainers(subject, name):
    module, native, images, rows = subject
    maps = holdfast.explain(native, images, name, background=rows)
    assert maps.shape == images.shape and torch.isfinite(maps).all() and maps.abs().sum() > 0
    module_as_native(
        module,
        native,
        lambda model: holdfast.explain(model, images, name, background=rows),
        lambda found, expected: torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5),
    )


# Exact answers are for chains of linear layers: test_certify.py.
@pytest.mark.parametrize("name", [name for name in holdfast.list("attacks") if name != "exact"])
def test_attacks(subject, name):
    module, native, images, _ = subject
    options = [option["name"] for option in holdfast.describe(name)["options"]]
    call = f"{name}(steps=5)" if "steps" in options else f"{name}(samples=5)" if "samples" in options else name
    threat = holdfast.Threat(norm="linf", epsilon=0.1)

    def ask(model):
        return holdfast.attack(model, images, call, metric="top_k(k=8)", threat=threat)

    module_as_native(
        module, native, ask, lambda found, expected: np.testing.assert_allclose(found.value, expected.value, atol=0.26)
    )


@pytest.mark.parametrize("name", [name for name in holdfast.list("measures") if name != "exact_overlap"])
def test_measures(subject, name):
    module, native, images, rows = subject
    module_as_native(
        module,
        native,
        lambda model: holdfast.measure_model(model, images, name, epsilon=0.05, background=rows),
        lambda found, expected: np.testing.assert_allclose(found.values, expected.values, rtol=1e-2, atol=1e-4),
    )


@pytest.mark.parametrize("name", holdfast.list("metrics"))
def test_metrics(subject, name):
    images = subject[2]
    options = [option["name"] for option in holdfast.describe(name)["options"]]
    found = holdfast.measure(images, images.flip(0), f"{name}(k=8)" if "k" in options else name)
    same = holdfast.measure(images, images, found.name)
    assert found.values.shape == (4,) and (same.values == same.values[0]).all()
    assert found.mean != same.mean
