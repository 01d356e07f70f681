"""Methods of one's own: registered by name, they work wherever a built-in one does."""

import json

import holdfast
import numpy as np
import pytest
import torch
from conftest import make_network
from holdfast.testing import check

pytestmark = pytest.mark.filterwarnings("ignore::holdfast.HoldfastWarning")
THREAT = holdfast.Threat("l2", 0.5)


@holdfast.metric(limits={"k": (1, None)})
def same_top(original, perturbed, k: int = 8):
    """share of the top k that stays

    k: features compared
    """
    same_top.calls += 1
    tops = [np.argsort(-maps.reshape(len(maps), -1), 1, "stable")[:, :k] for maps in (original, perturbed)]
    return [len(set(first) & set(second)) / k for first, second in zip(*tops, strict=True)]


same_top.calls = 0


@holdfast.explainer(differentiable=True)
def own_saliency(model, x, target):
    score = torch.softmax(model(x), 1).gather(1, target[:, None]).sum()
    return torch.autograd.grad(score, x, create_graph=True)[0].abs()


@holdfast.explainer
def finite_differences(model, x, target, step: float = 0.01):
    with torch.no_grad():
        moved = [model(x + step * torch.eye(x.shape[1], dtype=x.dtype)[i]) - model(x) for i in range(x.shape[1])]
        return torch.stack([change.gather(1, target[:, None])[:, 0] for change in moved], 1) / step


@holdfast.attack_method
def away(task, steps: int = 5):
    """follows the top features down"""
    points = task.inputs
    for _ in range(steps):
        maps = task.explain(points)
        values = yield points
        assert values.shape == (len(points),)
        points = task.project(points - task.epsilon / steps * torch.sign(task.pullback(points, maps.sign())))


@holdfast.measure_method(higher_is_better=False)
def spread(task, size: float = 0.01):
    moved = task.explain(task.inputs + size)
    clean = task.explain(task.inputs)
    return {"value": (moved - clean).flatten(1).norm(dim=1), "norm": clean.flatten(1).norm(dim=1)}


@holdfast.objective_method(terms={"ce": 1, "small": "weight"})
def small_gradient(model, x, y, weight: float = 0.1):
    x = x.clone().requires_grad_()
    ce = torch.nn.functional.cross_entropy(model(x), y, reduction="none")
    return {"ce": ce, "small": torch.autograd.grad(ce.sum(), x, create_graph=True)[0].square().sum(1)}


def test_a_metric_gives_what_the_built_in_one_does(network, inputs):
    first, second = torch.rand(30, 6, dtype=torch.float64), torch.rand(30, 6, dtype=torch.float64)
    own, built_in = holdfast.measure(first, second, ["same_top(k=2)", "top_k(k=2)"])
    assert torch.equal(own.values, built_in.values)
    for key in ("mean", "low", "high", "between", "lift", "effective_sets"):
        assert own[key] == pytest.approx(built_in[key], abs=1e-12), key
    assert own.chance == pytest.approx(built_in.chance, abs=0.05) and not own.chance_is_exact
    moved = [
        holdfast.attack(network, inputs, "er(steps=10)", metric=name, threat=THREAT) for name in ("same_top(k=2)", "top_k(k=2)")
    ]
    assert torch.equal(moved[0].perturbed, moved[1].perturbed) and torch.equal(moved[0].value, moved[1].value)


def test_batches_cross_the_border():
    same_top.calls = 0
    holdfast.measure(torch.rand(1000, 6), torch.rand(1000, 6), "same_top(k=2)", levels=False)
    assert same_top.calls == 1


def test_an_explainer_gives_what_the_built_in_one_does(network, inputs):
    own, built_in = (holdfast.explain(network, inputs, name) for name in (own_saliency, "saliency"))
    torch.testing.assert_close(own, built_in, rtol=1e-4, atol=1e-6)
    found = [
        holdfast.attack(network, inputs, "er(steps=10)", explainer=name, metric="top_k(k=2)", threat=THREAT)
        for name in (own_saliency, "saliency")
    ]
    assert float((found[0].value - found[1].value).abs().max()) < 1e-6
    assert bool((found[0].followed > 0).any())


def test_what_is_not_differentiable_gets_attacks_without_gradients(network, inputs):
    with pytest.raises(holdfast.Error, match=r"er.*finite_differences has no gradient to follow; use gauntlet or random"):
        holdfast.attack(network, inputs, "er", explainer=finite_differences, metric="top_k(k=2)", threat=THREAT)
    moved = holdfast.attack(network, inputs[:4], explainer=finite_differences, metric="top_k(k=2)", threat=THREAT)
    assert {one["name"] for one in moved.components} <= {"random", "square", "evolution", "drift", "crossing"}
    assert int(moved.followed.max()) == 0


