"""The commands whose values are golden. A method of `holdfast list` without a case here fails the check."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from runner import ROOT
from safetensors.numpy import load_file
from shorten import by, columns_of, rounded, shorten, shorten_array, shorten_list

SCHEMA = ["--schema", "examples/schema.json"]
INPUTS = ["--inputs", "examples/inputs.npy"]
TABLE = ["--model", "mlp:examples/model.safetensors", *INPUTS, *SCHEMA]
SOFTPLUS = ["--model", "mlp:fixtures/softplus.safetensors", *INPUTS, *SCHEMA]
OPAQUE = ["--model", "fixtures/opaque.pt", *INPUTS, *SCHEMA]
IMAGES = ["--model", "fixtures/image.pt", "--inputs", "fixtures/images.npy"]
GRAPHS = ["--model", "siamese_gcn:fixtures/graphs.safetensors", "--inputs", "fixtures/graphs.npy"]
ROWS = ["--background", "examples/inputs.npy"]
PIXELS = ["--background", "fixtures/images.npy"]


@dataclass(frozen=True)
class Case:
    """One golden value: how it is made, the methods it covers, and when it is checked."""

    name: str
    make: Callable
    covers: list = field(default_factory=list)  # of (kind, method), as `holdfast list --json` has them
    part: str = "rest"  # small: in `make test`; rest: in `make golden`; full: experiments, in `make golden` where their data is
    data: tuple = ()  # folders of HOLDFAST_DATA that it needs


def method_of(call):
    return call.split("(")[0]


def catalogue(runner):
    """Every method with its options, their types, defaults and ranges. Words about them may change."""
    listing = json.loads(runner.program("list", "--json"))
    return {kind: {method["name"]: _options(method) for method in methods} for kind, methods in listing.items()}


def _options(method):
    options = {option["name"]: [option["type"], option["default"], option["range"]] for option in method["options"]}
    presets = {preset["name"]: preset["values"] for preset in method["presets"]}
    return {"options": options, "presets": presets}


# explain ---------------------------------------------------------------------------------------------------------------------

EXPLAIN = [
    # name, subject, explainer, further flags, part
    ("saliency", TABLE, "saliency", [], "small"),
    ("saliency signed logit", TABLE, "saliency(target=logit,signed=true)", [], "rest"),
    ("saliency ce of the labels", TABLE, "saliency(target=ce,project=none)", ["--targets", "examples/labels.npy"], "rest"),
    ("saliency of an opaque model", OPAQUE, "saliency", [], "rest"),
    ("saliency of pairs of graphs", GRAPHS, "saliency", [], "rest"),
    ("saliency of images", IMAGES, "saliency", [], "rest"),
    ("input_x_gradient", TABLE, "input_x_gradient", [], "rest"),
    ("integrated_gradients", TABLE, "integrated_gradients(steps=20)", [], "small"),
    ("integrated_gradients gauss", SOFTPLUS, "integrated_gradients(steps=7,rule=gauss,project=none)", [], "rest"),
    ("integrated_gradients mean", TABLE, "integrated_gradients(steps=9,rule=trapezoid,baseline=mean)", ROWS, "rest"),
    ("integrated_gradients blurred", IMAGES, "integrated_gradients(steps=9,rule=middle,baseline=blurred)", [], "rest"),
    ("smooth_grad", TABLE, "smooth_grad(samples=10)", [], "rest"),
    ("smooth_grad variance", IMAGES, "smooth_grad(samples=10,sigma=0.2,kind=variance)", ["--seed", 5], "rest"),
    ("smooth_top", TABLE, "smooth_top(k=4,samples=60)", [], "rest"),
    ("gradient_shap", TABLE, "gradient_shap(samples=10)", ROWS, "rest"),
    ("gradient_shap with noise", IMAGES, "gradient_shap(samples=10,sigma=0.1,target=logit)", PIXELS, "rest"),
    ("occlusion", TABLE, "occlusion", [], "rest"),
    ("shapley", TABLE, "shapley", ROWS, "rest"),
    ("valid_effect", TABLE, "valid_effect", [], "small"),
    ("occlusion of images", IMAGES, "occlusion(window=3,stride=2)", [], "rest"),
    ("deep_lift", TABLE, "deep_lift", [], "rest"),
    ("deep_lift of images", IMAGES, "deep_lift(target=logit,baseline=mean)", PIXELS, "rest"),
    ("lrp", TABLE, "lrp", [], "rest"),
    ("lrp of images", IMAGES, "lrp(convolutions=alphabeta,first=box)", [], "small"),
    ("lrp of pairs of graphs", GRAPHS, "lrp(rule=epsilon,epsilon=0.01,bias=ignore)", [], "rest"),
    ("guided_backprop", IMAGES, "guided_backprop", [], "rest"),
    ("grad_cam", IMAGES, "grad_cam", [], "rest"),
    ("grad_cam guided", IMAGES, "grad_cam(relu=false,interpolation=nearest,guided=true)", [], "rest"),
]


ROUNDING = 1e-5  # Which sample has the largest delta is chance where all are below this.


def explain_case(name, subject, explainer, flags, part):
    def make(runner):
        maps = runner.out(f"explain {name}").with_suffix(".npy")
        printed = json.loads(runner.work("explain", *subject, "--explainer", explainer, *flags, "--out", maps, "--json"))
        if printed["delta"] and printed["delta"]["largest"] < ROUNDING:
            del printed["delta"]["sample"]
        return {"printed": shorten(printed), "maps": runner.array(maps)}

    return Case(f"explain/{name}", make, [("explainers", method_of(explainer))], part)


# attack ----------------------------------------------------------------------------------------------------------------------

TOP_4 = ["--metric", "top_k(k=4)"]
TOP_12 = ["--metric", "top_k(k=12)"]
LENS_12 = ["--metric", "lens_precision(k=12,w=1)"]
SMALL_BALL = ["--norm", "l2", "--epsilon", "0.5"]
PIXEL_BALL = ["--norm", "linf", "--epsilon", "0.1", "--box", "0,1"]

ATTACK = [
    # name, subject, attack, further flags, part
    ("random", TABLE, "random(samples=40)", [*SMALL_BALL, *TOP_4], "rest"),
    ("random sphere linf", OPAQUE, "random(samples=40,from=sphere)", ["--norm", "linf", "--epsilon", "0.2", *TOP_4], "rest"),
    ("random_sign", TABLE, "random_sign(steps=30)", ["--norm", "linf", "--epsilon", "0.2", *TOP_4], "rest"),
    ("random_sign walk", IMAGES, "random_sign(steps=20,mode=walk)", [*PIXEL_BALL, *LENS_12], "rest"),
    ("er", TABLE, "er(steps=30)", [*SMALL_BALL, *TOP_4, "--trace"], "small"),
    (
        "er next pairs, last iterate",
        TABLE,
        "er(steps=20,pairs=next-k,step_size=0.05)",
        [*SMALL_BALL, *TOP_4, "--select", "last"],
        "rest",
    ),
    ("er valid rows", TABLE, "er(steps=20)", ["--norm", "l2", "--epsilon", "1.6", "--valid", *TOP_4], "small"),
    (
        "gauntlet switches",
        TABLE,
        "gauntlet(effort=light)",
        ["--norm", "l2", "--epsilon", "0.3", "--switches", "1", *TOP_4],
        "rest",
    ),
    ("er tolerance", TABLE, "er(steps=20)", [*SMALL_BALL, "--tolerance", "0.05", *TOP_4], "rest"),
    ("er several epsilons", TABLE, "er(steps=15)", ["--norm", "l2", "--epsilon", "0.1,0.3,1", *TOP_4], "small"),
    ("er l1 in a box", TABLE, "er(steps=20)", ["--norm", "l1", "--epsilon", "1.5", "--box", "0,1", *TOP_4], "rest"),
    ("er linf in a box", TABLE, "er(steps=20)", ["--norm", "linf", "--epsilon", "8/255", "--box", "0,1", *TOP_4], "rest"),
    ("er cosine momentum", SOFTPLUS, "er(steps=20,schedule=cosine,momentum=0.8,start=random)", [*SMALL_BALL, *TOP_4], "rest"),
    ("er surrogate", TABLE, "er(steps=20,surrogate=softplus,beta=5)", [*SMALL_BALL, *TOP_4, "--seed", 7], "rest"),
    ("er without random points", OPAQUE, "er(steps=10)", [*SMALL_BALL, *TOP_4, "--no-random"], "rest"),
    (
        "er integrated gradients",
        TABLE,
        "er(steps=10)",
        [*SMALL_BALL, *TOP_4, *ROWS, "--explainer", "integrated_gradients(steps=6,baseline=mean)"],
        "rest",
    ),
    (
        "er labels",
        TABLE,
        "er(steps=15,k=4)",
        [*SMALL_BALL, "--metric", "kendall", "--targets", "examples/labels.npy", "--explainer", "saliency(target=logit)"],
        "rest",
    ),
    ("mse", TABLE, "mse(steps=20)", [*SMALL_BALL, "--metric", "cosine"], "rest"),
    ("top_t", IMAGES, "top_t(steps=15)", [*PIXEL_BALL, *TOP_12], "rest"),
    ("top_t of tables", TABLE, "top_t(steps=15,t=4)", [*SMALL_BALL, *TOP_4], "rest"),
    ("mass_center", IMAGES, "mass_center(steps=15)", [*PIXEL_BALL, "--metric", "lens_distance(k=12,w=1)"], "rest"),
    ("target", IMAGES, "target(steps=15,region=center)", [*PIXEL_BALL, *TOP_12], "rest"),
    ("lens", IMAGES, "lens(steps=15)", [*PIXEL_BALL, *LENS_12], "rest"),
    ("multi", TABLE, "multi(steps=15)", [*SMALL_BALL, *TOP_4], "rest"),
    ("gauntlet", TABLE, "gauntlet(effort=light)", [*SMALL_BALL, *TOP_4], "rest"),
    ("exact", TABLE, "exact", ["--norm", "l2", "--epsilon", "0.2", *TOP_4], "rest"),
    ("gauntlet of images", IMAGES, "gauntlet(effort=light)", [*PIXEL_BALL, *LENS_12], "rest"),
    ("gauntlet of an opaque model", OPAQUE, "gauntlet(effort=light)", ["--norm", "l2", "--epsilon", "0.2", *TOP_4], "rest"),
    ("pairs, first side", GRAPHS, "er(steps=15)", ["--norm", "l2", "--epsilon", "0.5", "--sides", "first", *TOP_4], "small"),
    (
        "graphs with negative weights",
        GRAPHS,
        "random(samples=40)",
        ["--norm", "l2", "--epsilon", "1", "--negative-weights", *TOP_4],
        "rest",
    ),
]


def attack_values(runner, folder):
    result = runner.json(folder / "result.json")
    result["samples"] = columns_of(result["samples"])
    if "components" in result:
        result["components"] = by("name", result["components"])
    arrays = {
        name: runner.array(folder / f"{name}.npy") for name in ("perturbed", "original_attributions", "perturbed_attributions")
    }
    return {"result": shorten(result), **arrays}


def attack_case(name, subject, attack, flags, part):
    def make(runner):
        out = runner.out(f"attack {name}")
        runner.work("attack", *subject, "--attack", attack, *flags, "--out", out)
        smaller = sorted(path.name for path in (runner.folder / out).glob("epsilon-*"))
        return {**attack_values(runner, out), **{folder: attack_values(runner, out / folder) for folder in smaller}}

    return Case(f"attack/{name}", make, [("attacks", method_of(attack))], part)


# measure ---------------------------------------------------------------------------------------------------------------------

TABLE_METRICS = [
    "top_k(k=4)",
    "lens_precision(k=4,w=1)",
    "lens_recall(k=4,w=1)",
    "top_k_div(k=4,diversity=1)",
    "lens_precision_div(k=4,w=1,diversity=1)",
    "lens_recall_div(k=4,w=1,diversity=1)",
    "spearman",
    "kendall",
    "lens_spearman(w=1)",
    "lens_kendall(w=1)",
    "lens_distance(k=2x4,w=0x1,alpha=0.7x0.3)",
    "cosine",
    "l2",
]
GRID_METRICS = [call.replace("k=4", "k=20").replace("2x4", "10x20") for call in TABLE_METRICS] + ["lens_distance(k=20,form=u)"]
MAPS = ["examples/original_attributions.npy", "examples/perturbed_attributions.npy"]
GRID_MAPS = ["fixtures/image_maps.npy", "fixtures/other_image_maps.npy"]


def metric_case(name, maps, metrics, flags):
    def make(runner):
        calls = [part for metric in metrics for part in ("--metric", metric)]
        found = json.loads(runner.program("measure", *maps, *calls, *flags, "--json"))
        return {"samples": found["samples"], "metrics": shorten(by("name", found["metrics"]))}

    return Case(f"metric/{name}", make, [("metrics", method_of(metric)) for metric in metrics], "small")


TABLE_MEASURES = [
    "thickness(k=4,endpoints=8,points=4)",
    "thickness(i=4,j=5,endpoints=8,points=4,from=gaussian)",
    "thickness(k=4,endpoints=8,points=4,form=relaxed)",
    "thickness(k=4,points=4,from=given)",
    "certified_overlap(k=4,radius=0.05)",
    "exact_overlap(k=4,radius=0.05)",
    "smoothed_overlap(k=4,radius=0.05,samples=200)",
    "curvature",
    "curvature(norm=largest,of=ce)",
    "curvature(norm=estimate)",
    "dffot",
    "comp(remove=mean)",
    "suff(remove=resample,draws=3)",
    "deletion(random=3)",
    "insertion(curve=true)",
    "max_sensitivity(samples=10)",
    "avg_sensitivity(samples=10,from=gaussian)",
    "local_lipschitz(samples=10,radius=0.2,normalise=max)",
    "relative_input_stability(samples=10)",
    "relative_output_stability(samples=10)",
    "relative_representation_stability(samples=10)",
    "max_sensitivity(samples=10,quantus=true)",
]
SMOOTH_MEASURES = [
    "thickness_bounds(k=4)",
    "thickness_bounds(k=4,by=printed)",
    "no_swap_radius(k=4)",
    "certified_overlap(k=4,radius=0.1)",
    "curvature(norm=spectral)",
]
IMAGE_MEASURES = [
    "thickness(k=12,endpoints=4,points=4)",
    "curvature",
    "comp(remove=blur)",
    "suff",
    "dffot(remove=resample,draws=2)",
    "relative_representation_stability(samples=5,layer=all)",
]


def measure_case(name, subject, measures, flags, part):
    def make(runner):
        calls = [part for measure in measures for part in ("--measure", measure)]
        out = runner.out(f"measure {name}").with_suffix(".csv")
        printed = json.loads(runner.work("measure", *subject, *calls, *flags, "--out", out, "--json"))
        printed["measures"] = by("name", printed["measures"])
        return {"printed": shorten(printed), "csv": sorted(runner.table(out)["columns"])}

    return Case(f"measure/{name}", make, [("measures", method_of(measure)) for measure in measures], part)


def comparison_case():
    """Two models on the same samples."""

    def make(runner):
        measures = ["--measure", "curvature", "--measure", "avg_sensitivity(samples=5)"]
        first = runner.out("measure first").with_suffix(".csv")
        runner.work("measure", *TABLE, *measures, "--out", first)
        printed = json.loads(runner.work("measure", *SOFTPLUS, *measures, "--compare", first, "--json"))
        return shorten({measure["name"]: measure["comparison"] for measure in printed["measures"]})

    return Case("measure/two models compared", make)


# audit and report ------------------------------------------------------------------------------------------------------------


def audit_values(runner, run):
    results = runner.json(run / "results.json")
    values = {"results": {key: _audit_part(key, part) for key, part in results.items()}}
    values |= {"samples": runner.table(run / "samples.csv"), "junit": runner.junit(run / "junit.xml")}
    if (runner.folder / run / "measures.csv").exists():
        values["measures"] = runner.table(run / "measures.csv")
    values["page"] = results["title"] in (runner.folder / run / "report.html").read_text()
    manifest = runner.json(run / "manifest.json")
    values["manifest"] = {"keys": sorted(manifest), **{key: shorten(manifest[key]) for key in ("kind", "title", "seed", "tile")}}
    values["arrays"] = sorted(path.name for path in (runner.folder / run / "arrays").iterdir())
    return values


def _audit_part(key, part):
    """Rows stay apart, so that a difference names one."""
    if not isinstance(part, list):
        return shorten(part)
    named = {
        "rows": ("model", "explainer", "attack", "metric"),
        "measures": ("model", "explainer", "measure"),
        "models": ("name",),
        "gates": ("gate",),
    }.get(key)
    if named is None:
        return shorten_list(part) if part else []
    rows = [{"key": ", ".join(str(row.pop(name)) for name in named), **row} for row in part]
    return shorten(by("key", rows))


def audit_three_kinds(runner):
    run = runner.out("audit three kinds")
    runner.work("audit", "configs/audit.toml", "--out", run, code=1)
    return audit_values(runner, run)


def audit_threats(runner):
    run = runner.out("audit threats")
    runner.work("audit", "configs/threat.toml", "--out", run)
    return audit_values(runner, run)


def audit_from_flags(runner):
    run = runner.out("audit flags")
    grid = [
        "--attack",
        "random(samples=20)",
        "--attack",
        "gauntlet(effort=light)",
        "--metric",
        "top_k(k=4)",
        "--metric",
        "kendall",
    ]
    ball = ["--norm", "linf", "--epsilon", "0.1", "--box", "0,1", "--labels", "examples/labels.npy"]
    runner.work("audit", *OPAQUE, *grid, *ball, "--measure", "dffot", "--gate", "kendall>=-1", "--out", run)
    return audit_values(runner, run)


def numbers_in(text):
    return [float(number) for number in re.findall(r"-?\d*\.?\d+", text)]


def page_case(paper):
    """The page of kept results: its numbers, in order. Words may change."""

    def make(runner):
        page = runner.out(f"report {paper}").with_suffix(".md")
        runner.program("report", ROOT / "results" / paper, "--out", page, "--quiet")
        text = (runner.folder / page).read_text()
        tables = sum(line.startswith("|--") or line.startswith("|:-") for line in text.splitlines())
        return {"tables": tables, "numbers": shorten_list(numbers_in(text))}

    return Case(f"report/{paper}", make)


# train -----------------------------------------------------------------------------------------------------------------------

FAST_PATH = "steps=2,inner_path_steps=2,path_steps=2"
RECIPES = [
    "vanilla",
    "wd(decay=0.01)",
    "sp(beta=0.5)",
    "est_h",
    "exact_h",
    "ssr",
    "at",
    "cl",
    "r2et",
    "r2et_mm",
    "r2et_no_h",
    "r2et_mm_no_h",
    "linear(ridge=0.001)",
    "gated_linear(gates=5,ridge=0.001)",
    "pair_hinge",
    "pgd(steps=3)",
    f"ig_norm({FAST_PATH})",
    f"ig_sum_norm({FAST_PATH})",
    "steady_map(steps=2)",
]


def train(runner, name, settings):
    out = runner.out(name)
    changes = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    runner.work("train", "configs/train.toml", *changes, "--out", out)
    weights = load_file(runner.folder / out / "model.safetensors")
    return {
        "results": shorten(runner.json(out / "results.json")),
        "history": shorten(runner.lines(out / "history.jsonl")),
        "weights": {key: shorten_array(weight) for key, weight in sorted(weights.items())},
    }


def train_case(recipe):
    name = method_of(recipe)

    def make(runner):
        return train(runner, f"train {name}", {"train.recipe": recipe})

    return Case(f"train/{name}", make, [("recipes", name)], "small" if name in ("r2et", "vanilla") else "rest")


def retrain(runner):
    """A training that goes on from another one's weights, with other options of the loop."""
    train(runner, "train first", {"seed": 2})
    loop = {"train.optimizer": "sgd(momentum=0.9)", "train.schedule": "cosine(warmup=1)", "early_stopping.metric": "auc"}
    weights = {"retrain.from": runner.folder / runner.out("train first") / "model.safetensors", "retrain.top_k": 4}
    return train(runner, "train again", {**loop, **weights, "train.recipe": "r2et_mm", "early_stopping.restore_best": "true"})


