"""The notebooks run from the first cell to the last, and show what they should."""

import json

import pytest
import torch
from conftest import ROOT

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path):
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(ROOT)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    shown = [kind for output in outputs for kind in output.get("data", {})]
    assert "text/html" in shown and "image/png" in shown, "a table and a picture are shown"
    html = "".join("".join(output["data"]["text/html"]) for output in outputs if "text/html" in output.get("data", {}))
    assert "<table" in html and "failed" in html and "passed" in html, "one gate fails and one passes"


def trained_models(path):
    """The numbers of the models of a notebook, of which the cells before the first audit are run."""
    names = {}
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
        if models := names.get("models") or names.get("model"):
            modules = [model[-1] for model in models.values()] if isinstance(models, dict) else [models]
            return [value.clone() for module in modules for value in module.state_dict().values()]
    raise AssertionError("there is no model")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_trains_the_same_models_again(path):
    pytest.importorskip("sklearn")
    assert all(torch.equal(a, b) for a, b in zip(trained_models(path), trained_models(path), strict=True))


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["image", "table", "text"]
