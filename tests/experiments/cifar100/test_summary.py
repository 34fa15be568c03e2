"""The numbers as JSON."""

import json

from structent.experiments.cifar100.summary import summary
from tests.experiments.cifar100.made_up import pair


def test_means_differences_and_errors_are_plain_numbers():
    # Gains of .1 and .3: mean .2, standard deviation .1 sqrt(2), error .1.
    found = summary("1A", pair([0.1, 0.3]))
    standard, structured = found["results"]
    assert structured["loss"] == "structured"
    assert structured["size"] == 1000
    assert structured["chosen epochs"]["accuracy"] == [10.0, 10.0]
    minus = structured["last epoch, minus standard"]["cross-entropy"]
    assert minus == {"mean": -0.2, "error": 0.1, "trials": 2}
    assert structured["chosen epoch"]["accuracy 4"]["mean"] == 0.51
    assert standard["the paper's way"]["cross-entropy"]["mean"] == 3.0
    assert "chosen epoch, minus standard" not in standard


def test_one_trial_has_a_null_error():
    text = json.dumps(summary("1A", pair([0.1])), allow_nan=False)
    assert '"cross-entropy": {"mean": 2.9, "error": null, "trials": 1}' in text


def test_nothing_run_gives_no_results():
    assert summary("1C", pair([0.1])) == {"experiment": "1C", "results": []}
