"""How far attacks and certificates are from the exact minimum, on table networks: the tables of docs/certificates.md.

usage: exact_tables.py --out FOLDER [--datasets NAME ...] [--samples N] [--seeds N] [--holdfast PROGRAM] [--threads N]

Trains n-32-2 networks, attacks them with `exact`, `gauntlet` and the papers' attack at four radii, and prints a table in
Markdown: mean P@8 and the share of samples whose minimum is proven. Trainings and audits go on where
they stopped. Needs HOLDFAST_DATA.
"""

import argparse
import csv
import json
import subprocess
from collections import defaultdict
from pathlib import Path

RADII = [0.03, 0.1, 0.3, 1.0]
ATTACKS = ["er(preset=tabular)", "random(samples=1000)", "gauntlet(effort=light)", "gauntlet", "exact"]
MODELS = {
    "vanilla": ("vanilla", True),
    "r2et": ("r2et(gap=0.1,curvature=0.001)", True),
    "pair_hinge": ("pair_hinge(gate=0.1,hinge=1,between=0.1)", False),
}


def config(dataset, samples, radius, attack):
    """The dataset of an audit with one attack."""
    return (
        f'[[dataset]]\nname = "{dataset}"\nsamples = {samples}\nexplainers = ["saliency"]\nmetrics = ["top_k(k=8)"]\n'
        f'attacks = ["{attack}"]\n[dataset.threat]\nnorm = "l2"\nepsilon = {radius}\n'
    )


class Bench:
    def __init__(self, arguments):
        self.folder = Path(arguments.out)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.arguments = arguments

    def run(self, *command):
        flags = ["--threads", str(self.arguments.threads), "--quiet"]
        subprocess.run([self.arguments.holdfast, *map(str, command), *flags], check=True, stdout=subprocess.DEVNULL)

    def train(self, dataset, name, seed):
        recipe, best = MODELS[name]
        path, out = self.folder / f"{dataset}-{name}-{seed}.toml", self.folder / "models" / f"{dataset}-{name}-{seed}"
        path.write_text(
            f'[dataset]\nname = "{dataset}"\n[model]\narchitecture = "mlp(hidden=32)"\n[train]\nrecipe = "{recipe}"\n'
            "epochs = 60\nbatch_size = 64\nlearning_rate = 0.001\n" + ("" if best else "[early_stopping]\nrestore_best = false\n")
        )
        self.run("train", path, "--seed", seed, "--out", out)
        return (out / "model.safetensors").resolve()

    def audit(self, dataset, name, weights, radius, attack, seed):
        """Mean value, share of samples whose minimum is proven, and mean certified value of one attack on one network."""
        key = f"{dataset}-{name}-{seed}-{radius}-{attack.replace('(', '_').replace(')', '').replace('=', '')}"
        path, out = self.folder / f"{key}.toml", self.folder / "runs" / key
        text = config(dataset, self.arguments.samples, radius, attack)
        path.write_text(text + f'[[model]]\nname = "{name}"\nfile = "mlp:{weights}"\n')
        self.run("audit", path, "--seed", seed, "--out", out)
        with open(out / "samples.csv", newline="") as lines:
            rows = list(csv.DictReader(lines))
        closed = [row["proven"] != "" and float(row["proven"]) == float(row["value"]) for row in rows]
        found = json.loads((out / "results.json").read_text())["rows"][0]
        return found["mean"], sum(closed) / len(closed), found["certified"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--datasets", nargs="*", default=["compas", "adult", "bank"])
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--holdfast", default="build/holdfast")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    bench = Bench(arguments)
    print("| data, network | radius | certified_overlap | exact | proven | " + " | ".join(ATTACKS[:-1]) + " |")
    print("|---|---|---|---|---|" + "---|" * (len(ATTACKS) - 1))
    for dataset in arguments.datasets:
        for name in MODELS:
            for radius in RADII:
                means, share, certified = defaultdict(list), [], []
                for seed in range(arguments.seeds):
                    weights = bench.train(dataset, name, seed)
                    for attack in ATTACKS:
                        mean, closed, bound = bench.audit(dataset, name, weights, radius, attack, seed)
                        means[attack].append(mean)
                        if attack == "exact":
                            share.append(closed)
                        if attack == ATTACKS[0]:
                            certified.append(bound)
                value = {attack: sum(of) / len(of) for attack, of in means.items()}
                cells = [f"{value[attack]:.3f}" for attack in ATTACKS[:-1]]
                print(
                    f"| {dataset}, {name} | {radius:g} | {sum(certified) / len(certified):.3f} | {value['exact']:.3f} | "
                    f"{100 * sum(share) / len(share):.0f} % | " + " | ".join(cells) + " |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
