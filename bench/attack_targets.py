"""How low gauntlet brings explanations, beside the papers' attacks and random points: the tables of docs/attack-strength.md.

usage: attack_targets.py --out FOLDER [--only NAME ...] [--samples N] [--seeds N] [--holdfast PROGRAM]
                         [--device cpu|cuda] [--threads N]

Trains what it needs, audits it and prints the table; both go on where they stopped when called again. Every attack keeps the
worst iterate that preserves the class. Needs HOLDFAST_DATA. `tables` takes half an hour on two cores, and so do `mnist` and
`mnist_pgd_narrow`; `tables_exact` takes minutes; `mnist_ig`, `mnist_pgd` and `squeezenet` are for a GPU, or a night.
"""

import argparse
import csv
import json
import math
import statistics
import subprocess
from collections import defaultdict
from pathlib import Path

TABLES = {"adult": 0.46, "bank": 0.35, "compas": 0.43}
TABLE_ATTACKS = ["er(preset=tabular)", "random(samples=1000)", "gauntlet"]
PAPERS = ["random_sign(preset={0})", "top_t(preset={0})", "mass_center(preset={0})", "lens(preset={0})"]
PRECISION, TOP = "lens_precision(k=100,w=1)", "top_k(k=100)"
SMALL_STEPS = ["er(steps=50)", "top_t(steps=50)", "random_sign(steps=50)", "gauntlet"]
EFFORTS = ["gauntlet(effort=light)", "gauntlet", "gauntlet(effort=heavy)"]


def quoted(items):
    return "[" + ", ".join(f'"{item}"' for item in items) + "]"


def training(recipe, epochs, batch, rate, last=False):
    """The epoch with the best validation loss is kept, or the last one."""
    stop = "[{0}early_stopping]\nrestore_best = false\n" if last else ""
    return f'[{{0}}train]\nrecipe = "{recipe}"\nepochs = {epochs}\nbatch_size = {batch}\nlearning_rate = {rate}\n{stop}'


class Bench:
    def __init__(self, arguments):
        self.folder = Path(arguments.out)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.arguments = arguments
        self.flags = ["--device", arguments.device, "--threads", str(arguments.threads), "--quiet"]

    def run(self, *command):
        subprocess.run([self.arguments.holdfast, *map(str, command), *self.flags], check=True, stdout=subprocess.DEVNULL)

    def train(self, name, dataset, architecture, keys):
        """The weights of a model of its own, trained once."""
        folder = self.folder / "models" / name
        config = self.folder / f"{name}.toml"
        config.write_text(f'[dataset]\nname = "{dataset}"\n[model]\narchitecture = "{architecture}"\n' + keys.format(""))
        self.run("train", config, "--out", folder)
        return f"{architecture}:{(folder / 'model.safetensors').resolve()}"

    def audit(self, name, config, seed=0):
        """Values of every sample: {(dataset, model, metric): {attack: [value, ...]}}; what `exact` proves is "proven"."""
        path, out = self.folder / f"{name}.toml", self.folder / name
        path.write_text(config)
        self.run("audit", path, "--seed", seed, "--out", out)
        values = defaultdict(lambda: defaultdict(list))
        with open(out / "samples.csv", newline="") as rows:
            for row in csv.DictReader(rows):
                case = values[row["dataset"], row["model"], row["metric"]]
                case[row["attack"]].append(float(row["value"]))
                if row["attack"] == "exact":
                    case["proven"].append(float(row["proven"]))
        return values


def dataset_part(name, samples, norm, epsilon, explainer, metrics, attacks, box=True):
    return (
        f'[[dataset]]\nname = "{name}"\nsamples = {samples}\nexplainers = {quoted([explainer])}\nmetrics = {quoted(metrics)}\n'
        f'attacks = {quoted(attacks)}\n[dataset.threat]\nnorm = "{norm}"\nepsilon = {epsilon!r}\n'
        + ("box = [0, 1]\n" if box else "")
    )


def model_part(name, dataset, body):
    return f'[[model]]\nname = "{name}"\ndataset = "{dataset}"\n{body}'


