"""Experiments of the LENS paper at quick scale."""

import json
import os
import re
import time
from pathlib import Path

import pytest
from conftest import interrupt

DATA = Path(os.environ.get("HOLDFAST_DATA", ""))


def needs(name):
    there = bool(os.environ.get("HOLDFAST_DATA")) and (DATA / name).is_dir()
    return pytest.mark.skipif(not there, reason=f"needs HOLDFAST_DATA with {name} (holdfast data fetch {name})")


def results(folder):
    return json.loads((folder / "results.json").read_text())


def test_the_survey_waits_for_people(holdfast, tmp_path):
    holdfast("reproduce", "lens/table1", "--out", "run")
    found = results(tmp_path / "run")
    assert [(verdict["claim"], verdict["verdict"]) for verdict in found["verdicts"]] == [("L9", "not decided")]
    assert "lens/table1(answers=FILE)" in found["notes"][0]
    holdfast.fails("reproduce", "lens/table1(answers=nowhere.json)", "--out", "other", saying="nowhere.json")

    # The described example is a file that is read: one answer sides with LENS, on the other pair both measures agree.
    example = re.search(r"\[\{.*?\}\]", holdfast("describe", "lens/table1").stdout).group()
    assert re.search(r"\{.*?\}", found["notes"][0]).group() in example
    (tmp_path / "answers.json").write_text(example)
    text = holdfast("reproduce", "lens/table1(answers=answers.json)", "--out", "asked").stdout
    shares = [row["values"][0]["value"] for row in results(tmp_path / "asked")["tables"][0]["rows"]]
    assert shares == [1, 0] and "L9" in text and "(quick: means little)" in text


@needs("flowers17")
def test_flowers_are_drawn_before_and_after(holdfast, tmp_path):
    holdfast("reproduce", "lens/fig3", "--out", "run", "--models", "models")
    found = results(tmp_path / "run")
    row = found["tables"][0]["rows"][0]
    values = {name: value["value"] for name, value in zip(found["tables"][0]["columns"], row["values"], strict=True)}
    # Windows only ever add: Proposition 1.
    assert values["top-k"] <= values["1-LENS-prec"] <= values["2-LENS-prec"] <= 1
    assert values["top-k"] <= values["1-LENS-recall"] <= values["2-LENS-recall"] <= 1
    assert len(found["figures"][0]["panels"]) == 3
    assert "Green pixels" in found["figures"][0]["caption"]
    # What people are asked about: every picture with the survey's two measures.
    pictures_table = found["tables"][1]
    assert pictures_table["columns"] == ["top-k", "3-LENS-prec"]
    tops, nears = zip(*([value["value"] for value in one["values"]] for one in pictures_table["rows"]), strict=True)
    assert sum(tops) / len(tops) == pytest.approx(values["top-k"])
    assert all(top <= near <= 1 for top, near in zip(tops, nears, strict=True))
    pictures = sorted((tmp_path / "run" / "figures").glob("fig3_*.png"))
    assert len(pictures) == 3 and all(picture.stat().st_size > 1000 for picture in pictures)

    # The same network again: the diverse top k keeps apart, and its windows add as the others do.
    holdfast("reproduce", "lens/fig6", "--out", "apart", "--models", "models")
    found = results(tmp_path / "apart")
    diverse = {
        name: value["value"]
        for name, value in zip(found["tables"][0]["columns"], found["tables"][0]["rows"][0]["values"], strict=True)
    }
    assert diverse["top-k-div"] <= diverse["1-LENS-prec-div"] <= diverse["2-LENS-prec-div"] <= 1
    assert found["tables"][1] == pictures_table  # the plain measures of the same pictures
    assert found["verdicts"][0]["claim"] == "L5"
    holdfast("reproduce", "lens/fig1", "--out", "first", "--models", "models")
    assert results(tmp_path / "first")["tables"][1] == pictures_table


def test_a_dataset_that_no_experiment_has_is_refused(holdfast, tmp_path):
    holdfast.fails("reproduce", "lens", "--only", "nosuch", "--out", "run", saying="--only nosuch: no dataset of lens begins so")
    assert not list((tmp_path / "run").glob("*/results.json"))


