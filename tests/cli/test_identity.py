"""A run is what it ran on: other data is another run, and a finished run's files are what it wrote."""

import csv
import hashlib
import json
import re

import numpy as np
import pytest
from safetensors.numpy import save_file

TABLE = """\
seed = 1
samples = 10
attacks = ["random(samples=5)"]
metrics = ["top_k(k=2)"]
[threat]
epsilon = 0.3
[[dataset]]
name = "csv(path=table.csv)"
[[model]]
name = "net"
architecture = "mlp(hidden=4)"
[model.train]
epochs = 2
"""

TRAINING = """\
[dataset]
name = "csv(path=table.csv)"
[model]
architecture = "mlp(hidden=4)"
[train]
epochs = 2
"""


def write_table(path, turned=False):
    random = np.random.default_rng(3)
    rows = random.uniform(size=(80, 4))
    labels = (rows[:, 0] > rows[:, 1]) != turned
    lines = ["a,b,c,d,class"]
    for row, label in zip(rows, labels, strict=True):
        lines.append(",".join(f"{value:.5f}" for value in row) + f",{int(label)}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def table(tmp_path):
    write_table(tmp_path / "table.csv")
    (tmp_path / "audit.toml").write_text(TABLE)
    (tmp_path / "train.toml").write_text(TRAINING)
    return tmp_path / "table.csv"


def test_an_audit_of_changed_data_is_another_run(holdfast, table, tmp_path):
    holdfast("audit", "audit.toml", "--out", "run")
    before = (tmp_path / "run" / "results.json").read_bytes()
    assert "complete" in holdfast("audit", "audit.toml", "--out", "run").stderr
    write_table(table, turned=True)
    holdfast.fails("audit", "audit.toml", "--out", "run", saying=["another run", "the data of", "have changed", "--restart"])
    assert (tmp_path / "run" / "results.json").read_bytes() == before
    holdfast("audit", "audit.toml", "--out", "run", "--restart")
    holdfast("audit", "audit.toml", "--out", "fresh")
    assert (tmp_path / "run" / "results.json").read_bytes() == (tmp_path / "fresh" / "results.json").read_bytes() != before


def test_a_training_on_changed_data_is_another_training(holdfast, table, tmp_path):
    holdfast("train", "train.toml", "--out", "net")
    write_table(table, turned=True)
    holdfast.fails("train", "train.toml", "--out", "net", saying=["another training", "content of the dataset", "--restart"])
    holdfast("train", "train.toml", "--out", "net", "--restart")
    holdfast("train", "train.toml", "--out", "fresh")
    assert (tmp_path / "net" / "model.safetensors").read_bytes() == (tmp_path / "fresh" / "model.safetensors").read_bytes()


def test_restart_removes_nothing_but_a_run(holdfast, table, tmp_path):
    holdfast("audit", "audit.toml", "--out", "run")
    (tmp_path / "run" / "notes.txt").write_text("mine")
    holdfast("audit", "audit.toml", "--set", "samples=12", "--out", "run", "--restart")
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    holdfast.fails("audit", "audit.toml", "--out", "full", "--restart", saying="is not empty and holds no run")


@pytest.mark.parametrize("name", ["results.json", "samples.csv", "arrays/0000/samples.json"])
def test_a_changed_file_of_a_finished_run_is_found(holdfast, table, tmp_path, name):
    gate = ["--gate", "top_k(k=2)>=0.99"]
    holdfast("audit", "audit.toml", "--out", "run", *gate, code=1)
    path = tmp_path / "run" / name
    if name == "results.json":
        results = json.loads(path.read_text())
        results["rows"][0]["mean"] = 1.0  # would meet the gate
        path.write_text(json.dumps(results))
    else:
        path.write_text(path.read_text() + "\n")
    holdfast.fails("audit", "audit.toml", "--out", "run", *gate, saying=[f"run/{name}", "changed after the run"])
    holdfast("audit", "audit.toml", "--out", "run", "--restart", *gate, code=1)


def test_gates_may_change_on_a_finished_run(holdfast, table):
    holdfast("audit", "audit.toml", "--out", "run")
    for _ in range(2):
        holdfast("audit", "audit.toml", "--out", "run", "--gate", "top_k(k=2)>=0.99", code=1)
        holdfast("audit", "audit.toml", "--out", "run", "--gate", "top_k(k=2)>=0")


def test_gates_that_were_edited_are_not_believed(holdfast, table, tmp_path):
    gate = ["--gate", "top_k(k=2)>=0.99"]
    holdfast("audit", "audit.toml", "--out", "run", *gate, code=1)
    path = tmp_path / "run" / "results.json"
    results = json.loads(path.read_text())
    results["gates"][0]["met"] = results["gates"][0]["rows"][0]["met"] = True
    path.write_text(json.dumps(results))
    for command in (["verify", "run"], ["report", "run", "--out", "r.html"], ["leaderboard", "run", "--out", "site"]):
        holdfast.fails(*command, saying=["run/results.json", "its gates were changed"])
    holdfast("audit", "audit.toml", "--out", "run", *gate, code=1)  # evaluates them again
    holdfast("verify", "run")


@pytest.mark.parametrize("part", ["arrays", "tiles"])
def test_a_link_does_not_lead_a_run_to_another_place(holdfast, table, tmp_path, part):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / part).symlink_to(tmp_path / "elsewhere")
    holdfast.fails("audit", "audit.toml", "--out", "run", "--sandbox", "off", saying=f"run/{part} is a link to another place")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_manifest_without_digests_seals_nothing(holdfast, table, tmp_path):
    holdfast("audit", "audit.toml", "--out", "run")
    path = tmp_path / "run" / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["digests"]
    path.write_text(json.dumps(manifest))
    holdfast.fails("audit", "audit.toml", "--out", "run", saying=["run/manifest.json", "digests are missing", "--restart"])


