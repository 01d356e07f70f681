"""Memory does not grow with the samples, and running out of it is a sentence."""

import os
import resource
import subprocess

import numpy as np
import pytest
from conftest import BINARY


@pytest.fixture(scope="module")
def image_model(tmp_path_factory):
    """A small network on images of 160 x 160."""
    import torch

    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 8, stride=8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * 20 * 20, 5)
    )
    path = tmp_path_factory.mktemp("memory") / "model.pt"
    torch.jit.trace(module, torch.rand(2, 3, 160, 160)).save(str(path))
    return path


def save_images(path, count, dtype=np.float32):
    random = np.random.default_rng(0)
    images = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=(count, 3, 160, 160))
    for i in range(count):
        images[i] = random.random((3, 160, 160)) if dtype == np.float32 else random.integers(0, 2, (3, 160, 160))
    images.flush()


def peak_of(arguments, folder):
    """The largest resident memory of the process, in MiB, and what it said."""
    process = subprocess.Popen(
        [BINARY, *map(str, arguments)], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, said
    return usage.ru_maxrss / 1024


ATTACK = ["--attack", "random(samples=2)", "--epsilon", "0.5", "--metric", "top_k(k=50)", "--threads", "1", "--quiet"]


def test_the_peak_does_not_depend_on_the_number_of_images(image_model, tmp_path):
    peaks = {}
    for count in (50, 300, 600):
        save_images(tmp_path / "inputs.npy", count)
        peaks[count] = peak_of(
            ["audit", "--model", image_model, "--inputs", "inputs.npy", *ATTACK, "--out", f"run{count}"], tmp_path
        )
        (tmp_path / "inputs.npy").unlink()
    # 550 images more are 169 MB of inputs alone, and their maps and perturbed points three times that.
    assert peaks[300] < peaks[50] + 120 and peaks[600] < peaks[50] + 120, peaks


def test_mapped_and_converted_inputs_give_the_same_bytes(image_model, tmp_path, holdfast):
    save_images(tmp_path / "bytes.npy", 60, np.uint8)  # small in its file, large as float32
    np.save(tmp_path / "floats.npy", np.load(tmp_path / "bytes.npy").astype(np.float32))
    for name in ("bytes", "floats"):
        holdfast("explain", "--model", image_model, "--inputs", f"{name}.npy", "--out", f"{name}_maps.npy")
    holdfast("explain", "--model", image_model, "--inputs", "floats.npy", "--tile", "60", "--out", "whole.npy")
    assert (tmp_path / "bytes_maps.npy").read_bytes() == (tmp_path / "floats_maps.npy").read_bytes()
    np.testing.assert_allclose(np.load(tmp_path / "whole.npy"), np.load(tmp_path / "bytes_maps.npy"), rtol=1e-4, atol=1e-7)
    assert sorted(os.listdir(tmp_path)) == ["bytes.npy", "bytes_maps.npy", "floats.npy", "floats_maps.npy", "whole.npy"]


def test_running_out_names_the_tile_that_fits(holdfast, image_model, tmp_path):
    save_images(tmp_path / "inputs.npy", 80)
    run = ["explain", "--model", image_model, "--inputs", "inputs.npy", "--memory", "30M", "--threads", "1", "--out", "maps.npy"]
    said = holdfast.fails(*run, "--tile", "80", saying=["out of memory", "a tile of 80 does not fit"], code=3)
    assert "refused" not in said
    tile = said.split("--tile ")[1].split()[0]
    holdfast(*run, "--tile", tile)


def test_fewer_tiles_side_by_side_give_the_same_bytes(holdfast, image_model, tmp_path):
    save_images(tmp_path / "inputs.npy", 80)
    run = ["explain", "--model", image_model, "--inputs", "inputs.npy", "--tile", "8"]
    holdfast(*run, "--threads", "1", "--out", "one.npy")
    said = holdfast(*run, "--threads", "8", "--memory", "16M", "--out", "many.npy").stderr
    assert "side by side" in said, said
    assert (tmp_path / "one.npy").read_bytes() == (tmp_path / "many.npy").read_bytes()


def test_what_is_no_size_is_refused(holdfast, subject):
    for text in ["4X", "lots", "-1G", "1K"]:
        holdfast.fails("explain", *subject, "--memory", text, "--out", "maps.npy", saying=["--memory", text])


def test_devices_and_pipes_are_no_inputs(holdfast, subject, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in ["/dev/zero", "pipe"]:
        holdfast.fails("explain", *subject[:2], "--inputs", path, "--out", "maps.npy", saying=[path, "a device or a pipe"])
        holdfast.fails("audit", path, "--out", "run", saying=[path, "a device or a pipe"])
        holdfast.fails("measure", path, path, "--metric", "l2", saying=[path, "a device or a pipe"])
    holdfast.fails("explain", "--model", "mlp:/dev/zero", *subject[2:], "--out", "maps.npy", saying="a device or a pipe")


def test_a_file_that_claims_much_takes_little(holdfast, subject, tmp_path):
    """A sparse file of a terabyte and headers that lie are refused before memory is taken."""
    header = (
        b"\x93NUMPY\x01\x00v\x00"
        + b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 274877, 1), }".ljust(117)
        + b"\n"
    )
    (tmp_path / "lies.npy").write_bytes(header + bytes(64))
    holdfast.fails("explain", *subject[:2], "--inputs", "lies.npy", "--out", "maps.npy", saying=["lies.npy", "claims"])
    with open(tmp_path / "sparse.npy", "wb") as file:
        file.truncate(1 << 40)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    holdfast.fails(
        "explain", *subject[:2], "--inputs", "sparse.npy", "--out", "maps.npy", saying="sparse.npy: is not an npy file"
    )
    holdfast.fails("explain", "--model", "mlp:sparse.npy", *subject[2:], "--out", "maps.npy", saying="sparse.npy")
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < before + 300 * 1024
