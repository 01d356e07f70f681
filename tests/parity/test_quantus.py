"""Stability against Quantus 0.6, with the same points around every sample: equal where Quantus follows the definitions, equal to
Quantus with ``quantus=true`` where it does not, and then not equal without it.
"""

import holdfast
import numpy as np
import pytest
import quantus_runs
import torch
from torch import nn

POINTS = 25
TOLERANCE = 1e-4


class InDouble(nn.Sequential):
    """Quantus rounds inputs to single precision. Its points are, so nothing is lost when the passes are in double precision, and
    relative changes of elements near zero are those of the definition instead of the rounding.
    """

    def forward(self, x):
        return super().forward(x.double())


def with_weights(*layers, seed=0):
    network = InDouble(*layers).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            fan_in = parameter[0].numel() if parameter.dim() > 1 else 1
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * (2 / fan_in) ** 0.5)
    return network.eval()


def table(samples=70, seed=1):
    """Of both signs, so that several classes are predicted, and none near zero."""
    generator = np.random.default_rng(seed)
    return (generator.uniform(0.3, 1.5, (samples, 12)) * generator.choice([-1, 1], (samples, 12))).astype(np.float32)


@pytest.fixture
def mlp():
    return with_weights(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 4))


@pytest.fixture
def cnn():
    layers = [nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 4)]
    return with_weights(*layers, seed=2)


@pytest.fixture
def images():
    return np.random.default_rng(3).uniform(0.2, 1, (9, 2, 8, 8)).astype(np.float32)


def ours(model, inputs, call, endpoints):
    targets = quantus_runs.predicted(model, inputs)
    return holdfast.measure_model(model, inputs.astype(np.float64), call, endpoints=endpoints, targets=targets)


def check(measured, scores):
    np.testing.assert_array_equal(np.isnan(measured.values), np.isnan(scores))
    np.testing.assert_allclose(measured.values, scores, rtol=TOLERANCE)


METHODS = [
    ("MaxSensitivity", "max_sensitivity"),
    ("AvgSensitivity", "avg_sensitivity"),
    ("LocalLipschitzEstimate", "local_lipschitz"),
    ("RelativeInputStability", "relative_input_stability"),
    ("RelativeOutputStability", "relative_output_stability"),
]


@pytest.mark.parametrize(("theirs", "own"), METHODS)
@pytest.mark.parametrize("kind", ["table", "images"])
def test_their_defaults(theirs, own, kind, request, mlp):
    model, inputs = (mlp, table()) if kind == "table" else (request.getfixturevalue("cnn"), request.getfixturevalue("images"))
    scores, points = quantus_runs.run(theirs, model, inputs, points=POINTS)
    check(ours(model, inputs, f"{own}(from=given,quantus=true)", points), scores)
    assert np.isfinite(scores).any()


@pytest.mark.parametrize(
    ("theirs", "own"),
    [
        ("MaxSensitivity", "max_sensitivity(from=given,flips=keep)"),
        ("AvgSensitivity", "avg_sensitivity(from=given,flips=keep)"),
        ("LocalLipschitzEstimate", "local_lipschitz(from=given,flips=keep)"),
    ],
)
def test_the_definitions_without_their_normalisation(theirs, own, mlp):
    inputs = table()
    scores, points = quantus_runs.run(theirs, mlp, inputs, points=POINTS, normalise=False)
    check(ours(mlp, inputs, own, points), scores)


@pytest.mark.parametrize("method", ["Input", "Output"])
def test_relative_stability_where_nothing_is_zero_and_no_label_flips(method, mlp):
    inputs = table()
    scores, points = quantus_runs.run(f"Relative{method}Stability", mlp, inputs, points=POINTS)
    measured = ours(mlp, inputs, f"relative_{method.lower()}_stability(from=given)", points)
    kept = measured.parts["label_flips"] == 0
    assert 10 < kept.sum() < len(kept)
    np.testing.assert_allclose(measured.values[kept], scores[kept], rtol=TOLERANCE)
    assert np.isnan(scores[~kept]).all()
    assert np.isfinite(measured.values[~kept]).any()


@pytest.mark.parametrize(("layers", "own"), [({"layer_indices": [1]}, "last"), ({}, "all")])
@pytest.mark.parametrize("quantus", [True, False])
def test_relative_representation_stability(layers, own, quantus):
    # Softplus: no value of the layer is zero, so the two agree on how zeros count.
    module = with_weights(nn.Linear(12, 16), nn.Softplus(), nn.Linear(16, 4))
    inputs = table()
    scores, points = quantus_runs.run("RelativeRepresentationStability", module, inputs, points=POINTS, **layers)
    model = holdfast.load_model(module, example=torch.as_tensor(inputs).double())
    call = f"relative_representation_stability(from=given,layer={own},quantus={str(quantus).lower()})"
    measured = holdfast.measure_model(
        model, inputs.astype(np.float64), call, endpoints=points, targets=quantus_runs.predicted(module, inputs)
    )
    same = np.ones(len(inputs), bool) if quantus else measured.parts["label_flips"] == 0
    np.testing.assert_allclose(measured.values[same], scores[same], rtol=TOLERANCE)
    assert np.isfinite(scores).sum() > 10


def test_lipschitz_depends_on_their_batch_size_and_not_on_ours(mlp):
    inputs = table()
    small, points = quantus_runs.run("LocalLipschitzEstimate", mlp, inputs, points=POINTS, batch_size=8)
    check(ours(mlp, inputs, "local_lipschitz(from=given,quantus=true,batch=8)", points), small)
    large = ours(mlp, inputs, "local_lipschitz(from=given,quantus=true,batch=70)", points).values
    assert abs(large.mean() - small.mean()) > 0.05 * small.mean()
    # One sample a batch is each map by its own largest value: normalise=max.
    single, points = quantus_runs.run("LocalLipschitzEstimate", mlp, inputs, points=POINTS, batch_size=1)
    check(ours(mlp, inputs, "local_lipschitz(from=given,normalise=max,flips=keep)", points), single)


def test_black_pixels_are_their_epsilon_and_left_out_here(cnn, images):
    images[:, :, :3] = 0
    scores, points = quantus_runs.run("RelativeInputStability", cnn, images, points=POINTS)
    check(ours(cnn, images, "relative_input_stability(from=given,quantus=true)", points), scores)
    measured = ours(cnn, images, "relative_input_stability(from=given)", points)
    assert (measured.parts["input_zeros"] == 2 * 3 * 8).all()
    defined = np.isfinite(scores) & (measured.parts["label_flips"] == 0)
    assert defined.sum() > 2
    assert (measured.values[defined] > 1e3 * scores[defined]).all()

    sample = int(np.flatnonzero(defined)[0])
    chosen = quantus_runs.predicted(cnn, images)[[sample]]
    clean = quantus_runs.saliency(cnn, images[[sample]], chosen)[0]
    largest = 0
    for point in points[sample]:
        there = quantus_runs.saliency(cnn, point[None], chosen)[0]
        lit, seen = images[sample] != 0, clean != 0
        above = np.linalg.norm((there - clean)[seen] / clean[seen])
        largest = max(largest, above / np.linalg.norm((point - images[sample])[lit] / images[sample][lit]))
    np.testing.assert_allclose(measured.values[sample], largest, rtol=TOLERANCE)
