"""Finished audits: what they found, as tables, pictures and reports."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._core import Error
from ._question import count as whole_number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# The names that tell rows apart, in the order of the command line's table.
_NAMES = ("dataset", "model", "explainer", "attack", "metric", "epsilon")


class Run:
    """A finished audit, read from its folder. :func:`audit` and :func:`load_run` give one.

    In a notebook it shows the verdict, the table and the worst samples; in a terminal the table of the command line.
    """

    def __init__(self, folder: str | os.PathLike[str], warnings: Sequence[str] = ()) -> None:
        self.folder = Path(folder)
        _core.check_run(os.fspath(self.folder))
        #: results.json, as docs/run-folder.md describes it.
        self.results: dict[str, Any] = json.loads((self.folder / "results.json").read_text())
        if self.results.get("kind") != "audit":
            raise Error(f"{self.folder} holds a run of kind {self.results.get('kind')!r}, not an audit")
        #: Versions, machine, times and the identity of the run.
        self.manifest: dict[str, Any] = json.loads((self.folder / "manifest.json").read_text())
        #: What must not be read as robustness, and what was warned of while it ran.
        self.warnings = [*warnings, *_core.row_warnings(json.dumps(self.results))]

    @property
    def passed(self) -> bool:
        """Whether all gates were met; a run without gates passes."""
        return all(gate["met"] for gate in self.gates)

    @property
    def gates(self) -> list[dict[str, Any]]:
        """Each gate with its limit, whether it was met, and the value of every row it speaks of."""
        return list(self.results["gates"])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each model, explainer, attack, epsilon and metric."""
        return list(self.results["rows"])

    def to_frame(self) -> pd.DataFrame:
        """A row for each model, explainer, attack, epsilon and metric; what random points found are columns."""
        return _frame([_flat(row) for row in self.rows])

    def samples(self) -> pd.DataFrame:
        """A row for each sample of each row of :meth:`to_frame`."""
        return _pandas().read_csv(self.folder / "samples.csv")

    def measures(self) -> pd.DataFrame:
        """Measures of the models around their samples, one row each."""
        return _frame(self.results["measures"])

    def comparisons(self) -> pd.DataFrame:
        """Every two models on the same samples: the paired difference with its interval and p-values."""
        return _frame([_comparison(one) for one in self.results["comparisons"]])

    def report(self, path: str | os.PathLike[str] | None = None) -> Path:
        """The report as one HTML file; without a path the one that lies in the folder."""
        if path is None:
            return self.folder / "report.html"
        _core.write_report([os.fspath(self.folder)], os.fspath(path))
        return Path(path)

    def worst(self, count: int = 1, row: int | None = None) -> Worst:
        """The samples whose explanation moved most: of one row of :meth:`to_frame`, or of the row with the lowest value."""
        if not self.rows:
            raise Error("worst: the run has no rows")
        if whole_number(count, "count") < 1:
            raise Error(f"count: {count!r} must be at least 1")
        chosen = _lowest(self.rows) if row is None else whole_number(row, "row", limit=len(self.rows))
        return Worst._read(self, chosen, count)

    def plot(self) -> Figure:
        """Value against epsilon for each model, explainer, attack and metric, with the levels it must be read against."""
        figure_of = _figures()
        figure: Figure
        figure, axes = figure_of(figsize=(7, 4), layout="constrained")
        flat = [_flat(row) for row in self.rows]
        told = _telling(flat, _NAMES[:5]) or ["model"]
        lines: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in flat:
            lines.setdefault(tuple(row[name] for name in told), []).append(row)
        for number, (names, rows) in enumerate(lines.items()):
            rows = sorted(rows, key=lambda one: one["epsilon"])
            at = [one["epsilon"] for one in rows]
            colour = f"C{number}"
            mean = _numbers(rows, "mean")
            spread = np.abs(np.stack([_numbers(rows, "low"), _numbers(rows, "high")]) - mean)
            axes.errorbar(at, mean, yerr=spread, color=colour, marker="o", capsize=3, label=", ".join(names))
            axes.plot(at, _numbers(rows, "between"), color=colour, linestyle=":", marker="_", alpha=0.7)
            axes.plot(at, _numbers(rows, "random_mean"), color=colour, linestyle="--", marker="x", alpha=0.4)
        if any(row.get("random_mean") is not None for row in flat):
            axes.plot([], [], color="gray", linestyle="--", marker="x", alpha=0.6, label="found by random points")
        axes.plot([], [], color="gray", linestyle=":", label="between different samples")
        common = [row[name] for row in flat[:1] for name in _NAMES[1:5] if name not in told]
        axes.set_title(", ".join(common + _same(flat, "norm")), fontsize="small")
        axes.set_xlabel("epsilon")
        axes.set_ylabel("value after the attack")
        axes.legend(fontsize="small")
        return figure

    def __str__(self) -> str:
        return _core.results_table(json.dumps(self.results)).rstrip("\n")

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        colour, word = ("#1a7f37", "passed") if self.passed else ("#b42318", "failed")
        missed = [gate["gate"] for gate in self.gates if not gate["met"]]
        verdict = f"{len(self.gates)} gate{'s' * (len(self.gates) > 1)}" if self.passed else "missed: " + ", ".join(missed)
        banner = f"<p><b style='color:{colour}'>{word}</b> {html.escape(verdict)}</p>" if self.gates else ""
        said = "".join(f"<li>{html.escape(text)}</li>" for text in self.warnings)
        where = html.escape(os.fspath(self.folder / "report.html"))
        below = f"<ul>{said}</ul>" if said else ""
        return f"{banner}{self._table_html()}{below}{self._worst_html()}<p>report: <code>{where}</code></p>"

    def _table_html(self) -> str:
        """What all rows have in common stands above the table; rows that miss a gate are marked."""
        rows = [_flat(row) for row in self.rows]
        told = ["model", *_telling(rows, [name for name in _NAMES if name != "model"])]
        common = [str(one[name]) for one in rows[:1] for name in _NAMES[:-1] if name not in told]
        size = f" {rows[0]['epsilon']:g}" if rows and "epsilon" not in told else ""
        common += [norm + size for norm in _same(rows, "norm")]
        for row in rows:
            interval = "" if row["low"] is None else f" [{_short(row['low'])}, {_short(row['high'])}]"
            row["mean [95 %]"] = _short(row["mean"]) + interval
        levels = ("mean [95 %]", "random_mean", "chance", "between", "lift", "effective_sets", "own_advantage")
        found = [name for name in levels if any(row.get(name) is not None for row in rows)]
        columns = [*(name for name in _NAMES if name in told), *found]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
        missed = {one.get("row") for gate in self.gates for one in gate["rows"] if not one["met"]}
        body = ""
        for i, row in enumerate(rows):
            cells = [f"{row[name]:g}" if name == "epsilon" else _short(row.get(name)) for name in columns]
            colour = " style='color:#b42318'" if i in missed else ""
            body += f"<tr{colour}>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>"
        above = html.escape(", ".join(common))
        return f"<p>{above}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _worst_html(self) -> str:
        if not self.rows or not (self.folder / self.rows[_lowest(self.rows)]["arrays"] / "samples.json").exists():
            return ""
        return self.worst(3)._repr_html_()