# architectures ---------------------------------------------------------------------------------------------------------------

CLOTHES = "fashion_mnist(train_limit=64,test_limit=20)"
PHOTOGRAPHS = "cifar10(train_limit=40,test_limit=20)"
ARCHITECTURES = [
    # architecture, dataset that it is trained on for one epoch, folders of HOLDFAST_DATA
    ("linear", "breast_cancer", ()),
    ("mlp(hidden=8x8,activation=gelu)", "breast_cancer", ()),
    ("cnn_small", CLOTHES, ()),
    ("cnn_chen(width=4x8x16)", CLOTHES, ()),
    ("siamese_cnn(width=4,embedding=8)", f"pairs(of={CLOTHES},count=40)", ()),
    ("gtsrb_resnet", PHOTOGRAPHS, ("cifar10",)),
    ("flower_resnet", PHOTOGRAPHS, ("cifar10",)),
    ("resnet9", PHOTOGRAPHS, ("cifar10",)),
    ("cifar_resnet20", PHOTOGRAPHS, ("cifar10",)),
    ("cifar_resnet2b", PHOTOGRAPHS, ("cifar10",)),
    ("cifar_resnet4b", PHOTOGRAPHS, ("cifar10",)),
    ("siamese_gcn(hidden=8)", "pairs(of=abide_ho111,count=40)", ("brain_abide_ho111",)),
]
PRETRAINED = [
    ("squeezenet1_0", "imagenet_samples", 2),
    ("mobilenet_v1_075", "imagenet_samples(size=224)", 2),
    ("cifar_resnet20", "cifar10", 8),
    ("cifar_resnet4b", "cifar10", 8),
]


