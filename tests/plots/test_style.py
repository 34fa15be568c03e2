"""What all figures share."""

import pytest
from matplotlib.colors import to_rgb

from structent.plots.style import OF_ARM, OF_LEVELS
from structent.studies.comparison import ARMS
from tests.plots.contrast import contrast


@pytest.mark.parametrize("page", ["#ffffff", "#f5f6f8", "#14171a", "#1d2126"])
@pytest.mark.parametrize("colour", sorted({*OF_LEVELS, *OF_ARM.values()}))
def test_every_colour_stands_out_on_light_and_on_dark(colour, page):
    assert contrast(to_rgb(colour), to_rgb(page)) >= 3.0  # WCAG 2.1, 1.4.11: graphical objects


def test_every_arm_has_a_name_and_a_colour_of_its_own():
    assert tuple(OF_ARM) == tuple(ARMS)
    assert len(set(OF_ARM.values())) == len(set(ARMS.values())) == len(ARMS)
