"""`holdfast measure` of two sets of maps: right answers held against NumPy and SciPy, and clear sentences."""

import json

import numpy as np
import pytest
import scipy.ndimage
import scipy.stats


def tied_maps(shape, seed=0):
    """Maps as explanations are: most of it exactly zero, the rest on a few levels, so that there are ties of both kinds."""
    random = np.random.default_rng(seed)
    maps = np.round(random.exponential(size=shape) * 8) / 8
    return np.where(random.random(shape) < 0.4, 0, maps * random.choice([-1, 1], size=shape))


@pytest.fixture
def measure(holdfast, tmp_path):
    def run(original, perturbed, *metrics, flags=()):
        np.save(tmp_path / "a.npy", original)
        np.save(tmp_path / "b.npy", perturbed)
        chosen = [part for metric in metrics for part in ("--metric", metric)]
        return holdfast.json("measure", "a.npy", "b.npy", *chosen, *flags, "--json")["metrics"]

    return run


@pytest.fixture
def refuses(holdfast, tmp_path):
    def run(original, perturbed, metric, saying, flags=()):
        np.save(tmp_path / "a.npy", original)
        np.save(tmp_path / "b.npy", perturbed)
        return holdfast.fails("measure", "a.npy", "b.npy", "--metric", metric, *flags, saying=saying)

    return run


def folded(maps):
    maps = np.abs(np.asarray(maps, dtype=np.float64))
    return maps.sum(1) if maps.ndim == 4 else maps


def top(map_, k):
    """Ties to the lower index."""
    mask = np.zeros(map_.size, bool)
    mask[np.argsort(-map_.ravel(), kind="stable")[:k]] = True
    return mask.reshape(map_.shape)


def near(mask, w):
    return scipy.ndimage.binary_dilation(mask, np.ones((2 * w + 1, 2 * w + 1))) if w else mask


def smoothed(map_, w):
    """Direct sums in one order: running ones leave dust that is ranked."""
    height, width = map_.shape
    padded = np.pad(map_, w)
    rows = sum(padded[:, x : x + width] for x in range(2 * w + 1))
    return sum(rows[y : y + height] for y in range(2 * w + 1)) / (2 * w + 1) ** 2


def test_rank_correlations_are_scipys(measure):
    for shape in [(20, 30), (8, 784)]:
        a, b = tied_maps(shape, 1), tied_maps(shape, 2)
        kendall, spearman = measure(a, b, "kendall", "spearman")
        for values, function in [(kendall, scipy.stats.kendalltau), (spearman, scipy.stats.spearmanr)]:
            expected = [function(np.abs(x), np.abs(y)).statistic for x, y in zip(a, b, strict=True)]
            np.testing.assert_allclose(values["values"], expected, rtol=0, atol=1e-12)
            assert values["chance"] == 0 and values["chance_is_exact"]


def test_smoothed_rank_correlations_are_scipys(measure):
    a, b = tied_maps((6, 3, 12, 9), 3), tied_maps((6, 3, 12, 9), 4)
    kendall, spearman = measure(a, b, "lens_kendall(w=2)", "lens_spearman(w=1)")
    for values, function, w in [(kendall, scipy.stats.kendalltau, 2), (spearman, scipy.stats.spearmanr, 1)]:
        expected = [
            function(smoothed(x, w).ravel(), smoothed(y, w).ravel()).statistic for x, y in zip(folded(a), folded(b), strict=True)
        ]
        np.testing.assert_allclose(values["values"], expected, rtol=0, atol=1e-12)
        assert not values["chance_is_exact"]


@pytest.mark.parametrize("w", [0, 1, 3])
def test_lens_is_a_dilation_with_ties_to_the_lower_index(measure, w):
    a, b = tied_maps((10, 2, 14, 11), 5), tied_maps((10, 2, 14, 11), 6)
    precision, recall, distance = measure(
        a, b, *[f"{name}(k=20,w={w})" for name in ("lens_precision", "lens_recall", "lens_distance")]
    )
    for i, (x, y) in enumerate(zip(folded(a), folded(b), strict=True)):
        s, t = top(x, 20), top(y, 20)
        expected = (s & near(t, w)).sum() / 20, (near(s, w) & t).sum() / 20
        assert (precision["values"][i], recall["values"][i]) == expected
        assert distance["values"][i] == pytest.approx(2 - sum(expected))