def architecture_case(architecture, dataset, data):
    name = method_of(architecture)

    def make(runner):
        found = train(runner, f"model {name}", {"model.architecture": architecture, "dataset.name": dataset, "train.epochs": 1})
        found["weights"] = shorten(columns_of(list(found["weights"].values())))  # some have a hundred layers
        return found

    return Case(f"model/{name}", make, [("models", name)], data=data)


def pretrained_case(name, dataset, samples):
    def make(runner):
        folder, maps = runner.out(f"model samples {name}"), runner.out(f"model maps {name}").with_suffix(".npy")
        runner.program("data", "export", dataset, "--samples", samples, "--out", folder)
        subject = ["--model", f"{name}:pretrained", "--inputs", folder / "inputs.npy"]
        printed = runner.work("explain", *subject, "--explainer", "saliency(target=logit)", "--out", maps, "--json")
        return {"printed": shorten(json.loads(printed)), "maps": runner.array(maps)}

    return Case(f"model/{name} pretrained", make, [("models", name)], data=(method_of(dataset), "models"))


# datasets --------------------------------------------------------------------------------------------------------------------

# The folder of HOLDFAST_DATA that a dataset needs; None: it comes with what is installed, or with nothing.
DATASETS = {
    "adult": "adult",
    "bank": "bank",
    "compas": "compas",
    "breast_cancer": None,
    "adhd": "brain_tu",
    "abide_ho111": "brain_abide_ho111",
    "mutag": "mutag",
    "mnist": "mnist",
    "fashion_mnist": None,
    "cifar10": "cifar10",
    "gtsrb": "gtsrb",
    "flowers17": "flowers17",
    "imagenet_samples": "imagenet_samples",
    "synthetic": None,
    "npy(inputs=examples/inputs.npy,labels=examples/labels.npy,schema=examples/schema.json)": None,
    "pairs(of=synthetic,count=30)": None,
}
# German Credit and Pima Diabetes come with a package that is rarely installed; the others are the user's own files.
NOT_COVERED = {("datasets", name) for name in ("german_credit", "diabetes", "image_folder", "csv", "idx")}
# They need categories, which breast_cancer has not; tests/train has them.
NOT_COVERED |= {("recipes", "gauged_linear"), ("recipes", "own_top")}


