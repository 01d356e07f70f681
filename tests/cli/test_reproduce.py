"""Experiments of papers: run, interrupted, continued, kept and put on a page."""

import json
import os
import re
import time
from pathlib import Path

import pytest
from conftest import ROOT, interrupt

DATA = os.environ.get("HOLDFAST_DATA", "")
needs_compas = pytest.mark.skipif(
    not (Path(DATA) / "compas").is_dir(), reason="needs HOLDFAST_DATA with compas (holdfast data fetch compas)"
)


def results(folder):
    return json.loads((folder / "results.json").read_text())


def test_an_experiment_is_described_and_a_misspelt_one_refused(holdfast):
    assert holdfast.json("describe", "r2et/table1", "--json")["kind"] == "experiments"
    holdfast.fails("describe", "r2et/tabel1", saying="did you mean 'r2et/table1'?")
    holdfast.fails("reproduce", "r2et/tabel1", "--out", "run", saying=["r2et/tabel1", "did you mean 'r2et/table1'?"])
    holdfast.fails("reproduce", "r2et/table1", "--scale", "huge", "--out", "run", saying="huge")
    holdfast.fails("describe", "folder/model.pt", saying="there is no such file")


def word_of(parts):
    """The verdict that parts come to: refuted by one, in part only where another surely holds."""
    words = {part["verdict"] for part in parts}
    held, refuted = words & {"holds", "holds in part"}, words & {"does not hold", "holds in part"}
    if refuted:
        return "holds in part" if held else "does not hold"
    return "holds" if words == {"holds"} else "not decided"


@pytest.mark.parametrize("paper", ["r2et", "lens"])
def test_kept_verdicts_are_their_experiments_own(paper):
    verdicts = json.loads((ROOT / "results" / paper / "verdicts.json").read_text())
    assert verdicts
    for verdict in verdicts:
        name = verdict["experiment"].split("(")[0]  # without its options
        results = json.loads((ROOT / "results" / f"{name}.json").read_text())
        own = [one for one in results["verdicts"] if one["claim"] == verdict["claim"]]
        assert len(own) == 1 and all(own[0][key] == verdict[key] for key in own[0]), verdict["claim"]
        assert verdict["verdict"] == word_of(verdict.get("parts", [verdict])), verdict["claim"]


def test_without_any_dataset_there_is_the_way_to_one(holdfast, tmp_path):
    holdfast.fails(
        *("reproduce", "r2et/bounds", "--out", "run"),
        saying=["r2et/bounds: nothing was measured", "the files of compas", "holdfast data fetch compas"],
        env={"HOLDFAST_DATA": str(tmp_path / "none")},
    )


@needs_compas
def test_an_interrupted_experiment_goes_on_to_the_same_bytes(holdfast, tmp_path):
    run = ["reproduce", "r2et/bounds", "--scale", "quick", "--threads", "2"]
    process = holdfast.start(*run, "--out", "broken")
    deadline = time.monotonic() + 120
    while len(list((tmp_path / "broken" / "cells").glob("*.json"))) < 25:
        assert time.monotonic() < deadline and process.poll() is None, "the run ended before it could be interrupted"
        time.sleep(0.01)
    _, said = interrupt(process)
    assert process.returncode == 3 and "run the same command again" in said
    assert not (tmp_path / "broken" / "results.json").exists()

    text = holdfast(*run, "--out", "broken").stdout
    manifest = json.loads((tmp_path / "broken" / "manifest.json").read_text())
    assert manifest["cells"]["kept"] >= 25 and manifest["cells"]["computed"] > 0
    commit = manifest["versions"]["commit"]
    assert re.fullmatch(r"[0-9a-f]{12}\+?" if (ROOT / ".git").exists() else "", commit)
    assert [work["commits"] for work in manifest["work"]] == [[commit] if commit else []]
    holdfast(*run[:-1], "1", "--out", "whole")
    assert (tmp_path / "broken" / "results.json").read_bytes() == (tmp_path / "whole" / "results.json").read_bytes()

    # The sound bound holds on every sample; the table says how often the printed one does.
    found = results(tmp_path / "whole")
    names = found["tables"][0]["columns"]
    for row in found["tables"][0]["rows"]:
        sound = [row["values"][names.index(name)]["value"] for name in ("below, sound", "above, sound")]
        assert sound in ([0, 0], [None, None]), row
    assert found["verdicts"][0]["claim"] == "R11" and "violations" in text

    # Of some datasets: the numbers, and no verdict.
    shared = ["--models", "broken/models", "--cells", "broken/cells"]
    holdfast(*run, *shared, "--only", "COMPAS", "--out", "part")
    part = results(tmp_path / "part")
    assert part["tables"] == found["tables"]
    assert part["verdicts"][0]["verdict"] == "not decided" and "COMPAS alone" in part["verdicts"][0]["why"]