def test_cosine_and_l2(measure):
    a, b = tied_maps((7, 20), 7), tied_maps((7, 20), 8)
    cosine, l2 = measure(a, b, "cosine", "l2")
    x, y = np.abs(a), np.abs(b)
    np.testing.assert_allclose(cosine["values"], (x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1))
    scale = 20 / x.sum(1, keepdims=True), 20 / y.sum(1, keepdims=True)
    np.testing.assert_allclose(l2["values"], np.linalg.norm(x * scale[0] - y * scale[1], axis=1))
    # A distance: 1 is still best, 0 the level.
    assert l2["adjusted"] == pytest.approx(
        np.mean([1 - value / chance for value, chance in zip(l2["values"], chances(x), strict=True)]), abs=0.05
    )


def chances(maps, draws=2000):
    random = np.random.default_rng(0)
    scaled = maps * maps.shape[1] / maps.sum(1, keepdims=True)
    return [np.mean([np.linalg.norm(row - random.permutation(row)) for _ in range(draws)]) for row in scaled]


def test_every_metric_reports_every_level(holdfast, measure):
    a, b = tied_maps((30, 12, 12), 9), tied_maps((30, 12, 12), 10)
    a[:5] = a[0]
    names = [entry["name"] for entry in holdfast.json("list", "--json")["metrics"]]
    results = measure(
        a, b, *[f"{name}(k=10)" if name.startswith(("top", "lens_p", "lens_r", "lens_d")) else name for name in names]
    )
    for result in results:
        assert {"mean", "low", "high", "median", "chance", "adjusted", "between", "between_same_class", "specific"} <= set(result)
        assert {"lift", "effective_sets", "own_advantage", "robust_and_specific"} <= set(result)
        assert result["low"] <= result["mean"] <= result["high"]
        assert result["chance"] is not None and result["between"] is not None and result["undefined"] == 0
        assert (result["found"] is not None) == result["name"].split("(")[0].endswith("_div")
        assert 0 <= result["distinct_top_sets"] <= 26
    assert results[0]["name"] == "top_k(k=10)" and results[0]["distinct_top_sets"] == 26


def test_the_level_within_a_class_needs_labels(measure, tmp_path):
    a = tied_maps((20, 10), 11)
    np.save(tmp_path / "labels.npy", np.arange(20) % 2)
    (without,) = measure(a, a, "kendall")
    (with_labels,) = measure(a, a, "kendall", flags=["--labels", "labels.npy"])
    assert without["between_same_class"] is None
    pairs = [(i, j) for i in range(20) for j in range(20) if i != j and i % 2 == j % 2]
    expected = np.mean([scipy.stats.kendalltau(np.abs(a[i]), np.abs(a[j])).statistic for i, j in pairs])
    assert with_labels["between_same_class"] == pytest.approx(expected, abs=1e-12)


def test_the_table_shows_the_levels(holdfast, tmp_path):
    np.save(tmp_path / "a.npy", tied_maps((20, 6, 6), 12))
    np.save(tmp_path / "b.npy", tied_maps((20, 6, 6), 13))
    metrics = ["--metric", "kendall", "--metric", "lens_precision_div(k=4)"]
    done = holdfast("measure", "a.npy", "b.npy", *metrics)
    header, _, kendall, diverse = done.stdout.splitlines()[1:5]
    assert header.split()[:8] == ["metric", "mean", "95", "%", "median", "chance", "adjusted", "between"]
    assert header.split()[8:] == ["specific", "lift", "top", "sets", "tied", "found"], "images have no effective sets"
    assert "~" in diverse and "~" not in kendall, "a sampled level is marked"
    assert "equal values decide" in done.stderr


def test_a_metric_given_twice_is_one_row(measure):
    a = tied_maps((4, 9), 14)
    assert [result["name"] for result in measure(a, a, "top_k", "kendall", "top_k(k=8)", "kendall")] == ["top_k(k=8)", "kendall"]


def test_equal_values_leave_room_for_what_was_not_seen(measure):
    a = tied_maps((40, 12), 15)
    (same,) = measure(a, a, "top_k(k=3)")
    assert same["mean"] == 1 and same["high"] == 1
    assert same["low"] == pytest.approx(0.025 ** (1 / 40))


