"""Several inputs, and sequences."""

import holdfast
import pytest
import torch
from conftest import make_network


class Two(torch.nn.Module):
    """A table that counts and one that scales it."""

    def __init__(self):
        super().__init__()
        self.network = make_network(inputs=4)

    def forward(self, x, scale, mask=None):
        z = self.network(x * scale.mean(1, keepdim=True))
        return z if mask is None else z * mask.to(z.dtype)


@pytest.fixture
def tables():
    generator = torch.Generator().manual_seed(3)
    return torch.rand(6, 4, generator=generator), 1 + torch.rand(6, 3, generator=generator)


def saliency_of(model, x, *rest):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(model(x, *rest).softmax(1).max(1).values.sum(), x)[0].abs()


def test_one_of_two_inputs_is_fixed(tables):
    model, (x, scale) = Two(), tables
    expected = saliency_of(model, x, scale)
    by_place = holdfast.explain(model, (x, scale), schema={"fixed": [1]})
    assert by_place[1] is None and torch.allclose(by_place[0], expected, atol=1e-6)
    by_name = holdfast.explain(model, {"scale": scale, "x": x}, schema={"fixed": ["scale"]})
    assert list(by_name) == ["x"] and torch.allclose(by_name["x"], expected, atol=1e-6)
    for explainer in ("integrated_gradients(steps=5)", "smooth_grad(samples=3)", "occlusion", "shapley(samples=2)"):
        alone = [
            holdfast.explain(
                lambda y, row=row: model(y, scale[row : row + 1].expand(len(y), -1)),
                x[row : row + 1],
                explainer,
                targets=int(model(x, scale)[row].argmax()),
            )
            for row in range(len(x))
        ]
        found = holdfast.explain(model, (x, scale), explainer, schema={"fixed": [1]})[0]
        if explainer.startswith(("smooth", "shapley")):
            assert torch.allclose(found[:1], alone[0], atol=1e-5)  # the others have random streams of their own
        else:
            assert torch.allclose(found, torch.cat(alone), atol=1e-5)


def test_only_what_is_explained_is_perturbed(tables):
    model, (x, scale) = Two(), tables
    mask = torch.ones(6, 1, dtype=torch.bool)
    threat = holdfast.Threat(epsilon=0.4)
    moved = holdfast.attack(
        model, {"x": x, "scale": scale, "mask": mask}, metric="top_k(k=2)", threat=threat, schema={"fixed": ["scale"]}
    )
    assert list(moved.perturbed) == ["x"]
    assert torch.equal(model(moved.perturbed["x"], scale, mask).argmax(1), model(x, scale, mask).argmax(1))
    assert (moved.perturbed["x"] - x).norm(dim=1).max() <= 0.4 + 1e-6 and moved.value.mean() < 1
    both = holdfast.attack(model, (x, scale), metric="top_k(k=2)", threat=threat)
    shift = torch.cat([both.perturbed[0] - x, both.perturbed[1] - scale], 1).norm(dim=1)
    assert shift.max() <= 0.4 + 1e-6 and (both.perturbed[1] - scale).abs().max() > 1e-3