def data_case(call, folder):
    name = method_of(call)

    def make(runner):
        out = runner.out(f"data {name}")
        runner.program("data", "export", call, "--samples", 20, "--out", out)
        arrays = {part: runner.array(out / f"{part}.npy") for part in ("inputs", "labels")}
        return {**arrays, "schema": shorten(runner.json(out / "schema.json"))}

    small = name == "synthetic"
    return Case(f"data/{name}", make, [("datasets", name)], "small" if small else "rest", (folder,) if folder else ())


# Python ----------------------------------------------------------------------------------------------------------------------


def python_values(runner):
    return json.loads(runner.python(Path(__file__).resolve().parent / "python_values.py"))


# experiments -----------------------------------------------------------------------------------------------------------------

DIGITS, GRAPH_FOLDER, IMAGENET = "mnist", "brain_abide_ho111", ("imagenet_samples", "models")
# The folders of HOLDFAST_DATA without which an experiment leaves something out.
EXPERIMENT_DATA = {
    "r2et/table1": ("compas", DIGITS, GRAPH_FOLDER),
    "r2et/table2": ("compas", DIGITS, GRAPH_FOLDER),
    "r2et/table3": ("compas", DIGITS, GRAPH_FOLDER),
    "r2et/table4": ("compas",),
    "r2et/fig3": ("compas", DIGITS, GRAPH_FOLDER),
    "r2et/fig4": (DIGITS,),
    "r2et/explainers": ("compas", DIGITS),
    "r2et/cost": ("compas", DIGITS, GRAPH_FOLDER),
    "r2et/bounds": ("compas",),
    "r2et/gauge": ("compas",),
    "r2et/beyond": ("compas",),
    "r2et/valid_rows": ("compas",),
    "r2et/nearest": ("compas",),
    "r2et/specific": ("compas",),
    "r2et/regime": ("compas",),
    "lens/fig1": ("flowers17",),
    "lens/fig2": IMAGENET,
    "lens/fig3": ("flowers17",),
    "lens/fig4": (DIGITS, "gtsrb", "flowers17"),
    "lens/fig5": (DIGITS, *IMAGENET),
    "lens/fig6": ("flowers17",),
    "lens/fig7": ("flowers17",),
    "lens/fig8": (DIGITS, "flowers17"),
    "lens/table2": ("cifar10", *IMAGENET),
    "lens/appendix": (DIGITS,),
    "lens/beyond": (DIGITS,),
    "lens/ablation": (DIGITS,),
}
TIMED = {"r2et/cost"}  # measures seconds, which are never the same
CELL_DIGITS = 5
SHOWN_FIELDS = ("value", "specific")  # kept for each row; the others in short