def test_any_type_and_byte_order(measure):
    a, b = (np.abs(tied_maps((5, 40), seed)) * 8 for seed in (16, 17))
    names = ["top_k(k=5)", "kendall", "l2"]
    expected = measure(a, b, *names)
    for original, perturbed in [("<f2", "<f4"), (">f4", ">f8"), ("<i2", ">i8"), ("u1", "<u4")]:
        assert measure(a.astype(original), b.astype(perturbed), *names) == expected, (original, perturbed)


def test_any_order_in_memory(measure):
    a, b = tied_maps((6, 3, 5, 7), 18), tied_maps((6, 3, 5, 7), 19)
    names = ["lens_precision(k=5)", "lens_kendall"]
    expected = measure(a, b, *names)
    assert measure(np.asfortranarray(a), np.asfortranarray(b), *names) == expected
    assert measure(np.repeat(a, 2, axis=3)[..., ::2], b[::-1][::-1], *names) == expected


def test_constant_maps_are_undefined_and_counted(measure):
    a = tied_maps((6, 10), 20)
    b = a.copy()
    b[2], b[4] = 3, 0
    kendall, spearman, cosine, top_k = measure(a, b, "kendall", "spearman", "cosine", "top_k(k=2)")
    for result in (kendall, spearman):
        assert result["values"][2] is None and result["values"][4] is None
        assert result["undefined"] == 2 and result["count"] == 4 and result["mean"] == 1
    assert cosine["undefined"] == 1 and cosine["values"][2] is not None
    assert top_k["undefined"] == 0


def test_nothing_defined_is_null_not_zero(measure):
    (result,) = measure(np.ones((3, 5)), np.ones((3, 5)), "kendall")
    assert result["mean"] is None and result["low"] is None and result["median"] is None and result["undefined"] == 3


def test_one_pixel_maps(measure):
    for shape in [(4, 1), (4, 1, 1), (4, 3, 1, 1)]:
        top_k, lens, diverse, kendall, l2 = measure(
            np.ones(shape), np.full(shape, 2.0), "top_k(k=1)", "lens_precision(k=1,w=3)", "top_k_div(k=1)", "kendall", "l2"
        )
        assert top_k["mean"] == lens["mean"] == diverse["mean"] == 1
        assert kendall["mean"] is None and l2["mean"] == 0
        assert top_k["chance"] == 1 and top_k["adjusted"] is None


def test_windows_larger_than_the_map(measure):
    a, b = tied_maps((3, 5, 4), 21), tied_maps((3, 5, 4), 22)
    lens, kendall = measure(a, b, "lens_precision(k=2,w=1000)", "lens_kendall(w=1000)")
    assert lens["mean"] == 1 and lens["chance"] == 1
    assert kendall["mean"] is None, "every window is the whole map"


def test_bad_maps(refuses):
    good = tied_maps((4, 6), 23)
    refuses(good, tied_maps((4, 7), 23), "kendall", saying=["a.npy", "[4, 6]", "b.npy", "[4, 7]"])
    refuses(good, tied_maps((5, 6), 23), "kendall", saying=["[4, 6]", "[5, 6]"])
    refuses(np.zeros((0, 6)), np.zeros((0, 6)), "kendall", saying=["a.npy", "empty"])
    refuses(np.zeros((6, 0)), np.zeros((6, 0)), "kendall", saying=["a.npy", "empty"])
    refuses(np.ones(6), np.ones(6), "kendall", saying=["a.npy", "[6]", "[B, ...]"])
    refuses(np.float64(3), np.float64(3), "kendall", saying="a.npy")
    refuses(np.ones((2, 2, 2, 2, 2)), np.ones((2, 2, 2, 2, 2)), "kendall", saying="--schema")
    refuses(good.astype(complex), good, "kendall", saying=["a.npy", "c16"])
    refuses(good > 0, good, "kendall", saying=["a.npy", "bool", "maps must be numbers"])
    for bad in [np.nan, np.inf]:
        broken = good.copy()
        broken[1, 3] = bad
        refuses(good, broken, "kendall", saying=["b.npy", "[1, 3]", "maps must be finite"])
    huge = np.full((2, 3, 2, 2), 1e308)
    refuses(huge, huge, "kendall", saying=["a.npy", "sample 0"])


