"""Slices of the training set, whose rows are told by labels that count them."""

import numpy as np
import pytest

from structent.errors import StructentError
from structent.experiments.cifar100.images import Images
from structent.experiments.cifar100.slices import images_of_trial


def counted(n_train, n_test=10):
    """Images whose labels are their places, as is their every pixel."""

    def part(n):
        rows = np.arange(n)
        return np.broadcast_to(rows.astype(np.uint8)[:, None, None, None], (n, 32, 32, 3)), rows

    return Images(*part(n_train), *part(n_test))


def rows_of(trial, *, size, n_train=100, n_validation=15, n_test=10):
    images = images_of_trial(
        counted(n_train), size=size, trial=trial, n_validation=n_validation, n_test=n_test
    )
    for pixels, labels in (
        (images.train, images.train_labels),
        (images.validation, images.validation_labels),
        (images.test, images.test_labels),
    ):
        assert pixels[:, 0, 0, 0].tolist() == labels.tolist()
        assert pixels.shape[1:] == (32, 32, 3)
    return [
        part.tolist()
        for part in (images.train_labels, images.validation_labels, images.test_labels)
    ]


def test_trials_learn_from_slices_that_follow_one_another():
    slices = [rows_of(trial, size=25)[0] for trial in range(4)]

    assert slices == np.arange(100).reshape(4, 25).tolist()


@pytest.mark.parametrize("trial", range(4))
def test_validation_images_are_outside_the_slice(trial):
    train, validation, _ = rows_of(trial, size=25)

    assert len(set(validation)) == 15
    assert not set(train) & set(validation)


def test_validation_images_follow_the_slice():
    assert rows_of(1, size=25)[1] == list(range(50, 65))


def test_validation_images_of_the_last_slice_are_the_first_of_all():
    assert rows_of(3, size=25)[1] == list(range(15))


def test_validation_images_go_on_at_the_start_where_few_follow():
    train, validation, _ = rows_of(2, size=30)

    assert validation == [*range(90, 100), *range(5)]
    assert train == list(range(60, 90))


def test_the_whole_set_goes_without_its_validation_images():
    train, validation, _ = rows_of(0, size=100)

    assert validation == list(range(15))
    assert train == list(range(15, 100))


def test_the_first_test_images_are_taken():
    assert rows_of(0, size=25, n_test=7)[2] == list(range(7))


def test_a_trial_beyond_the_last_slice_is_refused():
    with pytest.raises(StructentError, match=r"trial 4 .* needs 125 training images, got 100;"):
        rows_of(4, size=25)


def test_validation_images_that_would_come_out_of_the_slice_are_refused():
    with pytest.raises(StructentError, match=r"trial 0 .* needs 105 training images, got 100;"):
        rows_of(0, size=90)


def test_a_whole_set_of_validation_images_is_refused():
    with pytest.raises(StructentError, match=r"needs 101 training images, got 100;"):
        rows_of(0, size=100, n_validation=100)


def test_too_few_test_images_are_refused():
    with pytest.raises(StructentError, match=r"needs 11 test images, got 10;"):
        rows_of(0, size=25, n_test=11)
