"""The extension module; see python/bindings/module.cpp."""

from collections.abc import Callable
from typing import Any

import torch

version: str

class Error(ValueError): ...

class Model:
    @property
    def name(self) -> str: ...
    @property
    def device(self) -> torch.device: ...
    @property
    def dtype(self) -> torch.dtype: ...
    @property
    def layers(self) -> bool: ...
    @property
    def output_kind(self) -> str: ...
    @property
    def known_apart(self) -> bool: ...
    def describe(self) -> str: ...
    def look_at(self, inputs: torch.Tensor) -> None: ...
    def rename(self, name: str) -> None: ...
    def parameters(self) -> list[tuple[str, torch.Tensor, bool]]: ...
    def logits(self, inputs: torch.Tensor) -> torch.Tensor: ...

class PackedFile:
    model: Model
    schema: str
    names: list[str]
    def pack(self, values: list[torch.Tensor]) -> torch.Tensor: ...

def chosen_output(result: Any, name: str) -> torch.Tensor: ...
def load_model(text: str, device: torch.device, output_kind: str = "auto", output_name: str = "") -> Model: ...
def load_packed_model(
    text: str,
    device: torch.device,
    output_kind: str,
    output_name: str,
    embedding: str,
    inputs: list[tuple[str, torch.dtype, list[int], bool]],
    schema: str,
    special_tokens: list[int],
) -> PackedFile | None: ...
def known_apart(model: Model) -> Model: ...
def python_model(
    function: Callable[[torch.Tensor], torch.Tensor],
    device: torch.device,
    dtype: torch.dtype,
    name: str,
    known_apart: bool = False,
    recurrent: bool = False,
    output_kind: str = "auto",
    output_name: str = "",
) -> Model: ...

class Schema:
    def __init__(self, text: str, where: str) -> None: ...
    @property
    def layout(self) -> str: ...
    def feature_name(self, feature: int) -> str: ...
    def map_names(self, length: int) -> list[str]: ...
    def to_dict(self) -> dict[str, Any]: ...

class Samples:
    inputs: torch.Tensor
    targets: torch.Tensor
    baseline: torch.Tensor
    background: torch.Tensor
    schema: Schema

class TileOptions:
    size: int
    threads: int

class Question:
    model: Model
    samples: Samples
    seed: int
    tiles: TileOptions

class ExplainedBatch:
    maps: torch.Tensor
    log_scale: torch.Tensor
    logits: torch.Tensor
    targets: torch.Tensor
    delta: torch.Tensor | None
    gauge_share: torch.Tensor | None

def explain(question: Question, explainer: str) -> ExplainedBatch: ...

class Threat:
    norm: str
    epsilon: list[float]
    box: tuple[float, float] | None
    valid: bool
    sides: str
    negative_weights: bool
    tolerance: float | None
    switches: int | None

class Trial:
    explainers: list[str]
    attacks: list[str]
    metrics: list[str]
    measures: list[str]
    threat: Threat
    select: str
    precision: str

class Attacked:
    perturbed: torch.Tensor
    original_maps: torch.Tensor
    perturbed_maps: torch.Tensor
    logits: torch.Tensor
    perturbed_logits: torch.Tensor
    columns: dict[str, torch.Tensor]
    component: list[str]
    components: list[dict[str, Any]]
    trace: list[list[float]]
    metric: str
    attack: str
    explainer: str
    select: str
    summary: dict[str, Any]
    random: dict[str, Any] | None

def attack(question: Question, trial: Trial, trace: bool, random_points: bool) -> Attacked: ...
def certify(question: Question, trial: Trial) -> dict[str, Any]: ...

class Compared:
    summary: dict[str, Any]
    values: torch.Tensor

def measure(
    original: torch.Tensor,
    perturbed: torch.Tensor,
    metrics: list[str],
    schema: Schema | None,
    labels: torch.Tensor | None,
    seed: int,
    levels: bool,
) -> list[Compared]: ...

class MeasureChoice:
    measures: list[str]
    explainer: str
    epsilon: float
    endpoints: torch.Tensor | None

class Measured:
    summary: dict[str, Any]
    values: torch.Tensor
    parts: list[tuple[str, torch.Tensor]]

def measure_model(question: Question, choice: MeasureChoice) -> list[Measured]: ...

class AuditChoice:
    trial: Trial
    title: str
    dataset: str
    out: str
    gates: list[str]
    labels: torch.Tensor
    worst: int
    restart: bool
    call: str
    methods: str

class NamedModel:
    def __init__(self, name: str, model: Model, content: str) -> None: ...

def audit(question: Question, models: list[NamedModel], choice: AuditChoice) -> None: ...
def audit_config(path: str, choice: AuditChoice, overrides: list[str], tile: int, threads: int, device: torch.device) -> None: ...
def choose_threat(
    question: Question, explainer: str, norm: str | None, noise: float | None, tolerance: float | None
) -> dict[str, Any]: ...
def check_run(folder: str) -> None: ...
def write_report(runs: list[str], path: str) -> None: ...
def results_table(results: str) -> str: ...
def row_warnings(results: str) -> list[str]: ...
def compare_runs(folders: list[str], seed: int) -> dict[str, Any]: ...
def take_warnings() -> list[str]: ...
def show_progress_with(show: Callable[[str, int, int, float | None, str, bool], None] | None) -> None: ...
def catalogue() -> dict[str, list[dict[str, Any]]]: ...
def extend(kind: str, info: str, function: Callable[..., object], facts: str) -> None: ...
def forget(kind: str, name: str) -> None: ...
def canonical(kind: str, call: str) -> str: ...
def needs_layers(objective: str) -> bool: ...

class TrainStep:
    def __init__(self, inputs: torch.Tensor, labels: torch.Tensor, schema: Schema | None, seed: int, progress: float) -> None: ...

def module_loss(
    objective: str,
    training: Callable[[torch.Tensor], torch.Tensor],
    evaluating: Callable[[torch.Tensor], torch.Tensor],
    modes_differ: bool,
    step: TrainStep,
) -> tuple[torch.Tensor, list[tuple[str, torch.Tensor]]]: ...
def network_loss(objective: str, model: Model, step: TrainStep) -> tuple[torch.Tensor, list[tuple[str, torch.Tensor]]]: ...
def train(
    settings: str,
    name: str,
    inputs: torch.Tensor,
    labels: torch.Tensor,
    schema: Schema | None,
    validation: float,
    test: float,
    start: Model | None,
    device: torch.device,
    threads: int,
    out: str,
    restart: bool,
) -> tuple[Model, dict[str, Any], list[dict[str, Any]]]: ...