def interval(numbers):
    """Mean with a 95 % interval: of Student's t over few seeds, of the normal over samples."""
    mean = statistics.fmean(numbers)
    if len(numbers) < 2:
        return f"{mean:.3f}"
    factor = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78}.get(len(numbers), 1.96)
    half = factor * statistics.stdev(numbers) / math.sqrt(len(numbers))
    return f"{mean:.3f} ± {half:.3f}"


def is_random(attack):
    return attack.startswith("random(")


def compare(values):
    """Of one case: the best single rival, all rivals pooled by sample, random points, gauntlet; lists over samples."""
    rivals = {attack: found for attack, found in values.items() if not attack.startswith("gauntlet") and not is_random(attack)}
    best = min(rivals, key=lambda attack: statistics.fmean(rivals[attack]))
    pooled = [min(column) for column in zip(*rivals.values(), strict=True)]
    drawn = next((found for attack, found in values.items() if is_random(attack)), None)
    ours = next(found for attack, found in values.items() if attack.startswith("gauntlet"))
    return best, rivals[best], pooled, drawn, ours


HEADER = ["case", "metric", "papers' best", "papers' pooled", "random 1000", "gauntlet", "target", "met"]
EFFORT_HEADER = ["case", "metric", "light", "standard", "heavy", "exact", "target", "met"]


class Report:
    def __init__(self):
        self.header = HEADER
        self.rows = []

    def add_efforts(self, case, metric, efforts, exact, target, met):
        self.header = EFFORT_HEADER
        shown = [interval(values) for values in efforts] + [interval(exact) if exact else "-"]
        self.rows.append([case, f"`{metric}`", *shown, target, "yes" if met else "no"])

    def add(self, case, metric, best, best_values, pooled, drawn, ours, target, met):
        self.rows.append(
            [
                case,
                f"`{metric}`",
                f"{interval(best_values)} (`{best.split('(')[0]}`)",
                interval(pooled),
                interval(drawn) if drawn else "-",
                f"**{interval(ours)}**",
                target,
                "yes" if met else "no",
            ]
        )

    def text(self):
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def tables(bench, report):
    """n-32-2 networks, vanilla and sp, and deep ones, 300 epochs as in the R2ET paper: l2 1, k = 8, unprojected saliency; rows
    are means over training seeds."""
    models = {
        "vanilla": ("mlp(hidden=32)", training("vanilla", 300, 256, 1e-2, last=True)),
        "sp": ("mlp(hidden=32)", training("sp", 300, 256, 1e-2, last=True)),
        "64-64-64-2": ("mlp(hidden=64x64x64)", training("vanilla", 300, 256, 1e-2, last=True)),
    }
    seeds = range(bench.arguments.seeds)
    means = defaultdict(list)
    for seed in seeds:
        config = f'title = "targets: tables"\nseed = {seed}\n'
        for name in TABLES:
            samples = bench.arguments.samples or 500
            config += dataset_part(name, samples, "l2", 1.0, "saliency(project=none)", ["top_k(k=8)"], TABLE_ATTACKS, box=False)
        for name in TABLES:
            for model, (architecture, keys) in models.items():
                body = f'architecture = "{architecture}"\n' + keys.format("model.")
                config += model_part(f"{name} {model}", name, body)
        for (name, model, _), values in bench.audit(f"tables-{seed}", config, seed).items():
            means[name, model.split(" ", 1)[1]].append([statistics.fmean(part) if part else None for part in compare(values)[1:]])
    for model in models:
        for name, limit in TABLES.items():
            er, pooled, drawn, ours = zip(*means[name, model], strict=True)
            ahead = statistics.fmean(drawn) - statistics.fmean(ours)
            if model == "vanilla":
                target, met = f"{limit}, .10 below random", statistics.fmean(ours) <= limit and ahead >= 0.1
            elif model == "sp":
                better = [min(pair) for pair in zip(er, drawn, strict=True)]
                target = ".01 below the better of er and random"
                met = (
                    all(a <= b for a, b in zip(ours, better, strict=True))
                    and statistics.fmean(better) - statistics.fmean(ours) >= 0.01
                )
            else:
                target, met = ".05 below random", ahead >= 0.05
            report.add(f"{name}, {model}, {len(ours)} seeds", "top_k(k=8)", "er", er, pooled, drawn, ours, target, met)


