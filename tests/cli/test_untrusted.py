"""Model files are not trusted: what they claim is held against what they hold before memory is taken, what they do is looked at
before it is done, and the process that opens them is confined. tests/model/make_hostile.py makes many more such files."""

import json
import os
import shutil
import subprocess
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from conftest import BINARY
from safetensors.numpy import save_file


def test_a_small_file_that_claims_a_huge_network_takes_no_memory(holdfast, tmp_path):
    save_file(
        {"hidden1.weight": np.zeros((8, 6), np.float32)},
        tmp_path / "model.safetensors",
        metadata={"architecture": "mlp(inputs=6,hidden=20000x20000,classes=3)"},
    )
    process = subprocess.Popen(
        [BINARY, "describe", "model.safetensors"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    said = process.stderr.read().decode()
    _, status, used = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 2 and "hidden1.weight" in said
    assert used.ru_maxrss * 1024 < 800 * 2**20, "the network that is claimed has 1.6 GB"


@pytest.fixture(scope="module")
def scripted(tmp_path_factory):
    """A file whose model writes to `written` beside it when it is called, and one without harm."""
    import torch

    folder = tmp_path_factory.mktemp("scripted")
    path = str(folder / "written")

    class Harmless(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(6, 3)

        def forward(self, x):
            return self.fc(x)

    class Writes(Harmless):
        def __init__(self):
            super().__init__()
            self.path = path

        def forward(self, x):
            return self.fc(x) + torch.from_file(self.path, True, 16).fill_(1.0).sum()

    torch.jit.script(Harmless()).save(str(folder / "harmless.pt"))
    torch.jit.script(Writes()).save(str(folder / "writes.pt"))
    return folder


@pytest.mark.parametrize("command", ["describe", "explain"])
def test_a_model_that_writes_to_a_file_is_refused_by_name(holdfast, subject, scripted, command):
    model = str(scripted / "writes.pt")
    flags = [model] if command == "describe" else ["--model", model, *subject[2:], "--out", "maps.npy"]
    for mode in ["auto", "off"]:
        holdfast.fails(command, *flags, "--sandbox", mode, saying=["writes.pt uses aten::from_file", "not run"])
    assert not (scripted / "written").exists()


@pytest.mark.parametrize("content", [b"", b"short"])
def test_a_weight_record_without_its_bytes_is_a_sentence_not_a_crash(holdfast, scripted, tmp_path, content):
    with zipfile.ZipFile(scripted / "harmless.pt") as old, zipfile.ZipFile(tmp_path / "model.pt", "w") as new:
        for name in old.namelist():
            new.writestr(name, content if name.endswith("data/0") else old.read(name))
    holdfast.fails("describe", "model.pt", saying=f"tensor '0' has {len(content)} bytes; 18 elements of FloatStorage need 72")


def test_changed_weights_do_not_pass_the_checksum(holdfast, scripted, tmp_path):
    content = bytearray((scripted / "harmless.pt").read_bytes())
    with zipfile.ZipFile(scripted / "harmless.pt") as archive:
        content[content.index(archive.read("harmless/data/0"))] ^= 1
    (tmp_path / "model.pt").write_bytes(content)
    holdfast.fails("describe", "model.pt", saying="data/0 has a wrong checksum")


def test_a_small_file_that_names_a_large_architecture_takes_no_memory(holdfast, tmp_path):
    named = {"architecture": "mlp(inputs=4,hidden=300000x300000,classes=2)"}
    save_file({"a": np.zeros(1, np.float32)}, tmp_path / "model.safetensors", metadata=named)
    holdfast.fails("describe", "model.safetensors", saying="out of memory: ", code=3)
    holdfast.fails("describe", "mlp:model.safetensors", saying="out of memory: ", code=3)


def kernel_confines():
    """What Landlock and seccomp can do here: version of the first, and whether there is the second."""
    import ctypes

    status = Path("/proc/self/status").read_text()
    return ctypes.CDLL(None).syscall(444, None, 0, 1) > 0, "Seccomp:" in status


FILES, CALLS = kernel_confines()
confined = pytest.mark.skipif(not (FILES and CALLS), reason="this kernel has no Landlock or no seccomp")

AUDIT = ["--attack", "random(samples=2)", "--epsilon", "0.1", "--metric", "top_k(k=2)"]


@confined
def test_a_run_is_confined_and_its_manifest_says_so(holdfast, subject, tmp_path):
    def sandbox(out, *flags, env=None):
        holdfast("audit", *subject, *AUDIT, "--out", out, *flags, env=env)
        return json.loads((tmp_path / out / "manifest.json").read_text())["sandbox"]

    assert sandbox("new/folder/run") == {"files": True, "sockets": True}
    assert sandbox("open", "--sandbox", "off") == {"files": False, "sockets": False}
    only_rank = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    assert sandbox("ranked", "--sandbox", "on", env=only_rank) == {"files": True, "sockets": True}


@confined
def test_the_kernel_holds_the_process_to_it(holdfast, subject):
    def status_of(*flags):
        run = [*AUDIT[2:], "--attack", "er(steps=200000)", "--tile", "5", "--threads", "2", "--out", "run"]
        process = holdfast.start("attack", *subject, *run, *flags)
        try:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and len(os.listdir(f"/proc/{process.pid}/task")) < 2:  # the tiles' threads
                time.sleep(0.02)
            tasks = os.listdir(f"/proc/{process.pid}/task")
            assert len(tasks) > 1, "the attack has not begun"
            return [Path(f"/proc/{process.pid}/task/{task}/status").read_text() for task in tasks]
        finally:
            process.kill()
            process.communicate()

    assert all("Seccomp:\t2" in status and "NoNewPrivs:\t1" in status for status in status_of())
    assert all("Seccomp:\t0" in status for status in status_of("--sandbox", "off"))


@confined
@pytest.mark.parametrize("linked", ["the folder", "the file"])
def test_a_dataset_may_be_a_link_to_another_disk(holdfast, tmp_path, linked):
    import sklearn.datasets

    disk, data = tmp_path / "disk", tmp_path / "data"
    disk.mkdir()
    shutil.copy(Path(sklearn.datasets.__file__).parent / "data" / "breast_cancer.csv", disk)
    if linked == "the folder":
        data.mkdir()
        (data / "breast_cancer").symlink_to(disk)
    else:
        (data / "breast_cancer").mkdir(parents=True)
        (data / "breast_cancer" / "breast_cancer.csv").symlink_to(disk / "breast_cancer.csv")
    (tmp_path / "train.toml").write_text(
        'dataset.name = "breast_cancer"\nmodel.architecture = "mlp(hidden=4)"\ntrain.epochs = 1\n'
    )
    holdfast("train", "train.toml", "--out", "run", "--sandbox", "on", env={"HOLDFAST_DATA": str(data)})


def test_a_pipe_may_be_written_to(holdfast, tmp_path):
    np.save(tmp_path / "maps.npy", np.random.default_rng(0).random((3, 4)))
    os.mkfifo(tmp_path / "values.csv")
    reader = subprocess.Popen(["cat", "values.csv"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    holdfast("measure", "maps.npy", "maps.npy", "--metric", "l2", "--out", "values.csv")
    assert reader.communicate(timeout=60)[0].startswith("sample,")
    assert "sample," in holdfast("measure", "maps.npy", "maps.npy", "--metric", "l2", "--out", "/dev/stdout").stdout


def test_a_refusal_leaves_no_folder(holdfast, subject, tmp_path):
    holdfast.fails("audit", *subject, *AUDIT, "--metric", "top_k(k=0)", "--out", "deep/er/run", saying="k")
    assert not (tmp_path / "deep").exists()


def test_other_modes_are_refused(holdfast, subject):
    holdfast.fails("describe", "mlp:model.safetensors", "--sandbox", "maybe", saying="--sandbox maybe: must be auto, on or off")


@confined
def test_a_kernel_without_landlock_confines_calls_alone(holdfast, subject, tmp_path):
    source = Path(__file__).with_name("no_landlock.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "no_landlock.so", source, "-ldl"], check=True)
    without = {"LD_PRELOAD": str(tmp_path / "no_landlock.so")}
    on = ["describe", "mlp:model.safetensors", "--sandbox", "on"]
    holdfast.fails(*on, saying="this kernel cannot confine files (Landlock)", env=without)
    holdfast(*on)
    holdfast("audit", *subject, *AUDIT, "--out", "run", env=without)
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["sandbox"] == {"files": False, "sockets": True}
