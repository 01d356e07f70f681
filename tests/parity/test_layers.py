"""Explainers that look at layers."""

import pytest
import torch
from captum import attr
from captum.attr._utils import lrp_rules
from conftest import Case, assert_different, assert_same
from subjects import Cnn, Mlp, Residual, made
from torch import nn


@pytest.mark.parametrize("scale", [0.0, 0.6])
def test_deep_lift(case, scale):
    baseline = scale * case.inputs.flip(0)[0]
    theirs, delta = attr.DeepLift(case.module).attribute(
        case.inputs, baselines=baseline.unsqueeze(0), target=case.targets, return_convergence_delta=True
    )
    ours = case.ours("deep_lift(target=logit,baseline=given)", baseline=baseline, return_details=True)
    assert ours.delta.abs().max() < 1e-12
    assert delta.abs().max() < 1e-12
    assert_same(ours.maps, theirs)


@pytest.mark.parametrize("activation", [nn.ELU, nn.LeakyReLU, nn.Sigmoid, nn.Tanh, nn.Softplus])
def test_deep_lift_of_other_activations(activation):
    case = Case(made(Mlp(activation)))
    theirs = attr.DeepLift(case.module).attribute(case.inputs, target=case.targets)
    assert_same(case.ours("deep_lift(target=logit)"), theirs)


class Pooled(nn.Module):
    """A rectifier and a max pool behind it, with the same tensor between them or not."""

    sample = (1, 9, 9)

    def __init__(self, stride, shared):
        super().__init__()
        self.conv, self.act, self.pool = nn.Conv2d(1, 4, 2), nn.ReLU(), nn.MaxPool2d(4 - stride, stride=stride)
        self.last, self.shared = nn.Linear(64 if stride == 2 else 144, 3), shared

    def forward(self, x):
        x = self.act(self.conv(x))
        return self.last(self.pool(x if self.shared else 1 * x).flatten(1))


def deep_lift_of(network):
    case = Case(made(network))
    baseline = case.inputs.flip(0)[0] * 0.6
    theirs, delta = attr.DeepLift(case.module).attribute(
        case.inputs, baselines=baseline.unsqueeze(0), target=case.targets, return_convergence_delta=True
    )
    ours = case.ours("deep_lift(target=logit,baseline=given)", baseline=baseline, return_details=True)
    assert ours.delta.abs().max() < 1e-12
    return ours.maps, theirs, delta


def test_deep_lift_behind_a_pool():
    """Windows of 2 x 2 that do not overlap. Where the pool reads the rectifier's own output, Captum's rectifier takes the plain
    gradient of the pool, since its hook saw the tensor first, and the map does not add up."""
    ours, theirs, delta = deep_lift_of(Pooled(stride=2, shared=False))
    assert delta.abs().max() < 1e-12
    assert_same(ours, theirs)
    shared, theirs, delta = deep_lift_of(Pooled(stride=2, shared=True))
    assert delta.abs().max() > 1e-2
    assert_same(shared, ours)
    assert_different(shared, theirs)


def test_deep_lift_through_pools_that_overlap():
    """Windows of 3 x 3, every pixel: one element can be the maximum of several windows. Captum writes their shares over each
    other (max_unpool2d), and its map does not add up; the definition adds them."""
    ours, theirs, delta = deep_lift_of(Pooled(stride=1, shared=False))
    assert delta.abs().max() > 1e-2
    assert_different(ours, theirs)


def with_rules(module, rule_of):
    """Captum takes rules as attributes of layers, and takes them away again."""
    for layer in module.modules():
        rule = rule_of(layer)
        if rule is not None:
            layer.rule = rule
    return attr.LRP(module)


def is_layer(layer):
    return isinstance(layer, (nn.Linear, nn.Conv2d))


def with_epsilon(epsilon):
    """A pool hands all of its relevance to the maximum here, whatever epsilon; Captum's keeps a share of epsilon there too."""
    summing = (nn.Linear, nn.Conv2d, nn.BatchNorm2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d)

    def rule_of(layer):
        if isinstance(layer, nn.MaxPool2d):
            return lrp_rules.EpsilonRule(1e-300)
        return lrp_rules.EpsilonRule(epsilon) if isinstance(layer, summing) else None

    return rule_of


