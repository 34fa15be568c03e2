"""Orders drawn as thresholds."""

import numpy as np

from structent import ordinal
from tests.plots.drawn import drawn


def test_a_scale_has_a_bar_as_long_as_the_weight_of_each_threshold():
    ax = drawn(ordinal(range(7), singleton_weight=0.4))
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], [0.1] * 6, rtol=1e-12)
