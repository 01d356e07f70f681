"""Every example in the documentation runs and prints what it says."""

import doctest
import inspect
import sys

import holdfast
import numpy as np
import pytest
import torch
from conftest import ROOT, make_network

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def names():
    inputs = torch.rand(4, 6, generator=torch.Generator().manual_seed(1))
    model = make_network()
    maps = holdfast.explain(model, inputs)
    return {"holdfast": holdfast, "np": np, "torch": torch, "model": model, "inputs": inputs, "maps": maps, "other": maps.clone()}


@pytest.mark.parametrize("module", sorted(name for name in sys.modules if name.startswith("holdfast")))
def test_docstrings(module, monkeypatch):
    monkeypatch.chdir(ROOT)
    failed, _ = doctest.testmod(sys.modules[module], extraglobs=names(), optionflags=OPTIONS)
    assert failed == 0


@pytest.mark.parametrize("page", ["python", "tutorial", "from-captum", "from-quantus", "choose-epsilon"])
def test_the_page(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    failed, tried = doctest.testfile(
        str(ROOT / "docs" / f"{page}.md"), module_relative=False, optionflags=OPTIONS, extraglobs=names()
    )
    assert failed == 0 and tried > 2


def test_everything_public_is_documented_with_an_example():
    without = {"audit_config", "load_run", "compare"}  # need a run's folder
    for name in holdfast.__all__:
        thing = getattr(holdfast, name)
        if (inspect.isfunction(thing) and name not in without) or name in ("Threat", "Schema"):
            assert ">>>" in inspect.getdoc(thing), name


def test_methods_are_described_by_what_they_declare():
    signature = inspect.signature(holdfast.attacks.er)
    assert signature.parameters["steps"].default == 100 and signature.parameters["steps"].annotation is int
    assert "iterations" in inspect.getdoc(holdfast.attacks.er)
    assert holdfast.attacks.er() == "er"
    assert holdfast.attacks.er(steps=3, preset="tabular") == "er(steps=3,preset=tabular)"
    assert set(dir(holdfast.metrics)) == set(holdfast.list("metrics"))
    assert holdfast.describe("er")["kind"] == "attacks"
