"""Checks a file that Holdfast wrote and writes one for it to read, with the safetensors package, for safetensors_test.cpp.

usage: safetensors_reference.py FOLDER
Reads   FOLDER/own.safetensors: one array a type, named after it, shape (2, 3), bytes 0, 1, ... (bool: 0, 1, 1, ...)
Writes  FOLDER/theirs.safetensors: the same arrays with 255 - byte (bool: 1, 0, 0, ...), and metadata
"""

import pathlib
import sys

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

TYPES = [
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16", "float32", "float64",
]  # fmt: skip


def array(name, flipped):
    dtype = getattr(torch, name)
    count = 6 * dtype.itemsize
    if dtype == torch.bool:
        content = [(i > 0) != flipped for i in range(count)]
    else:
        content = [255 - i if flipped else i for i in range(count)]
    return torch.tensor(content, dtype=torch.uint8).view(dtype).reshape(2, 3)


def same_bytes(a, b):
    """Not torch.equal: some of the patterns are not numbers."""
    return torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))


def main(folder):
    arrays = load_file(folder / "own.safetensors")
    assert set(arrays) == {*TYPES, "scalar", "empty", 'odd "name" é'}, sorted(arrays)
    for name in TYPES:
        assert arrays[name].dtype == getattr(torch, name), (name, arrays[name].dtype)
        assert arrays[name].shape == (2, 3)
        assert same_bytes(arrays[name], array(name, False)), name
    assert arrays["scalar"].shape == ()
    assert arrays["empty"].shape == (0, 4)
    with safe_open(folder / "own.safetensors", framework="pt") as file:
        assert file.metadata() == {"format": "pt", "odd": 'a "quoted"\nline'}, file.metadata()

    theirs = {name: array(name, True) for name in TYPES}
    save_file(theirs, folder / "theirs.safetensors", {"written by": "Python", "empty": ""})


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
