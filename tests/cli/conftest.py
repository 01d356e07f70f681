"""Fixtures of the command-line tests: the program, and a small model with inputs."""

import json
import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("HOLDFAST_BINARY", str(ROOT / "build" / "holdfast"))


class Program:
    """Runs the program in a folder and keeps what it said."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, *arguments, code=0, env=None, cwd=None):
        done = subprocess.run(
            [BINARY, *map(str, arguments)],
            cwd=cwd or self.folder,
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, **(env or {})},
        )
        assert done.returncode == code, f"exit code {done.returncode}, expected {code}\n{done.stdout}\n{done.stderr}"
        return done

    def fails(self, *arguments, saying, code=2, env=None):
        """The program must refuse in one sentence that contains every string of `saying`."""
        done = self(*arguments, code=code, env=env)
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        assert lines, "nothing was said"
        message = lines[-1]
        for text in [saying] if isinstance(saying, str) else saying:
            assert text in message, message
        assert "Traceback" not in done.stderr and "Exception raised" not in done.stderr, done.stderr
        return message

    def json(self, *arguments):
        return json.loads(self(*arguments).stdout)

    def start(self, *arguments):
        return subprocess.Popen(
            [BINARY, *map(str, arguments)], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )


@pytest.fixture
def holdfast(tmp_path):
    return Program(tmp_path)


def save_mlp(path, weights):
    save_file(
        {name: np.asarray(value, dtype=np.float32) for name, value in weights.items()},
        path,
        metadata={"architecture": "mlp(inputs=6,hidden=8,classes=3)"},
    )


def mlp_weights():
    random = np.random.default_rng(0)
    return {
        "hidden1.weight": random.normal(size=(8, 6)),
        "hidden1.bias": random.normal(size=8),
        "output.weight": random.normal(size=(3, 8)),
        "output.bias": random.normal(size=3),
    }


def save_inputs(tmp_path, count=20):
    np.save(tmp_path / "inputs.npy", np.random.default_rng(1).uniform(size=(count, 6)).astype(np.float32))


@pytest.fixture
def subject(tmp_path):
    """Flags for a 6-8-3 network with random weights and 20 inputs in [0, 1]."""
    save_mlp(tmp_path / "model.safetensors", mlp_weights())
    save_inputs(tmp_path)
    return ["--model", "mlp:model.safetensors", "--inputs", "inputs.npy"]


@pytest.fixture(scope="session")
def opaque_file(tmp_path_factory):
    """The same network as a TorchScript file with an operation that is not imported."""
    import torch

    weights = {name: torch.tensor(value, dtype=torch.float32) for name, value in mlp_weights().items()}

    class Opaque(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w1 = torch.nn.Parameter(weights["hidden1.weight"])
            self.b1 = torch.nn.Parameter(weights["hidden1.bias"])
            self.w2 = torch.nn.Parameter(weights["output.weight"])
            self.b2 = torch.nn.Parameter(weights["output.bias"])

        def forward(self, x):
            hidden = torch.relu(torch.einsum("bi,oi->bo", x, self.w1) + self.b1)
            return torch.einsum("bi,oi->bo", hidden, self.w2) + self.b2

    path = tmp_path_factory.mktemp("torchscript") / "opaque.pt"
    torch.jit.script(Opaque()).save(str(path))
    return path


@pytest.fixture(params=["network", "opaque"])
def any_subject(request, tmp_path, subject, opaque_file):
    """The network, and the same as an opaque TorchScript file."""
    return subject if request.param == "network" else ["--model", str(opaque_file), *subject[2:]]


def interrupt(process):
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=120)
