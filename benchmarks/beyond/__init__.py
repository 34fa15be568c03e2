"""Beyond the paper: what is learned, tested, labelled and answered, measured on real data.

Each module is a command, ``python -m benchmarks.beyond.NAME --data ../shared/data``; every finished
run is a line of ``docs/results/NAME.jsonl``, a rerun goes on from there, and the page
``docs/results/NAME.md`` is written at the end.
"""