@needs("mnist")
def test_an_interrupt_in_a_first_training_says_how_to_go_on(holdfast, tmp_path):
    process = holdfast.start("reproduce", "lens/fig4", "--only", "MNIST", "--scale", "full", "--threads", "1", "--out", "run")
    deadline = time.monotonic() + 60
    while not list((tmp_path / "run").glob("models/*")):
        assert time.monotonic() < deadline and process.poll() is None, "the training did not begin"
        time.sleep(0.05)
    time.sleep(2)  # well inside the first epoch, which takes a minute
    _, said = interrupt(process)
    assert process.returncode == 3 and "interrupted; finished networks and cells are kept: run the same command again" in said


def by_column(table):
    """Rows as column -> value."""
    return [{name: value["value"] for name, value in zip(table["columns"], row["values"], strict=True)} for row in table["rows"]]


@needs("mnist")
def test_digits_of_one_network_are_measured_in_two_figures(holdfast, tmp_path):
    shared = ["--only", "MNIST", "--models", "models"]
    holdfast("reproduce", "lens/fig4", "--out", "fig4", *shared)
    found = results(tmp_path / "fig4")
    (row,) = by_column(found["tables"][0])
    # Proposition 1, on every sample and so on their means.
    assert 0 < row["top-k"] <= min(row["1-LENS-prec"], row["1-LENS-recall"]) <= 1
    assert row["samples judged"] + row["misclassified, left out"] == 10
    assert [verdict["claim"] for verdict in found["verdicts"]] == ["L2", "L7"]

    holdfast("reproduce", "lens/fig5", "--out", "fig5", *shared)
    for row in by_column(results(tmp_path / "fig5")["tables"][0]):
        widths = [row[f"w={w}"] for w in range(6)]
        assert widths == sorted(widths)
    assert len(list((tmp_path / "models").iterdir())) == 1  # both figures are of the same network


@needs("cifar10")
@pytest.mark.skipif(not (DATA / "models" / "cifar10_resnet20.f32").exists(), reason="needs HOLDFAST_DATA with models/")
def test_a_published_network_stands_for_one_that_is_not_public(holdfast, tmp_path):
    holdfast("reproduce", "lens/table2", "--only", "CIFAR-10", "--out", "run")
    found = results(tmp_path / "run")
    table = found["tables"][0]
    assert table["rows"] and all(row["keys"][0].startswith("CIFAR-10") for row in table["rows"])
    for row in by_column(table):
        assert row["top-k"] <= row["1-LENS-prec"] <= row["3-LENS-prec"] <= 1
    assert [(verdict["claim"], verdict["verdict"]) for verdict in found["verdicts"]] == [("L8", "not decided")]


@needs("mnist")
def test_parts_of_steady_map_are_held_against_the_whole(holdfast, tmp_path):
    holdfast("reproduce", "lens/ablation", "--scale", "quick", "--out", "run")
    values, differences = results(tmp_path / "run")["tables"]
    rows = {row["keys"][0]: dict(zip(values["columns"], row["values"], strict=True)) for row in values["rows"]}
    assert list(rows) == ["natural", "steady_map", "steady_map(weight=0)"]
    for row in differences["rows"]:
        found = dict(zip(differences["columns"], row["values"], strict=True))
        one, shipped = rows[row["keys"][0]], rows["steady_map"]
        for column in ("test accuracy", "robust accuracy"):
            assert found[column]["value"] == pytest.approx(one[column]["value"] - shipped[column]["value"])
    # A term that is switched off costs nothing: the maximum is PGD's.
    assert rows["steady_map(weight=0)"]["gradient evaluations"]["value"] < rows["steady_map"]["gradient evaluations"]["value"]
    for row in rows.values():
        assert all(0 <= value["low"] <= value["high"] <= 1 for value in list(row.values())[:-1] if value["low"] is not None)
        for column in ("saliency", "integrated gradients"):
            assert 0 <= row[f"{column}, top-k"]["value"] <= 1 and 0 < row[f"{column}, 1-LENS-prec"]["chance"] < 1
