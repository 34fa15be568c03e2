"""The rows of a trial, drawn from a small made-up table, and the trees that are grown on them."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import log_loss

from paper.weather import (
    SCHEDULES,
    Draw,
    Examples,
    Schedule,
    boosted_trial,
    county_graph,
    draw,
)
from structent import StructuredBoostingClassifier, circular
from structent.errors import StructentError
from tests.paper.made_up_weather import (
    COUNTIES,
    EDGES,
    GRAPH,
    TABLE,
    weather_table,
    write_weather,
)

SIZES = {"n_train": 300, "n_validation": 100, "n_test": 200}


def rain(rows):
    """Return what every row can be told by."""
    return rows.features[:, 0].tolist()


def test_the_parts_of_a_draw_have_their_sizes_and_share_no_row(weather):
    drawn = draw(weather, "month", trial=0, **SIZES)
    parts = [drawn.train, drawn.validation, drawn.test]
    assert [part.features.shape for part in parts] == [(300, 3), (100, 3), (200, 3)]
    assert [part.labels.shape for part in parts] == [(300,), (100,), (200,)]
    assert len({value for part in parts for value in rain(part)}) == 600


@pytest.mark.parametrize("label", ["month", "county"])
def test_rows_keep_their_features_and_labels(weather, label):
    of_rain = {row["PRCP"]: row for row in weather_table().to_dicts()}
    drawn = draw(weather, label, trial=1, **SIZES)
    for part in (drawn.train, drawn.validation, drawn.test):
        for features, found in zip(part.features, part.labels, strict=True):
            row = of_rain[features[0]]
            assert features.tolist() == [row["PRCP"], row["TMAX"], row["TMIN"]]
            assert found == row[label]


def test_a_trial_draws_the_same_rows_again_and_another_trial_others(weather):
    first, again = (draw(weather, "month", trial=2, **SIZES) for _ in range(2))
    other = draw(weather, "month", trial=3, **SIZES)
    for part in ("train", "validation", "test"):
        np.testing.assert_array_equal(getattr(first, part).features, getattr(again, part).features)
        np.testing.assert_array_equal(getattr(first, part).labels, getattr(again, part).labels)
        assert rain(getattr(first, part)) != rain(getattr(other, part))


def test_a_month_and_a_county_are_asked_of_the_same_rows(weather):
    month, county = (draw(weather, label, trial=0, **SIZES) for label in ("month", "county"))
    assert rain(month.train) == rain(county.train)


def test_the_whole_table_may_be_drawn_and_no_row_more(weather):
    sizes = {**SIZES, "n_train": 400}
    assert len(draw(weather, "month", trial=0, **sizes).train.labels) == 400
    with pytest.raises(StructentError, match="needs 701 rows, got a table with 700; use a smaller"):
        draw(weather, "month", trial=0, **{**sizes, "n_train": 401})


def test_the_files_may_be_in_a_folder_called_weather(tmp_path, weather):
    write_weather(tmp_path / "weather")
    here, there = (draw(folder, "month", trial=0, **SIZES) for folder in (weather, tmp_path))
    assert rain(here.test) == rain(there.test)
    assert county_graph(tmp_path) == county_graph(weather)


@pytest.mark.parametrize(
    ("missing", "read"),
    [
        (TABLE, lambda folder: draw(folder, "month", trial=0, **SIZES)),
        (GRAPH, county_graph),
    ],
)
def test_a_missing_file_is_named(tmp_path, missing, read):
    (write_weather(tmp_path / "data") / missing).unlink()
    for folder in (tmp_path / "data", tmp_path / "nowhere"):
        with pytest.raises(StructentError, match=f"--data must be a folder that holds {missing}"):
            read(folder)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (weather_table().drop("month"), "no column 'month'"),
        (weather_table().drop("TMAX"), "no column 'TMAX'; it has"),
        (
            weather_table().with_columns(TMAX=pl.Series(["warm", "cold"] * 350)),
            "must hold numbers in TMAX",
        ),
    ],
    ids=["no label", "no feature", "words"],
)
def test_a_table_of_another_kind_is_told_in_one_sentence(tmp_path, table, sentence):
    with pytest.raises(StructentError, match=sentence) as told:
        draw(write_weather(tmp_path, table), "month", trial=0, **SIZES)
    assert TABLE in str(told.value)
    assert "\n" not in str(told.value)


def test_the_graph_is_that_of_the_file(weather):
    graph = county_graph(weather)
    assert list(graph.classes) == COUNTIES
    assert [list(edge) for edge in graph.edges] == EDGES


@pytest.mark.parametrize(
    ("graph", "sentence"),
    [
        ({"nodes": COUNTIES}, "JSON object with the counties in nodes and pairs of them in edges"),
        ({"edges": EDGES}, "JSON object with the counties in nodes"),
        (EDGES, "JSON object with the counties in nodes"),
        ({"nodes": COUNTIES, "edges": 3}, "JSON object with the counties in nodes"),
        ({"nodes": COUNTIES, "edges": []}, "must be connected, got 24 parts"),
        ({"nodes": COUNTIES, "edges": [["county 00", "Nowhere"]]}, "'Nowhere'"),
        ({"nodes": COUNTIES, "edges": [["county 00"]]}, "an edge must be a pair"),
    ],
    ids=["no edges", "no nodes", "a list", "a number", "none", "unknown", "one end"],
)
def test_a_wrong_graph_is_told_in_one_sentence_that_names_the_file(tmp_path, graph, sentence):
    with pytest.raises(StructentError, match=sentence) as told:
        county_graph(write_weather(tmp_path, graph=graph))
    assert GRAPH in str(told.value)
    assert "\n" not in str(told.value)


def test_a_graph_that_is_no_json_is_told_in_one_sentence(tmp_path):
    (write_weather(tmp_path) / GRAPH).write_text("{")
    with pytest.raises(StructentError, match="must be a JSON object"):
        county_graph(tmp_path)


# Boosted trees

SCHEDULE = Schedule(
    max_trees=100, learning_rate=0.2, depths=(2, 4), penalty=2.0, row_share=0.7, patience=3,
    n_validation=100, n_test=200,
)  # fmt: skip
YEAR = circular(range(1, 13), width=3, singleton_weight=0.3)


@pytest.fixture(scope="module")
def rows(weather):
    return draw(weather, "month", n_train=300, n_validation=100, n_test=200, trial=0)


@pytest.fixture(scope="module")
def result(rows):
    return boosted_trial(rows, YEAR, SCHEDULE, seed=5, n_threads=1)


def test_every_depth_has_the_losses_of_the_trees_that_validation_rows_choose(rows, result):
    assert result["depth"] == [2, 4]
    for place, depth in enumerate(result["depth"]):
        model = StructuredBoostingClassifier(
            YEAR, engine="xgboost", n_estimators=100, learning_rate=0.2, max_depth=depth,
            reg_lambda=2.0, subsample=0.7, early_stopping_rounds=3, random_state=5, n_jobs=1,
        ).fit(*rows.train, eval_set=tuple(rows.validation))  # fmt: skip
        for part in ("validation", "test"):
            features, labels = getattr(rows, part)
            wanted = log_loss(labels, model.predict_proba(features), labels=range(1, 13))
            # Losses are kept with six digits.
            assert result[part][place] == pytest.approx(wanted, abs=1e-6)
        assert result["trees"][place] == model.best_iteration_ + 1 <= 100


def test_deep_trees_stop_early(result):
    assert result["trees"][1] < 100 - 3


def test_the_same_seed_gives_the_same_result_and_another_seed_another(rows, result):
    again = boosted_trial(rows, YEAR, SCHEDULE, seed=5, n_threads=1)
    other = boosted_trial(rows, YEAR, SCHEDULE, seed=6, n_threads=1)
    assert again == result
    assert other["test"] != result["test"]


def test_test_rows_choose_nothing(rows, result):
    turned = Examples(rows.test.features, np.roll(rows.test.labels, 1))
    other = boosted_trial(
        Draw(rows.train, rows.validation, turned), YEAR, SCHEDULE, seed=5, n_threads=1
    )
    assert other["test"] != result["test"]
    assert {**other, "test": None} == {**result, "test": None}


def test_the_papers_schedule_is_the_papers():
    # Its notebooks: at most 5,000 trees, steps of .02, depths 2 to 4, an L2 penalty of 1, three
    # looks at 5,000 validation rows, one every 10 trees, 25,000 test rows. A bootstrap has a share
    # of 1 - 1/e of the rows.
    assert SCHEDULES["paper"].row_share == pytest.approx(1 - np.exp(-1), abs=5e-4)
    assert SCHEDULES["paper"].as_settings() == {
        "max_trees": 5000, "learning_rate": 0.02, "depths": [2, 3, 4], "penalty": 1.0,
        "row_share": 0.632, "patience": 30, "n_validation": 5_000, "n_test": 25_000,
    }  # fmt: skip


def test_quick_takes_larger_steps_of_the_same_trees_on_as_many_rows():
    paper, quick = SCHEDULES["paper"], SCHEDULES["quick"]
    steps = {"learning_rate": paper.learning_rate, "patience": paper.patience}
    assert replace(quick, **steps) == paper
    assert quick.learning_rate > paper.learning_rate


def test_a_smoke_trial_is_drawn_from_a_few_hundred_rows():
    assert SCHEDULES["smoke"].n_validation + SCHEDULES["smoke"].n_test <= 300