def tables_exact(bench, report):
    """Plain n-32-2 networks at their best epoch, l2 0.1 and 0.3, k = 8: how far each effort stays above what `exact` proves."""
    body = 'architecture = "mlp(hidden=32)"\n' + training("vanilla", 60, 64, 1e-3).format("model.")
    means = defaultdict(lambda: defaultdict(list))
    for seed in range(bench.arguments.seeds):
        for radius in (0.1, 0.3):
            config = f'title = "targets: exact"\nseed = {seed}\n'
            for name in TABLES:
                samples = bench.arguments.samples or 200
                config += dataset_part(name, samples, "l2", radius, "saliency", ["top_k(k=8)"], [*EFFORTS, "exact"], box=False)
            for name in TABLES:
                config += model_part(f"{name} vanilla", name, body)
            for (name, _, _), values in bench.audit(f"tables_exact-{radius}-{seed}", config, seed).items():
                for attack, found in values.items():
                    means[name, radius][attack].append(statistics.fmean(found))
    for (name, radius), values in means.items():
        met = statistics.fmean(values["gauntlet"]) - statistics.fmean(values["proven"]) <= 0.005
        case = f"{name}, vanilla, l2 {radius}, {len(values['exact'])} seeds"
        efforts = [values[attack] for attack in EFFORTS]
        report.add_efforts(case, "top_k(k=8)", efforts, values["proven"], "standard: .005 above exact", met)


def mnist_model(bench, recipe="vanilla"):
    settings = (5, 50, 1e-4) if recipe == "vanilla" else (4, 200, 5e-4)
    return bench.train(f"mnist-{recipe}", "mnist", "cnn_chen", training(recipe, *settings))


def robust_accuracy(bench, name):
    """Of the last epoch's batches at their worst points."""
    lines = (bench.folder / "models" / name / "history.jsonl").read_text().splitlines()
    return json.loads(lines[-1])["parts"]["robust_accuracy"]


def image_case(bench, report, name, title, dataset, samples, threat, explainer, metrics, attacks, model, targets):
    """Targets: {metric: limit or None}; None asks for .10 below the best rival."""
    config = f'title = "targets: {title}"\n' + dataset_part(dataset, samples, *threat, explainer, metrics, attacks)
    config += model_part(title, dataset, f'file = "{model}"\n')
    for (_, _, metric), values in bench.audit(name, config).items():
        best, best_values, pooled, drawn, ours = compare(values)
        limit = targets[metric]
        if limit is None:
            target, met = ".10 below the best", statistics.fmean(best_values) - statistics.fmean(ours) >= 0.1
        elif limit == "half":
            target, met = "half the papers' best", statistics.fmean(ours) <= statistics.fmean(best_values) / 2
        else:
            target, met = f"{limit}", statistics.fmean(ours) <= limit
        report.add(f"{title}, {explainer}, {len(ours)} images", metric, best, best_values, pooled, drawn, ours, target, met)


def mnist(bench, report):
    attacks = [attack.format("mnist") for attack in PAPERS] + ["gauntlet"]
    samples, targets = bench.arguments.samples or 50, {PRECISION: 0.26, TOP: 0.09}
    threat, explainer = ("linf", 0.3), "saliency(target=logit)"
    image_case(
        bench,
        report,
        "mnist",
        "cnn_chen",
        "mnist",
        samples,
        threat,
        explainer,
        [PRECISION, TOP],
        attacks,
        mnist_model(bench),
        targets,
    )


def mnist_ig(bench, report):
    attacks = ["random_sign(preset=mnist)", "top_t(preset=mnist)", "gauntlet"]
    samples, explainer = bench.arguments.samples or 50, "integrated_gradients(steps=50,target=logit)"
    model = mnist_model(bench)
    image_case(
        bench,
        report,
        "mnist-ig",
        "cnn_chen",
        "mnist",
        samples,
        ("linf", 0.3),
        explainer,
        [PRECISION],
        attacks,
        model,
        {PRECISION: 0.58},
    )