def test_verify_holds_rows_against_their_samples(holdfast, table, tmp_path):
    holdfast("audit", "audit.toml", "--out", "run")
    path, manifest = tmp_path / "run" / "samples.csv", tmp_path / "run" / "manifest.json"
    written, sealed = path.read_text(), manifest.read_text()
    header, *lines = list(csv.reader(written.splitlines()))
    best = max(lines, key=lambda line: float(line[header.index("value")]))  # not among those that are computed again

    def write(column, text):
        """samples.csv with another text in one place, and its digest made again."""
        changed = [
            [text if line is best and i == header.index(column) else cell for i, cell in enumerate(line)] for line in lines
        ]
        with path.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *changed])
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        manifest.write_text(sealed.replace(hashlib.sha256(written.encode()).hexdigest(), digest))

    write("value", best[header.index("value")])
    holdfast("verify", "run")
    write("value", "0.123")
    holdfast.fails("verify", "run", saying=["run: net, saliency", "the mean is", "in samples.csv is"])
    write("value", "many")
    holdfast.fails("verify", "run", saying=["run/samples.csv:", "column value: 'many' is not a number"])


def test_a_model_whose_name_has_a_colon_is_part_of_the_run(holdfast, subject, tmp_path):
    folder = tmp_path / "v1:2"
    folder.mkdir()
    weights = (tmp_path / subject[1].split(":", 1)[1]).read_bytes()
    (folder / "model.safetensors").write_bytes(weights)
    audit = [
        "audit",
        "--model",
        "v1:2/model.safetensors",
        *subject[2:],
        "--attack",
        "random(samples=3)",
        "--metric",
        "top_k(k=2)",
    ]
    audit += ["--epsilon", "0.3", "--out", "run"]
    holdfast(*audit)
    changed = bytearray(weights)
    changed[-1] ^= 1  # the last bits of the last weight
    (folder / "model.safetensors").write_bytes(bytes(changed))
    holdfast.fails(*audit, saying=["another run", "v1:2/model.safetensors has changed"])