def test_a_picture_beside_a_table(tables):
    class Picture(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = make_network(inputs=25)

        def forward(self, picture, table):
            return self.network(picture.flatten(1)) * table.mean(1, keepdim=True)

    model, picture = Picture(), torch.rand(6, 1, 5, 5)
    maps, nothing = holdfast.explain(model, (picture, tables[1]), schema={"fixed": [1]})
    assert nothing is None and torch.allclose(maps, saliency_of(model, picture, tables[1]), atol=1e-6)
    moved = holdfast.attack(
        model, (picture, tables[1]), metric="lens_precision(k=4,w=1)", threat=holdfast.Threat(epsilon=0.3), schema={"fixed": [1]}
    )
    assert moved.perturbed[0].shape == picture.shape


def test_mistakes_about_several_inputs(tables):
    model, (x, scale) = Two(), tables
    with pytest.raises(holdfast.Error, match="Two takes more inputs than one; give a tuple or a dictionary"):
        holdfast.explain(model, x)
    with pytest.raises(holdfast.Error, match="different numbers of samples"):
        holdfast.explain(model, (x, scale[:3]))
    with pytest.raises(holdfast.Error, match="fixed: 'mask' is not one of the inputs 0, 1"):
        holdfast.explain(model, (x, scale), schema={"fixed": ["mask"]})
    with pytest.raises(holdfast.Error, match="'size' is not one that the model takes: x, scale, mask"):
        holdfast.explain(model, {"x": x, "size": scale})
    with pytest.raises(holdfast.Error, match="'scale' is missing; the model takes x, scale, mask"):
        holdfast.explain(model, {"x": x})
    with pytest.raises(holdfast.Error, match="there are 4, but the model takes 3: x, scale, mask"):
        holdfast.explain(model, (x, scale, scale, scale))
    with pytest.raises(holdfast.Error, match="there is none to explain"):
        holdfast.explain(model, (x, scale), schema={"fixed": [0, 1]})


class Series(torch.nn.Module):
    def __init__(self):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(1)
            self.lstm = torch.nn.LSTM(3, 8, batch_first=True)
            self.head = torch.nn.Linear(8, 3)

    def forward(self, x):
        return 8 * self.head(self.lstm(x)[0][:, -1])


def test_sequences_are_ranked_by_step_or_by_number():
    model, x = Series(), torch.rand(5, 7, 3, generator=torch.Generator().manual_seed(2))
    steps = {"layout": {"kind": "sequence", "length": 7, "width": 3}}
    numbers = {"layout": {"kind": "sequence", "length": 7, "width": 3, "features": "numbers"}}
    maps = holdfast.explain(model, x, schema=steps)
    assert torch.allclose(maps, saliency_of(lambda y: model(y), x), atol=1e-6)
    other = holdfast.explain(model, x + 0.3 * torch.rand(x.shape, generator=torch.Generator().manual_seed(4)), schema=steps)
    by_step = holdfast.measure(maps, other, "top_k(k=2)", schema=steps).values
    tops = [set(m.abs().sum(-1).topk(2, dim=1).indices[i].tolist()) for i in range(5) for m in (maps, other)]
    assert by_step.tolist() == [len(a & b) / 2 for a, b in zip(tops[::2], tops[1::2], strict=True)]
    by_number = holdfast.measure(maps, other, "top_k(k=2)", schema=numbers).values
    tops = [set(m[i].abs().flatten().topk(2).indices.tolist()) for i in range(5) for m in (maps, other)]
    assert by_number.tolist() == [len(a & b) / 2 for a, b in zip(tops[::2], tops[1::2], strict=True)]
    for schema in (steps, numbers):
        moved = holdfast.attack(
            model, x, "er(steps=10)", metric="lens_precision(k=2,w=1)", threat=holdfast.Threat(epsilon=0.5), schema=schema
        )
        assert moved.perturbed.shape == x.shape and (moved.prediction == moved.prediction_after).all()
    occluded = holdfast.explain(model, x, "occlusion", schema=steps)
    assert torch.equal(occluded, occluded[:, :, :1].expand_as(occluded)), "a step is replaced as a whole"


def test_neighbours_of_a_number_are_in_time():
    schema = {"layout": {"kind": "sequence", "length": 4, "width": 2, "features": "numbers"}}

    def at(*places):
        one = torch.zeros(1, 4, 2)
        for step, number in places:
            one[0, step, number] = 1
        return one

    found = lambda moved: holdfast.measure(at((1, 0)), moved, "lens_precision(k=1,w=1)", schema=schema).values.item()  # noqa: E731
    assert found(at((2, 0))) == 1 and found(at((0, 0))) == 1
    assert found(at((1, 1))) == 0 and found(at((3, 0))) == 0
