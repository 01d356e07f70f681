"""Model files are not trusted: what they claim is held against what they hold before memory is taken."""

import os
import subprocess

import numpy as np
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
