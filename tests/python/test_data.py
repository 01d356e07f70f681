"""The data that people have: frames, lists, data loaders, pipelines of scikit-learn."""

import holdfast
import numpy as np
import pytest
import torch
from conftest import make_network

pandas = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore::holdfast.HoldfastWarning")
FAST = {"attack": "random(samples=5)", "metric": "top_k(k=2)", "progress": False}


@pytest.fixture
def frame():
    generator = np.random.default_rng(0)
    return pandas.DataFrame(
        {
            "age": generator.integers(20, 60, 12),
            "income": generator.random(12),
            "colour": pandas.Categorical(generator.choice(["red", "green", "blue"], 12), ["red", "green", "blue"]),
            "owner": generator.random(12) > 0.5,
        },
        index=[f"row{i}" for i in range(12)],
    )


def test_a_frame_becomes_the_schema(frame):
    network = make_network(inputs=6)
    run = holdfast.audit({"it": network}, frame, threat={"norm": "l2", "epsilon": "1/10"}, **FAST)
    schema = run.manifest["datasets"][0]["schema"]
    names = ["age", "income", "colour=red", "colour=green", "colour=blue", "owner"]
    assert [feature["name"] for feature in schema["features"]] == names
    assert schema["groups"][0]["name"] == "colour" and schema["groups"][0]["columns"] == [2, 3, 4]
    assert schema["features"][0]["step"] == 1 and schema["features"][0]["low"] == frame["age"].min()
    assert set(run.worst(1).names) == set(names)
    assert schema["features"][1]["deviation"] == pytest.approx(frame["income"].std(ddof=0))
    assert np.isfinite(holdfast.explain(network, frame, "valid_effect")).all(None)


def test_results_come_back_with_the_names(frame):
    network = make_network(inputs=6)
    maps = holdfast.explain(network, frame)
    assert list(maps.columns)[:3] == ["age", "income", "colour=red"] and list(maps.index) == list(frame.index)
    rows = torch.tensor(
        np.column_stack([frame["age"], frame["income"], np.eye(3)[frame["colour"].cat.codes], frame["owner"]]),
        dtype=torch.float32,
    )
    groups = {"layout": {"kind": "vector", "length": 6}, "groups": [{"name": "colour", "columns": [2, 3, 4]}]}
    np.testing.assert_allclose(maps.to_numpy(), holdfast.explain(network, rows, schema=groups).numpy(), rtol=1e-6)
    moved = holdfast.attack(network, frame, "random(samples=3)", metric="top_k(k=2)", threat={"epsilon": 0.1})
    assert list(moved.perturbed.columns) == list(maps.columns) and moved.value.index[0] == "row0"


def test_mistakes_name_the_column(frame):
    network = make_network(inputs=6)
    frame["colour"] = frame["colour"].where(frame["age"] > frame["age"].min())
    with pytest.raises(holdfast.Error, match="column 'colour' has rows without a category"):
        holdfast.explain(network, frame)
    frame["colour"] = pandas.Timestamp("2026-01-01")
    with pytest.raises(holdfast.Error, match="column 'colour' holds times"):
        holdfast.explain(network, frame)
    with pytest.raises(holdfast.Error, match="has no rows"):
        holdfast.explain(network, frame.head(0))


def test_lists(network, inputs):
    expected = holdfast.explain(network, inputs)
    np.testing.assert_allclose(holdfast.explain(network, inputs.tolist()), expected.numpy(), rtol=1e-6)
    assert torch.equal(torch.as_tensor(holdfast.explain(network, list(inputs))), expected)
    with pytest.raises(holdfast.Error, match="different shapes"):
        holdfast.explain(network, [torch.zeros(6), torch.zeros(5)])


def test_loaders_and_datasets_are_streamed(network, inputs, tmp_path):
    labels = torch.arange(20) % 3
    data = torch.utils.data.TensorDataset(inputs, labels)
    threat = holdfast.Threat(epsilon=0.1)
    plain = holdfast.audit({"it": network}, inputs, labels=labels, threat=threat, **FAST)
    for given in (data, torch.utils.data.DataLoader(data, batch_size=7)):
        run = holdfast.audit({"it": network}, given, threat=threat, **FAST)
        assert run.results["models"] == plain.results["models"] and run.rows == plain.rows
    with pytest.raises(holdfast.Error, match="a batch is a dict"):
        holdfast.explain(network, torch.utils.data.DataLoader([{"x": torch.zeros(6)}]))