@pytest.mark.parametrize(
    ("metric", "saying"),
    [
        ("top_k(k=0)", "k must be >= 1"),
        ("lens_precision(k=37)", ["the map has 36 features", "k <= 36"]),
        ("lens_recall(k=4,w=-1)", "w must be >= 0"),
        ("lens_kendal", "did you mean 'lens_kendall'?"),
    ],
)
def test_bad_metrics(refuses, metric, saying):
    refuses(np.ones((2, 6, 6)), np.ones((2, 6, 6)), metric, saying=saying)


def test_bad_labels(refuses, tmp_path):
    maps = tied_maps((4, 6), 24)
    np.save(tmp_path / "labels.npy", np.arange(5))
    refuses(maps, maps, "kendall", saying=["labels.npy", "5 labels for 4 samples"], flags=["--labels", "labels.npy"])


def graph_windows(nodes):
    edges = [(i, j) for i in range(nodes) for j in range(i + 1, nodes)]
    return np.array([[bool({*a} & {*b}) for b in edges] for a in edges])


SCHEMAS = {
    "graph": ({"layout": {"kind": "graph", "nodes": 6}}, graph_windows(6)),
    "groups": (
        {"layout": {"kind": "vector", "length": 8}, "groups": [{"name": "colour", "columns": [1, 4, 5]}]},
        np.eye(8, dtype=bool) | np.outer(np.isin(range(8), [1, 4, 5]), np.isin(range(8), [1, 4, 5])),
    ),
    "neighbors": (
        {"layout": {"kind": "vector", "length": 4}, "neighbors": [[2], [], [0, 3], [2]]},
        np.array([[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 1], [0, 0, 1, 1]], bool),
    ),
}


@pytest.mark.parametrize("kind", SCHEMAS)
def test_neighbourhoods_of_a_schema(measure, tmp_path, kind):
    schema, windows = SCHEMAS[kind]
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    a, b = tied_maps((15, len(windows)), 25), tied_maps((15, len(windows)), 26)
    lens, kendall = measure(a, b, "lens_precision(k=2,w=1)", "lens_kendall(w=1)", flags=["--schema", "schema.json"])
    for i, (x, y) in enumerate(zip(np.abs(a), np.abs(b), strict=True)):
        assert lens["values"][i] == (top(x, 2) & windows[top(y, 2)].any(0)).sum() / 2
        expected = scipy.stats.kendalltau(windows @ x, windows @ y).statistic
        assert kendall["values"][i] == (None if np.isnan(expected) else pytest.approx(expected, abs=1e-12))


def test_neighbours_must_be_mutual(refuses, tmp_path):
    (tmp_path / "schema.json").write_text(json.dumps({"layout": {"kind": "vector", "length": 3}, "neighbors": [[1], [], []]}))
    refuses(
        np.ones((2, 3)),
        np.ones((2, 3)),
        "kendall",
        saying=["schema.json", "neighbors[0] has feature 1"],
        flags=["--schema", "schema.json"],
    )


def test_a_schema_of_correlated_columns(holdfast, tmp_path):
    plain = holdfast.json("data", "schema", "synthetic")
    assert "neighbors" not in plain
    holdfast("data", "schema", "synthetic", "--correlation", "0.3", "--out", "folder/schema.json")
    written = json.loads((tmp_path / "folder" / "schema.json").read_text())
    assert {key: value for key, value in written.items() if key != "neighbors"} == plain
    assert len(written["neighbors"]) == plain["layout"]["length"]
    holdfast.fails("data", "schema", "synthetic", "--correlation", "1.5", saying=["--correlation 1.5", "at most 1"])
    holdfast.fails("data", "schema", "sythetic", saying="did you mean 'synthetic'?")


