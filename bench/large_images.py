"""The memory that an audit of many large images takes: its peak must not grow with their number.

    nice -n 19 .venv/bin/python bench/large_images.py 500 2000 4000           prints a table
    nice -n 19 .venv/bin/python bench/large_images.py 500 2000 4000 --write   and writes it to docs/reliability.md

The images are random numbers, float32 of 3 x 224 x 224 (602,112 bytes each) in a .npy file; the model is one convolution and a
linear layer. Fails when the largest peak lies more than 64 MiB above the smallest, or above 2 GiB.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reliability.md"
BINARY = os.environ.get("HOLDFAST_BINARY", str(ROOT / "build" / "holdfast"))
SHAPE = (3, 224, 224)
AUDIT = [
    *("audit", "--model", "model.pt", "--inputs", "images.npy", "--attack", "random(samples=1)"),
    *("--epsilon", "0.5", "--metric", "cosine", "--quiet"),
]
# A process starts with its parent's peak, so the parent is a small one.
MEASURE = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


def save_model(path: Path) -> None:
    torch.manual_seed(0)
    side = SHAPE[1] // 16
    layers = [torch.nn.Conv2d(3, 4, 16, stride=16), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * side * side, 5)]
    torch.jit.trace(torch.nn.Sequential(*layers), torch.rand(2, *SHAPE)).save(str(path))


def save_images(path: Path, count: int) -> None:
    random = np.random.default_rng(0)
    images = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(count, *SHAPE))
    for i in range(count):
        images[i] = random.random(SHAPE, dtype=np.float32)
    images.flush()


def measure(count: int, folder: Path) -> tuple[float, float]:
    """The peak of the resident memory in MiB, and seconds."""
    save_images(folder / "images.npy", count)
    start = time.monotonic()
    command = [sys.executable, "-S", "-c", MEASURE, BINARY, *AUDIT, "--out", f"run{count}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (folder / "images.npy").unlink()
    return int(done.stdout) / 1024, time.monotonic() - start


def table(measured: dict[int, tuple[float, float]]) -> str:
    lines = ["| images of 3 x 224 x 224 | their bytes | peak of the process | seconds |", "|---|---|---|---|"]
    for count, (peak, seconds) in measured.items():
        lines.append(f"| {count:,} | {count * 4 * np.prod(SHAPE) / 2**30:.2f} GiB | {peak:.0f} MiB | {seconds:.0f} |")
    return "\n".join(lines) + "\n"


def write_page(text: str) -> None:
    begin, end = "<!-- made by bench/large_images.py -->\n", "<!-- end -->\n"
    head, rest = PAGE.read_text().split(begin)
    PAGE.write_text(head + begin + text + end + rest.split(end, 1)[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("counts", type=int, nargs="+")
    parser.add_argument("--write", action="store_true", help="write the table to docs/reliability.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        save_model(Path(name) / "model.pt")
        measured = {count: measure(count, Path(name)) for count in options.counts}
    text = table(measured)
    print(text)
    peaks = [peak for peak, _ in measured.values()]
    assert max(peaks) < min(peaks) + 64 and max(peaks) < 2048, peaks
    if options.write:
        write_page(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
