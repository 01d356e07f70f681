"""A tiny BERT made from a configuration: token ids with a mask, and an output object."""

import holdfast
import pytest
import torch

transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def bert():
    config = transformers.BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
    )
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification(config).eval()
    with torch.no_grad():
        model.classifier.weight.mul_(20)
    ids = torch.randint(5, 50, (4, 8))
    mask = torch.ones_like(ids)
    ids[0, 6:], mask[0, 6:] = config.pad_token_id, 0
    return model, {"input_ids": ids, "attention_mask": mask}


def test_each_token_has_a_value_and_padding_none(bert):
    model, encoded = bert
    maps = holdfast.explain(model, encoded)
    embedding, kept = model.get_input_embeddings(), {}
    hook = embedding.register_forward_hook(lambda _, __, out: kept.setdefault("x", out.detach().requires_grad_()))
    scores = model(**encoded).logits.softmax(1).max(1).values.sum()
    hook.remove()
    expected = torch.autograd.grad(scores, kept["x"])[0].abs().sum(2) * encoded["attention_mask"]
    assert torch.allclose(maps, expected, rtol=1e-3, atol=1e-7)
    assert not maps[0, 6:].any()


def test_what_a_tokenizer_gives_goes_in_as_it_is(bert):
    model, encoded = bert
    given = {**encoded, "token_type_ids": torch.zeros_like(encoded["input_ids"])}
    assert torch.equal(holdfast.explain(model, given), holdfast.explain(model, encoded))
    copy = holdfast.load_model(model, example=given)
    torch.testing.assert_close(holdfast.explain(copy, given), holdfast.explain(model, given), rtol=0, atol=1e-5)


def test_a_copy_of_a_model_that_reshapes_its_ids(bert):
    config = transformers.GPT2Config(vocab_size=50, n_embd=16, n_layer=1, n_head=2, n_positions=16, pad_token_id=0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.GPT2ForSequenceClassification(config).eval()
    encoded = bert[1]
    copy = holdfast.load_model(model, example=encoded)
    torch.testing.assert_close(holdfast.explain(copy, encoded), holdfast.explain(model, encoded), rtol=0, atol=1e-5)


def test_it_is_attacked_in_a_ball_for_each_token(bert):
    model, encoded = bert
    for attack in ("er(steps=5)", "gauntlet(effort=light)"):
        moved = holdfast.attack(model, encoded, attack, metric="top_k(k=2)", threat=holdfast.Threat(epsilon=0.05))
        size = (moved.perturbed - model.get_input_embeddings()(encoded["input_ids"])).norm(dim=2)
        assert size.max() <= 0.05 * (1 + 1e-4) and (moved.prediction == moved.prediction_after).all()
