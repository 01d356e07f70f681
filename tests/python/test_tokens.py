"""Token ids: explained and attacked at the embeddings, one value for each token."""

import json
import os
from pathlib import Path

import holdfast
import pytest
import torch

LENGTH, PADDING = 12, 0


def sentences():
    """A few hundred short reviews as padded ids, and whether they are positive."""
    folder = Path(os.environ.get("HOLDFAST_DATA", "/nowhere")) / "rt_polarity"
    if not folder.is_dir():
        pytest.skip("rt_polarity is not there")
    texts, labels = [], []
    for label, ending in enumerate(("neg", "pos")):
        lines = (folder / f"rt-polarity.{ending}").read_text(encoding="utf-8", errors="replace").splitlines()
        short = [line.split() for line in lines if 8 <= len(line.split()) <= LENGTH][:150]
        texts += short
        labels += [label] * len(short)
    words = {word: i + 1 for i, word in enumerate(sorted({word for text in texts for word in text}))}
    ids = torch.full((len(texts), LENGTH), PADDING)
    for row, text in zip(ids, texts, strict=True):
        row[: len(text)] = torch.tensor([words[word] for word in text])
    return ids, torch.tensor(labels), len(words) + 1


class Transformer(torch.nn.Module):
    """Positions are embedded too; the mask is made from the ids themselves."""

    def __init__(self, words, width=16):
        super().__init__()
        self.words = torch.nn.Embedding(words, width, padding_idx=PADDING)
        self.places = torch.nn.Embedding(LENGTH, width)
        layer = torch.nn.TransformerEncoderLayer(width, 2, 32, dropout=0.0, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = torch.nn.Linear(width, 2)

    def forward(self, ids):
        padding = ids == PADDING
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device).unsqueeze(0))
        x = self.encoder(x, src_key_padding_mask=padding).masked_fill(padding.unsqueeze(2), 0)
        return self.head(x.sum(1) / (~padding).sum(1, keepdim=True))


class Recurrent(torch.nn.Module):
    """Steps first, as recurrent layers take them."""

    def __init__(self, words, width=16):
        super().__init__()
        self.words = torch.nn.Embedding(words, width, padding_idx=PADDING)
        self.lstm = torch.nn.LSTM(width, width)
        self.head = torch.nn.Linear(width, 2)

    def forward(self, ids):
        states, _ = self.lstm(self.words(ids.T))
        counts = (ids != PADDING).float()
        return self.head((states * counts.T.unsqueeze(2)).sum(0) / counts.sum(1, keepdim=True))


@pytest.fixture(scope="module", params=[Transformer, Recurrent])
def trained(request):
    ids, labels, words = sentences()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = request.param(words)
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(12):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(ids), labels).backward()
        optimizer.step()
    assert (model.eval()(ids).argmax(1) == labels).float().mean() > 0.9
    return model, ids[::25]


def reference(model, ids):
    """Saliency at the embeddings, one sentence at a time, in plain PyTorch."""
    maps = []
    for row in ids:
        kept = {}
        keep = lambda _, __, out, kept=kept: kept.setdefault("x", out.detach().requires_grad_())  # noqa: E731
        hook = model.words.register_forward_hook(keep)
        probabilities = model(row.unsqueeze(0)).softmax(1)
        hook.remove()
        gradient = torch.autograd.grad(probabilities.max(1).values.sum(), kept["x"])[0]
        maps.append(gradient.abs().sum(2).reshape(-1))
    return torch.stack(maps).masked_fill(ids == PADDING, 0)


def test_saliency_is_that_of_the_embeddings(trained):
    model, ids = trained
    found = holdfast.explain(model, ids)
    assert found.shape == ids.shape
    assert torch.allclose(found, reference(model, ids), rtol=1e-3, atol=1e-7)
    assert not found[ids == PADDING].any()
    assert (holdfast.explain(model, ids.numpy()) == found.numpy()).all()


@pytest.mark.parametrize(
    "explainer",
    ["input_x_gradient", "integrated_gradients(steps=8)", "smooth_grad(samples=4)", "occlusion", "shapley(samples=1)"],
)
def test_every_explainer_gives_a_value_for_each_token_and_none_for_padding(trained, explainer):
    model, ids = trained
    found = holdfast.explain(model, ids, explainer)
    assert found.shape == ids.shape and found.isfinite().all()
    assert not found[ids == PADDING].any() and (found[ids != PADDING] > 0).float().mean() > 0.9