def test_an_attack_is_verified_and_charged(network, inputs):
    moved = holdfast.attack(network, inputs, "away(steps=3)", metric="top_k(k=2)", threat=THREAT, random_points=False)
    assert bool((moved.norm <= 0.5 + 1e-6).all()) and bool((moved.prediction == moved.prediction_after).all())
    assert int(moved.evaluations.max()) == 1 + 3 * (1 + 1 + 3)  # the clean one; explain, the engine's own, pullback

    @holdfast.attack_method
    def far_away(task):
        yield task.inputs + 100

    far = holdfast.attack(network, inputs, far_away, metric="top_k(k=2)", threat=THREAT, random_points=False)
    assert bool((far.norm <= 0.5 + 1e-6).all())


def test_they_work_in_audits_gates_files_and_the_report(network, inputs, tmp_path, saved, monkeypatch):
    run = holdfast.audit(
        network,
        inputs,
        explainer=[own_saliency, "saliency"],
        attack="away(steps=2)",
        metric="same_top(k=2)",
        measure="spread",
        threat=THREAT,
        gates=["same_top(k=2) >= 0", "spread <= 1e9"],
        out=tmp_path / "run",
        progress=False,
    )
    assert run.passed and [row["explainer"] for row in run.rows] == ["own_saliency", "saliency"]
    assert "same_top(k=2)" in run.report().read_text() and holdfast.load_run(run.folder).rows == run.rows

    monkeypatch.chdir(saved)
    np.save(saved / "labels.npy", np.arange(20) % 3)
    (saved / "audit.toml").write_text(
        'metrics = ["same_top(k=2)"]\nattacks = ["away(steps=2)"]\nsamples = 10\ngates = ["same_top(k=2) >= 0"]\n'
        "[threat]\nepsilon = 0.5\n[[dataset]]\n"
        'name = "npy(inputs=inputs.npy,labels=labels.npy)"\npart = "all"\n'
        '[[model]]\nname = "it"\nfile = "mlp:model.safetensors"\n'
    )
    from_file = holdfast.audit_config("audit.toml", out="from_file", progress=False)
    assert from_file.passed and from_file.rows[0]["metric"] == "same_top(k=2)"
    assert (
        holdfast.audit_config("audit.toml", overrides={"threat.epsilon": 0.1}, progress=False).rows[0]["threat"]["epsilon"] == 0.1
    )


def test_a_changed_method_makes_another_run(network, inputs, tmp_path):
    def define(factor):
        @holdfast.metric(name="scaled_top")
        def scaled_top(original, perturbed, k: int = 2, factor: float = factor):
            return [1.0] * len(original)

    define(1.0)
    settings = {"metric": "scaled_top", "attack": "random(samples=2)", "threat": THREAT, "progress": False}
    holdfast.audit(network, inputs, out=tmp_path / "run", **settings)
    holdfast.audit(network, inputs, out=tmp_path / "run", **settings)

    @holdfast.metric(name="scaled_top")
    def other(original, perturbed, k: int = 2):
        return [0.5] * len(original)

    with pytest.raises(holdfast.Error, match="holds another run"):
        holdfast.audit(network, inputs, out=tmp_path / "run", **settings)


def test_options_are_read_as_everywhere():
    maps = torch.rand(3, 6)
    for call, saying in [
        ("same_top(j=2)", "unknown option 'j'"),
        ("same_top(k=0)", "k must be >= 1"),
        ("same_top(k=two)", "k must be a whole number"),
        ("same_top(k=7)", "choose k <= 6"),
        ("sametop", "did you mean 'same_top'"),
    ]:
        with pytest.raises(holdfast.Error, match=saying):
            holdfast.measure(maps, maps, call)
    described = holdfast.describe("same_top")
    assert described["kind"] == "metrics" and described["options"][0]["help"] == "features compared"
    assert holdfast.metrics.same_top(k=3) == "same_top(k=3)"


