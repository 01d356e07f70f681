"""Loading and decoding images against Pillow and NumPy, on the same files, one thread each.

usage: decode_images.py PROGRAM [DATA_FOLDER]       (PROGRAM = build/decode_images; DATA_FOLDER defaults to HOLDFAST_DATA)

Pixels are compared first (JPEG within one level: the two may link different libjpeg-turbo), then medians of rounds that
alternate between the two. Ratio = ours / Pillow's; at most 1 is the aim. Exits 1 when pixels differ.
"""

import gzip
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

import numpy as np
from PIL import Image

ROUNDS = 7


def samples(data, scratch):
    """Lists of files by kind: real ones from the data folder, PNG made from its JPEGs."""
    photographs = sorted((data / "imagenet_samples").glob("*.JPEG"))
    flowers = sorted((data / "flowers17").rglob("*.jpg"))[:400]
    signs = []
    archive = data / "gtsrb" / "gtsrb32_subset.tar.gz"
    if archive.exists():
        with tarfile.open(archive) as source:
            for member in source:
                if member.name.endswith(".ppm"):
                    signs.append(scratch / f"{len(signs)}.ppm")
                    signs[-1].write_bytes(source.extractfile(member).read())
                    if len(signs) == 2000:
                        break

    def png(files, size):
        made = []
        for file in files:
            made.append(scratch / f"{size}_{file.stem}.png")
            Image.open(file).convert("RGB").resize((size, size)).save(made[-1])
        return made

    return {
        "JPEG photographs": photographs,
        "JPEG 128 x 128": flowers,
        "PNG 64 x 64": png(flowers[:200], 64),
        "PNG 224 x 224": png(photographs[:50], 224),
        "PNG CIFAR-10 batch": sorted((data / "cifar10").glob("test_batch.png")),
        "PPM 32 x 32": signs,
        "idx.gz MNIST": sorted((data / "mnist").glob("t10k-images*.gz")),
    }


def reference(file):
    if file.suffix == ".gz":
        with gzip.open(file) as source:
            content = source.read()
        dimensions = content[3]
        return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * dimensions)
    return np.asarray(Image.open(file).convert("RGB"))


def ours(program, listing, rounds, folder=None):
    command = [program, str(rounds), str(listing)] + ([str(folder)] if folder else [])
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def check(program, listing, files, scratch):
    """The largest difference of any pixel."""
    folder = scratch / "raw"
    folder.mkdir(exist_ok=True)
    ours(program, listing, 1, folder)
    worst = 0
    for index, file in enumerate(files):
        expected = reference(file)
        found = np.frombuffer((folder / f"{index}.raw").read_bytes(), dtype=np.uint8)
        assert found.size == expected.size, f"{file}: {found.size} values, Pillow has {expected.size}"
        worst = max(worst, int(np.abs(found.astype(int) - expected.ravel()).max()))
    return worst


def compare(program, kind, files, scratch):
    listing = scratch / "list.txt"
    listing.write_text("".join(f"{file}\n" for file in files))
    worst = check(program, listing, files, scratch)
    if worst > (1 if kind.startswith("JPEG") else 0):
        sys.exit(f"{kind}: pixels differ by up to {worst} levels")
    mine, theirs = [], []
    for _ in range(ROUNDS):
        mine += ours(program, listing, 1)["seconds"]
        start = time.perf_counter()
        for file in files:
            reference(file)
        theirs.append(time.perf_counter() - start)
    a, b = statistics.median(mine), statistics.median(theirs)
    times = f"holdfast {a:.4f} s  Pillow/NumPy {b:.4f} s  ratio {a / b:.2f}"
    print(f"{kind:18} {len(files):5} files  {times}  (largest difference {worst})")
    return a / b


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = str(pathlib.Path(sys.argv[1]).resolve())
    data = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else os.environ.get("HOLDFAST_DATA", ""))
    with tempfile.TemporaryDirectory() as scratch:
        kinds = {kind: files for kind, files in samples(data, pathlib.Path(scratch)).items() if files}
        if not kinds:
            sys.exit(f"no images below '{data}'; set HOLDFAST_DATA")
        for kind, files in kinds.items():
            compare(program, kind, files, pathlib.Path(scratch))


if __name__ == "__main__":
    main()
