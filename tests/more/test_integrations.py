"""Holdfast beside the libraries that people train and explain with."""

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

    def test_kernel_explainer_is_attacked_without_gradients(self, shap, network):
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


def test_stubs_are_strict(tmp_path):
    api = pytest.importorskip("mypy.api")
    from conftest import ROOT

    use = tmp_path / "use.py"
    use.write_text(
        "import torch\nimport holdfast\n"
        "model = torch.nn.Linear(4, 2)\nrows = torch.rand(3, 4)\n"
        'maps = holdfast.explain(model, rows, "saliency")\n'
        'run = holdfast.audit({"a": model}, rows, threat=holdfast.Threat("l2", [0.1, 0.2]), gates=["top_k(k=2) >= 0"])\n'
        "passed: bool = run.passed\n"
        'loss, parts = holdfast.objective("ce")(model, rows, torch.zeros(3))\ntorch.autograd.backward(loss)\n'
        "number: float = parts['ce']\n"
    )
    out, err, code = api.run(
        ["--strict", "--ignore-missing-imports", "--cache-dir", str(tmp_path / "cache"), str(ROOT / "python/holdfast"), str(use)]
    )
    assert code == 0, out + err
