"""Several processes that torchrun started do one command together, and results are those of one process."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import BINARY, save_inputs

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--no-python"]
STUDY = [
    "--attack",
    "er(steps=300)",
    "--epsilon",
    "0.2,0.3",
    "--metric",
    "top_k(k=2)",
    "--measure",
    "thickness(k=2)",
    "--tile",
    "4",
]


def started(folder, ranks, *arguments, flags=(), env=None):
    command = [*TORCHRUN, "--nproc-per-node", str(ranks), "--master-port", str(free_port()), *flags, BINARY, *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})}
    )


def torchrun(folder, ranks, *arguments, code=0, **options):
    process = started(folder, ranks, *arguments, **options)
    out, said = process.communicate(timeout=120)
    assert process.returncode == code, f"{out}\n{said}"
    return out, said


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def files(folder):
    names = ["results.json", "samples.csv", "measures.csv"]
    arrays = [str(path.relative_to(folder)) for path in (folder / "arrays").rglob("*.npy")]
    assert arrays
    return {name: (folder / name).read_bytes() for name in names + arrays}


def ranks_below(pid):
    """The processes of the program that a torchrun has started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if os.readlink(f"/proc/{child}/exe") == os.path.realpath(BINARY)]


def test_any_number_of_ranks_writes_the_same_bytes(holdfast, subject, tmp_path):
    holdfast("audit", *subject, *STUDY, "--out", "run1")
    for ranks in [2, 4]:
        out, said = torchrun(tmp_path, ranks, "audit", *subject, *STUDY, "--out", f"run{ranks}")
        assert files(tmp_path / f"run{ranks}") == files(tmp_path / "run1")
        manifest = json.loads((tmp_path / f"run{ranks}" / "manifest.json").read_text())
        assert manifest["hardware"]["ranks"] == ranks
        assert manifest["sandbox"]["sockets"] is False, "ranks meet through sockets"
        assert not (tmp_path / f"run{ranks}" / "tiles").exists()
        assert out.count("own advantage") == 1 and said.count("report: ") == 1, "one rank prints"


