"""Every experiment at quick scale, whole or on its smallest dataset: tables, verdicts and a report come out."""

import json
import math
import os
import subprocess
from pathlib import Path

import pytest

DATA = Path(os.environ.get("HOLDFAST_DATA", ""))
PROGRAM = os.environ.get("HOLDFAST_BINARY", "")
WORDS = {"holds", "holds in part", "does not hold", "not decided"}

# The dataset folders that an experiment needs, and what --only it is kept to; None: it runs whole, and its claims are judged.
# tests/cli runs the others; lens/fig7 is lens/fig3, which is there, for three trainings.
EXPERIMENTS = {
    "r2et/table1": (["compas"], "COMPAS"),
    "r2et/table2": (["compas"], "COMPAS"),
    "r2et/table3": (["compas"], "COMPAS"),
    "r2et/table4": (["compas"], None),
    "r2et/fig3": (["compas"], "COMPAS"),
    "r2et/fig4": (["mnist"], None),
    "r2et/explainers": (["compas"], "COMPAS"),
    "r2et/gauge": (["compas"], None),
    "r2et/beyond": (["compas"], None),
    "r2et/valid_rows": (["compas"], None),
    "r2et/nearest": (["compas"], None),
    "r2et/specific": (["compas"], None),
    "r2et/regime": (["compas"], None),
    "lens/fig2": (["imagenet_samples"], None),
    "lens/fig8": (["mnist"], "mnist"),
    "lens/appendix": (["mnist"], "mnist"),
    "lens/beyond": (["mnist"], None),
}
# Claims of those that run whole.
CLAIMS = {
    "r2et/table4": ["R9"],
    "r2et/fig4": ["R12"],
    "r2et/gauge": [],
    "r2et/beyond": ["R2", "R4"],
    "r2et/valid_rows": ["R2", "R4"],
    "r2et/nearest": ["R1", "R2", "R4", "R7", "R13"],
    "r2et/specific": ["specific"],
    "r2et/regime": ["regime"],
    "lens/fig2": ["L1", "L5"],
    "lens/beyond": ["L2", "L6", "ours"],
}
# Tables without a row where the run is kept to one dataset, and columns without a number at this scale. Any other is a failure.
EMPTY_TABLES = {("r2et/table1", "images and graphs")}
EMPTY_COLUMNS = set()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Networks and cells, which the experiments of a paper have in common."""
    return tmp_path_factory.mktemp("quick")


def numbers(value):
    return [value[key] for key in ("value", "low", "high", "chance", "between", "specific") if value.get(key) is not None]


def check_table(name, table):
    """Rows of the right length with finite numbers, and something in every column."""
    assert table["rows"] or (name, table["name"]) in EMPTY_TABLES, f"{table['name']} is empty"
    assert len(table["kinds"]) == len(table["columns"]) and set(table["kinds"]) <= {"count", "share", "value"}
    for row in table["rows"]:
        assert len(row["keys"]) == len(table["keys"]) and len(row["values"]) == len(table["columns"])
        for kind, value in zip(table["kinds"], row["values"], strict=True):
            assert all(math.isfinite(number) for number in numbers(value)), row
            low, mean, high = value["low"], value["value"], value["high"]
            assert low is None or low - 1e-12 <= mean <= high + 1e-12, row
            assert kind != "share" or mean is None or -1e-12 <= mean <= 1 + 1e-12 or "Spearman" in str(table["columns"]), row
            assert kind != "count" or (low is None and mean == int(mean) and mean >= 0), row
    for i, column in enumerate(table["columns"]):
        filled = any(row["values"][i]["value"] is not None for row in table["rows"])
        assert filled or not table["rows"] or (name, column) in EMPTY_COLUMNS, f"{table['name']}: nothing in column {column}"


def check_verdict(verdict, only):
    """Of a part of the datasets nothing is decided; of all of them a number stands behind every verdict."""
    assert verdict["verdict"] in WORDS and verdict["why"] and "{" not in verdict["why"] + verdict["says"]
    if only:
        assert verdict["verdict"] == "not decided" and f"{only} alone (--only)" in verdict["why"]
        return
    assert "--only" not in verdict["why"] and verdict["number"] is not None
    assert verdict["low"] is None or verdict["low"] - 1e-12 <= verdict["number"] <= verdict["high"] + 1e-12


def planned(command):
    plan = subprocess.run([*command, "--plan", "--json"], capture_output=True, text=True)
    assert plan.returncode == 0, plan.stderr
    return json.loads(plan.stdout)["total"]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_ends_with_tables_verdicts_and_a_report(shared, name):
    folders, only = EXPERIMENTS[name]
    for folder in folders:
        if not (os.environ.get("HOLDFAST_DATA") and (DATA / folder).is_dir()):
            pytest.skip(f"needs HOLDFAST_DATA with {folder} (holdfast data fetch {folder})")
    run = shared / name.replace("/", "_")
    keep = ["--models", shared / "models", "--cells", shared / "cells"]
    command = [PROGRAM, "reproduce", name, "--scale", "quick", "--threads", "1", "--quiet", *keep, "--out", run]
    command += ["--only", only] if only else []
    planned(command)
    assert not run.exists()
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # A plan asks for the very work that was done.
    left = planned(command)
    assert left["networks"]["train"] == left["cells"]["compute"] == 0 < left["networks"]["kept"] + left["cells"]["kept"]
    found = json.loads((run / "results.json").read_text())
    assert found["experiment"] == name and found["scale"] == "quick" and found["tables"]
    for table in found["tables"]:
        check_table(name, table)
    for figure in found["figures"]:
        assert figure["panels"] or figure["spec"]["data"]["values"], f"nothing is drawn in {figure['name']}"
    for verdict in found["verdicts"]:
        check_verdict(verdict, only)
        assert verdict["claim"] in done.stdout
    if not only:
        assert [verdict["claim"] for verdict in found["verdicts"]] == CLAIMS[name]
    page = (run / "report.html").read_text()
    assert found["title"] in page and all(table["name"] in page for table in found["tables"])


VALUE = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 2}
NOTHING = {"value": None, "low": None, "high": None, "n": 0}


def a_table(*values, kind="share"):
    rows = [{"keys": ["COMPAS"], "values": [value]} for value in values]
    return {"name": "t", "keys": ["dataset"], "columns": ["P@k"], "kinds": [kind], "rows": rows}


@pytest.mark.parametrize(
    ("table", "saying"),
    [
        (a_table(), "t is empty"),
        (a_table(NOTHING, NOTHING), "nothing in column P@k"),
        (a_table({**VALUE, "value": 0.7}), "0.7"),
        (a_table({**VALUE, "value": 1.5, "high": 2}), "1.5"),
        (a_table({**NOTHING, "value": 2.5}, kind="count"), "2.5"),
    ],
)
def test_the_checks_can_fail(table, saying):
    check_table("r2et/table1", a_table(VALUE, NOTHING))
    with pytest.raises(AssertionError, match=saying):
        check_table("r2et/table1", table)
