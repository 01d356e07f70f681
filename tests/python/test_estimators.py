"""Models without gradients: scikit-learn's and whatever has their methods."""

import itertools
import warnings

import holdfast
import numpy as np
import pytest
import torch

sklearn = pytest.importorskip("sklearn")
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier  # noqa: E402
from sklearn.linear_model import LinearRegression, RidgeClassifier  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    x = random.normal(size=(200, 5))
    return x, (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype(int) + (x[:, 3] > 1)


MODELS = {
    "forest": lambda: RandomForestClassifier(10, max_depth=4, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=10, random_state=0),
    "pipeline": lambda: make_pipeline(StandardScaler(), RandomForestClassifier(10, max_depth=4, random_state=0)),
    "scores": lambda: RidgeClassifier(),
}


@pytest.mark.parametrize("kind", MODELS)
def test_estimators_are_explained_attacked_and_audited(table, kind, tmp_path):
    x, y = table
    model = MODELS[kind]().fit(x, y)
    found = holdfast.explain(model, x[:6], "occlusion", return_details=True)
    assert found.maps.shape == (6, 5) and (found.targets == model.predict(x[:6])).all()
    if hasattr(model, "predict_proba"):
        chosen = model.predict_proba(x[:6])[np.arange(6), found.targets]
        without = x[:6].copy()
        without[:, 2] = 0
        fall = chosen - model.predict_proba(without)[np.arange(6), found.targets]
        np.testing.assert_allclose(found.maps[:, 2], fall, atol=1e-6)
    threat = holdfast.Threat(epsilon=0.5)
    moved = holdfast.attack(model, x[:6], explainer="occlusion", metric="top_k(k=2)", threat=threat)
    assert (model.predict(moved.perturbed) == model.predict(x[:6])).all() and moved.value.mean() < 1
    run = holdfast.audit(
        model,
        x[:4],
        explainer="shapley(samples=2)",
        attack="random(samples=5)",
        metric="top_k(k=2)",
        threat=threat,
        out=tmp_path / "run",
    )
    assert len(run.rows) == 1


def test_shapley_values_are_those_of_all_orders(table):
    x, y = table
    model = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(x[:, :4], y)
    one, target = x[:1, :4], int(model.predict(x[:1, :4])[0])
    exact = np.zeros(4)
    for order in itertools.permutations(range(4)):
        row = np.zeros((1, 4))
        before = model.predict_proba(row)[0, target]
        for column in order:
            row[0, column] = one[0, column]
            after = model.predict_proba(row)[0, target]
            exact[column] += (after - before) / 24
            before = after
    details = holdfast.explain(model, one, "shapley(samples=400)", return_details=True)
    np.testing.assert_allclose(details.maps[0], exact, atol=0.01)
    assert abs(details.delta[0]) < 1e-6


def test_a_regression_gives_a_value(table):
    x, _ = table
    model = LinearRegression().fit(x, x @ np.array([3.0, -2.0, 1.0, 0.5, 0.0]))
    np.testing.assert_allclose(holdfast.explain(model, x[:3], "shapley(samples=1)"), x[:3] * model.coef_, atol=1e-4)
    with pytest.raises(holdfast.Error, match="Give a tolerance"):
        holdfast.attack(model, x[:3], explainer="occlusion", metric="top_k(k=2)", threat=holdfast.Threat(epsilon=0.5))


def test_explainers_of_gradients_name_those_without(table):
    x, y = table
    model = MODELS["forest"]().fit(x, y)
    with pytest.raises(holdfast.Error, match="no gradients by its inputs; occlusion and shapley need none"):
        holdfast.explain(model, x[:3])


def test_predict_alone_gives_no_probabilities(table):
    class Oracle:
        def predict(self, rows):
            return np.zeros(len(rows))

    with pytest.raises(holdfast.Error, match="has predict alone"):
        holdfast.explain(Oracle(), table[0][:3], "occlusion")


def test_what_predict_gives_may_be_said(table):
    """The models of boosting libraries themselves: XGBoost's takes arrays by another name."""
    x, y = table
    forest = MODELS["forest"]().fit(x, y > 0)

    class Booster:
        def predict(self, rows):
            return forest.predict_proba(rows)[:, 1]

    class OwnMatrices(Booster):
        def inplace_predict(self, rows):
            return Booster.predict(self, rows)

        def predict(self, rows):
            raise TypeError("only my own matrices")

    expected = holdfast.explain(forest, x[:6], "occlusion")
    for model in (Booster(), OwnMatrices()):
        found = holdfast.explain(holdfast.as_model(model, output_kind="probability"), x[:6], "occlusion")
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_functions_of_arrays_are_taken(table):
    x, y = table
    model = MODELS["forest"]().fit(x, y)
    expected = holdfast.explain(model, x[:6], "occlusion")
    for function in (
        model.predict_proba,
        lambda rows: model.predict_proba(np.asarray(rows)),
        lambda rows: model.predict_proba(rows.astype(np.float32)).tolist(),
        lambda rows: model.predict_proba(rows.detach().numpy()) if isinstance(rows, torch.Tensor) else None,
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", holdfast.HoldfastWarning)  # that it gives probabilities
            np.testing.assert_allclose(holdfast.explain(function, x[:6], "occlusion"), expected, atol=1e-6)
            moved = holdfast.attack(
                function, x[:6], "random(samples=5)", explainer="occlusion", metric="top_k(k=2)", threat={"epsilon": 0.3}
            )
        assert (model.predict(moved.perturbed) == model.predict(x[:6])).all()
    with pytest.raises(holdfast.Error, match="occlusion and shapley need none"):
        holdfast.explain(model.predict_proba, x[:6])


def test_a_function_of_tensors_keeps_its_own_mistakes():
    def mistaken(rows):
        return rows.softmaxx(1)

    with pytest.raises(AttributeError, match="softmaxx"):
        holdfast.explain(mistaken, torch.rand(3, 4))
