"""Augmentation, found out by trying every shift that there is."""

import numpy as np
import pytest

from structent.experiments.cifar100.augmentation import as_pixels, augmented

IMAGES = np.random.default_rng(0).integers(0, 256, (900, 12, 12, 3), dtype=np.uint8)
SHIFTS = range(-3, 4)


def moved(image, up, left, *, mirrored):
    """Shift an image pixel by pixel, the edge repeated; then mirror it."""
    height, width, _ = image.shape
    out = np.empty_like(image)
    for row in range(height):
        for column in range(width):
            from_row = min(max(row + up, 0), height - 1)
            from_column = min(max(column + left, 0), width - 1)
            place = width - 1 - column if mirrored else column
            out[row, place] = image[from_row, from_column]
    return out


def movement(image, result):
    """Return which shift and mirroring makes a result of an image."""
    # The middle of the image tells shifts apart; the whole is compared after that.
    for up in SHIFTS:
        for left in SHIFTS:
            middle = image[3 + up : 9 + up, 3 + left : 9 + left]
            for mirrored in (False, True):
                seen = result[3:9, 3:9]
                if np.array_equal(middle, seen[:, ::-1] if mirrored else seen):
                    return up, left, mirrored
    return pytest.fail("no shift of up to three pixels gives the image")


@pytest.fixture(scope="module")
def movements():
    results = augmented(IMAGES, np.random.default_rng(1))
    return results, [movement(*pair) for pair in zip(IMAGES, results, strict=True)]


def test_every_image_is_shifted_with_its_edge_repeated_and_then_perhaps_mirrored(movements):
    results, found = movements

    for image, result, (up, left, mirrored) in zip(IMAGES[:150], results, found, strict=False):
        assert np.array_equal(result, moved(image, up, left, mirrored=mirrored))


def test_shifts_are_all_of_minus_3_to_3_and_alike_in_number_each_way(movements):
    _, found = movements

    for way in (0, 1):
        values, counts = np.unique([move[way] for move in found], return_counts=True)
        assert values.tolist() == list(SHIFTS)
        # A seventh of 900 is 129, with a standard deviation of 10.5.
        assert counts.min() > 129 - 4 * 10.5
        assert counts.max() < 129 + 4 * 10.5


def test_shifts_up_and_left_are_drawn_apart(movements):
    up, left, mirrored = np.array(movements[1]).T

    assert abs(np.corrcoef([up, left, mirrored]) - np.eye(3)).max() < 4 / np.sqrt(900)


def test_half_of_the_images_are_mirrored(movements):
    # 450, with a standard deviation of 15.
    assert abs(sum(move[2] for move in movements[1]) - 450) < 4 * 15


def test_the_generator_alone_decides():
    same = [augmented(IMAGES, np.random.default_rng(5)) for _ in range(2)]

    assert np.array_equal(*same)
    assert not np.array_equal(same[0], augmented(IMAGES, np.random.default_rng(6)))


def test_the_images_given_stay_as_they_are():
    before = IMAGES.copy()
    augmented(IMAGES, np.random.default_rng(5))

    assert np.array_equal(IMAGES, before)


def test_pixels_are_numbers_from_0_to_1():
    pixels = as_pixels(np.array([0, 51, 255], dtype=np.uint8))

    assert pixels.dtype == np.float32
    assert pixels.tolist() == pytest.approx([0.0, 0.2, 1.0])
