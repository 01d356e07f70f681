"""Damaged inputs: every kind of file that the program reads, changed at random, and the command that reads it."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import random
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import subjects


@dataclasses.dataclass
class Case:
    kind: str
    file: str
    data: bytes
    command: list[str]
    number: int
    limited: bool = True  # whether the command has --memory
    beside: dict[str, bytes] = dataclasses.field(default_factory=dict)  # other files of the case

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"


def _png() -> bytes:
    rows = b"".join(b"\0" + bytes(range(3 * 8)) for _ in range(8))
    chunk = lambda name, data: struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))  # noqa: E731
    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def _torchscript() -> bytes:
    import torch

    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    file = io.BytesIO()
    torch.jit.save(torch.jit.trace(module, torch.rand(2, 6)), file)
    return file.getvalue()


def _exported() -> bytes:
    import torch

    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).eval()
    file = io.BytesIO()
    program = torch.export.export(module, (torch.rand(2, 6),), dynamic_shapes=({0: torch.export.Dim("batch")},))
    torch.export.save(program, file)
    return file.getvalue()


def _onnx() -> bytes:
    """Two layers, written with the onnx package."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(0)
    sizes = {"w1": (8, 6), "b1": (8,), "w2": (3, 8), "b2": (3,)}
    weights = [numpy_helper.from_array(random.normal(size=size).astype(np.float32), name) for name, size in sizes.items()]
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], transB=1),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "w2", "b2"], ["y"], transB=1),
    ]
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", size])] for name, size in (("x", 6), ("y", 3))]
    graph = helper.make_graph(nodes, "g", *ends, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()


def _without_digest(sealed: bytes) -> bytes:
    """A safetensors file whose metadata has no digest: else every change would be refused for being one."""
    size = 8 + int.from_bytes(sealed[:8], "little")
    header = json.loads(sealed[8:size])
    header["__metadata__"].pop("digest", None)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + sealed[size:]


def _csv() -> bytes:
    rows = ["age,income,label"] + [f"{20 + i},{1000 * i},{'yes' if i % 3 else 'no'}" for i in range(30)]
    return ("\n".join(rows) + "\n").encode()


_SCHEMA = {"layout": {"kind": "vector", "length": 6}, "features": [{"name": f"f{i}"} for i in range(6)]}
_AUDIT = b"""samples = 4
explainers = ["saliency"]
attacks = ["random(samples=2)"]
metrics = ["top_k(k=2)"]
[threat]
norm = "l2"
epsilon = 0.1
[[dataset]]
name = "synthetic(samples=60)"
[[model]]
name = "plain"
architecture = "mlp(hidden=4)"
train = { recipe = "vanilla", epochs = 1 }
"""


def originals(base: Path) -> list[tuple[str, str, bytes, list[str], bool]]:
    """(kind, file, sound bytes, command, whether it takes --memory)"""
    explain = ["explain", *subjects.SUBJECT, "--out", "maps.npy"]
    npy = (base / "inputs.npy").read_bytes()
    csv_audit = _AUDIT.replace(b"synthetic(samples=60)", b"csv(path=table.csv,label=label)")
    image_audit = _AUDIT.replace(b"synthetic(samples=60)", b"image_folder(path=pictures)")
    (base / "csv.toml").write_bytes(csv_audit)
    (base / "image.toml").write_bytes(image_audit)
    (base / "table.csv").write_bytes(_csv())
    for label in ("cat", "dog"):
        (base / "pictures" / label).mkdir(parents=True, exist_ok=True)
        for i in range(12):
            (base / "pictures" / label / f"{i}.png").write_bytes(_png())
    attack = [
        "attack",
        *subjects.SUBJECT,
        "--attack",
        "random(samples=2)",
        "--epsilon",
        "0.1",
        "--metric",
        "top_k(k=2)",
        "--out",
        "out",
    ]
    finished = base / "finished"
    checkpoint = _without_digest((base / "trained" / "checkpoint.safetensors").read_bytes())
    verified = [
        (f"{name} of a run that is verified", f"finished/{path}", (finished / path).read_bytes(), ["verify", "finished"], False)
        for name, path in (
            ("results.json", "results.json"),
            ("samples.csv", "samples.csv"),
            ("samples.json", "arrays/0000/samples.json"),
            ("perturbed inputs", "arrays/0000/perturbed.npy"),
        )
    ]
    return [
        ("array (.npy)", "inputs.npy", npy, explain, True),
        ("weights (.safetensors)", "model.safetensors", (base / "model.safetensors").read_bytes(), explain, True),
        ("TorchScript file", "model.pt", _torchscript(), ["explain", "--model", "model.pt", *explain[3:]], True),
        ("torch.export program (.pt2)", "model.pt2", _exported(), ["explain", "--model", "model.pt2", *explain[3:]], True),
        ("ONNX file", "model.onnx", _onnx(), ["explain", "--model", "model.onnx", *explain[3:]], True),
        ("schema (.json)", "schema.json", json.dumps(_SCHEMA).encode(), [*attack, "--schema", "schema.json"], True),
        ("configuration (.toml)", "audit.toml", _AUDIT, ["audit", "audit.toml", "--out", "out"], True),
        ("table (.csv)", "table.csv", _csv(), ["audit", "csv.toml", "--out", "out"], True),
        ("image (.png)", "pictures/cat/3.png", _png(), ["audit", "image.toml", "--out", "out"], True),
        ("checkpoint of a training", "trained/checkpoint.safetensors", checkpoint, subjects.TRAINED, True),
        ("gate", "text.gate", b"top_k(k=2).low>=0.1", subjects.COMMANDS["audit"], True),
        (
            "results.json of a run",
            "finished/results.json",
            (finished / "results.json").read_bytes(),
            ["report", "finished", "--out", "r.html"],
            False,
        ),
        (
            "manifest.json of a run",
            "finished/manifest.json",
            (finished / "manifest.json").read_bytes(),
            ["report", "finished", "--out", "r.html"],
            False,
        ),
        (
            "samples.csv of a run",
            "finished/samples.csv",
            (finished / "samples.csv").read_bytes(),
            ["report", "finished", "--out", "r.html"],
            False,
        ),
        (
            "samples.json of a run",
            "finished/arrays/0000/samples.json",
            (finished / "arrays" / "0000" / "samples.json").read_bytes(),
            ["report", "finished", "--out", "r.html"],
            False,
        ),
        *verified,
    ]


_NUMBERS = [b"-1", b"0", b"1e999", b"nan", b"99999999999999999999", b"2147483648", b"0.5", b'""', b"null", b"[]", b"{}", b"true"]


def damaged(data: bytes, rng: random.Random, text: bool) -> bytes:
    """The bytes with one to three changes."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        size = len(changed)
        at = rng.randrange(size) if size else 0
        kind = rng.randrange(8 if text else 6)
        if kind == 0 and size:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and size:
            changed[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        elif kind == 2:
            del changed[at:]
        elif kind == 3:
            del changed[at : at + rng.randrange(1, 40)]
        elif kind == 4:
            changed[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 20)))
        elif kind == 5 and size:
            other = rng.randrange(size)
            changed[at:at] = changed[other : other + rng.randrange(1, 60)]
        elif kind == 6:
            end = at + 1
            while end < len(changed) and chr(changed[end]).isalnum():
                end += 1
            changed[at:end] = rng.choice(_NUMBERS)
        else:
            changed[at:at] = rng.choice([b"\xe2\x80\xa8", b"\x1b[31m", b"\xff\xfe", b"\n", b'"', b"[" * 300, b"a." * 300, b"\0"])
    return bytes(changed)


def cases(base: Path, count: int, rng: random.Random) -> Iterator[Case]:
    sound = originals(base)
    manifest = json.loads((base / "finished" / "manifest.json").read_text())
    manifest["digests"] = {}  # else every change would be refused for being one, and no reader would see it
    manifest.pop("gates_digest", None)
    undigested = {"finished/manifest.json": json.dumps(manifest).encode()}
    for number in range(count):
        kind, file, data, command, limited = sound[number % len(sound)]
        text = Path(file).suffix in {".json", ".toml", ".csv", ".gate"}
        changed = damaged(data, rng, text)
        if file.endswith(".gate"):  # given as a word of the command line, which holds no zeros
            command = [*command, "--gate", os.fsdecode(changed.replace(b"\0", b"0") or b" ")]
        beside = undigested if file.startswith("finished/") and file not in undigested else {}
        yield Case(kind, file, changed, command, number, limited, beside)