def test_verify_recomputes_the_worst_samples(holdfast, table, tmp_path):
    holdfast("audit", "audit.toml", "--out", "run")
    found = holdfast.json("verify", "run", "--json")
    assert found["rows"] == 1 and found["samples"] == 4 and found["files"] >= 2
    assert found["largest_difference"] < 1e-6 and found["skipped"] == []
    assert "4 samples of 1 row" in holdfast("verify", "run").stdout


def forge(path, array):
    """Writes an array of a run, and its digest into the manifest."""
    run = path.parents[2]
    np.save(path, array)
    name, digest = re.escape(str(path.relative_to(run))), hashlib.sha256(path.read_bytes()).hexdigest()
    written, count = re.subn(rf'("{name}": ")[0-9a-f]{{64}}"', rf'\g<1>{digest}"', (run / "manifest.json").read_text())
    assert count == 1
    (run / "manifest.json").write_text(written)


def test_verify_finds_other_weights_and_other_inputs(holdfast, table, tmp_path):
    holdfast("audit", "audit.toml", "--out", "run")
    path = tmp_path / "run" / "arrays" / "0000" / "perturbed.npy"
    perturbed = np.load(path)
    np.save(path, perturbed + 1)
    holdfast.fails("verify", "run", saying=["perturbed.npy", "changed after the run"])
    np.save(path, perturbed)
    forge(path, perturbed + 1)
    holdfast.fails("verify", "run", saying=["random(samples=5)", "moved by", "epsilon is 0.3"])
    forge(path, perturbed)
    holdfast("verify", "run")
    holdfast("train", "train.toml", "--seed", "9", "--out", "other")
    other = (tmp_path / "other" / "model.safetensors").read_bytes()
    (tmp_path / "run" / "models" / "net" / "model.safetensors").write_bytes(other)
    holdfast.fails("verify", "run", saying="run: net, saliency")


def test_verify_reads_every_option_of_the_threat(holdfast, table, tmp_path):
    options = ['threat.norm="linf"', "threat.box=[-50,50]", "threat.tolerance=1e-6"]
    holdfast("audit", "audit.toml", *(word for option in options for word in ("--set", option)), "--out", "run")
    holdfast("verify", "run")
    arrays = tmp_path / "run" / "arrays" / "0000"
    forge(arrays / "perturbed.npy", np.load(arrays / "inputs.npy") + np.float32(1e-3))
    holdfast.fails("verify", "run", saying=["probability moved by", "the tolerance is 1e-06"])
    forge(arrays / "perturbed.npy", np.load(arrays / "inputs.npy") + np.float32(1))
    holdfast.fails("verify", "run", saying=["moved by", "in linf, epsilon is 0.3"])


def test_verify_says_what_it_cannot_recompute(holdfast, table):
    shap = ["--set", 'explainers=["gradient_shap(samples=3)"]']
    holdfast("audit", "audit.toml", *shap, "--out", "run")
    found = holdfast.json("verify", "run", "--json")
    assert found["rows"] == 0 and "no rows of the data" in found["skipped"][0]


def test_verify_refuses_what_is_no_finished_audit(holdfast, table, tmp_path):
    (tmp_path / "empty").mkdir()
    holdfast.fails("verify", "empty", saying="no finished run")


