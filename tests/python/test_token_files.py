"""Model files of token ids and of several inputs, on the command line: the same as the module gives in Python."""

import json
import subprocess
import warnings

import holdfast
import numpy as np
import pytest
import torch
from conftest import BINARY
from some_models import save_files
from test_inputs import Two
from test_tokens import LENGTH, PADDING, Segments, trained, two_sentences  # noqa: F401

ENDINGS = (".pt2", ".pt", ".onnx")


def run(*arguments, code=0):
    done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture(scope="module")
def text(trained, tmp_path_factory):  # noqa: F811
    """A trained model of token ids, its files, and a few sentences."""
    model, ids = trained
    folder = tmp_path_factory.mktemp("text")
    np.save(folder / "ids.npy", ids.numpy())
    return model, ids, folder, save_files(model, {"ids": ids}, folder)


@pytest.mark.parametrize("ending", ENDINGS)
def test_files_of_token_ids_are_explained_as_their_module_is(text, ending):
    model, ids, folder, files = text
    file = holdfast.load_model(files[ending])
    np.testing.assert_allclose(holdfast.explain(file, ids.numpy()), holdfast.explain(model, ids.numpy()), atol=1e-6)
    for explainer in ("saliency", "integrated_gradients(steps=8)", "occlusion"):
        out = folder / "maps.npy"
        run("explain", "--model", files[ending], "--inputs", folder / "ids.npy", "--explainer", explainer, "--out", out)
        found, expected = np.load(out), holdfast.explain(model, ids.numpy(), explainer)
        assert found.shape == ids.shape and not found[ids.numpy() == PADDING].any()
        np.testing.assert_allclose(found, expected, atol=1e-5 * abs(expected).max())


def test_attack_and_audit_of_token_ids(text):
    model, ids, folder, files = text
    common = ["--inputs", folder / "ids.npy", "--attack", "er(steps=5)", "--metric", "top_k(k=3)", "--epsilon", 0.3]
    threat = holdfast.Threat(epsilon=0.3)
    expected = holdfast.attack(model, ids.numpy(), "er(steps=5)", metric="top_k(k=3)", threat=threat)
    for ending in ENDINGS:
        run("attack", "--model", files[ending], *common, "--out", folder / f"attack{ending}")
        samples = json.loads((folder / f"attack{ending}" / "result.json").read_text())["samples"]
        np.testing.assert_allclose([one["value"] for one in samples], expected.value, atol=1e-6)
        moved = np.load(folder / f"attack{ending}" / "perturbed.npy")
        change = moved - model.words(ids).detach().numpy()
        assert moved.shape == (*ids.shape, 16) and np.linalg.norm(change, axis=2).max() <= 0.3 * (1 + 1e-4)
        assert np.load(folder / f"attack{ending}" / "original_attributions.npy").shape == ids.shape
    run("audit", "--model", files[".pt2"], *common, "--out", folder / "run")
    run("verify", folder / "run")
    run("report", folder / "run", "--out", folder / "report.html")


def test_special_tokens_and_the_embedding_are_named(text):
    _, ids, folder, files = text
    word = int(ids[0, 0])
    (folder / "special.json").write_text(json.dumps({"special_tokens": [word]}))
    common = ["explain", "--model", files[".pt2"], "--inputs", f"ids={folder / 'ids.npy'}", "--out", folder / "maps.npy"]
    run(*common, "--embedding", "words", "--schema", folder / "special.json")
    maps = np.load(folder / "maps.npy")
    assert not maps[ids.numpy() == word].any() and maps[0, 1] > 0
    said = run(*common, "--embedding", "wordz", code=2).stderr
    assert "no embedding called 'wordz' reads token ids; words does" in said
    np.save(folder / "far.npy", ids.numpy() + 100000)
    said = run("explain", "--model", files[".pt2"], "--inputs", folder / "far.npy", "--out", folder / "maps.npy", code=2).stderr
    assert "token ids must be in 0 to" in said
    described = run("describe", files[".pt2"]).stdout
    assert "ids (token ids, read by the embedding words)" in described