def test_mistakes_name_the_method(network, inputs):
    with pytest.raises(holdfast.Error, match="metric 'top_k' is built in"):
        holdfast.metric(lambda a, b: a, name="top_k")
    with pytest.raises(holdfast.Error, match="option j has no default"):

        @holdfast.metric
        def bare(a, b, j): ...

    @holdfast.metric
    def short(a, b):
        return [1.0]

    with pytest.raises(holdfast.Error, match=r"short: it gave values of shape \[1\]; 3 are expected"):
        holdfast.measure(torch.rand(3, 6), torch.rand(3, 6), "short", levels=False)

    @holdfast.metric
    def broken(a, b):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        holdfast.measure(torch.rand(3, 6), torch.rand(3, 6), "broken")

    @holdfast.explainer
    def wrong_shape(model, x, target):
        return x[:, :2]

    with pytest.raises(holdfast.Error, match=r"wrong_shape: it gave maps of shape \[20, 2\]"):
        holdfast.explain(network, inputs, wrong_shape)

    kept = []

    @holdfast.explainer
    def keeps(model, x, target):
        kept.append(model)
        return x

    holdfast.explain(network, inputs, keeps)
    with pytest.raises(holdfast.Error, match="lent for one call"):
        kept[0](inputs)
    with pytest.raises(holdfast.Error, match="is one of the metrics, not of the explainers"):
        holdfast.explain(network, inputs, same_top)


@pytest.mark.parametrize("mine", [same_top, own_saliency, finite_differences, away, spread, small_gradient, "top_k", "saliency"])
def test_the_suite_passes(mine):
    check(mine)


def test_the_suite_can_fail():
    @holdfast.metric
    def of_the_batch(original, perturbed):
        return np.full(len(original), float(len(original)))

    with pytest.raises(AssertionError, match="a batch is what its pairs are one by one"):
        check(of_the_batch)

    @holdfast.explainer
    def mixes(model, x, target):
        return x + x.mean(0) + target[:, None]

    with pytest.raises(AssertionError, match="a batch is what its samples are one by one"):
        check(mixes)


class TestCaptum:
    """Maps are those of the library itself, to the bit."""

    @pytest.mark.parametrize("name", ["IntegratedGradients", "Saliency", "DeepLift", "InputXGradient", "FeatureAblation"])
    def test_maps_are_the_librarys_own(self, network, inputs, name):
        captum = pytest.importorskip("captum.attr")
        thing = getattr(captum, name)(network)
        targets = network(inputs).argmax(1)
        assert torch.equal(holdfast.explain(network, inputs, thing), thing.attribute(inputs.clone(), target=targets).detach())

    def test_an_audit(self, network, inputs):
        captum = pytest.importorskip("captum.attr")
        run = holdfast.audit(
            network,
            inputs[:5],
            explainer=[captum.Saliency(network), captum.Saliency(network), "saliency"],
            attack=["random(samples=5)"],
            metric="top_k(k=2)",
            threat=THREAT,
            progress=False,
        )
        assert [row["explainer"] for row in run.rows] == ["captum_saliency", "captum_saliency_again", "saliency"]
        assert "captum_saliency" not in holdfast.list("explainers")

    def test_arguments_and_a_name(self, network, inputs):
        captum = pytest.importorskip("captum.attr")
        thing = captum.IntegratedGradients(network)
        holdfast.explainer(thing, name="short_path", arguments={"n_steps": 3})
        targets = network(inputs).argmax(1)
        expected = thing.attribute(inputs.clone(), target=targets, n_steps=3).detach()
        assert torch.equal(holdfast.explain(network, inputs, "short_path"), expected)


def test_native_models_run_python_methods_on_many_threads(network, inputs):
    native = holdfast.load_model(network, example=inputs)
    rows = inputs.repeat(20, 1)
    found = [
        holdfast.attack(
            native, rows, "er(steps=3)", explainer=own_saliency, metric="same_top(k=2)", threat=THREAT, threads=threads, tile=40
        )
        for threads in (1, 4)
    ]
    assert torch.equal(found[0].perturbed, found[1].perturbed)


def test_training_with_an_objective_of_ones_own():
    model = make_network()
    rows = torch.rand(60, 6, generator=torch.Generator().manual_seed(1))
    trained = holdfast.train(
        "mlp(hidden=8)", rows, (rows[:, 0] > 0.5).long(), objective="small_gradient(weight=0.5)", epochs=2, progress=False
    )
    assert set(trained.history[0]["parts"] if "parts" in trained.history[0] else trained.history[0]) >= {"ce", "small"}
    loss, parts = holdfast.objective(small_gradient)(model, rows, torch.zeros(60, dtype=torch.long))
    assert float(loss) == pytest.approx(parts["ce"] + 0.1 * parts["small"], rel=1e-5)


def test_what_a_run_says_of_them(tmp_path, network, inputs):
    run = holdfast.audit(
        network, inputs, attack="random(samples=2)", metric="same_top(k=2)", threat=THREAT, out=tmp_path / "r", progress=False
    )
    assert list(run.manifest["identity"]["config"]["methods"]) == ["metrics/same_top"]
    assert json.dumps(run.manifest)