@needs_compas
def test_a_plan_counts_the_work_of_the_run_and_writes_nothing(holdfast, tmp_path):
    run = ["reproduce", "r2et/bounds", "--threads", "2"]
    plan = holdfast.json(*run, "--plan", "--json")
    assert plan["kind"] == "plan" and plan["threads"] == 2 and not list(tmp_path.iterdir())
    total = plan["total"]
    assert total["networks"]["kept"] == total["cells"]["kept"] == 0 < total["evaluations"] < total["seconds"]["1"] * 1e9
    assert total["seconds"]["8"] < total["seconds"]["1"] and plan["memory"] > 0

    holdfast(*run, "--out", "run")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert total["networks"]["train"] == manifest["models"]["trained"]
    assert total["cells"]["compute"] == manifest["cells"]["computed"]

    said = holdfast(*run, "--plan", "--models", "run/models", "--cells", "run/cells").stdout
    row = next(line for line in said.splitlines() if line.startswith("r2et/bounds"))
    networks, cells = (str(total[what][word]) for what, word in (("networks", "train"), ("cells", "compute")))
    assert row.split()[1:] == ["0", networks, "0", cells, "0", "0", *["0", "s"] * 4]
    assert said.endswith("the plan is sound; nothing was written\n")


def test_a_plan_refuses_what_a_run_refuses(holdfast):
    plan = ["reproduce", "r2et/bounds", "--plan"]
    holdfast.fails(*plan, "--results", "results", saying="--results: a plan keeps nothing")
    holdfast.fails(*plan, "--check", saying="--plan: a check is of one dataset")
    holdfast.fails(*plan, "--seeds", "5,1", saying="--seeds 1: one seed has no interval")
    holdfast.fails(*plan, "--seeds", "10,5", saying="--seeds 10,5: 5 comes after 10")
    holdfast.fails("reproduce", "r2et/bounds", saying="--out is required (or --plan, which writes nothing)")
    holdfast.fails("reproduce", "r2et/tabel1", "--plan", saying="did you mean 'r2et/table1'?")


@needs_compas
def test_kept_results_are_checked_by_a_new_run_of_one_dataset(holdfast, tmp_path):
    holdfast("reproduce", "r2et/bounds", "--out", "run", "--results", "results")
    check = ["reproduce", "--check", "results/r2et/bounds"]
    said = holdfast(*check, "--out", "again").stdout  # networks and cells of its own
    assert re.fullmatch(r"r2et/bounds, COMPAS.*: (\d+) of \1 numbers agree \(to 1e-6, on the same kind of machine\)\n", said)

    file = tmp_path / "results" / "r2et" / "bounds.json"
    kept = json.loads(file.read_text())
    row = kept["tables"][0]["rows"][0]
    number = next(value for value in row["values"] if value["value"] is not None)
    number["value"] += 0.001
    file.write_text(json.dumps(kept))
    shared = ["--models", "again/models", "--cells", "again/cells"]
    said = holdfast(*check, *shared, "--out", "changed", code=1).stdout
    assert said.startswith(f"violations: {', '.join(row['keys'])}: ") and "allowed difference 1e-06" in said
    row["keys"][1] = "a method of before"
    file.write_text(json.dumps(kept))
    assert "not in the new run: violations: COMPAS" in holdfast(*check, *shared, "--out", "changed", code=1).stdout

    holdfast.fails(*check, "--only", "Bank", "--out", "none", saying=["--only Bank", "has no such dataset; it has COMPAS"])
    kept["settings"]["choice"] = "by hand"
    file.write_text(json.dumps(kept))
    holdfast.fails(*check, *shared, "--out", "changed", saying="another way of choosing weights (by hand)")
    holdfast.fails("reproduce", "--check", "run/manifest", "--out", "none", saying="not the kept results of an experiment")