def test_a_pipeline_is_attacked_in_raw_rows(frame):
    compose, pipeline, scaling = (pytest.importorskip(f"sklearn.{name}") for name in ("compose", "pipeline", "preprocessing"))
    before = compose.ColumnTransformer(
        [("numbers", scaling.StandardScaler(), ["age", "income"]), ("words", scaling.OneHotEncoder(), ["colour"])],
        remainder="passthrough",
    ).fit(frame)
    network = make_network(inputs=6)
    whole = pipeline.Pipeline([("before", before), ("network", network)])
    expected = network(torch.as_tensor(np.asarray(before.transform(frame), dtype=np.float32))).argmax(1)
    moved = holdfast.attack(whole, frame, "er(steps=5)", metric="top_k(k=2)", threat={"epsilon": 0.5}, random_points=False)
    assert list(moved.prediction) == expected.tolist() and moved.followed.max() > 0  # gradients pass the preprocessing
    assert moved.perturbed.columns[0] == "age"

    bins = pipeline.Pipeline([("bins", scaling.KBinsDiscretizer(3).fit(frame[["age", "income"]])), ("network", network)])
    settings = {"explainer": "occlusion", "metric": "top_k(k=1)", "threat": {"epsilon": 0.1}, "random_points": False}
    found = holdfast.attack(bins, frame[["age", "income"]], **settings)
    assert found.followed.max() == 0  # steps have no gradient: the attacks that need none were run


def test_labels_of_frames_and_booleans(network, inputs):
    threat = holdfast.Threat(epsilon=0.1)
    series = pandas.Series(np.arange(20) % 3)
    found = [
        holdfast.audit({"it": network}, inputs, labels=one, threat=threat, **FAST)
        for one in (series, list(series), series.astype("category"))
    ]
    assert found[0].results["models"] == found[1].results["models"] == found[2].results["models"]


def test_estimators_of_frames_are_asked_with_frames(frame):
    compose, ensemble, pipeline, scaling = (
        pytest.importorskip(f"sklearn.{name}") for name in ("compose", "ensemble", "pipeline", "preprocessing")
    )
    before = compose.ColumnTransformer([("words", scaling.OneHotEncoder(), ["colour"])], remainder="passthrough")
    classes = (frame["age"] > frame["age"].median()).astype(int)
    whole = pipeline.make_pipeline(before, ensemble.RandomForestClassifier(5, random_state=0)).fit(frame, classes)
    found = holdfast.explain(whole, frame, "occlusion", return_details=True)
    assert list(found.targets) == list(whole.predict(frame))
    values = pipeline.make_pipeline(before, ensemble.RandomForestRegressor(5, random_state=0)).fit(frame, frame["income"])
    maps = holdfast.explain(holdfast.as_model(values, output_kind="value"), frame, "occlusion")
    assert np.asarray(maps).any() and len(maps) == len(frame)


def test_token_ids_of_a_loader_stay_whole_numbers():
    words = torch.nn.Sequential(torch.nn.Embedding(20, 4), torch.nn.Flatten(), torch.nn.Linear(24, 3))
    ids = torch.randint(0, 20, (7, 6), generator=torch.Generator().manual_seed(0))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(ids), batch_size=3)
    assert torch.equal(holdfast.explain(words, loader), holdfast.explain(words, ids))


def encoded_frame():
    """Booleans and a column of text that a pipeline encodes; it has seen True and False alone."""
    compose = pytest.importorskip("sklearn.compose")
    encoders = pytest.importorskip("sklearn.preprocessing")
    pandas = pytest.importorskip("pandas")
    generator = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "age": generator.integers(20, 60, 40),
            "income": generator.normal(3, 1, 40),
            "town": generator.choice(["x", "y"], 40),
            "member": generator.choice([True, False], 40),
        }
    )
    frame.loc[0, "member"] = True
    before = compose.ColumnTransformer(
        [("numbers", encoders.StandardScaler(), ["age", "income"]), ("kinds", encoders.OneHotEncoder(), ["town", "member"])]
    )
    return frame, before


def test_an_estimator_sees_only_levels_that_it_knows():
    frame, before = encoded_frame()
    pipeline = pytest.importorskip("sklearn.pipeline")
    linear_model = pytest.importorskip("sklearn.linear_model")
    model = pipeline.make_pipeline(before, linear_model.LogisticRegression()).fit(frame, (frame.income > 3).astype(int))
    maps = holdfast.explain(model, frame[:6], "occlusion")
    assert list(maps.columns) == ["age", "income", "town=x", "town=y", "member"]
    threat = holdfast.Threat("l2", 1.0)
    moved = holdfast.attack(model, frame[:6], "random(samples=5)", explainer="occlusion", metric="top_k(k=2)", threat=threat)
    assert len(moved.perturbed) == 6


def test_a_row_that_lacks_a_number_spoils_no_other():
    frame, before = encoded_frame()
    pipeline = pytest.importorskip("sklearn.pipeline")
    before.fit(frame)
    model = pipeline.Pipeline([("before", before), ("network", make_network(inputs=6))])
    frame.loc[2, "income"] = np.nan
    run = holdfast.audit(
        model, frame[:8], attack="random(samples=3)", metric="top_k(k=2)", threat=holdfast.Threat("l2", 0.1), progress=False
    )
    assert run.rows[0]["count"] == 7
