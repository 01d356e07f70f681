"""Bad input gets one sentence that names the value, the limit and the file or flag; exit code 2; nothing half-written."""

import fcntl
import os
import resource
import subprocess
import time

import numpy as np
import pytest
from conftest import BINARY, interrupt, mlp_weights, save_mlp

ATTACK = ["attack", "--norm", "l2", "--epsilon", "0.3", "--metric", "top_k(k=2)", "--out", "out"]


def test_usage(holdfast):
    holdfast.fails("atack", saying="did you mean 'attack'?")
    holdfast.fails("list", "--jsn", saying=["--jsn", "did you mean '--json'?"])
    holdfast.fails("describe", "salency", saying="did you mean 'saliency'?")
    holdfast.fails("list", "thing", saying="thing")


def test_a_flag_without_its_value(holdfast, subject):
    holdfast.fails("explain", "--model", saying="explain: --model needs a value")
    holdfast.fails("explain", "--model", *subject[2:], saying="explain: --model needs a value")
    holdfast.fails("data", "fetch", "--quiet", saying="NAME is required")


def test_commands_that_do_not_exist_have_no_help(holdfast):
    holdfast.fails("audti", "--help", saying=["unknown command 'audti'", "audit"])
    holdfast.fails("survey", "ask", "run", saying=["survey: unknown command 'ask'", "make"])
    holdfast.fails("data", "get", "adult", saying=["data: unknown command 'get'", "fetch"])


def test_missing_files(holdfast, subject):
    holdfast.fails("explain", "--model", "nothing.pt", "--inputs", "inputs.npy", "--out", "a.npy", saying="nothing.pt")
    holdfast.fails(
        "explain", "--model", "mlp:nothing.safetensors", "--inputs", "inputs.npy", "--out", "a.npy", saying="nothing.safetensors"
    )
    holdfast.fails("explain", *subject[:2], "--inputs", "nothing.npy", "--out", "a.npy", saying="nothing.npy")
    holdfast.fails("train", "nothing.toml", "--out", "run", saying="nothing.toml")
    holdfast.fails("report", "nothing", "--out", "r.html", saying="nothing")


