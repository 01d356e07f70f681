"""Models from files of every kind: the same values, second derivatives, and files that are refused."""

import io
import json
import os
import subprocess
import zipfile

import holdfast
import numpy as np
import onnx
import onnxruntime
import pytest
import some_models
import torch
from conftest import BINARY
from holdfast import _model

NAMES = list(some_models.MAKERS)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Every model as TorchScript, torch.export program and ONNX file, made once."""
    folder = tmp_path_factory.mktemp("files")
    made = {}
    for name in NAMES:
        module, inputs = some_models.make(name)
        paths = [some_models.save(module, inputs, folder / f"{name}{end}") for end in (".pt", ".pt2", ".onnx")]
        made[name] = (module, inputs, paths)
    return made


@pytest.mark.parametrize("name", NAMES)
def test_all_ways_of_reading_a_model_give_the_same_maps_and_attacks(files, name):
    module, inputs, paths = files[name]
    models = [module, holdfast.load_model(module, inputs), *(holdfast.load_model(path) for path in paths)]
    assert all(model.layers == (name in ("mlp", "cnn")) for model in models[1:])
    maps = [holdfast.explain(model, inputs, "integrated_gradients(steps=5)") for model in models]
    options = {"metric": "top_k(k=3)", "threat": holdfast.Threat("l2", 0.2), "select": "last"}
    attacks = [holdfast.attack(model, inputs, "er(steps=3)", **options) for model in models]
    for other in maps[1:]:
        torch.testing.assert_close(other, maps[0], rtol=0, atol=1e-5)
    for other in attacks[1:]:
        torch.testing.assert_close(other.perturbed, attacks[0].perturbed, rtol=0, atol=1e-5)
        assert np.array_equal(np.asarray(other.value), np.asarray(attacks[0].value))
    assert (attacks[0].perturbed - inputs).abs().max() > 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_onnx_files_give_what_onnxruntime_gives(files, name):
    _module, inputs, (_, _, path) = files[name]
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": inputs.numpy()})
    found = holdfast.load_model(path)(inputs)
    torch.testing.assert_close(found, torch.from_numpy(expected), rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", ["cifar10_resnet2b_adv", "cifar10_resnet4b_adv"])
def test_published_onnx_files_for_one_sample_take_batches(name):
    path = os.path.join(os.environ.get("HOLDFAST_DATA", "../shared/data"), "models", f"{name}.onnx")
    if not os.path.exists(path):
        pytest.skip("the data folder has no models")
    inputs = torch.rand(3, 3, 32, 32, generator=torch.Generator().manual_seed(2))
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    expected = [session.run(None, {session.get_inputs()[0].name: row[None].numpy()})[0] for row in inputs]
    model = holdfast.load_model(path)
    assert model.layers
    torch.testing.assert_close(model(inputs), torch.from_numpy(np.concatenate(expected)), rtol=0, atol=1e-4)


def test_the_newer_exporter_of_onnx(tmp_path):
    module, inputs = some_models.make("transformer")
    dynamic = ({0: torch.export.Dim("batch")},)
    program = torch.onnx.export(module, (inputs,), dynamo=True, dynamic_shapes=dynamic, verbose=False)
    program.save(tmp_path / "new.onnx")
    torch.testing.assert_close(holdfast.load_model(tmp_path / "new.onnx")(inputs), module(inputs), rtol=0, atol=1e-5)


def test_a_program_for_one_number_of_samples_takes_others(tmp_path):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = some_models.settled(torch.nn.Linear(6, 3))

        def forward(self, x):
            return self.layer(x).reshape(4, 3)  # four samples, neither more nor fewer

    inputs = torch.rand(7, 6)
    torch.export.save(torch.export.export(Tied(), (inputs[:4],)), tmp_path / "tied.pt2")
    model = holdfast.load_model(tmp_path / "tied.pt2")
    torch.testing.assert_close(model(inputs), Tied().layer(inputs))


def test_the_fast_path_of_transformers_in_a_file_is_opened(tmp_path):
    module, inputs = some_models.make("transformer")
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    path = some_models.save(module, inputs, tmp_path / "fast.pt")
    code = b"".join(part for name, part in contents(path).items() if name.endswith(".py"))
    assert b"_transformer_encoder_layer_fwd" in code
    model = holdfast.load_model(path)
    torch.testing.assert_close(holdfast.explain(model, inputs), holdfast.explain(module, inputs), rtol=0, atol=1e-5)
    holdfast.attack(model, inputs, "er(steps=2)", metric="top_k(k=3)", threat=holdfast.Threat("l2", 0.2))


def test_dropout_that_was_traced_in_training_mode_is_off(tmp_path):
    for name in ("vit", "lstm"):
        module, inputs = some_models.make(name)
        path = some_models.save(module.train(), inputs, tmp_path / f"{name}.pt")
        torch.testing.assert_close(holdfast.load_model(path)(inputs), module.eval()(inputs))


def test_kernels_of_attention_are_as_they_were_after_an_attack():
    module, inputs = some_models.make("vit")
    backends = torch.backends.cuda
    before = backends.flash_sdp_enabled(), backends.mem_efficient_sdp_enabled(), backends.math_sdp_enabled()
    fast = torch.backends.mha.get_fastpath_enabled()
    holdfast.attack(module, inputs, "er(steps=2)", metric="top_k(k=3)", threat=holdfast.Threat("l2", 0.2))
    holdfast.load_model(module, inputs)
    assert before == (backends.flash_sdp_enabled(), backends.mem_efficient_sdp_enabled(), backends.math_sdp_enabled())
    assert fast == torch.backends.mha.get_fastpath_enabled()


def contents(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(path, out, change):
    """The archive with its graph and its list of weights changed."""
    parts = contents(path)
    graph = next(name for name in parts if "/models/" in name)
    config = next(name for name in parts if name.endswith("weights_config.json"))
    model, weights = json.loads(parts[graph]), json.loads(parts[config])
    change(model, weights["config"])
    with zipfile.ZipFile(out, "w") as archive:
        for name, part in {**parts, graph: json.dumps(model), config: json.dumps(weights)}.items():
            archive.writestr(name, part)
    return out


def nodes(model):
    return model["graph_module"]["graph"]["nodes"]


REFUSED = [
    (lambda model, weights: model["schema_version"].update(major=7), "has version 7 of the format"),
    (lambda model, weights: nodes(model)[0].update(target="os.system"), "operators of torch.ops.aten are read"),
    (lambda model, weights: nodes(model)[0].update(target="torch.ops.aten.from_file.default"), "uses aten::from_file"),
    (lambda model, weights: nodes(model)[0].update(target="torch.ops.aten.linea.default"), "no such operator"),
    (
        lambda model, weights: nodes(model)[0].update(inputs=nodes(model)[0]["inputs"][:1]),
        "node 0 .torch.ops.aten.linear.default. cannot be called so",
    ),
    (lambda model, weights: nodes(model)[0]["inputs"][0].update(name="other"), "has no argument other"),
    (lambda model, weights: nodes(model)[0]["inputs"][0]["arg"]["as_tensor"].update(name="y"), "reads y, which is not there"),
    (lambda model, weights: nodes(model)[0]["inputs"][1].update(arg={"as_string": "w"}), "cannot be called so"),
    (lambda model, weights: nodes(model)[1]["outputs"][0]["as_tensor"].update(name="linear"), "two values are called linear"),
    (lambda model, weights: nodes(model).pop(), "its result reads"),
    (lambda model, weights: model.pop("graph_module"), "key 'graph_module' not found"),
    (lambda model, weights: weights["0.weight"].update(use_pickle=True), "0.weight is pickled"),
    (lambda model, weights: weights.pop("0.weight"), "does not hold 0.weight"),
    (lambda model, weights: weights["0.weight"].update(path_name="weight_9"), "weight_9, which is missing"),
    (
        lambda model, weights: weights["0.weight"]["tensor_meta"].update(strides=[{"as_int": 6}, {"as_int": 2}]),
        "0.weight reaches past its record",
    ),
]


@pytest.mark.parametrize(("change", "saying"), REFUSED)
def test_programs_that_are_refused(files, tmp_path, change, saying):
    with pytest.raises(holdfast.Error, match=saying):
        holdfast.load_model(rewritten(files["mlp"][2][1], tmp_path / "bad.pt2", change))


def test_onnx_files_that_are_refused(files, tmp_path):
    path = files["mlp"][2][2]

    def refused(change, saying):
        model = onnx.load(path)
        change(model)
        onnx.save(model, tmp_path / "bad.onnx")
        with pytest.raises(holdfast.Error, match=saying):
            holdfast.load_model(tmp_path / "bad.onnx")

    refused(lambda model: setattr(model.graph.node[0], "op_type", "Loop"), "operator Loop .* is not read")
    refused(lambda model: setattr(model.graph.node[0], "domain", "com.other"), "operator Gemm of com.other")
    refused(lambda model: setattr(model.opset_import[0], "version", 5), "uses opset 5")
    refused(lambda model: model.graph.initializer[0].dims.__setitem__(0, 1 << 40), "weight")
    refused(lambda model: model.graph.node[0].input.__setitem__(0, "nothing"), "reads nothing, which is not there")
    whole = path.read_bytes()
    (tmp_path / "half.onnx").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(holdfast.Error, match="is not an ONNX file"):
        holdfast.load_model(tmp_path / "half.onnx")


def test_recurrent_layers_of_onnx_are_those_of_torch_or_refused(files, tmp_path):
    module, inputs, (_, _, path) = files["rnn"]

    def changed(**attributes):
        model = onnx.load(path)
        node = next(node for node in model.graph.node if node.op_type == "RNN")
        for name, value in attributes.items():
            own = [one for one in node.attribute if one.name == name]
            for one in own:
                node.attribute.remove(one)
            node.attribute.append(onnx.helper.make_attribute(name, value))
        onnx.save(model, tmp_path / "changed.onnx")
        return tmp_path / "changed.onnx"

    relu = changed(activations=["Relu"])
    session = onnxruntime.InferenceSession(str(relu), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": inputs.numpy()})
    torch.testing.assert_close(holdfast.load_model(relu)(inputs), torch.from_numpy(expected), rtol=0, atol=1e-5)
    assert (module(inputs) - torch.from_numpy(expected)).abs().max() > 0.01
    for attributes, saying in (({"activations": ["Elu"]}, "has Elu where"), ({"direction": "reverse"}, "runs backwards only")):
        with pytest.raises(holdfast.Error, match=saying):
            holdfast.load_model(changed(**attributes))


def saved(content):
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


OTHER_FILES = {
    "weights.pt": (lambda: saved(some_models.Mlp().state_dict()), "is a file of torch.save"),
    "module.pth": (lambda: saved(some_models.Mlp()), "a pickle is a program"),
    "model.pkl": (lambda: b"\x80\x04\x95", "is a pickle"),
    "model.h5": (lambda: b"\x89HDF\r\n\x1a\n" + bytes(64), "is an HDF5 file .Keras."),
    "model.csv": (lambda: b"a,b\n1,2\n", "is a text, not a model"),
    "model.npy": (lambda: b"\x93NUMPY\x01\x00", "is an array"),
}


@pytest.mark.parametrize("name", OTHER_FILES)
def test_other_files_are_named(tmp_path, name):
    content, saying = OTHER_FILES[name]
    (tmp_path / name).write_bytes(content())
    with pytest.raises(holdfast.Error, match=saying):
        holdfast.load_model(tmp_path / name)


def test_the_command_line_reads_and_describes_them(files, tmp_path):
    module, inputs, paths = files["vit"]
    np.save(tmp_path / "x.npy", inputs.numpy())
    expected = holdfast.explain(module, inputs)
    for path in paths:
        said = subprocess.run([BINARY, "describe", path], capture_output=True, text=True, check=True).stdout
        for part in ("Input: x", "Output: 3 numbers", "parameters", "taken as a logit for each class", "Layers seen"):
            assert part in said, said
        arguments = ["--model", path, "--inputs", tmp_path / "x.npy", "--explainer", "saliency", "--out", tmp_path / "a.npy"]
        subprocess.run([BINARY, "explain", *arguments], capture_output=True, check=True)
        torch.testing.assert_close(torch.from_numpy(np.load(tmp_path / "a.npy")), expected, rtol=0, atol=1e-5)


def test_a_file_is_tried_among_strange_samples_once_for_each_shape(files):
    """Trying costs two passes of four samples; what a file does not mix once it never mixes."""
    _, inputs, (_, path, _) = files["transformer"]
    model = holdfast.load_model(path)

    def tried_before(inputs):
        with _model.prepared(model, _model.input_form(model, inputs, None)) as native:
            return native.known_apart

    holdfast.explain(model, inputs)
    assert tried_before(inputs) and tried_before(inputs[:2])
    assert not tried_before(torch.cat([inputs, inputs]))
    first = holdfast.explain(holdfast.load_model(path), inputs)
    assert torch.equal(holdfast.explain(model, inputs), first)