def cells_of(table, name):
    """A field of all columns, row by row; None where a cell does not have it."""
    rows = {", ".join(map(str, row["keys"])): [rounded_cell(cell.get(name)) for cell in row["values"]] for row in table["rows"]}
    return {key: cells for key, cells in rows.items() if any(cell is not None for cell in cells)}


def rounded_cell(number):
    return number if number is None or isinstance(number, str) else rounded(number, CELL_DIGITS)


def other_cells(table):
    found = {}
    for place, column in enumerate(table["columns"]):
        cells = columns_of([row["values"][place] for row in table["rows"]])
        found[str(column)] = {name: shorten(values) for name, values in cells.items() if name not in SHOWN_FIELDS}
    return found


def table_values(table, timed):
    rows = [", ".join(map(str, row["keys"])) for row in table["rows"]]
    shape = {"keys": table["keys"], "columns": table["columns"], "rows": shorten(rows)}
    if timed:
        return shape
    return {**shape, **{name: cells_of(table, name) for name in SHOWN_FIELDS}, "others": other_cells(table)}


def verdict_values(verdict, timed):
    if timed:
        return {"claim": verdict["claim"]}
    numbers = {key: shorten(verdict.get(key)) for key in ("verdict", "number", "low", "high", "seeds")}
    return {**numbers, "numbers of why": shorten(numbers_in(verdict["why"]))}