@dataclass(frozen=True, repr=False)
class Worst:
    """Samples of one row, the one whose explanation moved most first."""

    #: The row of ``Run.rows`` they belong to.
    row: dict[str, Any]
    inputs: np.ndarray[Any, Any]
    perturbed: np.ndarray[Any, Any]
    original_maps: np.ndarray[Any, Any]
    perturbed_maps: np.ndarray[Any, Any]
    #: For each: sample, label, prediction, value, and the features of both top sets.
    samples: list[dict[str, Any]]
    #: The schema's names of the features, or their places.
    names: list[str]

    @classmethod
    def _read(cls, run: Run, row: int, count: int) -> Worst:
        folder = run.folder / run.rows[row]["arrays"]
        arrays = {name: np.load(folder / f"{name}.npy")[:count] for name in _ARRAYS}
        samples = json.loads((folder / "samples.json").read_text())[:count]
        schema = next(one["schema"] for one in run.manifest["datasets"] if one["name"] == run.rows[row]["dataset"])
        native = _core.Schema(json.dumps(schema), "manifest.json")
        places = int(np.prod(arrays["original_maps"].shape[1:])) if len(samples) else 0
        names = native.map_names(places) if schema["layout"]["kind"] == "vector" else []
        return cls(row=run.rows[row], samples=samples, names=names, **arrays)

    def __len__(self) -> int:
        return len(self.samples)

    def __repr__(self) -> str:
        lines = [
            f"sample {one['sample']}: {_short(one['value'])}; "
            f"top before {self._features(one['top_original'])}; after {self._features(one['top_perturbed'])}"
            for one in self.samples
        ]
        return "\n".join([", ".join(str(self.row[name]) for name in _NAMES[1:5]), *lines])

    def plot(self) -> Figure:
        """Images: input, perturbed input and both maps; tables: the most important features before and after."""
        if not self.samples:
            raise Error("worst: the run kept no samples; worst=4 keeps the four worst of each row")
        figure_of = _figures()
        is_image = self.inputs.ndim >= 3
        columns = 4 if is_image else 1
        figure: Figure
        figure, grid = figure_of(
            len(self), columns, figsize=(3 * columns if is_image else 7, 3 * len(self)), squeeze=False, layout="constrained"
        )
        for i, sample in enumerate(self.samples):
            title = f"sample {sample['sample']}, {self.row['metric']} {_short(sample['value'])}"
            (self._plot_images if is_image else self._plot_bars)(grid[i], i, title)
        return figure

    def _plot_images(self, axes: Any, i: int, title: str) -> None:
        maps = [np.abs(_picture(array[i])).sum(-1) for array in (self.original_maps, self.perturbed_maps)]
        top = max(float(one.max()) for one in maps) or 1.0
        shown = [("input", _picture(self.inputs[i])), ("perturbed", _picture(self.perturbed[i]))]
        low = min(float(picture.min()) for _, picture in shown)
        high = max(float(picture.max()) for _, picture in shown)
        for place, (name, picture) in zip(axes[:2], shown, strict=True):
            place.imshow(((picture - low) / (high - low or 1)).squeeze(), cmap="gray", vmin=0, vmax=1)
            place.set_title(f"{title}\n{name}" if name == "input" else name, fontsize="small")
        for place, name, one in zip(axes[2:], ("explanation before", "after"), maps, strict=True):
            place.imshow(one, cmap="magma", vmin=0, vmax=top)
            place.set_title(name, fontsize="small")
        for place in axes:
            place.set_axis_off()

    def _plot_bars(self, axes: Any, i: int, title: str) -> None:
        before, after = (np.abs(array[i]).reshape(-1) for array in (self.original_maps, self.perturbed_maps))
        order = np.argsort(-np.maximum(before / (before.max() or 1), after / (after.max() or 1)), kind="stable")[:12][::-1]
        at = np.arange(len(order))
        names = [self.names[j] if j < len(self.names) else str(j) for j in order]
        axes[0].barh(at + 0.2, before[order], height=0.4, label="before")
        axes[0].barh(at - 0.2, after[order], height=0.4, label="after")
        axes[0].set_yticks(at, names, fontsize="small")
        axes[0].set_title(title, fontsize="small")
        axes[0].legend(fontsize="small")

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{one['sample']}</td><td>{_short(one['value'])}</td>"
            f"<td>{html.escape(self._features(one['top_original']))}</td>"
            f"<td>{html.escape(self._features(one['top_perturbed']))}</td></tr>"
            for one in self.samples
        )
        head = "<tr><th>worst samples</th><th>value</th><th>top before</th><th>top after</th></tr>"
        return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"

    def _features(self, places: list[int]) -> str:
        shown = [self.names[i] if i < len(self.names) else str(i) for i in places[:8]]
        return ", ".join(shown) + (", ..." if len(places) > 8 else "")


