"""Writes .npy files in every form the reader accepts, and checks one that Holdfast wrote, for npy_test.cpp.

usage: numpy_reference.py FOLDER
Reads   FOLDER/own_<type>.npy: numbers 0, 1, ... as that type, shape (2, 3)
Writes  FOLDER/cases.csv: file, type, shape with x, raw     raw = the expected bytes, row-major, little-endian
"""

import csv
import pathlib
import sys

import numpy as np

TYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64"]


def check_own(folder):
    for name in TYPES:
        array = np.load(folder / f"own_{name}.npy")
        expected = np.arange(6).reshape(2, 3).astype(name)
        assert array.dtype == expected.dtype, (name, array.dtype)
        assert array.flags.c_contiguous
        np.testing.assert_array_equal(array, expected)
    for shape in ((), (5,), (0, 4)):
        name = "x".join(map(str, shape))
        assert np.load(folder / f"own_shape_{name}.npy").shape == shape


def write_cases(folder):
    rows = []

    def add(name, array, version=None):
        with open(folder / f"{name}.npy", "wb") as target:
            np.lib.format.write_array(target, array, version=version)
        expected = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
        (folder / f"{name}.raw").write_bytes(expected.tobytes())
        rows.append([f"{name}.npy", array.dtype.name, "x".join(map(str, array.shape)), f"{name}.raw"])

    values = np.random.default_rng(0).integers(0, 100, (3, 4, 5))
    for name in TYPES:
        array = values.astype(name)
        add(f"{name}_c", array)
        add(f"{name}_fortran", np.asfortranarray(array))
        if array.dtype.itemsize > 1:
            add(f"{name}_big", array.astype(array.dtype.newbyteorder(">")))
            add(f"{name}_big_fortran", np.asfortranarray(array.astype(array.dtype.newbyteorder(">"))))
    for version in ((1, 0), (2, 0), (3, 0)):
        add(f"version{version[0]}", values.astype("float32"), version)
    for shape in ((1,), (7,), (0,), (3, 0, 2), (1, 1, 1, 1, 6)):
        add("shape" + "_".join(map(str, shape)), np.arange(np.prod(shape, dtype=int), dtype="int32").reshape(shape))
    add("fortran2d", np.asfortranarray(np.arange(35, dtype="float64").reshape(5, 7)))
    add("scalar", np.array(2.5))
    with open(folder / "cases.csv", "w", newline="") as target:
        csv.writer(target).writerows([["file", "type", "shape", "raw"], *rows])

    np.save(folder / "structured.npy", np.zeros(3, dtype=[("a", "f4"), ("b", "i4")]))
    np.save(folder / "object.npy", np.array([{}, []], dtype=object), allow_pickle=True)
    np.save(folder / "text.npy", np.array(["one", "three"]))
    np.save(folder / "complex.npy", np.zeros(2, dtype="complex64"))
    np.savez(folder / "archive.npz", a=np.zeros(2))


if __name__ == "__main__":
    check_own(pathlib.Path(sys.argv[1]))
    write_cases(pathlib.Path(sys.argv[1]))
