"""Check the log losses that ``structent compare`` reports, without any of its code.

``python paper/log_losses.py predictions.csv found.json`` reads the files of ``--predictions`` and
``--json``, and prints the largest difference between a reported gain and one computed here.
"""

import csv
import json
import math
import sys
from collections import defaultdict
from pathlib import Path


def largest_difference(predictions: str, found: str) -> float:
    """Return the largest error of a reported gain over all splits."""
    losses: dict[tuple[str, int], list[float]] = defaultdict(list)
    with Path(predictions).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for arm in ("no structure", "the structure"):
                probability = float(row[f"{arm}: {row['label']}"])
                losses[arm, int(row["split"])].append(-math.log(probability))
    means = {place: sum(values) / len(values) for place, values in losses.items()}
    content = json.loads(Path(found).read_text(encoding="utf-8"))
    reported: list[float] = content["against_none"]["per_split"]
    return max(
        abs(means["the structure", split] - means["no structure", split] - reported[split])
        for split in sorted({split for _, split in means})
    )


if __name__ == "__main__":
    print(largest_difference(*sys.argv[1:]))  # noqa: T201  that is its result
