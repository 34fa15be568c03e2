"""The colours of the figures: told apart by colour-blind readers, and legible on light and dark."""

import matplotlib as mpl
from matplotlib.colors import LinearSegmentedColormap, to_rgba

# Okabe and Ito's palette, without the colours that vanish on white; purple is a little darker.
BLUE = "#0072B2"
VERMILLION = "#D55E00"
GREEN = "#009E73"
PURPLE = "#C06A9A"
GREY = "#808080"

OF_LEVELS = (BLUE, VERMILLION, GREEN, PURPLE, GREY)
OF_ARM = {"none": GREY, "structure": BLUE, "scrambled": VERMILLION}
NAME_OF_ARM = {
    "none": "no structure",
    "structure": "the structure",
    "scrambled": "scrambled copies",
}

# From transparent, so that "nothing" is the background, whether that is light or dark.
SHADES = LinearSegmentedColormap.from_list(
    "structent_shades", [to_rgba("#2F86D6", 0.0), to_rgba("#2F86D6", 1.0)]
).with_extremes(bad=to_rgba(GREY, 0.25))


def ink() -> str:
    """Return the colour of text: that of matplotlib's settings, so that a style can change it."""
    return str(mpl.rcParams["text.color"])


def level_colour(place: int) -> str:
    """Return the colour of a level, by its place among the levels."""
    return OF_LEVELS[place % len(OF_LEVELS)]
