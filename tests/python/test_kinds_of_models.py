"""Kinds of models, each explained, attacked and audited, from the command line and from Python: the table in docs/models.md.

A kind is one function with a line in KINDS. Every cell is run; where one cannot be, the kind says what to do instead, and the
test makes sure that it is really refused. The table in the page must be the one that is found here:

    HOLDFAST_WRITE_DOCS=1 pytest tests/python/test_kinds_of_models.py     writes it
"""

import json
import os
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import holdfast
import numpy as np
import pytest
import some_models
import test_inputs
import test_tokens
import torch
from conftest import BINARY, ROOT, make_network
from safetensors.torch import save_file

pytest.importorskip("sklearn")
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

PAGE = ROOT / "docs" / "models.md"
BEGIN, END = "<!-- kinds of models: made by tests/python/test_kinds_of_models.py -->", "<!-- end of kinds -->"
WORKS = ("explain", "attack", "audit")
ATTACK = "er(steps=2)"


@dataclass
class Kind:
    """One kind of model, ready to be used."""

    file: Path | str | None = None  # what --model takes
    flags: list[str] = field(default_factory=list)  # of every command, --inputs among them
    model: Any = None  # what Python takes
    inputs: Any = None
    options: dict[str, Any] = field(default_factory=dict)  # of every call from Python
    explainer: str = "saliency"
    attack: str = ATTACK
    tolerance: float | None = None  # of a value
    instead: dict[str, str] = field(default_factory=dict)  # "command line" or "Python": what to do where it is refused


def file_kind(name: str, end: str) -> Callable[[Path], Kind]:
    """A model of `some_models` in a file."""

    def make(folder: Path) -> Kind:
        module, inputs = some_models.make(name)
        path = some_models.save(module, inputs, folder / f"model{end}")
        np.save(folder / "x.npy", inputs.numpy())
        return Kind(path, ["--inputs", str(folder / "x.npy")], holdfast.load_model(path), inputs)

    return make


def architecture(folder: Path) -> Kind:
    names = ["hidden1.weight", "hidden1.bias", "output.weight", "output.bias"]
    save_file(
        {name: weight.detach() for name, weight in zip(names, make_network().parameters(), strict=True)}, folder / "w.safetensors"
    )
    inputs = torch.rand(5, 6, generator=torch.Generator().manual_seed(1))
    np.save(folder / "x.npy", inputs.numpy())
    file = f"mlp(inputs=6,hidden=8,classes=3):{folder / 'w.safetensors'}"
    return Kind(file, ["--inputs", str(folder / "x.npy")], holdfast.load_model(file), inputs)


def module_kind(name: str) -> Callable[[Path], Kind]:
    """A module of torch itself; the command line takes its files."""

    def make(folder: Path) -> Kind:
        module, inputs = some_models.make(name)
        return Kind(model=module, inputs=inputs, instead={"command line": "save it as a `.pt2` file"})

    return make


def function(folder: Path) -> Kind:
    module, inputs = some_models.make("mlp")
    instead = {"command line": "save a module that does the same as a `.pt2` file"}
    return Kind(model=lambda x: module(x) * 2, inputs=inputs, instead=instead)


def tokens(module: type[torch.nn.Module], end: str) -> Callable[[Path], Kind]:
    """Token ids in a file."""

    def make(folder: Path) -> Kind:
        ids = torch.randint(1, 40, (5, test_tokens.LENGTH), generator=torch.Generator().manual_seed(1))
        path = some_models.save(some_models.settled(module(40)), {"ids": ids}, folder / f"model{end}")
        np.save(folder / "ids.npy", ids.numpy())
        return Kind(path, ["--inputs", str(folder / "ids.npy")], holdfast.load_model(path), ids)

    return make


def several(folder: Path) -> Kind:
    """One input is explained, the other is fixed."""
    generator = torch.Generator().manual_seed(1)
    values = {"x": torch.rand(5, 4, generator=generator), "scale": torch.rand(5, 3, generator=generator) + 1}
    path = some_models.save(test_inputs.Two().eval(), values, folder / "model.pt2")
    schema = {"fixed": ["scale"]}
    (folder / "schema.json").write_text(json.dumps(schema))
    flags = ["--schema", str(folder / "schema.json")]
    for name, value in values.items():
        np.save(folder / f"{name}.npy", value.numpy())
        flags += ["--inputs", f"{name}={folder / name}.npy"]
    return Kind(path, flags, holdfast.load_model(path), values, {"schema": schema})


def regression(folder: Path) -> Kind:
    inputs = torch.rand(5, 6, generator=torch.Generator().manual_seed(1))
    path = some_models.save(make_network(classes=1).eval(), inputs, folder / "model.pt2")
    np.save(folder / "x.npy", inputs.numpy())
    flags = ["--inputs", str(folder / "x.npy"), "--output-kind", "value"]
    return Kind(path, flags, holdfast.load_model(path, output_kind="value"), inputs, tolerance=0.5)


def estimator(make_estimator: Callable[[], Any]) -> Callable[[Path], Kind]:
    def make(folder: Path) -> Kind:
        rows = np.random.default_rng(0).normal(size=(60, 5))
        model = make_estimator().fit(rows, (rows[:, 0] + rows[:, 1] * rows[:, 2] > 0).astype(int))
        instead = {"command line": "call Holdfast from Python"}
        return Kind(model=model, inputs=rows[:5], explainer="occlusion", attack="random(samples=5)", instead=instead)

    return make


