"""Epsilons, k and a gate from the data; the command line's are the same."""

import json

import holdfast
import numpy as np
import pytest
import torch
from conftest import make_network

pytestmark = pytest.mark.filterwarnings("ignore::holdfast.HoldfastWarning")


def nearest(rows, power):
    distances = np.linalg.norm(rows[:, None] - rows[None], ord=power, axis=2)
    np.fill_diagonal(distances, np.inf)
    return np.sort(distances.min(1))[len(rows) // 2]


def test_the_largest_epsilon_is_halfway_to_the_next_sample(network, inputs):
    for norm, power in (("l2", 2), ("l1", 1), ("linf", np.inf)):
        chosen = holdfast.choose_threat(network, inputs, norm=norm)
        expected = nearest(inputs.double().numpy(), power)
        assert chosen.facts["neighbour"] == pytest.approx(expected, rel=1e-5)
        assert chosen.threat.epsilons[-1] == pytest.approx(expected / 2, rel=0.05)
        low, middle, high = chosen.threat.epsilons
        assert low < middle < high and middle == pytest.approx((low * high) ** 0.5, rel=0.1)


def test_rounding_and_noise_are_the_smallest(network):
    rows = torch.randint(0, 4, (200, 6), generator=torch.Generator().manual_seed(0)) / 4
    chosen = holdfast.choose_threat(network, rows)
    assert chosen.facts["rounding"] == pytest.approx(np.sqrt(6) / 8)
    spread = torch.rand(200, 6, generator=torch.Generator().manual_seed(1))
    assert holdfast.choose_threat(network, spread).facts["rounding"] == 0
    noisy = holdfast.choose_threat(network, spread, noise=0.001)
    assert noisy.threat.epsilons[0] == pytest.approx(0.001 * np.sqrt(6), rel=0.05)
    assert "the noise that you gave" in str(noisy)


def test_it_can_be_audited_as_it_is(network, inputs):
    chosen = holdfast.choose_threat(network, inputs)
    run = holdfast.audit(
        network,
        inputs,
        attack="random(samples=3)",
        threat=chosen.threat,
        metric=chosen.metric,
        gates=chosen.gates,
        progress=False,
    )
    assert len(run.rows) == 3 and chosen.k <= 6 // 4 + 1
    values = [point["value"] for point in chosen.facts["curve"]]
    assert values == sorted(values, reverse=True)  # more epsilon never finds less


def test_images_and_their_bytes():
    images = torch.randint(0, 256, (30, 1, 6, 6), generator=torch.Generator().manual_seed(0)) / 255
    conv = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(32, 2))
    chosen = holdfast.choose_threat(conv, images)
    assert chosen.threat.norm == "linf" and chosen.threat.box == (0, 1)
    assert chosen.facts["rounding"] == pytest.approx(0.5 / 255, rel=1e-3)


def test_the_command_line_says_the_same(saved, inputs, program):
    told = json.loads(program("audit", "--suggest", "--model", "mlp:model.safetensors", "--inputs", "inputs.npy", "--json"))
    found = holdfast.choose_threat(holdfast.load_model(f"mlp:{saved}/model.safetensors"), inputs)
    assert told["threat"]["epsilon"] == found.threat.epsilons and told["reasons"] == found.reasons
    text = program("audit", "--suggest", "--model", "mlp:model.safetensors", "--inputs", "inputs.npy")
    assert "--gate" in text and found.reasons[0] in text and not (saved / "runs").exists()


def test_mistakes(network, inputs):
    with pytest.raises(holdfast.Error, match="all alike"):
        holdfast.choose_threat(network, inputs[:1].repeat(4, 1))
    with pytest.raises(holdfast.Error, match="two that differ"):
        holdfast.choose_threat(network, inputs[:1])
    with pytest.raises(holdfast.Error, match="noise"):
        holdfast.choose_threat(make_network(), inputs, noise=-1.0)


class Words(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = torch.nn.Embedding(500, 8, padding_idx=0), torch.nn.Linear(8, 2)

    def forward(self, ids):
        return self.head(torch.tanh(self.words(ids)).sum(1))


def test_of_tokens_the_distances_are_those_between_words(tmp_path):
    model, ids = Words().eval(), torch.randint(1, 500, (12, 6), generator=torch.Generator().manual_seed(0))
    ids[0, 4:] = 0
    chosen = holdfast.choose_threat(model, ids)
    words = model.words(ids[ids != 0].unique()).detach().double().numpy()
    used = model.words(ids[ids != 0]).detach().double().numpy()  # a word counts as often as it occurs
    distances = np.linalg.norm(used[:, None] - words[None], axis=2)
    expected = np.sort(np.where(distances > 0, distances, np.inf).min(1))[len(used) // 2]
    assert chosen.facts["neighbour"] == pytest.approx(expected, rel=1e-4) and chosen.facts["rounding"] == 0
    assert "words' embeddings" in str(chosen) and chosen.threat.epsilons[-1] == pytest.approx(expected / 2, rel=0.05)


def test_inputs_that_stay_fixed_are_no_distance():
    generator = torch.Generator().manual_seed(0)
    x, scale = torch.rand(20, 6, generator=generator), 100 * torch.rand(20, 1, generator=generator)
    network = make_network()
    chosen = holdfast.choose_threat(lambda x, scale: network(x) * scale, (x, scale), schema={"fixed": [1]})
    assert chosen.facts["neighbour"] == pytest.approx(holdfast.choose_threat(network, x).facts["neighbour"])


def test_a_value_gets_a_tolerance(inputs, saved, program):
    network = make_network(classes=1)
    value = holdfast.as_model(network, output_kind="value")
    chosen = holdfast.choose_threat(value, inputs)
    assert chosen.threat.tolerance == pytest.approx(0.1 * network(inputs).std(unbiased=False).item(), rel=0.05)
    assert "a tenth of the standard deviation of its values" in str(chosen)
    run = holdfast.audit(value, inputs, attack="random(samples=3)", threat=chosen.threat, metric=chosen.metric, progress=False)
    assert len(run.rows) == 3
    asked = holdfast.choose_threat(value, inputs, tolerance=0.2)
    assert asked.threat.tolerance == 0.2 and "within 0.2: you chose it" in str(asked)
    torch.export.save(torch.export.export(network, (inputs,), dynamic_shapes=({0: torch.export.Dim.AUTO},)), saved / "value.pt2")
    common = ["audit", "--suggest", "--model", "value.pt2", "--output-kind", "value", "--inputs", "inputs.npy"]
    assert f"--tolerance {chosen.threat.tolerance:g}" in program(*common)
    assert json.loads(program(*common, "--json", "--tolerance", "0.2"))["threat"]["tolerance"] == 0.2
    with pytest.raises(holdfast.Error, match="gives all samples the same value"):
        holdfast.choose_threat(holdfast.as_model(lambda x: (0 * x).sum(1), output_kind="value"), inputs)
    with pytest.raises(holdfast.Error, match="tolerance"):
        holdfast.choose_threat(value, inputs, tolerance=-1)
