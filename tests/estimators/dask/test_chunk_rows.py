"""Chunks of training rows, encoded and split."""

import numpy as np
import pytest

from structent.errors import StructentError
from structent.estimators.classes import Classes
from structent.estimators.columns import Columns
from structent.estimators.dask.chunks import Chunk, encoded_chunks, split_rows
from structent.estimators.fitted import Encoder
from structent.estimators.rows import TrainingRows
from structent.structure import trivial

pytestmark = pytest.mark.requires("dask")

ENCODER = Encoder(
    Columns((None, None)), Classes.of_structure(trivial(["a", "b", "c"])), is_one_hot=False
)
TABLE = np.arange(8.0).reshape(4, 2)
ROWS = TrainingRows(np.arange(2000.0)[:, None], np.zeros(2000, dtype=int), np.ones(2000))


def encoded(table, labels, weights, class_weights=(1.0, 1.0, 1.0)):
    (lazy,) = encoded_chunks([Chunk(table, labels, weights)], ENCODER, np.array(class_weights))
    return lazy.compute(scheduler="synchronous")


def test_labels_become_indices_and_rows_without_weight_are_left_out():
    rows = encoded(TABLE, np.array(["c", "a", "b", "c"]), np.array([2, 0, 1, 5]), (1, 1, 0.5))
    assert rows.labels.tolist() == [2, 1, 2]
    assert rows.weights.tolist() == [1, 1, 2.5]
    assert rows.features.tolist() == [[0, 1], [4, 5], [6, 7]]


def test_an_empty_chunk_has_no_rows_but_all_columns():
    rows = encoded(TABLE[:0], np.array([]), None)
    assert rows.features.shape == (0, 2)
    assert rows.features.dtype == np.float32


@pytest.mark.parametrize(
    ("labels", "weights", "message"),
    [
        (
            list("abc"),
            None,
            "X and y must have the same rows in every chunk, got chunks of 4 and 3",
        ),
        (list("abca"), [1, 1, 1], "chunks of 3 and 4"),
        (list("abca"), [1, np.nan, 1, 1], "finite and not negative, got nan"),
        (list("abca"), [1, -2, 1, 1], "finite and not negative, got -2"),
        (list("abcd"), None, "'d' is not a class"),
    ],
)
def test_a_chunk_that_does_not_fit_is_refused(labels, weights, message):
    with pytest.raises(StructentError, match=message):
        encoded(TABLE, np.array(labels), weights)


def test_every_row_is_either_trained_on_or_held_back():
    training, held = split_rows(ROWS, 0.3, seed=1, number=2)
    both = np.concatenate([training.features, held.features])[:, 0]
    assert sorted(both) == list(range(2000))
    assert len(held.labels) == pytest.approx(600, abs=5 * np.sqrt(2000 * 0.3 * 0.7))


def test_the_split_is_a_function_of_the_seed_and_the_number_of_the_chunk():
    def held(seed, number):
        return split_rows(ROWS, 0.3, seed, number)[1].features.ravel().tolist()

    assert held(1, 2) == held(1, 2)
    assert held(1, 2) != held(1, 3)
    assert held(1, 2) != held(2, 2)