def mnist_pgd(bench, report):
    attacks = [attack.format("mnist") for attack in PAPERS] + ["gauntlet"]
    samples, explainer = bench.arguments.samples or 50, "saliency(target=logit)"
    model = mnist_model(bench, "pgd")
    title = f"cnn_chen, PGD-trained to a robust accuracy of {robust_accuracy(bench, 'mnist-pgd'):.2f}"
    image_case(
        bench,
        report,
        "mnist-pgd",
        title,
        "mnist",
        samples,
        ("linf", 0.3),
        explainer,
        [PRECISION],
        attacks,
        model,
        {PRECISION: "half"},
    )


def mnist_pgd_narrow(bench, report):
    """Two networks that two cores can train, with a quick and a longer inner maximisation, under all three efforts."""
    samples, explainer = bench.arguments.samples or 50, "saliency(target=logit)"
    trainings = {
        "mnist-pgd-quick": (1, "steps=2,step_size=0.375"),
        "mnist-pgd-narrow": (2, "steps=7,step_size=0.10714285714285714"),
    }
    for name, (epochs, inner) in trainings.items():
        recipe = f"pgd(preset=mnist,{inner},warmup=0.3)"
        model = bench.train(name, "mnist", "cnn_chen(width=8x16x128)", training(recipe, epochs, 50, 1e-3))
        title = f"cnn_chen(width=8x16x128), PGD-trained to a robust accuracy of {robust_accuracy(bench, name):.2f}"
        config = f'title = "targets: efforts"\n{dataset_part("mnist", samples, "linf", 0.3, explainer, [PRECISION], EFFORTS)}'
        config += model_part(title, "mnist", f'file = "{model}"\n')
        for (_, _, metric), values in bench.audit(name, config).items():
            efforts = [values[attack] for attack in EFFORTS]
            met = statistics.fmean(values["gauntlet"]) <= 0.26
            report.add_efforts(f"{title}, {explainer}, {samples} images", metric, efforts, None, "standard: 0.26", met)


def cifar(bench, report):
    samples, explainer = bench.arguments.samples or 16, "saliency(target=logit)"
    for architecture in ("cifar_resnet20", "cifar_resnet4b"):
        model, threat, targets = f"{architecture}:pretrained", ("linf", 2 / 255), {PRECISION: None, TOP: None}
        image_case(
            bench,
            report,
            architecture,
            architecture,
            "cifar10",
            samples,
            threat,
            explainer,
            [PRECISION, TOP],
            SMALL_STEPS,
            model,
            targets,
        )


def squeezenet(bench, report):
    metrics = ["lens_precision(k=1000,w=1)", "top_k(k=1000)"]
    samples, model, explainer = bench.arguments.samples or 4, "squeezenet1_0:pretrained", "saliency(target=logit)"
    image_case(
        bench,
        report,
        "squeezenet",
        "squeezenet1_0",
        "imagenet_samples",
        samples,
        ("linf", 8 / 255),
        explainer,
        metrics,
        SMALL_STEPS,
        model,
        dict.fromkeys(metrics),
    )


CASES = {case.__name__: case for case in (tables, tables_exact, mnist, mnist_ig, mnist_pgd, mnist_pgd_narrow, cifar, squeezenet)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--samples", type=int, default=0, help="of each dataset; 0: the case's own number")
    parser.add_argument("--seeds", type=int, default=5, help="trainings of each table's models")
    parser.add_argument("--holdfast", default="build/holdfast")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    bench = Bench(parser.parse_args())
    for name in bench.arguments.only:
        report = Report()
        CASES[name](bench, report)
        (bench.folder / f"{name}.md").write_text(report.text())
        print(report.text(), flush=True)
        (bench.folder / f"{name}.json").write_text(json.dumps(report.rows, indent=1))


if __name__ == "__main__":
    main()