@needs_compas
def test_results_are_kept_as_small_files_that_make_a_page(holdfast, tmp_path):
    holdfast("reproduce", "r2et/cost", "--out", "run", "--results", "results")
    # Again: the complete run is read, and says the same.
    holdfast("reproduce", "r2et/cost", "--out", "run", "--results", "results")
    kept = tmp_path / "results" / "r2et"
    assert sorted(path.name for path in kept.iterdir()) == ["cost.json", "cost.manifest.json", "verdicts.json"]
    assert (kept / "cost.json").read_bytes() == (tmp_path / "run" / "results.json").read_bytes()
    verdicts = json.loads((kept / "verdicts.json").read_text())
    keys = ["claim", "says", "verdict", "number", "low", "high", "seeds", "experiment", "scale", "why", "plain", "parts"]
    assert [[key for key in verdict if key != "times"] for verdict in verdicts] == [keys]
    holdfast("report", "results/r2et", "--out", "r2et.md")
    page = (tmp_path / "r2et.md").read_text()
    assert "**R7.**" in page and "| `r2et/cost` |" in page
    vanilla = [row for row in results(tmp_path / "run")["tables"][0]["rows"] if row["keys"][1] == "Vanilla"]
    assert all(row["values"][1]["value"] == 1 for row in vanilla)
    # Neither page is made of the other's folder, and the sentence says of which it is.
    holdfast.fails("report", "run", "--out", "run.md", saying="this is a run, whose page is an .html")
    holdfast.fails("report", "results/r2et", "--out", "kept.html", saying="kept results of experiments, whose page is a .md")


@pytest.mark.parametrize("paper", sorted(path.name for path in (ROOT / "results").iterdir() if path.is_dir()))
def test_the_page_of_committed_results_is_what_they_say(holdfast, tmp_path, paper):
    page = tmp_path / "page.md"
    holdfast("report", str(ROOT / "results" / paper), "--out", str(page))
    assert page.read_text() == (ROOT / "docs" / f"{paper}.md").read_text()
    kept = "".join(path.read_text() for path in (ROOT / "results" / paper).glob("*.json"))
    assert not re.search(r"/(work|tmp|home)/", kept)  # of nobody's machine


@pytest.mark.parametrize("paper", sorted(path.name for path in (ROOT / "results").iterdir() if path.is_dir()))
def test_committed_verdicts_are_those_of_the_experiments(paper):
    folder = ROOT / "results" / paper
    kept = [path for path in folder.glob("*.json") if not path.stem.endswith(".manifest") and path.stem != "verdicts"]
    keys = ("claim", "verdict", "number", "low", "high", "seeds")
    found = [
        {**{key: verdict[key] for key in keys}, "experiment": run["experiment"]}
        for run in map(json.loads, (path.read_text() for path in kept))
        for verdict in run["verdicts"]
    ]
    verdicts = json.loads((folder / "verdicts.json").read_text())
    assert found or paper == "beyond"  # which tests no claim
    assert sorted(str({key: verdict[key] for key in (*keys, "experiment")}) for verdict in verdicts) == sorted(map(str, found))
    assert all((folder / f"{path.stem}.manifest.json").exists() for path in kept)


def test_the_table_of_the_docs_is_one_toml_file(holdfast, tmp_path):
    docs = (ROOT / "docs" / "own-tables.md").read_text()
    example = re.search(r"^    # my_table\.toml.*\n(?:    .*\n)+", docs, re.M).group()
    text = "\n".join(line[4:] for line in example.splitlines())
    (tmp_path / "my_table.toml").write_text(text)
    holdfast("reproduce", "my_table.toml", "--out", "run", "--results", "results")
    found = results(tmp_path / "run")
    if any("breast_cancer is left out" in note for note in found["notes"]):
        pytest.skip("needs breast_cancer")
    assert [row["keys"][1] for row in found["tables"][0]["rows"]] == ["Vanilla", "SP", "R2ET\\H"]
    assert all(value["value"] is not None for row in found["tables"][0]["rows"] for value in row["values"])
    assert [verdict["claim"] for verdict in found["verdicts"]] == ["mine"]
    assert (tmp_path / "results" / "mine" / "breast_cancer.json").exists()

    (tmp_path / "my_table.toml").write_text(text.replace("batch_size", "batchsize"))
    holdfast.fails("reproduce", "my_table.toml", "--out", "other", saying="did you mean 'batch_size'?")
    # Another file is another run.
    (tmp_path / "my_table.toml").write_text(text.replace("epochs = [6", "epochs = [7"))
    holdfast.fails("reproduce", "my_table.toml", "--out", "run", saying="holds another run")
