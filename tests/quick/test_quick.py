"""Every experiment at quick scale, whole or on its smallest dataset: tables, verdicts and a report come out."""

import json
import math
import os
import subprocess
from pathlib import Path

import pytest

DATA = Path(os.environ.get("HOLDFAST_DATA", ""))
PROGRAM = os.environ["HOLDFAST_BINARY"]
WORDS = {"holds", "holds in part", "does not hold", "not decided"}

# The dataset folder that an experiment needs, and what --only it is kept to. tests/cli runs the others; lens/fig7 is lens/fig3,
# which is there, for three trainings.
EXPERIMENTS = {
    "r2et/table1": ("compas", "COMPAS"),
    "r2et/table2": ("compas", "COMPAS"),
    "r2et/table3": ("compas", "COMPAS"),
    "r2et/table4": ("compas", "COMPAS"),
    "r2et/fig3": ("compas", "COMPAS"),
    "r2et/fig4": ("mnist", "MNIST"),
    "r2et/explainers": ("compas", "COMPAS"),
    "r2et/gauge": ("compas", "COMPAS"),
    "r2et/beyond": ("compas", "COMPAS"),
    "r2et/tradeoff": ("compas", "COMPAS"),
    "lens/fig2": ("imagenet_samples", None),
    "lens/fig8": ("mnist", "mnist"),
    "lens/appendix": ("mnist", "mnist"),
    "lens/beyond": ("mnist", "mnist"),
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Networks and cells, which the experiments of a paper have in common."""
    return tmp_path_factory.mktemp("quick")


def numbers(value):
    return [value[key] for key in ("value", "low", "high", "chance", "between", "specific") if value.get(key) is not None]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_ends_with_tables_verdicts_and_a_report(shared, name):
    folder, only = EXPERIMENTS[name]
    if not (os.environ.get("HOLDFAST_DATA") and (DATA / folder).is_dir()):
        pytest.skip(f"needs HOLDFAST_DATA with {folder} (holdfast data fetch {folder})")
    run = shared / name.replace("/", "_")
    keep = ["--models", shared / "models", "--cells", shared / "cells"]
    command = [PROGRAM, "reproduce", name, "--scale", "quick", "--threads", "1", "--quiet", *keep, "--out", run]
    done = subprocess.run([*command, *(["--only", only] if only else [])], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads((run / "results.json").read_text())
    assert found["experiment"] == name and found["scale"] == "quick"
    assert any(table["rows"] for table in found["tables"]) or found["figures"]
    for table in found["tables"]:
        for row in table["rows"]:
            assert len(row["keys"]) == len(table["keys"]) and len(row["values"]) == len(table["columns"])
            assert all(math.isfinite(number) for value in row["values"] for number in numbers(value)), row
    for verdict in found["verdicts"]:
        # A part of the datasets decides nothing.
        assert not only or (verdict["verdict"] == "not decided" and f"{only} alone (--only)" in verdict["why"])
        assert verdict["verdict"] in WORDS and verdict["why"] and verdict["claim"] in done.stdout
    page = (run / "report.html").read_text()
    assert found["title"] in page and all(table["name"] in page for table in found["tables"])
