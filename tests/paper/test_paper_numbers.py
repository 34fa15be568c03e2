"""The paper's own log losses, against those of its author's notebooks."""

import json

import numpy as np
import pytest

from paper.paper_numbers import COUNTY_COMBINATIONS, COUNTY_LOSSES, MONTH_LOSSES

pytestmark = pytest.mark.requires("shared-data")


def reference(shared_data, name):
    return json.loads((shared_data / "reference" / f"{name}_test_log_loss.json").read_text())


def test_months_are_the_least_of_the_figure(shared_data):
    for size, found in reference(shared_data, "months").items():
        least = [min(loss for loss in found[m] if loss is not None) for m in ("fixed", "variable")]
        expected = [found["std"], *least]
        assert MONTH_LOSSES[int(size)] == pytest.approx(expected, abs=6e-5)  # four digits


def test_counties_are_the_least_mean_over_the_depths(shared_data):
    found = reference(shared_data, "counties")
    # (sizes, trials, methods, depths)
    losses = np.array(found["test_logloss[size][trial][method][md]"]).mean(axis=1).min(axis=-1)
    names = ["std", *(f"p{weight:g}_m{n_blocks}" for n_blocks, weight in COUNTY_COMBINATIONS)]
    places = [found["methods"].index(name) for name in names]
    for size, by_method in zip(found["sizes"], losses, strict=True):
        ours = [COUNTY_LOSSES[size].standard, *COUNTY_LOSSES[size].variable]
        assert ours == pytest.approx(by_method[places], abs=6e-4)  # three digits