def test_a_folder_recovers_from_what_a_killed_run_leaves(holdfast, table, tmp_path):
    run = tmp_path / "run"
    (run / "tiles" / "0000").mkdir(parents=True)
    (run / "tiles" / "plan.json.0123456789abcdef.tmp").write_text("{")  # killed in its first write
    holdfast("audit", "audit.toml", "--out", "run")
    before = (run / "results.json").read_bytes()
    assert not list(run.rglob("*.tmp")) and not (run / "tiles").exists()
    # Killed after the manifest was written, before the tiles were gone.
    (run / "tiles" / "0000").mkdir(parents=True)
    (run / "tiles" / "0000" / "000000.safetensors").write_text("stale")
    (run / "tiles" / "plan.json").write_text(json.dumps(json.loads((run / "manifest.json").read_text())["identity"]))
    holdfast("audit", "audit.toml", "--out", "run")
    assert (run / "results.json").read_bytes() == before and not (run / "tiles").exists()


def test_other_files_are_not_taken_for_ours(holdfast, table, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.tmp").write_text("mine")
    holdfast.fails("audit", "audit.toml", "--out", "run", saying="is not empty and holds no run")
    assert (tmp_path / "run" / "notes.tmp").read_text() == "mine"


def test_train_restart_removes_nothing_but_a_training(holdfast, table, tmp_path):
    for path in ["out/models/big.bin", "out/test/important.txt", "out/results.json"]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("mine")
    holdfast("train", "train.toml", "--out", "out", "--restart")
    holdfast("train", "train.toml", "--out", "out", "--restart")
    assert (tmp_path / "out/models/big.bin").read_text() == "mine" == (tmp_path / "out/test/important.txt").read_text()


def test_verify_knows_the_whole_threat(holdfast, subject, tmp_path):
    audit = ["audit", *subject, "--attack", "random(samples=5)", "--metric", "top_k(k=2)", "--epsilon", "0.3", "--box", "0,1"]
    holdfast(*audit, "--out", "run")
    path = tmp_path / "run" / "arrays" / "0000" / "perturbed.npy"
    perturbed = np.load(path)
    clean = np.load(path.with_name("inputs.npy"))
    place = np.unravel_index(clean.argmax(), clean.shape)
    perturbed[place[0]] = clean[place[0]]
    perturbed[place] = 1.02
    forge(path, perturbed)
    holdfast.fails("verify", "run", saying=["run: mlp:model.safetensors", "outside the box"])


def test_labels_must_be_classes_of_the_model(holdfast, table, tmp_path):
    lines = table.read_text().splitlines()
    table.write_text("\n".join([lines[0], *(f"{line[:-1]}{i % 5}" for i, line in enumerate(lines[1:]))]) + "\n")
    weights = {"linear.weight": np.ones((2, 4), np.float32), "linear.bias": np.zeros(2, np.float32)}
    save_file(weights, tmp_path / "two.safetensors", metadata={"architecture": "linear(inputs=4,classes=2)"})
    (tmp_path / "audit.toml").write_text(TABLE[: TABLE.index("architecture")] + 'file = "linear:two.safetensors"\n')
    holdfast.fails("audit", "audit.toml", "--out", "run", saying=["model net has 2 classes", "label 4"])


OWN_TABLE = """\
name = "mine/table"
paper = "r2et"
summary = "two methods on a table of mine"
methods = ["Vanilla", "SP"]
[[setting]]
like = "table"
name = "mine"
dataset = "mine"
data = "csv(path=table.csv)"
batch_size = 16
epochs = [2, 2, 2]
k = 2
[[table]]
name = "P@2"
caption = "Higher is better."
keys = ["dataset: {name}", "method: {method}"]
column = [
  {name = "P@2", metric = "top_k(k={k})", attack = "er", select = "last"},
  {name = "kendall", metric = "kendall", attack = "er", select = "last", kind = "value"},
  {name = "samples", from = "P@2", what = "defined", kind = "count"},
]
"""


def test_a_reproduction_of_changed_data_is_another_run(holdfast, table, tmp_path):
    (tmp_path / "mine.toml").write_text(OWN_TABLE)
    command = ["reproduce", "mine.toml", "--out", "run"]
    holdfast(*command)
    before = (tmp_path / "run" / "results.json").read_bytes()
    assert "complete" in holdfast(*command).stderr
    write_table(table, turned=True)
    holdfast.fails(*command, saying=["csv(path=table.csv)", "changed since the run", "--restart"])
    holdfast(*command, "--restart")
    holdfast(*command[:-1], "fresh")
    after = (tmp_path / "run" / "results.json").read_bytes()
    assert after == (tmp_path / "fresh" / "results.json").read_bytes() != before
    (tmp_path / "run" / "results.json").write_bytes(before)
    holdfast.fails(*command, saying=["run/results.json", "changed after the run"])
    cell = next(path for path in sorted((tmp_path / "fresh" / "cells").glob("*.json")) if "value" in json.loads(path.read_text()))
    kept = json.loads(cell.read_text())
    cell.write_text(json.dumps({**kept, "value": {"edited": 1}}))
    holdfast.fails(*command[:-1], "fresh", "--restart", saying=[f"cells/{cell.name}", "is not as it was computed"])


def test_a_column_is_derived_from_one_before_it(holdfast, table, tmp_path):
    first = '  {name = "samples", from = "P@2", what = "defined", kind = "count"},\n'
    (tmp_path / "mine.toml").write_text(OWN_TABLE.replace(first, "").replace("column = [\n", "column = [\n" + first))
    holdfast.fails("reproduce", "mine.toml", "--out", "run", saying=["column 'samples'", "must be a column before it"])


def test_another_instruction_set_is_another_run(holdfast, subject):
    """Bytes depend on it: tiles of two kinds of processor are not mixed."""
    run = ["audit", *subject, "--attack", "random(samples=2)", "--epsilon", "0.3", "--metric", "top_k(k=2)", "--out", "run"]
    holdfast(*run, env={"ATEN_CPU_CAPABILITY": "default"})
    holdfast.fails(*run, env={"ATEN_CPU_CAPABILITY": "avx2"}, saying=["another run", "/instructions"])


def test_a_training_is_not_continued_with_other_instructions(holdfast, tmp_path):
    (tmp_path / "train.toml").write_text(
        '[dataset]\nname = "synthetic(samples=60)"\n[model]\narchitecture = "mlp(hidden=4)"\n[train]\nepochs = 1\n'
    )
    holdfast("train", "train.toml", "--out", "run", env={"ATEN_CPU_CAPABILITY": "default"})
    holdfast.fails(
        "train",
        "train.toml",
        "--out",
        "run",
        env={"ATEN_CPU_CAPABILITY": "avx2"},
        saying=["another training", "instructions was"],
    )


def test_no_page_is_made_of_results_that_were_changed(holdfast, subject, tmp_path):
    run = ["audit", *subject, "--attack", "random(samples=2)", "--epsilon", "0.3", "--metric", "top_k(k=2)", "--out", "run"]
    holdfast(*run, "--gate", "top_k(k=2)>=0")
    holdfast("report", "run", "--out", "page.html")
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    results["rows"][0]["mean"] = 0.999
    (tmp_path / "run" / "results.json").write_text(json.dumps(results))
    for command in (["report", "run", "--out", "other.html"], ["leaderboard", "run", "--out", "board"]):
        holdfast.fails(*command, saying=["run/results.json", "changed after the run"])
    assert not (tmp_path / "other.html").exists()


def test_files_without_a_known_checksum_are_not_taken_silently(holdfast, tmp_path):
    """An archive that somebody unpacked: nothing says that these are the published photographs."""
    from PIL import Image

    folder = tmp_path / "flowers17" / "jpg"
    folder.mkdir(parents=True)
    for number in range(1360):
        Image.new("RGB", (8, 8), (number % 256, 0, 0)).save(folder / f"image_{number + 1:04}.jpg")
    said = holdfast("data", "export", "flowers17", "--samples", "2", "--out", "out", env={"HOLDFAST_DATA": str(tmp_path)}).stderr
    assert "flowers17" in said and "no checksum of it is known" in said