def experiment_values(result, timed):
    return {
        "scale": result["scale"],
        "settings": shorten(result["settings"]),
        "tables": {table["name"]: table_values(table, timed) for table in result["tables"]},
        "figures": {figure["name"]: _figure_values(figure, timed) for figure in result["figures"]},
        "verdicts": {verdict["claim"]: verdict_values(verdict, timed) for verdict in result["verdicts"]},
    }


def _figure_values(figure, timed):
    points = (figure.get("spec") or {}).get("data", {}).get("values", [])
    return {"panels": len(figure.get("panels", [])), "points": len(points) if timed else shorten(points)}


def experiment_case(name):
    def make(runner):
        run = runner.out(f"experiment {name}")
        shared = ["--models", "out/models", "--cells", "out/cells"]  # networks that experiments have in common are trained once
        runner.work("reproduce", name, "--scale", "quick", *shared, "--out", run)
        return experiment_values(runner.json(run / "results.json"), name in TIMED)

    return Case(f"experiment/{name}", make, [("experiments", name)], "full", EXPERIMENT_DATA.get(name, ()))


def survey(runner):
    """The answers of people, as lens/table1 scores them."""
    run = runner.out("survey")
    runner.work("reproduce", "lens/table1(answers=configs/answers.json)", "--scale", "quick", "--out", run)
    return experiment_values(runner.json(run / "results.json"), timed=False)


