"""A small made-up folder of weather, with the files and columns of California's."""

import json

import numpy as np
import polars as pl

TABLE = "california_daily_2000_2018.parquet"
GRAPH = "california_counties_37.json"
COUNTIES = [f"county {number:02}" for number in range(24)]
# A ring with three short cuts: no two nodes are alike to a control that keeps the graph.
EDGES = [[COUNTIES[place], COUNTIES[(place + 1) % 24]] for place in range(24)]
EDGES += [[COUNTIES[0], COUNTIES[5]], [COUNTIES[5], COUNTIES[12]], [COUNTIES[12], COUNTIES[20]]]


def weather_table(n_rows=700):
    """Return days whose temperatures tell something about month and county."""
    rng = np.random.default_rng(0)
    month, county = rng.integers(1, 13, n_rows), rng.integers(0, 24, n_rows)
    warm = -np.cos(month * np.pi / 6)
    return pl.DataFrame(
        {
            "county": [COUNTIES[place] for place in county],
            "month": month,
            "date": [f"2000-{number:02}-01" for number in month],
            "station": [f"station {place}" for place in county],
            # Every row has a rainfall of its own, by which it can be told from all others.
            "PRCP": rng.permutation(n_rows) / 100,
            "TMAX": 70 + 20 * warm + county / 3 + rng.normal(scale=5, size=n_rows),
            "TMIN": 50 + 15 * warm - county / 3 + rng.normal(scale=5, size=n_rows),
        }
    )


def write_weather(folder, table=None, graph=None):
    """Write the table and the graph into a folder, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    (weather_table() if table is None else table).write_parquet(folder / TABLE)
    content = {"nodes": COUNTIES, "edges": EDGES} if graph is None else graph
    (folder / GRAPH).write_text(json.dumps(content))
    return folder
