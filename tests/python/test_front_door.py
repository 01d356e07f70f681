"""What people really hand over: data of every type, and the mistakes that are easily made with it."""

import copy
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import holdfast
import numpy as np
import pandas as pd
import pytest
import torch
from conftest import ROOT, make_network
from holdfast.testing import Auditor, assert_explanations_hold, check

FAST = {"attack": "random(samples=3)", "metric": "top_k(k=2)", "threat": holdfast.Threat("l2", 0.3), "progress": False}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", holdfast.HoldfastWarning)
        yield


def audit(model, inputs, **more):
    return holdfast.audit(model, inputs, **{**FAST, **more})


def refuses(call, saying):
    with pytest.raises(holdfast.Error) as caught:
        call()
    text = str(caught.value)
    assert re.search(saying, text), text
    assert "\n" not in text and "/tmp/" not in text and "pybind" not in text


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16])
def test_narrow_numbers_are_audited_like_the_same_numbers_as_floats(network, inputs, dtype):
    rows = (inputs * 10).round()
    found, wanted = audit(network, rows.to(dtype)), audit(network, rows)
    assert found.rows[0]["mean"] == wanted.rows[0]["mean"]


def test_rows_of_mixed_types_are_read(network, inputs):
    rows = (inputs * 10).round().numpy()
    mixed = rows.astype(object)  # what a frame of several types gives
    mixed[0, 0] = int(rows[0, 0])
    assert (holdfast.explain(network, mixed) == holdfast.explain(network, rows.astype(np.float64))).all()
    assert audit(network, rows.astype(int).tolist()).rows[0]["count"] == 20


INPUTS = {
    "nothing": (None, "inputs: is None"),
    "a path": ("inputs.npy", "'inputs.npy' is text.*numpy.load"),
    "text": ([["a"] * 6], "elements that are text; they must be numbers"),
    "ragged": ([[1.0], [1.0, 2.0]], "its parts have different shapes"),
    "objects": (np.array([[object()] * 6]), "Python objects"),
}


@pytest.mark.parametrize("case", INPUTS)
def test_what_is_no_array_is_refused(network, case):
    given, saying = INPUTS[case]
    refuses(lambda: audit(network, given), saying)


def test_models_that_are_no_models(inputs, network):
    refuses(lambda: audit(torch.nn.Linear, inputs), r"Linear is a class; make a model of it first: Linear\(...\)")
    refuses(lambda: audit([network, network], inputs), r"models: is a list; give a dictionary, \{name: model\}")
    refuses(lambda: audit(network, inputs, threat=0.1), r"write holdfast.Threat\('l2', 0.1\)")


def test_an_exception_of_the_model_says_what_it_was_called_with(network):
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied") as caught:
        audit(network, torch.rand(4, 7))
    assert caught.value.__notes__ == ["holdfast called the model Sequential with inputs of shape [1, 7], torch.float32"]


