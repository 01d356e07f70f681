"""Explainers made of gradients, and occlusion."""

from unittest import mock

import holdfast
import numpy as np
import pytest
import torch
from captum import attr
from conftest import SINGLE, assert_same

TARGETS = ["logit", "probability"]


@pytest.mark.parametrize("target", TARGETS)
def test_saliency(case, target):
    captum = attr.Saliency(case.output(target))
    assert_same(case.ours(f"saliency(target={target})"), captum.attribute(case.inputs, target=case.targets))
    signed = captum.attribute(case.inputs, target=case.targets, abs=False)
    assert_same(case.ours(f"saliency(target={target},signed=true)"), signed)


@pytest.mark.parametrize("target", TARGETS)
def test_input_x_gradient(case, target):
    theirs = attr.InputXGradient(case.output(target)).attribute(case.inputs, target=case.targets)
    assert_same(case.ours(f"input_x_gradient(target={target})"), theirs)


@pytest.mark.parametrize(
    ("rule", "method"),
    [
        ("right", "riemann_right"),
        ("left", "riemann_left"),
        ("middle", "riemann_middle"),
        ("trapezoid", "riemann_trapezoid"),
        ("gauss", "gausslegendre"),
    ],
)
@pytest.mark.parametrize("target", TARGETS)
def test_integrated_gradients(case, target, rule, method):
    baseline = case.inputs[0] * 0.3 + 0.2
    captum = attr.IntegratedGradients(case.output(target))
    theirs, delta = captum.attribute(
        case.inputs,
        baselines=baseline.unsqueeze(0),
        target=case.targets,
        n_steps=12,
        method=method,
        return_convergence_delta=True,
    )
    ours = case.ours(
        f"integrated_gradients(steps=12,rule={rule},target={target},baseline=given)", baseline=baseline, return_details=True
    )
    if rule == "trapezoid":
        # Captum's n points cut the way into n - 1 parts, but each is given the length 1/n: its weights sum to (n - 1)/n.
        assert_same(ours.maps, theirs * 12 / 11, SINGLE)
        return
    assert_same(ours.maps, theirs, SINGLE)
    assert torch.allclose(ours.delta, delta, atol=1e-6)


def recorded(case, explainer, rows, **options):
    """The maps of a module, and the batch of that many rows at which its gradients were taken."""
    seen = []

    def spy(x):
        seen.append(x.detach().clone())
        return case.module(x)

    maps = holdfast.explain(spy, case.inputs, explainer, targets=case.targets, **options)
    (points,) = [batch for batch in seen if len(batch) == rows]
    return maps, points


def by_sample(points, samples):
    """[points x samples, ...] -> [samples x points, ...], the order in which Captum repeats its inputs."""
    return points.unflatten(0, (-1, samples)).transpose(0, 1).flatten(0, 1)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("kind", "nt_type"), [("mean", "smoothgrad"), ("squared", "smoothgrad_sq"), ("variance", "vargrad")])
def test_smooth_grad(case, target, kind, nt_type):
    samples = len(case.inputs)
    ours, points = recorded(case, f"smooth_grad(samples=6,sigma=0.3,kind={kind},target={target},signed=true)", 6 * samples)
    noise = by_sample(points, samples) - case.inputs.repeat_interleave(6, 0)
    assert 0.2 < noise.std() < 0.4
    tunnel = attr.NoiseTunnel(attr.Saliency(case.output(target)))
    with mock.patch.object(torch, "normal", lambda mean, std: noise):
        theirs = tunnel.attribute(case.inputs, nt_type=nt_type, nt_samples=6, stdevs=0.3, target=case.targets, abs=False)
    assert_same(ours, theirs)


@pytest.mark.parametrize("target", TARGETS)
def test_gradient_shap(case, target):
    samples = len(case.inputs)
    generator = torch.Generator().manual_seed(9)
    background = torch.rand(4, *case.module.sample, generator=generator, dtype=torch.float64)
    ours, points = recorded(case, f"gradient_shap(samples=6,target={target})", 6 * samples, background=background)

    # Which row each point started from and how far it went: the row from which it lies on the way to the input.
    points = by_sample(points, samples).flatten(1).unsqueeze(1)
    ways = case.inputs.repeat_interleave(6, 0).flatten(1).unsqueeze(1) - background.flatten(1)
    gone = points - background.flatten(1)
    places = (gone * ways).sum(2) / ways.square().sum(2)
    off = (gone - places.unsqueeze(2) * ways).norm(dim=2)
    rows = off.argmin(1)
    assert off.gather(1, rows.unsqueeze(1)).max() < 1e-12
    places = places.gather(1, rows.unsqueeze(1)).squeeze(1)
    assert rows.unique().numel() > 1
    assert places.min() >= 0
    assert places.max() <= 1

    captum = attr.GradientShap(case.output(target))
    with (
        mock.patch.object(torch, "normal", lambda mean, std: torch.zeros_like(std, dtype=torch.float64)),
        mock.patch.object(np.random, "choice", lambda count, size: rows.numpy()),
        mock.patch.object(np.random, "uniform", lambda low, high, size: places.numpy()),
    ):
        theirs = captum.attribute(case.inputs, background, n_samples=6, stdevs=0.0, target=case.targets)
    assert_same(ours, theirs)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("window", "stride"), [(3, 2), (2, 1), (4, 4)])
def test_occlusion_of_images(image_case, target, window, stride):
    channels = image_case.module.sample[0]
    theirs = attr.Occlusion(image_case.output(target)).attribute(
        image_case.inputs,
        sliding_window_shapes=(channels, window, window),
        strides=(channels, stride, stride),
        target=image_case.targets,
    )
    assert_same(image_case.ours(f"occlusion(window={window},stride={stride},target={target})"), theirs, SINGLE)