def all_cases(experiments):
    """Every case; experiments are those that the program has."""
    return [
        Case("catalogue/methods", catalogue, part="small"),
        *(explain_case(*row) for row in EXPLAIN),
        *(attack_case(*row) for row in ATTACK),
        metric_case("vectors", MAPS, TABLE_METRICS, ["--labels", "examples/labels.npy"]),
        metric_case("vectors with a schema", MAPS, TABLE_METRICS, [*SCHEMA, "--seed", 4]),
        metric_case("grids", GRID_MAPS, GRID_METRICS, []),
        measure_case(
            "table", TABLE, TABLE_MEASURES, ["--epsilon", "0.5", "--endpoints", "fixtures/endpoints.npy", *ROWS], "small"
        ),
        measure_case("smooth network", SOFTPLUS, SMOOTH_MEASURES, ["--epsilon", "0.3"], "small"),
        measure_case(
            "images", IMAGES, IMAGE_MEASURES, ["--epsilon", "0.3", "--explainer", "saliency(target=logit)", *PIXELS], "rest"
        ),
        comparison_case(),
        Case("audit/three kinds of models", audit_three_kinds, part="small"),
        Case("audit/threats", audit_threats),
        Case("audit/flags", audit_from_flags),
        *(page_case(paper) for paper in ("r2et", "lens")),
        *(train_case(recipe) for recipe in RECIPES),
        Case("train/retrain", retrain),
        *(architecture_case(*row) for row in ARCHITECTURES),
        *(pretrained_case(*row) for row in PRETRAINED),
        *(data_case(call, folder) for call, folder in DATASETS.items()),
        Case("python/every method", python_values, part="small"),
        Case("survey/answers", survey),
        *(experiment_case(name) for name in experiments),
    ]