def test_scalars_of_numpy_and_torch_are_numbers(network, inputs):
    assert holdfast.Threat("l2", torch.tensor(0.5)).epsilons == holdfast.Threat("l2", np.array(0.5)).epsilons == [0.5]
    maps = holdfast.explain(network, inputs, targets=np.int64(1))
    assert torch.equal(maps, holdfast.explain(network, inputs, targets=1))
    assert torch.equal(maps, holdfast.explain(network, inputs, targets=torch.tensor(1)))
    labels = torch.zeros(20, dtype=torch.long)
    objective = holdfast.objective("r2et(top_k=2)")
    wanted = objective(network, inputs, labels, progress=0.5)[1]
    assert objective(network, inputs, labels, progress=np.float32(0.5))[1] == wanted
    assert objective(network, inputs, labels, progress=torch.tensor(0.5))[1] == wanted
    holdfast.train("mlp(hidden=4)", inputs, labels, epochs=np.int64(1), learning_rate=np.float32(1e-3), progress=False)
    assert_explanations_hold(
        network, inputs, attack=FAST["attack"], metric="top_k(k=2)", threat=FAST["threat"], at_least=np.float32(0)
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there(network, inputs):
    refuses(lambda: holdfast.load_model(network, example=inputs, device="cuda"), "cuda is asked for, and torch finds no GPU")
    refuses(lambda: holdfast.load_model("mlp:weights.safetensors", device="gpu"), "'gpu' is no device of torch")
    refuses(lambda: holdfast.train("mlp", inputs, [0, 1] * 10, device="cuda:1"), "cuda:1 is asked for")


def test_labels_as_people_have_them(network, inputs):
    classes = torch.arange(20) % 3
    wanted = audit(network, inputs, labels=classes).results
    frame = pd.DataFrame({"class": classes.numpy()})
    for labels in (classes.double(), frame, frame["class"].astype("category"), pd.Categorical(frame["class"]), classes[:, None]):
        assert audit(network, inputs, labels=labels).results == wanted
    refuses(lambda: audit(network, inputs, labels=["cat", "dog"] * 10), r"labels: are text.*pandas.factorize")
    refuses(lambda: audit(network, inputs, labels=np.array([0, np.nan] * 10)), "sample 1 has none")
    refuses(lambda: audit(network, inputs, labels=pd.Series(["a", None] * 10, dtype="category")), "sample 1 has none")
    refuses(lambda: audit(network, inputs, labels=[0.5] * 20), "sample 0 has 0.5; classes are whole numbers")
    network = make_network(classes=3)
    refuses(
        lambda: holdfast.train(network, inputs, torch.arange(20), epochs=1), "labels: there is a class .*, which the model has no"
    )
    refuses(lambda: holdfast.objective("ce")(network, inputs, classes + 3), "y: there is a class .*; classes count from 0")


def test_batches_of_numpy_and_targets_that_are_no_classes(network, inputs):
    pairs = [(row.numpy(), i % 3) for i, row in enumerate(inputs)]

    def together(batch):
        return np.stack([one for one, _ in batch]), np.array([label for _, label in batch])

    found = audit(network, torch.utils.data.DataLoader(pairs, batch_size=6, collate_fn=together))
    assert found.results == audit(network, inputs, labels=torch.arange(20) % 3).results
    for targets in (torch.rand(20), torch.zeros(20, 4)):  # of a regression, of several outputs
        data = torch.utils.data.TensorDataset(inputs, targets)
        assert audit(network, data).results == audit(network, inputs).results


def test_a_loader_that_shuffles(network, inputs):
    data = torch.utils.data.TensorDataset(inputs, torch.arange(20) % 3)
    loader = torch.utils.data.DataLoader(data, batch_size=6, shuffle=True)
    with pytest.warns(
        holdfast.HoldfastWarning, match="the loader shuffles its samples; results are in the order of this one"
    ) as caught:
        run = audit(network, loader)
    assert caught[0].filename.endswith("test_front_door.py")
    assert (
        run.rows[0]["count"] == 20
        and run.results["models"][0]["accuracy"] == audit(network, data).results["models"][0]["accuracy"]
    )
    refuses(lambda: audit(network, loader, labels=torch.arange(20) % 3), "labels: the loader shuffles its samples")
    refuses(lambda: holdfast.explain(network, loader, targets=[0] * 20), "targets: the loader shuffles its samples")
    assert holdfast.explain(network, loader, targets=1).shape == (20, 6)


def test_columns_that_are_no_features(inputs, network):
    frame = pd.DataFrame(inputs.numpy(), columns=list("abcdef"))
    whole = holdfast.explain(network, frame.astype(object))
    assert np.allclose(whole, holdfast.explain(network, frame)), "numbers are numbers, whatever type the column says"
    for column, saying in [
        (pd.to_timedelta(range(20), unit="s"), "column 'f' holds times"),
        (pd.period_range("2020", periods=20, freq="D"), "column 'f' holds times"),
        ([[1]] * 20, "column 'f' holds values of type list"),
    ]:
        refuses(lambda column=column: holdfast.explain(network, frame.assign(f=column)), saying)
    refuses(
        lambda: holdfast.explain(network, pd.concat([frame, frame[["a"]]], axis=1)), "two columns of the frame are called 'a'"
    )
    refuses(lambda: holdfast.explain(network, frame[[]]), "the frame has no columns")
    named = pd.concat([frame.head(15)] * 2, ignore_index=True).assign(f=[f"person {i}" for i in range(30)])
    refuses(
        lambda: holdfast.explain(network, named), r"column 'f' has 30 different texts in 30 rows.*astype\(\{'f': 'category'\}\)"
    )
    assert holdfast.explain(make_network(inputs=35), named.astype({"f": "category"})).shape == (30, 35)


def test_methods_that_do_not_do_what_is_asked(network, inputs):
    def no_gradients(model, x, target):
        return torch.autograd.grad(model(x).sum(), x)[0]

    def nothing(model, x, target):
        return None

    def returned(task):
        return task.inputs

    def of_rows(original, perturbed, k: int = 2):
        return [float(len({*a} & {*b})) for a, b in zip(original, perturbed, strict=True)]

    holdfast.explainer(no_gradients), holdfast.explainer(nothing), holdfast.attack_method(returned), holdfast.metric(of_rows)
    refuses(lambda: holdfast.explain(network, inputs, no_gradients), "begin with x = x.detach")
    refuses(lambda: holdfast.explain(network, inputs, nothing), "it gave a NoneType; maps of the inputs' shape")
    refuses(lambda: audit(network, inputs, attack=returned), "it returned a Tensor; points are proposed with yield")
    refuses(lambda: audit(network, inputs, metric="of_rows(k=0)"), "k must be >= 1")
    refuses(lambda: audit(network, inputs, metric=lambda a, b: 1), "put @holdfast.metric above it")
    refuses(lambda: audit(network, inputs, attack=print), "put @holdfast.attack_method above it")
    with pytest.raises(AssertionError, match="images have one value each: TypeError: unhashable"):
        check(of_rows)
    with pytest.raises(AssertionError, match="it can be called: nothing: it gave a NoneType"):
        check(nothing)


def test_an_object_of_another_library_explains_its_own_model_only(network, inputs):
    captum = pytest.importorskip("captum.attr")
    other = make_network(seed=3)
    refuses(
        lambda: audit({"a": network, "b": other}, inputs, explainer=captum.Saliency(network)),
        "explains the one model that it was",
    )
    refuses(lambda: audit(network, inputs, explainer=captum.Saliency), r"Saliency is a class; make an object.*Saliency\(model\)")
    assert audit(network, inputs, explainer=captum.Saliency(network)).rows[0]["explainer"] == "captum_saliency"


def test_a_module_that_cannot_be_copied_is_one_sentence(inputs, capfd):
    class Branch(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(6, 2)

        def forward(self, x):
            return self.layer(x) if x.sum() > 0 else self.layer(-x)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        holdfast.load_model(Branch(), example=inputs)
    assert capfd.readouterr() == ("", ""), "torch prints what it could not follow"
    assert not [one for one in caught if issubclass(one.category, ResourceWarning)]

    class Closed(Branch):
        def forward(self, x):
            if torch.jit.is_tracing() or torch.compiler.is_compiling():
                raise ValueError("it may not be\nlooked at")
            return self.layer(x)

    refuses(lambda: holdfast.load_model(Closed(), example=inputs), "Closed can neither be exported nor traced: it may not be$")


def test_runs_are_asked_for_wrongly(network, inputs, tmp_path):
    first, second = audit(network, inputs, out=tmp_path / "a"), audit(make_network(seed=3), inputs, out=tmp_path / "b")
    assert holdfast.compare(tmp_path / "a", str(tmp_path / "b")).equals(holdfast.compare(first, second))
    refuses(lambda: first.worst("2"), "count: '2' is no whole number")
    refuses(lambda: first.worst(1, row=7), "row: 7 must be")
    refuses(lambda: audit(network, inputs, worst=0).worst().plot(), "the run kept no samples")
    refuses(
        lambda: audit(network, inputs, gates="top_k >= 0.2"), r"no row of this run has metric top_k\(k=8\); it has top_k\(k=2\)"
    )
    refuses(lambda: holdfast.measure(inputs, inputs, []), "metrics: there is none")
    refuses(lambda: holdfast.train("mlp", inputs, [0, 1] * 10, early_stopping=3), "early_stopping: 3 is no dictionary")


def test_one_method_where_one_is_taken(network, inputs):
    two = ["saliency", "input_x_gradient"]
    more = {"metric": "top_k(k=2)", "threat": holdfast.Threat("l2", 0.1)}
    for call in (
        lambda: holdfast.explain(network, inputs, two),
        lambda: holdfast.attack(network, inputs, "random", explainer=two, **more),
        lambda: holdfast.certify(network, inputs, explainer=two, **more),
        lambda: holdfast.choose_threat(network, inputs, explainer=two),
        lambda: holdfast.measure_model(network, inputs, "thickness(k=2)", explainer=two, epsilon=0.1),
    ):
        refuses(call, "explainer: 2 are given, and one is taken here; holdfast.audit takes several")
    refuses(
        lambda: holdfast.attack(network, inputs, "random", **(more | {"metric": ["cosine"]})), r"metric: \['cosine'\] is a list"
    )
    assert torch.equal(holdfast.explain(network, inputs, ["saliency"]), holdfast.explain(network, inputs, "saliency"))
    assert audit(network, inputs, gates=None, measure=None).passed
    found = [holdfast.measure_model(network, inputs, "thickness(k=2)", epsilon=one).mean for one in ("1/4", 0.25)]
    assert found[0] == found[1]
    with pytest.raises(TypeError, match="cannot be copied or pickled; make Sequential again with load_model"):
        copy.deepcopy(holdfast.load_model(network, example=inputs))


def test_the_view_in_a_notebook_marks_the_rows_that_fail(network, inputs):
    run = audit(network, inputs, threat=holdfast.Threat("l2", [0.0, 3.0]), gates="top_k(k=2) >= 0.9")
    view = run._repr_html_()
    assert "<p>inputs, saliency, random(samples=3" in view, "what all rows share stands above the table"
    rows = re.findall(r"<tr([^>]*)><td>Sequential</td><td>(\S+)</td>", view)
    assert [(epsilon, bool(style)) for style, epsilon in rows] == [("0", False), ("3", True)]
    labels = [text.get_text() for text in run.plot().axes[0].get_legend().get_texts()]
    assert "found by random points" not in labels, "beside random points there are none"
    assert run.plot().axes[0].get_title().endswith(", l2")
    labels = audit(network, inputs, attack="er(steps=2)").plot().axes[0].get_legend().get_texts()
    assert "found by random points" in [text.get_text() for text in labels]


def test_what_fails_says_how_to_do_it_again(network, inputs):
    with pytest.raises(AssertionError, match=r"again: holdfast.audit\(model, inputs, .*, seed=3\)"):
        assert_explanations_hold(
            network,
            inputs,
            attack="random(samples=3)",
            metric="top_k(k=2)",
            threat=holdfast.Threat("l2", 3),
            at_least=0.99,
            seed=3,
        )


def test_ctrl_c_while_the_bar_is_drawn_says_nothing_else(tmp_path):
    (tmp_path / "long.py").write_text(
        textwrap.dedent("""
        import holdfast, torch
        network = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 3))
        model = holdfast.load_model(network, torch.rand(2, 64))
        try:
            holdfast.audit(model, torch.rand(2000, 64), attack="er(steps=100000)", metric="top_k(k=2)",
                           threat=holdfast.Threat("l2", 0.1), progress=True)
        except KeyboardInterrupt:
            print("stopped")
        """)
    )
    process = subprocess.Popen(
        [sys.executable, "long.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "COLUMNS": "80"},
    )
    seen = b""
    while b"audit:" not in seen:
        seen += process.stderr.read(1)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert output == b"stopped\n" and b"Traceback" not in errors, errors.decode()[-2000:]


def test_the_bar_in_a_notebook_without_widgets_warns_of_nothing(tmp_path):
    code = """
        import sys, types
        class Shell:
            config = {"IPKernelApp": {}}
        sys.modules["IPython"] = types.SimpleNamespace(get_ipython=Shell)
        sys.modules["ipykernel"] = sys.modules["ipywidgets"] = None
        import holdfast, torch
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
        threat = holdfast.Threat("l2", 0.1)
        holdfast.audit(model, torch.rand(8, 4), attack="random(samples=3)", metric="top_k(k=1)", threat=threat)
    """
    command = [sys.executable, "-W", "always::Warning:tqdm", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "audit:" in done.stderr, done.stderr
    assert "IProgress" not in done.stderr and "it/s" not in done.stderr, done.stderr


def test_a_missing_library_is_one_sentence(tmp_path):
    package = tmp_path / "holdfast"
    package.mkdir()
    for file in Path(holdfast.__file__).parent.glob("*.py"):
        (package / file.name).write_text(file.read_text())
    (package / "_core.py").write_text(
        "raise ImportError('libonnx_proto.so.1: cannot open shared object file: No such file or directory')"
    )
    done = subprocess.run([sys.executable, "-c", "import holdfast"], cwd=tmp_path, capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: holdfast needs the library libonnx_proto.so.1, which is not on this machine"), last


def test_the_libraries_that_the_pages_name_are_those_that_are_needed():
    """Of Debian 12: a package for each library of the extension that is neither torch's nor part of any system."""
    owners = {
        "libcurl": "libcurl4",
        "libdeflate": "libdeflate0",
        "libfmt": "libfmt9",
        "libfreetype": "libfreetype6",
        "libjpeg": "libjpeg62-turbo",
        "libonnx_proto": "libonnx1",
        "libpng16": "libpng16-16",
        "libprotobuf": "libprotobuf32",
        "libcrypto": "libssl3",
        "libtomlplusplus": "libtomlplusplus3",
    }
    everywhere = r"lib(c10|torch|z|stdc|gcc_s|c|m|dl|rt|pthread|gomp)\W|lib(torch|c10)_|ld-linux"
    listed = subprocess.run(["readelf", "-d", holdfast._core.__file__], capture_output=True, text=True, check=True).stdout
    needed = [name for name in re.findall(r"\(NEEDED\).*\[(.+)\]", listed) if not re.match(everywhere, name)]
    packages = {owners[name.partition(".so")[0]] for name in needed}
    for page in ("docs/building.md", "examples/github/explanations.yml"):
        text = (ROOT / page).read_text()
        assert packages <= set(re.findall(r"[a-z0-9-]+", text)), page


def test_the_fixture_shows_the_worst_sample(network, inputs, tmp_path):
    with pytest.raises(
        AssertionError, match=r"worst samples:\n  Sequential: \d+, value \d.\d+: top feature .*, feature .* became"
    ) as caught:
        Auditor(tmp_path)(network, inputs, **{**FAST, "threat": holdfast.Threat("l2", 3)}, gates="top_k(k=2) >= 0.99")
    assert str(caught.value).count("worst samples:") == 1