def test_the_sum_of_integrated_gradients_is_the_difference_of_outputs(trained):
    model, ids = trained
    details = holdfast.explain(model, ids, "integrated_gradients(steps=200,rule=middle)", return_details=True)
    assert details.delta.abs().max() < 0.01


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("attack", ["er(steps=10,k=3)", "gauntlet(effort=light)", "random(samples=20,from=sphere)"])
def test_each_token_moves_in_a_ball_of_its_own(trained, norm, attack):
    if attack.startswith("gauntlet") and norm == "linf":
        pytest.skip("its parts are tried in l2")
    model, ids = trained
    ids, epsilon = ids[:4], 0.3
    moved = holdfast.attack(model, ids, attack, metric="spearman", threat=holdfast.Threat(norm=norm, epsilon=epsilon))
    change = (moved.perturbed - model.words(ids)).detach()
    sizes = change.norm(dim=2) if norm == "l2" else change.abs().amax(2)
    assert sizes.max() <= epsilon * (1 + 1e-4)
    several = (sizes > 0.5 * epsilon).sum(1)
    assert several.max() >= 3, "one ball for the whole sentence would not let three tokens move so far"
    assert (moved.prediction == moved.prediction_after).all()
    assert torch.allclose(moved.norm.float(), sizes.amax(1), atol=1e-5)
    assert moved.original_maps.shape == ids.shape and not moved.perturbed_maps[ids == PADDING].any()


def test_audit_and_measures_take_token_ids(trained, tmp_path):
    model, ids = trained
    run = holdfast.audit(
        model,
        ids[:4],
        attack="er(steps=5,k=3)",
        metric=["top_k(k=3)", "lens_precision(k=3,w=1)", "spearman"],
        measure="deletion",
        threat=holdfast.Threat(epsilon=0.3),
        out=tmp_path / "run",
    )
    assert len(run.rows) == 3 and run.report(tmp_path / "report.html")
    assert "token" in (tmp_path / "run" / "manifest.json").read_text()


def test_padding_is_never_ranked(trained):
    model, ids = trained
    with pytest.raises(holdfast.Error, match=r"has \d+ tokens to rank; choose k <= \d+, or leave the sample out"):
        holdfast.attack(model, ids, metric=f"top_k(k={LENGTH})", threat=holdfast.Threat(epsilon=0.1))
    special = holdfast.as_model(model, special_tokens=[int(ids[0, 0])])
    assert holdfast.explain(special, ids)[0, 0] == 0 < holdfast.explain(model, ids)[0, 0]


def test_mistakes_about_tokens(trained):
    model, ids = trained
    with pytest.raises(holdfast.Error, match=r"token ids must be in 0 to \d+, the rows of words"):
        holdfast.explain(model, ids + 100000)
    with pytest.raises(holdfast.Error, match="embedding: 'wordz' is not one of the module's: words"):
        holdfast.explain(holdfast.as_model(model, embedding="wordz"), ids)
    with pytest.raises(holdfast.Error, match=r"token ids are for a torch\.nn\.Module"):
        holdfast.explain(lambda x: model(x), ids)
    with pytest.raises(holdfast.Error, match=r"give torch\.export\.export\(module, \(ids,\)\)"):
        holdfast.explain(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.EmbeddingBag(5000, 2)), ids)


class Segments(torch.nn.Module):
    """What tokenizers for BERT give beside the tokens: which of two sentences each belongs to."""

    def __init__(self):
        super().__init__()
        self.kinds, self.words = torch.nn.Embedding(2, 8), torch.nn.Embedding(40, 8, padding_idx=PADDING)
        self.head = torch.nn.Linear(8, 3)
        with torch.no_grad():
            generator = torch.Generator().manual_seed(4)
            for weight in self.parameters():
                weight.copy_(torch.randn(weight.shape, generator=generator))

    def forward(self, input_ids, token_type_ids):
        length = input_ids.shape[-1]
        words = self.words(input_ids.view(-1, length))  # as GPT-2 of Hugging Face does
        return self.head(torch.tanh(2 * words + self.kinds(token_type_ids)).sum(1))