_ARRAYS = ("inputs", "perturbed", "original_maps", "perturbed_maps")


def load_run(folder: str | os.PathLike[str]) -> Run:
    """The finished audit that lies in a folder, made here or by ``holdfast audit``.

    Files that were changed since the run ended are refused.
    """
    return Run(folder)


def compare(first: Run | str | os.PathLike[str], second: Run | str | os.PathLike[str], *, seed: int = 0) -> pd.DataFrame:
    """Two runs row by row: the paired difference (first minus second) with its 95 % interval over the samples both have.

    A run may be given by its folder. Rows match when their dataset, model, explainer, attack, metric and epsilon do. If each run
    has one model, or one dataset, it may be called differently. ``p_value`` is of a sign-flip test, ``corrected`` by Holm over
    all rows.
    """
    runs = [run if isinstance(run, Run) else load_run(run) for run in (second, first)]  # what is compared with comes first
    compared = _core.compare_runs([os.fspath(run.folder) for run in runs], whole_number(seed, "seed"))
    found = [row for row in compared["rows"] if "row" in row]
    if not found:
        raise Error("compare: the runs have no row and sample in common: explainer, attack, metric and epsilon must agree")
    means = ({"first": row["second"], "second": row["first"]} for row in found)
    return _frame(
        [{**{name: row[name] for name in _NAMES}, **_comparison(row), **two} for row, two in zip(found, means, strict=True)]
    )


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row of results.json with one value for each key."""
    flat: dict[str, Any] = {name: row[name] for name in _NAMES[:4]}
    flat["metric"], flat["epsilon"], flat["norm"] = row["metric"], row["threat"]["epsilon"], row["threat"]["norm"]
    for key, value in row.items():
        if key == "random":
            flat |= {f"random_{name}": (value or {}).get(name) for name in ("mean", "low", "high", "samples")}
        elif key not in flat and key != "threat" and not isinstance(value, (list, dict)):
            flat[key] = value
    return flat


def _telling(rows: list[dict[str, Any]], names: Sequence[str]) -> list[str]:
    """The names in which the rows differ."""
    return [name for name in names if len({row[name] for row in rows}) > 1]


def _same(rows: list[dict[str, Any]], name: str) -> list[str]:
    return [] if not rows or _telling(rows, [name]) else [str(rows[0][name])]


def _comparison(one: dict[str, Any]) -> dict[str, Any]:
    flat = {key: value for key, value in one.items() if key not in ("models", "difference")}
    if "models" in one:
        flat["model"], flat["against"] = one["models"]
    return flat | {("difference" if key == "mean" else key): value for key, value in one["difference"].items()}


def _lowest(rows: list[dict[str, Any]]) -> int:
    """The row that harms most: by the value where higher is more alike."""

    def harm(i: int) -> float:
        mean = rows[i]["mean"]
        if mean is None:
            return float("inf")
        return float(mean) if rows[i]["direction"] == "higher" else -float(mean)

    if not rows:
        raise Error("worst: the run has no rows")
    return min(range(len(rows)), key=harm)


def _numbers(rows: list[dict[str, Any]], key: str) -> np.ndarray[Any, Any]:
    return np.array([np.nan if one.get(key) is None else one[key] for one in rows], dtype=float)


def _picture(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """[C, H, W] or [H, W] as [H, W, C]."""
    return np.moveaxis(array, 0, -1) if array.ndim == 3 else array[..., np.newaxis]


def _short(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise Error("tables need pandas: pip install pandas") from None
    return pandas


def _frame(rows: list[dict[str, Any]]) -> Any:
    return _pandas().DataFrame(rows)


def _figures() -> Any:
    try:
        from matplotlib.pyplot import subplots
    except ImportError:
        raise Error("pictures need matplotlib: pip install matplotlib") from None
    return subplots