@pytest.mark.parametrize("epsilon", [1e-9, 0.1])
@pytest.mark.parametrize("network", [Mlp, Cnn])
def test_lrp_epsilon(network, epsilon):
    case = Case(made(network()))
    captum = with_rules(case.module, with_epsilon(epsilon))
    theirs, delta = captum.attribute(case.inputs, target=case.targets, return_convergence_delta=True)
    ours = case.ours(f"lrp(rule=epsilon,epsilon={epsilon})", return_details=True)
    assert_same(ours.maps, theirs, 1e-6)
    assert torch.allclose(ours.delta, -delta, rtol=1e-5)


def test_lrp_epsilon_through_batch_normalisation_and_residual_sums():
    """With a small epsilon: Captum adds it at the convolution and at the normalisation, here both are one layer."""
    case = Case(made(Residual()))
    theirs = with_rules(case.module, with_epsilon(1e-9)).attribute(case.inputs, target=case.targets)
    assert_same(case.ours("lrp(rule=epsilon,epsilon=1e-9)"), theirs, 1e-6)


@pytest.mark.parametrize("network", [Mlp, Cnn])
@pytest.mark.parametrize("gamma", [0.25, 2.0])
def test_lrp_gamma(network, gamma):
    """Without biases, and with biases that have no share. (With a share, Captum leaves the bias as it is where the paper's sum,
    which begins with it, favours its positive part like any other.)"""
    without = Case(made(network(bias=False)))
    captum = with_rules(without.module, lambda layer: lrp_rules.GammaRule(gamma) if is_layer(layer) else None)
    theirs = captum.attribute(without.inputs, target=without.targets)
    assert_same(without.ours(f"lrp(rule=gamma,gamma={gamma},epsilon=1e-9)"), theirs, 1e-6)

    case = Case(made(network()))
    captum = with_rules(case.module, lambda layer: lrp_rules.GammaRule(gamma, set_bias_to_zero=True) if is_layer(layer) else None)
    theirs = captum.attribute(case.inputs, target=case.targets)
    assert_same(case.ours(f"lrp(rule=gamma,gamma={gamma},epsilon=1e-9,bias=ignore)"), theirs, 1e-6)
    captum = with_rules(case.module, lambda layer: lrp_rules.GammaRule(gamma) if is_layer(layer) else None)
    assert_different(case.ours(f"lrp(rule=gamma,gamma={gamma},epsilon=1e-9)"), captum.attribute(case.inputs, target=case.targets))


@pytest.mark.parametrize("network", [Mlp, Cnn])
def test_lrp_alpha_one_beta_zero(network):
    case = Case(made(network()))
    captum = with_rules(
        case.module, lambda layer: lrp_rules.Alpha1_Beta0_Rule(set_bias_to_zero=True) if is_layer(layer) else None
    )
    theirs = captum.attribute(case.inputs, target=case.targets)
    assert_same(case.ours("lrp(rule=alphabeta,alpha=1,epsilon=1e-9,bias=ignore)"), theirs, 1e-6)


def test_lrp_composite():
    case = Case(made(Cnn(bias=False)))

    def composite(layer):
        if isinstance(layer, nn.Conv2d):
            return lrp_rules.GammaRule(0.25)
        return lrp_rules.EpsilonRule(1e-9) if isinstance(layer, nn.Linear) else None

    theirs = with_rules(case.module, composite).attribute(case.inputs, target=case.targets)
    assert_same(case.ours("lrp(epsilon=1e-9)"), theirs, 1e-6)


def test_guided_backprop(case):
    theirs = attr.GuidedBackprop(case.module).attribute(case.inputs, target=case.targets)
    assert_same(case.ours("guided_backprop"), theirs)


@pytest.mark.parametrize("interpolation", ["bilinear", "nearest"])
@pytest.mark.parametrize("relu", [True, False])
def test_grad_cam(image_case, interpolation, relu):
    layer = image_case.module.conv2
    captum = attr.LayerGradCam(image_case.module, layer)
    small = captum.attribute(image_case.inputs, target=image_case.targets, relu_attributions=relu)
    large = attr.LayerAttribution.interpolate(small, image_case.module.sample[1:], interpolate_mode=interpolation)
    ours = image_case.ours(f"grad_cam(relu={str(relu).lower()},interpolation={interpolation})")
    assert_same(ours, large.expand_as(image_case.inputs).detach())


def test_guided_grad_cam(image_case):
    captum = attr.GuidedGradCam(image_case.module, image_case.module.conv2)
    theirs = captum.attribute(image_case.inputs, target=image_case.targets)
    assert_same(image_case.ours("grad_cam(guided=true,interpolation=nearest)"), theirs)