def two_sentences():
    ids = torch.randint(1, 40, (5, 6), generator=torch.Generator().manual_seed(1))
    return {"input_ids": ids, "token_type_ids": (torch.arange(6) > 2).long().repeat(5, 1)}


def test_ids_that_are_no_words_are_left_alone():
    model, given = Segments().eval(), two_sentences()
    maps = holdfast.explain(model, given)
    named = holdfast.explain(holdfast.as_model(model, embedding="words"), given)
    assert maps.shape == given["input_ids"].shape and torch.equal(maps, named) and maps.all()
    assert torch.equal(holdfast.explain(model, tuple(given.values())), maps)  # by the names of its arguments
    kinds = holdfast.explain(holdfast.as_model(model, embedding="kinds"), given)
    assert not torch.equal(kinds, maps)


def test_a_model_that_names_its_embedding_is_believed():
    class Named(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = Segments()

        def get_input_embeddings(self):
            return self.body.words

        def forward(self, a, b):
            return self.body(a, b)

    model, (ids, kinds) = Named().eval(), two_sentences().values()
    assert torch.equal(holdfast.explain(model, (ids, kinds)), holdfast.explain(model.body, (ids, kinds)))
    model.get_input_embeddings = None
    with pytest.raises(holdfast.Error, match=r"the token ids go to body\.words, body\.kinds; say which"):
        holdfast.explain(model, (ids, kinds))


class Padded(torch.nn.Module):
    """The mean counts padded places too: torch's fast kernel gives zeros there, or what the batch makes of them."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(40, 16, padding_idx=PADDING)
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.encoder, self.head = torch.nn.TransformerEncoder(layer, 1), torch.nn.Linear(16, 2)

    def forward(self, ids, mask):
        return self.head(self.encoder(self.words(ids), src_key_padding_mask=mask == 0).mean(1))


def test_a_module_of_token_ids_is_tried_among_strange_samples_once(trained):
    model, ids = trained
    first = holdfast.explain(model, ids)
    calls = []
    hook = model.register_forward_hook(lambda _, given, __: calls.append(len(given[0])))
    again = holdfast.explain(model, ids)
    hook.remove()
    assert torch.equal(first, again) and 4 not in calls and calls.count(len(ids)) == 2


def test_a_mask_does_not_make_a_sample_depend_on_the_others():
    model, ids = Padded().eval(), torch.randint(1, 40, (4, 6), generator=torch.Generator().manual_seed(0))
    ids[0, 4:] = PADDING
    enabled = torch.backends.mha.get_fastpath_enabled()
    maps = holdfast.explain(model, {"ids": ids, "mask": (ids != PADDING).long()})
    assert maps.shape == ids.shape and not maps[0, 4:].any() and maps[1].all()
    assert torch.backends.mha.get_fastpath_enabled() == enabled


def test_the_report_shows_sentences_with_their_words(tmp_path):
    words = ["(padding)", "good", "bad", "film", "very"]
    ids = torch.tensor([[4, 1, 3] + [PADDING] * 9, [2, 3] + [PADDING] * 10, [4, 2, 3, 3] + [PADDING] * 8])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Recurrent(len(words))
    settings = {"attack": "random(samples=5)", "metric": "top_k(k=1)", "threat": holdfast.Threat("l2", 0.5), "progress": False}
    run = holdfast.audit(model, ids, schema={"vocabulary": words, "classes": ["no", "yes"]}, out=tmp_path / "run", **settings)
    page = run.report().read_text()
    shown = json.loads(page.split('id="holdfast-data">')[1].split("</script>")[0])["runs"][0]["worst"][0]
    assert len(shown) == 3
    for sample in shown:
        assert [word["text"] for word in sample["words"]] == [words[i] for i in ids[sample["sample"]] if i != PADDING]
        for side in ("before", "after"):
            assert sum(word[side] for word in sample["words"]) == pytest.approx(1)
        assert sum(word["state"] in ("kept", "lost") for word in sample["words"]) == 1
    without = holdfast.audit(model, ids, out=tmp_path / "other", **settings).report().read_text()
    assert '"text":"#4"' in without
    with pytest.raises(holdfast.Error, match="vocabulary"):
        holdfast.audit(model, ids, schema={"vocabulary": "good"}, **settings)
