"""The colours of the figures."""

import pytest
from matplotlib.colors import to_rgb

from structent.plots.colours import OF_ARM, OF_LEVELS


def luminance(colour):
    """As WCAG 2 defines it."""
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("page", ["#ffffff", "#f5f6f8", "#14171a", "#1d2126"])
@pytest.mark.parametrize("colour", sorted({*OF_LEVELS, *OF_ARM.values()}))
def test_every_colour_stands_out_on_light_and_on_dark(colour, page):
    low, high = sorted([luminance(colour), luminance(page)])
    assert (high + 0.05) / (low + 0.05) >= 3.0  # WCAG 2.1, 1.4.11: graphical objects
