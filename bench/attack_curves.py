"""Metric against gradient evaluations for er, top_t, random and gauntlet on three models: docs/attack-curves.svg.

usage: attack_curves.py [--out FOLDER] [--figure FILE.svg] [--holdfast PROGRAM] [--device cpu|cuda] [--threads N]

Trains the three models, attacks them with --trace and draws, for each attack, the mean over samples of the worst value found with
so many evaluations (an explanation costs one, a pullback of a cotangent two). Prints the numbers as a table. Needs HOLDFAST_DATA.
"""

import argparse
import bisect
import json
import math
import subprocess
from pathlib import Path

import numpy as np

# Each with about the evaluations that gauntlet takes.
MODELS = [
    {
        "name": "Adult, MLP n-32-2",
        "config": ("adult", "mlp(hidden=32)", ["train.epochs=60", "train.learning_rate=1e-2", "train.batch_size=256"]),
        "samples": 100,
        "threat": ["--norm", "l2", "--epsilon", "1"],
        "explainer": "saliency(project=none)",
        "metric": "top_k(k=8)",
        "attacks": ["er(steps=10000,step_size=0.001)", "top_t(steps=8000,step_size=0.001)", "random(samples=30000)", "gauntlet"],
    },
    {
        "name": "Bank, MLP n-64-64-64-2",
        "config": ("bank", "mlp(hidden=64x64x64)", ["train.epochs=20", "train.learning_rate=1e-2", "train.batch_size=256"]),
        "samples": 100,
        "threat": ["--norm", "l2", "--epsilon", "1"],
        "explainer": "saliency(project=none)",
        "metric": "top_k(k=8)",
        "attacks": ["er(steps=10000,step_size=0.001)", "top_t(steps=8000,step_size=0.001)", "random(samples=30000)", "gauntlet"],
    },
    {
        "name": "MNIST, cnn_chen",
        "config": ("mnist", "cnn_chen", ["train.epochs=2", "train.learning_rate=5e-4", "train.batch_size=128"]),
        "samples": 10,
        "threat": ["--norm", "linf", "--epsilon", "0.3", "--box", "0,1"],
        "explainer": "saliency(target=logit)",
        "metric": "lens_precision(k=100,w=1)",
        "attacks": ["er(steps=800,step_size=0.01)", "top_t(steps=600,step_size=0.01)", "random(samples=2400)", "gauntlet"],
    },
]
COLORS = {"er": "#0072b2", "top_t": "#d55e00", "random": "#777777", "gauntlet": "#009e73"}  # told apart by all eyes
WIDTH, HEIGHT, LEFT, TOP, GAP = 300, 200, 44, 30, 52


def run(arguments, *command):
    flags = ["--device", arguments.device, "--threads", str(arguments.threads), "--quiet"]
    subprocess.run([arguments.holdfast, *map(str, command), *flags], check=True, stdout=subprocess.DEVNULL)


def train(arguments, index, dataset, architecture, keys):
    folder = Path(arguments.out) / f"model-{index}"
    config = Path(arguments.out) / f"model-{index}.toml"
    config.write_text(f'[dataset]\nname = "{dataset}"\n[model]\narchitecture = "{architecture}"\n')
    sets = [part for key in keys for part in ("--set", key)]
    run(arguments, "train", config, *sets, "--out", folder)
    return folder


def curve(samples, places):
    """The mean over samples of the best value after so many evaluations; 1 before anything was tried."""
    columns = []
    for sample in samples:
        spent, values = sample["trace_evaluations"], sample["trace"]
        found = [bisect.bisect_right(spent, place) for place in places]
        columns.append([values[count - 1] if count else 1.0 for count in found])
    return np.mean(columns, axis=0)


