"""Holdfast beside the libraries that people train and explain with."""

import subprocess
import sys
import warnings

import holdfast
import numpy as np
import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore")


def test_lightning():
    pytest.importorskip("lightning")
    import lightning_training

    loss, accuracy = lightning_training.main(epochs=12)
    assert loss["ce"] < 0.6 and accuracy > 0.8 and "gap" in loss


def test_hugging_face_trainer():
    pytest.importorskip("transformers")
    import hugging_face_training

    found = hugging_face_training.main(steps=25)
    assert found["last_loss"] < found["first_loss"]


def test_xgboost():
    xgboost = pytest.importorskip("xgboost")
    rows = np.random.default_rng(0).normal(size=(120, 5))
    model = xgboost.XGBClassifier(n_estimators=15, max_depth=3).fit(rows, (rows[:, 0] + rows[:, 1] * rows[:, 2] > 0).astype(int))
    maps = holdfast.explain(model, rows[:6], "occlusion")
    classes, without = model.predict(rows[:6]), rows[:6].copy()
    without[:, 1] = 0
    fall = (model.predict_proba(rows[:6]) - model.predict_proba(without))[np.arange(6), classes]
    np.testing.assert_allclose(maps[:, 1], fall, atol=1e-6)
    moved = holdfast.attack(model, rows[:6], explainer="occlusion", metric="top_k(k=2)", threat={"epsilon": 0.5})
    assert (model.predict(moved.perturbed) == classes).all() and moved.value.mean() < 1 and moved.followed.max() == 0


class TestShap:
    @pytest.fixture
    def shap(self):
        return pytest.importorskip("shap")

    @pytest.fixture
    def network(self):
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))

    def test_deep_explainer(self, shap, network):
        background, rows = torch.rand(10, 5), torch.rand(4, 5)
        thing = shap.DeepExplainer(network, background)
        maps = holdfast.explain(network, rows, thing)
        values = np.asarray(thing.shap_values(rows))
        values = np.moveaxis(values, 0, -1) if values.shape[0] == 3 else values
        targets = network(rows).argmax(1)
        expected = np.stack([values[i, :, target] for i, target in enumerate(targets)])
        np.testing.assert_allclose(maps.numpy(), expected, rtol=1e-6)

    def test_kernel_explainer_is_attacked_without_gradients(self, shap, network, capfd):
        def probabilities(rows):
            with torch.no_grad():
                return torch.softmax(network(torch.as_tensor(rows, dtype=torch.float32)), 1).numpy()

        thing = shap.KernelExplainer(probabilities, np.random.default_rng(0).random((5, 5)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            moved = holdfast.attack(
                network, torch.rand(2, 5), "random(samples=3)", explainer=thing, metric="top_k(k=2)", threat={"epsilon": 0.2}
            )
        assert moved.explainer == "shap_kernel_explainer" and int(moved.followed.max()) == 0
        assert "it/s]" not in capfd.readouterr().err, "it draws no bar of its own for every call"


def test_stubs_are_strict(tmp_path):
    pytest.importorskip("mypy")
    from conftest import ROOT

    checked = [ROOT / "python/holdfast", ROOT / "tests/more/strict_use.py"]
    command = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "--cache-dir", tmp_path / "cache", *checked]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
