"""``python -m paper.stamping --data DATA --out FOLDER``: give old runs the digests of their data.

Runs that were recorded before results files had digests get the digests of the current data. Only
the person who recorded them can know that they were made from this data. Runs that have digests
stay unchanged, so the command can be repeated.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from paper.beyond.answers import Answers
from paper.beyond.choices import Choices
from paper.beyond.coarse_labels import CoarseLabels
from paper.beyond.learned import Learned
from paper.beyond.prior import Prior
from paper.beyond.significance import Significance
from paper.beyond.tables import Tables
from paper.digests import Sources, digests_of
from paper.experiment import Settings, key
from paper.features import BACKBONE, backbone_sources, feature_sources
from paper.images import image_sources
from paper.weather import county_sources, weather_sources
from structent._files import JsonLines
from structent.cli.failures import errors_told_in_a_sentence


def stamp(data: Path, folder: Path) -> dict[str, int]:
    """Add digests to the runs of a folder that have none; return how many of each file.

    Parameters
    ----------
    data
        The folder of the data.
    folder
        The folder of the results. Files that no experiment writes are left alone.
    """
    counts = {}
    for file in sorted(folder.glob("*.jsonl")):
        # A name such as cifar100-48-epochs belongs to an old schedule.
        sources = _SOURCES.get(file.stem.partition("-")[0])
        if sources is not None:
            counts[file.name] = _stamp_file(JsonLines(file), partial(sources, data))
    return counts


def _stamp_file(lines: JsonLines, sources: Callable[[Settings], Sources]) -> int:
    runs = lines.read(
        lambda line: (line["settings"], line.get("data")),
        what="be a finished run",
        then="and the run will be done again",
    )
    # All digests are computed first, so nothing is written if a file of the data is missing.
    found = {key(run): digests_of(sources(run)) for run, data in runs if data is None}

    def changed(line: dict[str, Any]) -> dict[str, Any]:
        missing = line.get("data") is None
        return {**line, "data": found.get(key(line["settings"]))} if missing else line

    if found:
        lines.change(changed)
    return len(found)


def _of_network(data: Path, run: Settings) -> Sources:
    """Return the images and, if the network was pre-trained, its file."""
    if run["experiment"] in ("1A", "1B"):
        return image_sources(data)
    backbone = data / BACKBONE.with_name(f"{run['network']}.keras")
    return {**image_sources(data), **backbone_sources(str(backbone))}


_SOURCES: dict[str, Callable[[Path, Settings], Sources]] = {
    "answers": lambda data, run: Answers(data).sources(run),
    "choices": lambda data, run: Choices(data).sources(run),
    "cifar100": _of_network,
    "coarse_labels": lambda data, run: CoarseLabels(data).sources(run),
    "coarse_labels_cause": lambda data, _: feature_sources(data),
    "counties": lambda data, _: county_sources(data),
    "drawing": lambda data, _: county_sources(data),
    "joint_targets": lambda data, _: county_sources(data),
    "layers": _of_network,
    "learned": lambda data, run: Learned(data).sources(run),
    "learning_rate": _of_network,
    "longer_training": lambda data, _: image_sources(data),
    "months": lambda data, _: weather_sources(data),
    "prior": lambda data, run: Prior(data).sources(run),
    "significance": lambda data, run: Significance(data).sources(run),
    "structureboost": lambda data, _: weather_sources(data),
    "tables": lambda data, run: Tables(data).sources(run),
}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the data")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the results")
    given = parser.parse_args()
    with errors_told_in_a_sentence("paper"):
        for name, count in stamp(given.data, given.out).items():
            print(f"{name}: {count} runs got digests")  # noqa: T201  what the command says


if __name__ == "__main__":
    main()
