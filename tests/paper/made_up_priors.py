"""Finished runs of the question on priors, with losses that are drawn."""

import json
from dataclasses import asdict

import numpy as np

from paper import ways
from paper.beyond.prior import Prior
from paper.experiment import Finished

WAYS = (ways.NONE, ways.LOSS, ways.PARAMETERS, ways.BOTH)
CONTROLS = tuple(f"{way}, {ways.SCRAMBLED}" for way in WAYS[1:])
OWN = (ways.OWN_NONE, ways.OWN_AUTO, ways.OWN_SCRAMBLED)
# Where a structure is learned, and up to which size models choose by themselves.
MOST = {"CIFAR-100": 2500, "CLINC-150": 20}


def prior_result(settings):
    """Return made-up scores: a way gains or loses the same in every trial, but for some noise."""
    known = [len(settings["task"]), settings["size"], len(settings["model"])]
    of_cell = np.random.default_rng(known)
    of_trial = np.random.default_rng([*known, settings["trial"]])
    tried = [*WAYS, *CONTROLS]
    if settings["model"] == "linear" and settings["task"] in MOST:
        tried.append(ways.LEARNED)
    if settings["size"] <= MOST.get(settings["task"], settings["size"]):
        tried += OWN
    level = 2.0 + of_trial.normal(scale=0.2)
    result = {}
    for way in tried:
        gain = 0.0 if way == ways.NONE else of_cell.normal(scale=0.06)
        noise = of_trial.normal(scale=0.03)
        result[way] = {
            "log_loss": round(float(level + gain + noise), 6),
            "accuracy": round(float(0.4 - gain + noise), 6),
        }
        if way not in OWN:
            result[way] |= {"validation": round(float(level), 6), "setting": [0.4, 0.2]}
    return result


def prior_runs():
    """Return every run of the question, finished."""
    return [
        Finished(settings, prior_result(settings), 36.0, "2026-01-02", "a machine")
        for settings in Prior(data="folder").runs()
    ]


def keep(runs, file):
    """Write a file of finished runs."""
    file.write_text("".join(json.dumps(asdict(run)) + "\n" for run in runs))