def test_samples_of_a_dataset_as_files(holdfast, tmp_path):
    holdfast("data", "export", "synthetic", "--samples", "7", "--out", "folder")
    inputs, labels = (np.load(tmp_path / "folder" / name) for name in ("inputs.npy", "labels.npy"))
    assert len(inputs) == len(labels) == 7 and inputs.dtype == np.float32
    schema = json.loads((tmp_path / "folder" / "schema.json").read_text())
    assert schema == holdfast.json("data", "schema", "synthetic")
    holdfast("data", "export", "synthetic", "--part", "train", "--out", "all")
    assert len(np.load(tmp_path / "all" / "inputs.npy")) > 7
    holdfast.fails("data", "export", "synthetic", "--part", "tset", "--out", "x", saying="tset")
    assert not (tmp_path / "x").exists()


def test_a_csv_has_a_row_for_each_sample_and_metric_with_its_levels(holdfast, measure, tmp_path):
    a, b = tied_maps((4, 12)), tied_maps((4, 12), 1)
    listed = measure(a, b, "top_k(k=3)", "kendall", flags=["--out", "rows.csv"])
    rows = [line.split(",") for line in (tmp_path / "rows.csv").read_text().splitlines()]
    levels = ["chance", "adjusted", "between", "between_same_class", "specific", "lift", "effective_sets"]
    assert rows[0] == ["sample", "metric", "value", *levels, "tied", "tied_perturbed"]
    assert len(rows) == 1 + 2 * 4
    values = [float(row[2]) for row in rows[1:5]]
    assert values == pytest.approx(listed[0]["values"])
    assert [float(row[3]) for row in rows[1:5]] == pytest.approx([3 / 12] * 4)
    assert np.mean([float(row[4]) for row in rows[1:5]]) == pytest.approx(listed[0]["adjusted"])
    assert np.mean([float(row[7]) for row in rows[1:5]]) == pytest.approx(listed[0]["specific"])
    assert np.mean([float(row[8]) for row in rows[1:5]]) == pytest.approx(listed[0]["lift"])
    assert float(rows[1][9]) == listed[0]["effective_sets"] and rows[5][9] == ""
    assert np.mean([float(row[10]) for row in rows[1:5]]) == listed[0]["tied_share"]
    assert np.mean([float(row[11]) for row in rows[1:5]]) == listed[0]["tied_perturbed"]


def test_flags_of_the_other_form_are_refused(holdfast, refuses):
    maps = tied_maps((3, 6))
    for flag in ("--compare", "--endpoints", "--background", "--targets", "--explainer", "--epsilon", "--measure"):
        refuses(maps, maps, "kendall", saying=[flag, "--model"], flags=[flag, "nothing.npy"])


def test_a_constant_perturbed_map_is_tied(holdfast, tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(4, 6)))
    np.save(tmp_path / "b.npy", np.ones((4, 6)))
    done = holdfast("measure", "a.npy", "b.npy", "--metric", "top_k(k=2)", "--out", "rows.csv")
    assert "0 %, 100 %" in done.stdout
    assert "0 % of the original and 100 % of the perturbed maps" in done.stderr
    header, first = (tmp_path / "rows.csv").read_text().splitlines()[:2]
    assert header.endswith("tied,tied_perturbed") and first.endswith(",0,1")


def test_attack_leaves_the_schema_of_pairs_where_measure_finds_it(holdfast, tmp_path):
    random = np.random.default_rng(0)
    holdfast("data", "export", "pairs(of=synthetic,count=20)", "--part", "all", "--samples", "4", "--out", "data")
    import torch

    class Distance(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor(random.normal(size=(2, 19)), dtype=torch.float32))

        def forward(self, x):
            return torch.tanh(x[:, 0] - x[:, 1] + 0.3) @ self.weight.t()

    torch.jit.trace(Distance(), torch.zeros(2, 2, 19)).save(str(tmp_path / "pair.pt"))
    attack = ["attack", "--model", "pair.pt", "--inputs", "data/inputs.npy", "--attack", "random(samples=5)", "--epsilon", "0.3"]
    holdfast(*attack, "--schema", "data/schema.json", "--metric", "top_k(k=3)", "--out", "out")
    assert json.loads((tmp_path / "out" / "schema.json").read_text())["layout"] == {"kind": "vector", "length": 19, "sides": 2}
    maps = ["out/original_attributions.npy", "out/perturbed_attributions.npy"]
    found = holdfast.json("measure", *maps, "--metric", "top_k(k=20)", "--json")["metrics"][0]
    assert found["chance"] == pytest.approx(20 / 38)