@pytest.mark.parametrize("name", ["inputs.npy", "model.safetensors"])
def test_truncated_files(holdfast, subject, tmp_path, name):
    data = (tmp_path / name).read_bytes()
    for size in [0, 5, len(data) // 2, len(data) - 1]:
        (tmp_path / name).write_bytes(data[:size])
        holdfast.fails("explain", *subject, "--out", "a.npy", saying=name)
        assert not (tmp_path / "a.npy").exists()


def test_truncated_torchscript(holdfast, subject, tmp_path):
    (tmp_path / "broken.pt").write_bytes(b"PK\x03\x04 this is no TorchScript file")
    holdfast.fails("explain", "--model", "broken.pt", "--inputs", "inputs.npy", "--out", "a.npy", saying="broken.pt")


def test_a_header_that_claims_too_much_is_not_believed(holdfast, subject, tmp_path):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1152921504606846976,), }"
    header += " " * (117 - len(header)) + "\n"
    (tmp_path / "inputs.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
    holdfast.fails("explain", *subject, "--out", "a.npy", saying="inputs.npy")


def test_wrong_dtype_and_shape(holdfast, subject, tmp_path):
    np.save(tmp_path / "inputs.npy", np.array(["a", "b"]))
    holdfast.fails("explain", *subject, "--out", "a.npy", saying="inputs.npy")
    np.save(tmp_path / "inputs.npy", np.zeros((4, 5), np.float32))
    holdfast.fails("explain", *subject, "--out", "a.npy", saying=["[5]", "[6]"])
    np.save(tmp_path / "inputs.npy", np.zeros((0, 6), np.float32))
    holdfast.fails("explain", *subject, "--out", "a.npy", saying="empty")


def test_values_that_are_not_finite(holdfast, subject, tmp_path):
    inputs = np.load(tmp_path / "inputs.npy")
    broken = inputs.copy()
    broken[2, 4] = np.nan
    np.save(tmp_path / "inputs.npy", broken)
    holdfast.fails(*ATTACK, *subject, saying=["inputs.npy", "[2, 4]"])
    np.save(tmp_path / "inputs.npy", inputs)
    weights = mlp_weights()
    weights["output.bias"][1] = np.inf
    save_mlp(tmp_path / "model.safetensors", weights)
    holdfast.fails(*ATTACK, *subject, saying=["model.safetensors", "output.bias"])


def test_logits_that_are_not_finite_are_the_models_fault(holdfast, subject, tmp_path):
    """The square root of a negative number: NaN for samples whose first value is below one half."""
    broken = traced(tmp_path, "broken.pt", lambda x, w: x @ w.t() + (x[:, :1] - 0.5).sqrt() * 0)
    first = int(np.argmax(np.load(tmp_path / "inputs.npy")[:, 0] < 0.5))
    saying = ["broken.pt", f"the logits of sample {first} are not finite"]
    holdfast.fails("explain", *broken, "--out", "a.npy", saying=saying)
    np.save(tmp_path / "targets.npy", np.zeros(20, np.int64))
    holdfast.fails("explain", *broken, "--targets", "targets.npy", "--out", "a.npy", saying=saying)
    holdfast.fails(*ATTACK, *broken, saying=saying)
    holdfast.fails("audit", *broken, "--epsilon", "0.3", "--metric", "top_k(k=2)", "--out", "run", saying=saying)
    assert not (tmp_path / "a.npy").exists()


def test_buffers_that_are_not_finite(holdfast, subject, tmp_path):
    import torch

    class Shifted(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.arange(18.0).reshape(3, 6) / 10)
            self.register_buffer("mean", torch.tensor([0, 0, float("nan"), 0, 0, 0]))

        def forward(self, x):
            return (x - self.mean) @ self.weight.t()

    torch.jit.script(Shifted()).save(str(tmp_path / "shifted.pt"))
    holdfast.fails(*ATTACK, "--model", "shifted.pt", *subject[2:], saying=["shifted.pt", "mean"])


def test_labels_out_of_range(holdfast, subject, tmp_path):
    np.save(tmp_path / "targets.npy", np.full(20, 3))
    holdfast.fails(*ATTACK, *subject, "--targets", "targets.npy", saying=["targets.npy", "3", "0 to 2"])


def test_options_out_of_range(holdfast, subject):
    base = [*ATTACK[:5], "--out", "out", *subject]
    holdfast.fails(*base, "--metric", "top_k(k=7)", saying=["top_k(k=7)", "6"])
    holdfast.fails(*base, "--metric", "top_k(k=0)", saying="k must be >= 1")
    holdfast.fails(*base, "--attack", "er(stepz=3)", saying="did you mean 'steps'?")
    holdfast.fails(*base, "--box", "1,0", saying="--box")
    holdfast.fails(*base, "--box", "0.5,1", "--metric", "top_k(k=2)", saying=["inputs.npy", "outside the box"])
    holdfast.fails(*ATTACK[:3], "--epsilon", "-1", "--metric", "top_k(k=2)", "--out", "out", *subject, saying="epsilon")
    holdfast.fails(*base, "--device", "tpu", saying="tpu")
    holdfast.fails("audit", *subject, "--epsilon", "1", "--out", "o", "--gate", "top_k(k=8)", saying="METRIC>=NUMBER")
    holdfast.fails(
        "audit", *subject, "--epsilon", "1", "--out", "o", "--metric", "top_k(k=2)", "--gate", "top_k(k=3)>=0.5", saying="no row"
    )


def test_maps_of_different_shape(holdfast, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((3, 5)))
    np.save(tmp_path / "b.npy", np.zeros((3, 6)))
    holdfast.fails("measure", "a.npy", "b.npy", "--metric", "top_k(k=2)", saying=["[3, 5]", "[3, 6]"])


def test_configuration_errors_name_file_line_and_key(holdfast, tmp_path):
    (tmp_path / "bad.toml").write_text(
        'seed = 0\n[dataset]\nname = "synthetic"\n[model]\narchitecture = "mlp"\n[train]\nepoch = 3\n'
    )
    holdfast.fails("train", "bad.toml", "--out", "run", saying=["bad.toml:7", "epoch", "epochs"])
    (tmp_path / "bad.toml").write_text("seed = \n")
    holdfast.fails("audit", "bad.toml", "--out", "run", saying="bad.toml:1")
    (tmp_path / "bad.toml").write_text('attacks = ["err"]\n')
    holdfast.fails("audit", "bad.toml", "--out", "run", saying=["bad.toml:1", "did you mean 'er'?"])
    assert not (tmp_path / "run").exists()


def test_a_missing_dataset_names_the_command_that_gets_it(holdfast, tmp_path):
    (tmp_path / "adult.toml").write_text('[dataset]\nname = "adult"\n[model]\narchitecture = "mlp"\n')
    holdfast.fails(
        "train", "adult.toml", "--out", "run", saying="holdfast data fetch adult", env={"HOLDFAST_DATA": str(tmp_path / "none")}
    )


def test_a_run_folder_is_not_overwritten_by_another_run(holdfast, subject, tmp_path):
    run = ["audit", *subject, "--metric", "top_k(k=2)", "--out", "run"]
    holdfast(*run, "--epsilon", "0.3")
    before = (tmp_path / "run" / "results.json").read_bytes()
    holdfast.fails(*run, "--epsilon", "0.4", saying=["run", "another run"])
    assert (tmp_path / "run" / "results.json").read_bytes() == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    holdfast.fails(*run[:-1], "mine", "--epsilon", "0.3", saying="not empty")


def test_an_attack_overwrites_only_its_own_files(holdfast, subject, tmp_path):
    run = [*ATTACK, *subject, "--attack", "er(steps=5)"]
    holdfast(*run)
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    holdfast(*run)  # the same again
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    holdfast(*run, "--seed", "1")  # another attack takes its place
    after = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert after.keys() == before.keys() and after["result.json"] != before["result.json"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    holdfast.fails(*run[:8], "mine", *run[9:], saying=["mine", "not empty"])
    holdfast("audit", *subject, "--epsilon", "0.3", "--metric", "top_k(k=2)", "--out", "run")
    holdfast.fails(*run[:8], "run", *run[9:], saying=["run", "not empty"])


def test_a_folder_has_one_writer(holdfast, subject, tmp_path):
    (tmp_path / "run").mkdir()
    folder = os.open(tmp_path / "run", os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        audit = ["audit", *subject, "--epsilon", "0.3", "--metric", "top_k(k=2)", "--out", "run"]
        holdfast.fails(*audit, saying="another process is writing to run")
        holdfast.fails(*ATTACK[:-1], "run", *subject, saying="another process is writing to run")
        (tmp_path / "a.toml").write_text('[dataset]\nname = "synthetic"\n[model]\narchitecture = "mlp"\n[train]\nepochs = 1\n')
        holdfast.fails("train", "a.toml", "--out", "run", saying="another process is writing to run")
    finally:
        os.close(folder)  # as the system does for a process that died
    holdfast(*audit)


def test_output_that_cannot_be_written(holdfast, subject, tmp_path):
    (tmp_path / "file").write_text("")
    holdfast.fails(*ATTACK[:-1], "file/below", *subject, saying="file")
    holdfast.fails("explain", *subject, "--out", "/proc/maps.npy", saying="/proc")


def test_a_full_disk_leaves_nothing_behind(subject, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))

    done = subprocess.run(
        [BINARY, "explain", *subject, "--out", "a.npy"], cwd=tmp_path, capture_output=True, text=True, preexec_fn=limit
    )
    assert done.returncode == 3 and "a.npy" in done.stderr
    assert [name for name in os.listdir(tmp_path) if name.startswith("a.npy")] == []


CONFIG = """
metrics = ["top_k(k=3)"]
[[dataset]]
name = "synthetic"
[[model]]
name = "net"
architecture = "mlp"
"""


def test_a_configuration_is_not_mixed_with_flags(holdfast, subject, tmp_path):
    (tmp_path / "a.toml").write_text(CONFIG)
    holdfast.fails("audit", "a.toml", "--epsilon", "1", "--out", "run", saying=["--epsilon", "a.toml", "--set"])
    holdfast.fails("audit", "a.toml", *subject, "--out", "run", saying="--model")
    holdfast.fails("audit", *subject, "--epsilon", "1", "--set", "samples=3", "--out", "run", saying="--set")


def test_a_misspelt_key_is_named_before_the_one_it_leaves_missing(holdfast, tmp_path):
    (tmp_path / "a.toml").write_text(CONFIG.replace('architecture = "mlp"', 'fil = "mlp:weights.safetensors"'))
    holdfast.fails("audit", "a.toml", "--out", "run", saying=["a.toml:7: unknown key model.0.fil", "did you mean 'file'?"])


def test_misfits_of_a_configuration_are_found_before_training(holdfast, tmp_path):
    (tmp_path / "a.toml").write_text(CONFIG)
    run = ["audit", "a.toml", "--out", "run"]
    holdfast.fails(*run, "--gate", "top_k(k=9)>=0.5", saying="no row")
    holdfast.fails(*run, "--set", "threat.box=[5,6]", saying=["synthetic", "outside the box 5,6"])
    (tmp_path / "b.toml").write_text(CONFIG.replace("k=3", "k=99"))
    holdfast.fails("audit", "b.toml", "--out", "run2", saying=["top_k(k=99)", "features"])
    # What the attacks and measures refuse of the network, which is not trained yet.
    holdfast.fails(*run, "--set", 'attacks=["mass_center"]', saying=["mass_center", "has no centre of mass"])
    holdfast.fails(*run, "--set", 'metrics=["spearman"]', "--set", 'attacks=["top_t"]', saying=["top_t", "has no k to take"])
    holdfast.fails(*run, "--set", 'measures=["thickness(k=99)"]', saying="thickness(k=99")
    assert not (tmp_path / "run" / "models").exists() and not (tmp_path / "run2" / "models").exists()


def test_numbers_that_are_none(holdfast, subject):
    base = ["attack", *subject, "--metric", "top_k(k=2)", "--out", "out"]
    holdfast.fails(*base, "--epsilon", "", saying="--epsilon")
    holdfast.fails(*base, "--epsilon", "1", "--seed", "-1", saying="'-1' is not a whole number >= 0")
    holdfast.fails(*base, "--epsilon", "1", "--threads", "x", saying="'x' is not a whole number >= 0")


def traced(tmp_path, name, function):
    """A TorchScript file of a function of the inputs and a weight [3, 6]."""
    import torch

    class Traced(torch.nn.Module):
        def forward(self, x):
            return function(x, torch.arange(18.0).reshape(3, 6) / 10)

    torch.jit.trace(Traced(), torch.rand(2, 6)).save(str(tmp_path / name))
    return ["--model", name, "--inputs", "inputs.npy"]


def test_a_model_without_gradients_is_refused_not_called_robust(holdfast, subject, tmp_path):
    flat = traced(tmp_path, "flat.pt", lambda x, w: x.detach() @ w.t() + 0 * x.sum(1, True))
    holdfast.fails("audit", *flat, "--epsilon", "0.5", "--metric", "top_k(k=2)", "--out", "run", saying=["flat.pt", "gradient"])


def test_a_model_that_mixes_samples_is_refused(holdfast, subject, tmp_path):
    mixed = traced(tmp_path, "mixed.pt", lambda x, w: (x - x.mean(0, True)) @ w.t())
    holdfast.fails("explain", *mixed, "--out", "maps.npy", saying=["mixed.pt", "other samples of the batch"])


def test_a_model_that_branches_on_its_batch_is_refused(holdfast, subject, tmp_path):
    import torch

    class Branches(torch.nn.Module):
        def forward(self, x):
            return x[:, :3] if bool(x.mean() < 0.75) else -x[:, :3]

    torch.jit.script(Branches()).save(str(tmp_path / "branches.pt"))
    branches = ["--model", "branches.pt", *subject[2:]]
    saying = ["branches.pt", "other samples of the batch"]
    holdfast.fails("explain", *branches, "--out", "maps.npy", saying=saying)
    holdfast.fails(*ATTACK, *branches, saying=saying)


def test_a_refusal_leaves_no_folders(holdfast, subject, tmp_path):
    before = set(tmp_path.iterdir())
    holdfast.fails("report", "nothing", "--out", "new/page/r.html", saying="nothing")
    holdfast.fails("explain", "--model", "nothing.pt", *subject[2:], "--out", "new/maps.npy", saying="nothing.pt")
    holdfast.fails("audit", *subject, "--epsilon", "0.3", "--metric", "top_k(k=99)", "--out", "new/run", saying="k <=")
    holdfast.fails("data", "export", "synthetic(features=0)", "--out", "new/data", saying="features")
    process = holdfast.start("attack", *subject, *ATTACK[1:-2], "--attack", "er(steps=1000000)", "--out", "new/attack")
    while not (tmp_path / "new" / "attack").exists():
        assert process.poll() is None
        time.sleep(0.01)
    interrupt(process)
    assert process.returncode == 3
    assert set(tmp_path.iterdir()) == before


def test_syntax_errors_name_the_format_and_the_line(holdfast, subject, tmp_path):
    (tmp_path / "bad.toml").write_text("samples = 3\nmodels = [1,\n")
    holdfast.fails("audit", "bad.toml", "--out", "run", saying="bad.toml:2: not valid TOML: parsing array")
    (tmp_path / "bad.json").write_text('{"a": 1,\n "b": }')
    run = ["explain", *subject, "--schema", "bad.json", "--out", "maps.npy"]
    holdfast.fails(*run, saying="bad.json:2: not valid JSON: ")


def test_a_dataset_that_is_not_here_is_one_line(holdfast, tmp_path):
    done = holdfast("data", "check", "mnist", code=2, env={"HOLDFAST_DATA": str(tmp_path)})
    assert done.stdout == "" and done.stderr.count("\n") == 1
    assert "holdfast data fetch mnist" in done.stderr


def test_only_audits_can_be_reported(holdfast, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_text("{}")
    (tmp_path / "run" / "results.json").write_text('{"kind": "train"}')
    holdfast.fails("report", "run", "--out", "r.html", saying="only audits")


def test_a_refused_audit_does_not_stand_in_the_way_of_the_corrected_one(holdfast, subject):
    run = ["audit", *subject, "--attack", "er(steps=2)", "--epsilon", "0.3", "--out", "run"]
    holdfast.fails(*run, "--metric", "top_k(k=99)", saying="k <=")
    holdfast(*run, "--metric", "top_k(k=2)")


def test_labels_of_an_audit_are_classes_of_the_model(holdfast, subject, tmp_path):
    count = len(np.load(tmp_path / "inputs.npy"))
    np.save(tmp_path / "labels.npy", np.full(count, 9))
    run = ["audit", *subject, "--attack", "er(steps=2)", "--epsilon", "0.3", "--metric", "top_k(k=2)", "--out", "run"]
    holdfast.fails(*run, "--labels", "labels.npy", saying=["label 9", "0 to 2"])


def test_a_folder_or_nothing_is_no_output_file(holdfast, subject, tmp_path):
    (tmp_path / "folder").mkdir()
    for out in ("folder", ""):
        holdfast.fails("explain", *subject, "--out", out, saying="name the file to write")


def test_describe_blames_what_is_wrong_in_a_few_words(holdfast):
    for name in ("no/such.pt", "such.pt"):
        holdfast.fails("describe", name, saying=[name, "no such file"])
    assert len(holdfast.fails("describe", "nonsense_name", saying="nothing is called")) < 200
    assert "er " in holdfast("describe", "er(steps=3)").stdout
    holdfast.fails("describe", "pgd(preset=foo)", saying="pgd: unknown preset 'foo'")
    holdfast.fails("describe", "er(stpes=3)", saying="did you mean 'steps'?")


def test_a_gate_written_backwards(holdfast, subject):
    run = ["audit", *subject, "--epsilon", "0.3", "--metric", "top_k(k=2)", "--out", "run"]
    holdfast.fails(*run, "--gate", "top_k(k=2)=>0.5", saying=["=>", ">="])


def test_a_full_disk_behind_standard_output_is_a_failure(subject, tmp_path):
    for command in [["list"], ["explain", *subject, "--out", "a.npy", "--json"], ["--help"]]:
        with open("/dev/full", "w") as full:
            done = subprocess.run([BINARY, *command], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 3 and "standard output could not be written" in done.stderr


def test_a_part_without_samples_is_not_exported(holdfast, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,a\n2,b\n3,a\n4,b\n")
    export = ["data", "export", "csv(path=t.csv,test=0,validation=0)", "--out", "part"]
    holdfast.fails(*export, saying="its part 'test' has no samples")
    assert not (tmp_path / "part").exists()
    assert "4 samples of csv" in holdfast(*export, "--part", "train").stdout
    assert "1 sample of csv" in holdfast(*export, "--part", "train", "--samples", "1").stdout


def test_outputs_end_as_what_they_are(holdfast, subject, tmp_path):
    holdfast.fails("explain", *subject, "--out", "o.txt", saying="--out o.txt: the name must end in .npy")
    holdfast.fails("report", "run", "--out", "r.txt", saying="--out r.txt: the name must end in .html or .md")
    assert not (tmp_path / "o.txt").exists()