class Masked(torch.nn.Module):
    """Token ids and a mask of those that count."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(40, 8)
        self.head = torch.nn.Linear(8, 3)
        with torch.no_grad():
            for i, weight in enumerate(self.parameters()):
                weight.copy_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(i)))

    def forward(self, ids, mask):
        words = torch.tanh(self.words(ids)) * mask.unsqueeze(2)
        return self.head(words.sum(1) / mask.sum(1, keepdim=True))


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_mask_leaves_tokens_out(tmp_path, ending):
    model, generator = Masked().eval(), torch.Generator().manual_seed(1)
    ids = torch.randint(0, 40, (4, 6), generator=generator)
    mask = (torch.arange(6) < torch.tensor([[6], [4], [5], [3]])).float()
    file = save_files(model, {"ids": ids, "mask": mask}, tmp_path, [ending])[ending]
    np.save(tmp_path / "ids.npy", ids.numpy())
    np.save(tmp_path / "mask.npy", mask.numpy())
    given = ["--inputs", f"ids={tmp_path / 'ids.npy'}", "--inputs", f"mask={tmp_path / 'mask.npy'}"]
    run("explain", "--model", file, *given, "--out", tmp_path / "maps.npy")
    found = np.load(tmp_path / "maps.npy")
    assert not found[mask.numpy() == 0].any()
    np.testing.assert_allclose(found, holdfast.explain(model, {"ids": ids, "mask": mask}).numpy(), atol=1e-5)
    said = run("explain", "--model", file, *given[:2], "--out", tmp_path / "maps.npy", code=2).stderr
    assert "mask is missing (--inputs mask=FILE.npy)" in said
    said = run("explain", "--model", file, "--inputs", tmp_path / "mask.npy", "--out", tmp_path / "maps.npy", code=2).stderr
    assert "takes 2 inputs, ids, mask: give each of them, --inputs NAME=FILE.npy" in said


def test_describe_asks_a_file_of_several_inputs_once(tmp_path):
    ids, mask = torch.randint(0, 40, (4, 6)), torch.ones(4, 6)
    file = save_files(Masked().eval(), {"ids": ids, "mask": mask}, tmp_path, [".pt2"])[".pt2"]
    said = run("describe", file).stdout
    assert "takes 2 inputs" not in said and "Measures are asked when the samples are there" in said


@pytest.mark.parametrize("ending", ENDINGS)
def test_padding_that_the_model_does_not_leave_out_is_not_ranked(tmp_path, ending):
    class Summed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.head = torch.nn.Embedding(40, 8, padding_idx=0), torch.nn.Linear(8, 3)

        def forward(self, ids):
            return self.head(torch.tanh(self.words(ids)).sum(1))

    model, ids = Summed().eval(), torch.randint(1, 40, (4, 6))
    ids[0, 4:] = 0
    file = holdfast.load_model(save_files(model, {"ids": ids}, tmp_path, [ending])[ending])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = holdfast.explain(file, ids)
    assert not found[0, 4:].any()
    torch.testing.assert_close(found, holdfast.explain(model, ids), rtol=0, atol=1e-6)
    said = [str(warning.message) for warning in caught if "token 0 is taken as padding" in str(warning.message)]
    assert len(said) == (ending == ".onnx")  # the other formats say it themselves


@pytest.mark.parametrize("ending", ENDINGS)
def test_several_inputs_are_explained_and_attacked_as_their_module_is(tmp_path, ending):
    model, generator = Two().eval(), torch.Generator().manual_seed(1)
    values = {"x": torch.rand(6, 4, generator=generator), "scale": torch.rand(6, 1, generator=generator) + 0.5}
    file = save_files(model, values, tmp_path, [ending])[ending]
    given = []
    for name, value in values.items():
        np.save(tmp_path / f"{name}.npy", value.numpy())
        given += ["--inputs", f"{name}={tmp_path / name}.npy"]
    schema = {"fixed": ["scale"]}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    common = ["--model", file, *given, "--schema", tmp_path / "schema.json"]
    run("explain", *common, "--out", tmp_path / "maps.npy")
    expected = holdfast.explain(model, values, schema=schema)["x"]
    np.testing.assert_allclose(np.load(tmp_path / "maps.npy"), expected.numpy(), atol=1e-5)
    attack = ["--attack", "er(steps=5)", "--metric", "top_k(k=2)", "--epsilon", 0.4]
    run("attack", *common, *attack, "--out", tmp_path / "attack")
    threat = holdfast.Threat(epsilon=0.4)
    same = holdfast.attack(model, values, "er(steps=5)", metric="top_k(k=2)", threat=threat, schema=schema)
    np.testing.assert_allclose(np.load(tmp_path / "attack" / "perturbed.npy"), same.perturbed["x"].numpy(), atol=1e-5)
    run("audit", *common, *attack, "--out", tmp_path / "run")
    run("verify", tmp_path / "run")
    # Without the schema both are explained, one after the other.
    run("explain", "--model", file, *given, "--out", tmp_path / "maps.npy")
    both = holdfast.explain(model, values)
    np.testing.assert_allclose(np.load(tmp_path / "maps.npy"), torch.cat(list(both.values()), 1).numpy(), atol=1e-5)


@pytest.mark.parametrize("ending", ENDINGS)
def test_ids_beside_the_words_and_ids_in_another_shape(tmp_path, ending):
    model, given = Segments().eval(), two_sentences()
    (path,) = save_files(model, given, tmp_path, [ending]).values()
    expected = holdfast.explain(model, given).numpy()
    np.testing.assert_allclose(holdfast.explain(holdfast.load_model(path), given).numpy(), expected, atol=1e-6)
    inputs = []
    for name, value in given.items():
        np.save(tmp_path / f"{name}.npy", value.numpy())
        inputs += ["--inputs", f"{name}={tmp_path / name}.npy"]
    run("explain", "--model", path, *inputs, "--out", tmp_path / "maps.npy")
    np.testing.assert_allclose(np.load(tmp_path / "maps.npy"), expected, atol=1e-6)


def test_a_file_is_read_once_for_inputs_of_one_kind(text, monkeypatch):
    _, ids, _, files = text
    model, read, load = holdfast.load_model(files[".pt2"]), [], holdfast._core.load_packed_model
    monkeypatch.setattr(holdfast._core, "load_packed_model", lambda *given: read.append(given) or load(*given))
    first = holdfast.explain(model, ids)
    torch.testing.assert_close(holdfast.explain(model, ids[:3]), first[:3], rtol=0, atol=1e-6)
    assert torch.equal(holdfast.explain(model, ids), first) and len(read) == 1
    assert torch.equal(holdfast.explain(model, ids.int()), first) and len(read) == 2


def test_files_of_several_inputs_take_as_many_samples_of_each(tmp_path):
    model, given = Segments().eval(), two_sentences()
    (path,) = save_files(model, given, tmp_path, [".pt2"]).values()
    with pytest.raises(holdfast.Error, match="different numbers of samples"):
        holdfast.explain(holdfast.load_model(path), {**given, "token_type_ids": given["token_type_ids"][:3]})


def test_inputs_that_are_refused_are_named(tmp_path):
    generator = torch.Generator().manual_seed(1)
    x, scale = torch.rand(5, 4, generator=generator), torch.rand(5, 3, generator=generator)
    (path,) = save_files(Two().eval(), {"x": x, "scale": scale}, tmp_path, [".pt2"]).values()
    with pytest.raises(holdfast.Error, match=r"refused samples of x \[3\] \(float32\), scale \[4\] \(float32\): "):
        holdfast.explain(holdfast.load_model(path), {"x": scale, "scale": x})