def test_processes_of_one_machine_need_no_torchrun(holdfast, subject, tmp_path):
    holdfast("audit", *subject, *STUDY, "--out", "run1")
    env = {**os.environ, "HOLDFAST_PROCESSES": "3"}
    command = [BINARY, "audit", *map(str, subject), *STUDY, "--out", "run3"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert files(tmp_path / "run3") == files(tmp_path / "run1")
    assert json.loads((tmp_path / "run3" / "manifest.json").read_text())["hardware"]["ranks"] == 3
    assert done.stdout.count("own advantage") == 1
    refused = subprocess.run([*command, "--gate", "nonsense"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert refused.returncode == 2 and refused.stderr.count("nonsense") == 1


def test_a_process_that_is_killed_ends_the_others(subject, tmp_path):
    save_inputs(tmp_path, 40)
    command = [BINARY, "audit", *map(str, subject), "--attack", "er(steps=3000)", "--epsilon", "0.3", "--metric", "top_k(k=2)"]
    command += ["--tile", "2", "--out", "run"]
    env = {**os.environ, "HOLDFAST_PROCESSES": "2"}
    process = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    tiles = tmp_path / "run" / "tiles" / "0000"
    deadline = time.monotonic() + 60
    while not list(tiles.glob("*.safetensors")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    os.kill(ranks_below(process.pid)[-1], signal.SIGKILL)
    process.communicate(timeout=30)
    assert process.returncode == 3


def test_a_rank_that_is_killed_is_started_again_and_the_run_goes_on(holdfast, subject, tmp_path):
    save_inputs(tmp_path, 40)
    study = ["audit", *subject, "--attack", "er(steps=3000)", "--epsilon", "0.3", "--metric", "top_k(k=2)", "--tile", "2"]
    process = started(tmp_path, 2, *study, "--threads", "1", "--out", "killed", flags=["--max-restarts", "2"])
    tiles = tmp_path / "killed" / "tiles" / "0000"
    deadline = time.monotonic() + 60
    while len(list(tiles.glob("*.safetensors"))) < 3:
        assert time.monotonic() < deadline and process.poll() is None, "the run ended before a rank could be killed"
        time.sleep(0.01)
    first = {path.name: path.stat().st_mtime_ns for path in tiles.glob("*.safetensors")}
    os.kill(ranks_below(process.pid)[-1], signal.SIGKILL)
    time.sleep(0.5)
    kept = {name for name, made in first.items() if (tiles / name).exists() and (tiles / name).stat().st_mtime_ns == made}
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert kept == set(first), "finished tiles are used again"
    holdfast(*study, "--out", "whole")
    results = [(tmp_path / run / "results.json").read_bytes() for run in ["killed", "whole"]]
    assert results[0] == results[1]


def test_a_slow_rank_does_less(holdfast, subject, tmp_path):
    """One rank is stopped while the other works on; it is let go when nearly all tiles are there."""
    save_inputs(tmp_path, 40)
    study = ["audit", *subject, "--attack", "er(steps=2000)", "--epsilon", "0.3", "--metric", "top_k(k=2)", "--tile", "2"]
    process = started(tmp_path, 2, *study, "--threads", "1", "--out", "slow")
    tiles = tmp_path / "slow" / "tiles" / "0000"
    deadline = time.monotonic() + 60

    def wait_for_tiles(count):
        while len(list(tiles.glob("*.safetensors"))) < count:
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.01)

    wait_for_tiles(1)
    slow = ranks_below(process.pid)[-1]
    os.kill(slow, signal.SIGSTOP)
    try:
        wait_for_tiles(19)  # of 20: the slow one has the last
    finally:
        os.kill(slow, signal.SIGCONT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    holdfast(*study, "--out", "whole")
    assert (tmp_path / "slow" / "results.json").read_bytes() == (tmp_path / "whole" / "results.json").read_bytes()


def test_attack_and_measure_share_their_samples_too(holdfast, subject, tmp_path):
    attack = ["attack", *subject, "--attack", "er(steps=50)", "--epsilon", "0.3", "--metric", "top_k(k=2)", "--tile", "4"]
    holdfast(*attack, "--out", "one")
    torchrun(tmp_path, 2, *attack, "--out", "two")
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "two").iterdir())
    for name in ["perturbed.npy", "result.json"]:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()

    measure = [
        "measure",
        *subject,
        "--measure",
        "thickness(k=2)",
        "--measure",
        "local_lipschitz",
        "--epsilon",
        "0.1",
        "--tile",
        "4",
    ]
    holdfast(*measure, "--out", "one.csv")
    out, _ = torchrun(tmp_path, 2, *measure, "--out", "two.csv")
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    assert out.count("thickness") == 1, "one rank prints"


def test_a_mistake_is_said_once_and_ends_all_ranks(subject, tmp_path):
    _, said = torchrun(tmp_path, 2, "audit", *subject, *STUDY, "--labels", "none.npy", "--out", "run", code=1)
    lines = [line for line in said.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1 and "none.npy" in lines[0], said
    assert "exitcode  : 2" in said
    assert not (tmp_path / "run").exists()


def test_a_gate_that_is_not_met_is_the_exit_code_of_all_ranks(subject, tmp_path):
    _, said = torchrun(tmp_path, 2, "audit", *subject, *STUDY, "--gate", "top_k(k=2)>=1", "--out", "run", code=1)
    assert said.count("exitcode  : 1") == 2 and "exitcode  : 2" not in said


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"RANK": "4", "WORLD_SIZE": "4", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}, "RANK=4 is beyond the 4 ranks"),
        ({"RANK": "0", "WORLD_SIZE": "4"}, "MASTER_ADDR is not set"),
        ({"WORLD_SIZE": "4"}, "RANK is not"),
        ({"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}, "cannot reach rank 0 at localhost:1"),
        ({"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, "set MASTER_ADDR to the host of rank 0"),
    ],
)
def test_an_environment_that_makes_no_sense_is_refused(holdfast, subject, variables, sentence):
    env = {"HOLDFAST_JOIN_SECONDS": "1", **variables}
    done = holdfast("audit", *subject, *STUDY, "--out", "run", env=env, code=2)
    assert len(done.stderr.splitlines()) == 1 and sentence in done.stderr, done.stderr


def test_ranks_that_do_not_come_are_counted(holdfast, subject):
    env = {
        "RANK": "0",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": str(free_port()),
        "HOLDFAST_JOIN_SECONDS": "1",
    }
    holdfast.fails("audit", *subject, *STUDY, "--out", "run", env=env, saying="only 1 of the 2 ranks have come")


def test_ranks_with_other_instructions_are_refused(subject, tmp_path):
    """Their last digits would differ, so results would depend on who computed a tile."""
    port = str(free_port())
    processes = [
        subprocess.Popen(
            [BINARY, "audit", *subject, *STUDY, "--out", "run"],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                **{"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": port},
                **({"ATEN_CPU_CAPABILITY": "default"} if rank == 1 else {}),
            },
        )
        for rank in [0, 1]
    ]
    said = "".join(process.communicate(timeout=60)[1] for process in processes)
    assert [process.returncode for process in processes] == [2, 2]
    assert said.count("ranks differ in their instruction set") == 1 and "ATEN_CPU_CAPABILITY" in said, said


def test_commands_of_one_process_refuse_ranks(holdfast, subject):
    env = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    holdfast.fails("explain", *subject, "--out", "maps.npy", env=env, saying="explain runs in one process, and 2 were started")


def ip(*arguments):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True)


@pytest.fixture
def two_nodes():
    """Two network namespaces with a cable between them: each sees its own loopback and the cable, and nothing else."""
    names = [f"hf{os.getpid()}{side}" for side in "ab"]
    if shutil.which("ip") is None or ip("netns", "add", names[0]).returncode:
        pytest.skip("network namespaces need root and the program ip")
    try:
        ip("netns", "add", names[1])
        made = [ip("link", "add", names[0], "netns", names[0], "type", "veth", "peer", "name", names[1], "netns", names[1])]
        for number, name in enumerate(names, 1):
            made.append(ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", name))
            made += [ip("-n", name, "link", "set", link, "up") for link in [name, "lo"]]
        if any(done.returncode for done in made):
            pytest.skip(f"no virtual network: {made[0].stderr}")
        yield names
    finally:
        for name in names:
            ip("netns", "del", name)


@pytest.mark.parametrize("command", ["audit", "train"])
def test_two_machines_that_share_a_folder(holdfast, subject, tmp_path, two_nodes, command):
    """Ranks meet and add up over the network between them, not over the loopback that each machine has for itself."""
    (tmp_path / "train.toml").write_text(TRAINING)
    arguments = ["audit", *subject, *STUDY] if command == "audit" else ["train", "train.toml", "--threads", "1"]
    meeting = ["--nnodes", "2", "--nproc-per-node", "1", "--master-addr", "10.77.0.1", "--master-port", str(free_port())]
    nodes = [
        subprocess.Popen(
            ["ip", "netns", "exec", name, *TORCHRUN, *meeting, "--node-rank", str(number), BINARY, *arguments, "--out", "two"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number, name in enumerate(two_nodes)
    ]
    said = [node.communicate(timeout=120)[0] for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], said
    holdfast(*arguments, "--out", "one")
    if command == "audit":
        assert files(tmp_path / "two") == files(tmp_path / "one")
        return
    for a, b in zip(history(tmp_path / "two"), history(tmp_path / "one"), strict=True):
        np.testing.assert_allclose(numbers(a), numbers(b), rtol=1e-4, atol=1e-6)


def test_a_full_disk_ends_all_ranks_with_one_sentence(holdfast, tmp_path):
    """Rank 0 writes; the others wait for it in the middle of a sum."""
    (tmp_path / "train.toml").write_text(TRAINING)
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20k", "tmpfs", str(folder)], capture_output=True).returncode:
        pytest.skip("a disk of its own needs root")
    try:
        _, said = torchrun(tmp_path, 2, "train", "train.toml", "--threads", "1", "--out", folder / "run", code=1)
    finally:
        subprocess.run(["umount", str(folder)], check=True)
    lines = [line for line in said.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1 and "No space left" in lines[0], said
    assert said.count("exitcode  : 3") >= 1 and "Traceback (most" not in said.split("error: ")[0], said


TRAINING = """
[dataset]
name = "synthetic(samples=300)"
[model]
architecture = "mlp(hidden=16)"
[train]
recipe = "r2et(top_k=2)"
epochs = 4
batch_size = 37
learning_rate = 1e-2
"""


def history(folder):
    return [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]


def without_times(records):
    return [{key: value for key, value in record.items() if key != "seconds"} for record in records]


def numbers(record):
    return [record["loss"], *record["parts"].values(), record["validation"]["loss"]]


def test_ranks_train_the_network_that_one_process_trains(holdfast, tmp_path):
    """180 training samples: the last batch has 32 rows, the others 37, so parts of ranks differ in size."""
    (tmp_path / "train.toml").write_text(TRAINING)
    holdfast("train", "train.toml", "--out", "run1")
    one = history(tmp_path / "run1")
    for ranks in [2, 4]:
        out, said = torchrun(tmp_path, ranks, "train", "train.toml", "--threads", "1", "--out", f"run{ranks}")
        found = history(tmp_path / f"run{ranks}")
        assert len(found) == len(one) == 4
        for a, b in zip(found, one, strict=True):
            np.testing.assert_allclose(numbers(a), numbers(b), rtol=1e-4, atol=1e-6)
        assert sorted(path.name for path in (tmp_path / f"run{ranks}").iterdir()) == sorted(
            path.name for path in (tmp_path / "run1").iterdir()
        )
        manifest = json.loads((tmp_path / f"run{ranks}" / "manifest.json").read_text())
        assert manifest["machine"]["hardware"]["ranks"] == ranks
        assert out.count("test accuracy") == 1 and said.count("use it as") == 1, "one rank prints"


def test_a_training_rank_that_is_killed_is_started_again(holdfast, tmp_path):
    (tmp_path / "train.toml").write_text(TRAINING.replace("epochs = 4", "epochs = 40"))
    command = ["train", "train.toml", "--threads", "1"]
    process = started(tmp_path, 2, *command, "--out", "killed", flags=["--max-restarts", "2"])
    lines = tmp_path / "killed" / "history.jsonl"
    deadline = time.monotonic() + 60
    while not lines.exists() or len(lines.read_text().splitlines()) < 5:
        assert time.monotonic() < deadline and process.poll() is None, "the training ended before a rank could be killed"
        time.sleep(0.01)
    before = history(tmp_path / "killed")[:5]
    os.kill(ranks_below(process.pid)[-1], signal.SIGKILL)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    torchrun(tmp_path, 2, *command, "--out", "whole")
    killed, whole = history(tmp_path / "killed"), history(tmp_path / "whole")
    assert killed[:5] == before, "finished epochs are not trained again"
    assert without_times(killed) == without_times(whole)
    for name in ["results.json", "model.safetensors"]:
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_batch_whose_samples_are_compared_is_not_shared(tmp_path):
    (tmp_path / "train.toml").write_text(TRAINING.replace("r2et(top_k=2)", "pair_hinge(top_k=2)"))
    _, said = torchrun(tmp_path, 2, "train", "train.toml", "--out", "run", code=1)
    lines = [line for line in said.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1 and "compares the samples of a batch" in lines[0], said