def measure(arguments):
    """Of each model: {attack: (places, values)}."""
    results = []
    for index, model in enumerate(MODELS):
        folder = train(arguments, index, *model["config"])
        inputs = Path(arguments.out) / f"inputs-{index}.npy"
        np.save(inputs, np.load(folder / "test" / "inputs.npy")[: model["samples"]])
        architecture = model["config"][1].split("(")[0]
        curves = {}
        for attack in model["attacks"]:
            out = Path(arguments.out) / f"attack-{index}-{attack.split('(')[0]}"
            subject = ["--model", f"{architecture}:{folder / 'model.safetensors'}", "--inputs", inputs]
            what = ["--explainer", model["explainer"], "--attack", attack, "--metric", model["metric"], *model["threat"]]
            run(arguments, "attack", *subject, *what, "--trace", "--no-random", "--out", out)
            samples = json.loads((out / "result.json").read_text())["samples"]
            most = max(sample["trace_evaluations"][-1] for sample in samples)
            places = sorted({round(10 ** (math.log10(most) * step / 60)) for step in range(61)})
            curves[attack.split("(")[0]] = (places, curve(samples, places))
        results.append(curves)
    return results


def polyline(places, values, color, most):
    points = " ".join(
        f"{WIDTH * math.log10(place) / math.log10(most):.1f},{HEIGHT * (1 - value):.1f}"
        for place, value in zip(places, values, strict=True)
    )
    return f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>'


def panel(index, model, curves):
    most = max(places[-1] for places, _ in curves.values())
    parts = [f'<g transform="translate({LEFT + index * (WIDTH + GAP)},{TOP})">']
    parts.append(f'<text x="0" y="-12" font-weight="bold">{model["name"]}</text>')
    for tick in (0, 0.25, 0.5, 0.75, 1):
        y = HEIGHT * (1 - tick)
        parts.append(f'<line x1="0" y1="{y}" x2="{WIDTH}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="-6" y="{y + 4}" text-anchor="end">{tick:g}</text>')
    for power in range(math.floor(math.log10(most)) + 1):
        x = WIDTH * power / math.log10(most)
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT + 16}" text-anchor="middle">{10**power}</text>')
    for name, (places, values) in curves.items():
        parts.append(polyline(places, values, COLORS[name], most))
    parts.append(
        f'<text x="{WIDTH / 2}" y="{HEIGHT + 34}" text-anchor="middle">evaluations a sample; {model["metric"]}</text></g>'
    )
    return "\n".join(parts)


def draw(path, results):
    width, height = LEFT + len(MODELS) * (WIDTH + GAP), TOP + HEIGHT + 66
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    parts += [panel(index, model, curves) for index, (model, curves) in enumerate(zip(MODELS, results, strict=True))]
    for index, (name, color) in enumerate(COLORS.items()):
        x, y = LEFT + 110 * index, height - 12
        parts.append(f'<line x1="{x}" y1="{y - 4}" x2="{x + 22}" y2="{y - 4}" stroke="{color}" stroke-width="3"/>')
        parts.append(f'<text x="{x + 28}" y="{y}">{name}</text>')
    Path(path).write_text("\n".join([*parts, "</svg>"]) + "\n")


def print_table(results):
    places = [10, 100, 1000, 10000, 30000]
    print("| model | attack | " + " | ".join(f"{place}" for place in places) + " | all |")
    print("|---|---|" + "---|" * (len(places) + 1))
    for model, curves in zip(MODELS, results, strict=True):
        for name, (spent, values) in curves.items():
            cells = [f"{values[bisect.bisect_right(spent, p) - 1]:.3f}" if p <= spent[-1] else "" for p in places]
            print(f"| {model['name']} | `{name}` | {' | '.join(cells)} | {values[-1]:.3f} ({spent[-1]}) |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="runs/attack_curves")
    parser.add_argument("--figure", default="docs/attack-curves.svg")
    parser.add_argument("--holdfast", default="build/holdfast")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    arguments = parser.parse_args()
    Path(arguments.out).mkdir(parents=True, exist_ok=True)
    results = measure(arguments)
    draw(arguments.figure, results)
    print_table(results)


if __name__ == "__main__":
    main()
