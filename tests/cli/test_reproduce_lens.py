"""Experiments of the LENS paper at quick scale."""

import json
import os
from pathlib import Path

import pytest

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
    assert "run lens/table1(answers=FILE)" in found["notes"][0]
    holdfast.fails("reproduce", "lens/table1(answers=nowhere.json)", "--out", "other", saying="nowhere.json")


@needs("flowers17")
def test_flowers_are_drawn_before_and_after(holdfast, tmp_path):
    holdfast("reproduce", "lens/fig3", "--out", "run")
    found = results(tmp_path / "run")
    row = found["tables"][0]["rows"][0]
    values = {name: value["value"] for name, value in zip(found["tables"][0]["columns"], row["values"], strict=True)}
    # Windows only ever add: Proposition 1.
    assert values["top-k"] <= values["1-LENS-prec"] <= values["2-LENS-prec"] <= 1
    assert values["top-k"] <= values["1-LENS-recall"] <= values["2-LENS-recall"] <= 1
    assert len(found["figures"][0]["panels"]) == 3
    pictures = sorted((tmp_path / "run" / "figures").glob("fig3_*.png"))
    assert len(pictures) == 3 and all(picture.stat().st_size > 1000 for picture in pictures)