def exported_program(folder: Path) -> Kind:
    module, inputs = some_models.make("transformer")
    program = torch.export.export(module, (inputs,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    return Kind(model=program, inputs=inputs, instead={"command line": "write it to a file with `torch.export.save`"})


def function_of_arrays(folder: Path) -> Kind:
    kind = estimator(lambda: RandomForestClassifier(5, max_depth=3, random_state=0))(folder)
    return replace(kind, model=kind.model.predict_proba)


KINDS: dict[str, Callable[[Path], Kind]] = {
    "weights of an architecture (`.safetensors`)": architecture,
    "MLP, `torch.export` (`.pt2`)": file_kind("mlp", ".pt2"),
    "CNN, `torch.export`": file_kind("cnn", ".pt2"),
    "`nn.TransformerEncoder`, `torch.export`": file_kind("transformer", ".pt2"),
    "ViT, `torch.export`": file_kind("vit", ".pt2"),
    "LSTM, `torch.export`": file_kind("lstm", ".pt2"),
    "MLP, TorchScript (`.pt`)": file_kind("mlp", ".pt"),
    "ViT, TorchScript": file_kind("vit", ".pt"),
    "GRU, TorchScript": file_kind("gru", ".pt"),
    "MLP, ONNX (`.onnx`)": file_kind("mlp", ".onnx"),
    "CNN, ONNX": file_kind("cnn", ".onnx"),
    "`nn.TransformerEncoder`, ONNX": file_kind("transformer", ".onnx"),
    "token ids, transformer, `torch.export`": tokens(test_tokens.Transformer, ".pt2"),
    "token ids, LSTM, TorchScript": tokens(test_tokens.Recurrent, ".pt"),
    "several inputs, one of them fixed, `torch.export`": several,
    "regression (output kind `value`), `torch.export`": regression,
    "program of `torch.export.export`": exported_program,
    "`nn.Module`": module_kind("cnn"),
    "`nn.Module` with attention": module_kind("vit"),
    "function from inputs to logits": function,
    "scikit-learn forest": estimator(lambda: RandomForestClassifier(5, max_depth=3, random_state=0)),
    "scikit-learn pipeline, gradient boosting": estimator(
        lambda: make_pipeline(StandardScaler(), GradientBoostingClassifier(n_estimators=5, random_state=0))
    ),
    "function of arrays, such as `forest.predict_proba`": function_of_arrays,
}


def run_command(work: str, kind: Kind, folder: Path) -> tuple[int, str]:
    arguments = [BINARY, work, "--model", str(kind.file), *kind.flags, "--explainer", kind.explainer, "--threads", "1"]
    if work == "explain":
        arguments += ["--out", str(folder / "maps.npy")]
    else:
        arguments += ["--attack", kind.attack, "--metric", "top_k(k=2)", "--norm", "l2", "--epsilon", "0.1"]
        arguments += ["--out", str(folder / work)]
        arguments += [] if kind.tolerance is None else ["--tolerance", str(kind.tolerance)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr.strip()


def run_python(work: str, kind: Kind, folder: Path) -> None:
    common = {"explainer": kind.explainer, "threads": 1, **kind.options}
    if work == "explain":
        holdfast.explain(kind.model, kind.inputs, **common)
        return
    common |= {"metric": "top_k(k=2)", "threat": holdfast.Threat("l2", 0.1, tolerance=kind.tolerance)}
    if work == "attack":
        holdfast.attack(kind.model, kind.inputs, kind.attack, **common)
    else:
        holdfast.audit({"model": kind.model}, kind.inputs, attack=kind.attack, out=folder / "python", **common)


def cell(name: str, surface: str, work: str, kind: Kind, folder: Path) -> str:
    instead = kind.instead.get(f"{surface} {work}", kind.instead.get(surface))
    if surface == "command line":
        code, said = (2, "") if kind.file is None else run_command(work, kind, folder)
        assert (code == 0) == (instead is None), f"{name}, {surface}, {work}: exit code {code}: {said}"
        assert code in (0, 2), said
    else:
        try:
            if kind.model is None:
                raise holdfast.Error("there is no such model in Python")
            run_python(work, kind, folder)
        except holdfast.Error as error:
            assert instead is not None, f"{name}, {surface}, {work}: {error}"
        else:
            assert instead is None, f"{name}, {surface}, {work} works, though the table says no"
    return "yes" if instead is None else f"no: {instead}"


def row(name: str, folder: Path) -> str:
    folder.mkdir()
    kind = KINDS[name](folder)
    with ThreadPoolExecutor(2) as pool:
        commands = [pool.submit(cell, name, "command line", work, kind, folder) for work in WORKS]
        python = [cell(name, "Python", work, kind, folder) for work in WORKS]
        return f"| {name} | {joined([command.result() for command in commands])} | {joined(python)} |"


def joined(cells: list[str]) -> str:
    """One answer where all are the same."""
    if len(set(cells)) == 1:
        return cells[0]
    return "; ".join(f"{work}: {said}" for work, said in zip(WORKS, cells, strict=True))


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds")
    return {name: row(name, folder / str(number)) for number, name in enumerate(KINDS)}


def test_the_table_of_the_page_is_what_is_found(rows):
    head = ["| model | command line: explain, attack, audit | Python: explain, attack, audit |", "|---|---|---|"]
    table = "\n".join([BEGIN, *head, *rows.values(), END])
    page = PAGE.read_text()
    begin, end = page.index(BEGIN), page.index(END) + len(END)
    if os.environ.get("HOLDFAST_WRITE_DOCS"):
        PAGE.write_text(page[:begin] + table + page[end:])
    else:
        assert page[begin:end] == table
