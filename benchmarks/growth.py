"""How time grows with rows, classes and partitions: loss, linear model, engine and ``compare``.

``python -m benchmarks.growth`` measures the points that ``growth.jsonl`` does not have and draws
``docs/images/growth.svg`` from the lines; if it is interrupted, run it again to continue.
``--trial`` takes a hundredth of the rows and keeps nothing; ``--figure`` only draws. Each line has
the load of the machine: to repeat a point that ran beside other work, delete its line and run the
command again.

A point is the median of several runs on one thread. One size grows, the others stay at ``BASE``.
"""

from benchmarks.timing import limit_threads

limit_threads(1)  # read when NumPy and Numba are first imported

import argparse  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Callable, Iterator  # noqa: E402
from dataclasses import dataclass, replace  # noqa: E402
from functools import partial  # noqa: E402
from io import BytesIO  # noqa: E402
from pathlib import Path  # noqa: E402
from statistics import median  # noqa: E402

import matplotlib as mpl  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator  # noqa: E402

from benchmarks.lines import (  # noqa: E402
    Line,
    keep,
    kept,
    table_head,
    table_row,
    when_and_where,
)
from structent import RandomPartition, circular  # noqa: E402

TITLE = "How time grows with rows, classes and partitions, one thread"
KEPT = Path(__file__).parent / "growth.jsonl"
FIGURE = Path(__file__).parent.parent / "docs" / "images" / "growth.svg"
N_FEATURES, N_ROUNDS, N_ITERATIONS = 20, 20, 20


@dataclass(frozen=True)
class Size:
    """The size of a task; partitions are the rotations of a circle, and the singletons."""

    rows: int
    classes: int
    partitions: int

    @property
    def structure(self) -> RandomPartition:
        return circular(range(self.classes), width=self.partitions, singleton_weight=0.3)

    def divided(self, divisor: int) -> "Size":
        return replace(self, rows=max(self.rows // divisor, 2 * self.classes))


@dataclass(frozen=True)
class Measured:
    """Something that is timed: which sizes stay constant, and which grow."""

    base: Size
    rows: tuple[int, ...]
    classes: tuple[int, ...]
    partitions: tuple[int, ...]
    step_of: Callable[[Size], Callable[[], object]]
    unit: str

    def sizes(self, by: str) -> list[Size]:
        return [replace(self.base, **{by: value}) for value in getattr(self, by)]


def _problem(size: Size) -> tuple[np.ndarray, np.ndarray]:
    """Return features, and classes that lie on a circle in feature space; each class has a row."""
    rng = np.random.default_rng(0)
    labels = np.concatenate(
        [np.arange(size.classes), rng.integers(size.classes, size=size.rows - size.classes)]
    )
    angle = 2 * np.pi * labels / size.classes
    features = rng.normal(size=(size.rows, N_FEATURES))
    features[:, 0] += 3 * np.cos(angle)
    features[:, 1] += 3 * np.sin(angle)
    return features.astype(np.float32), labels


def _loss(size: Size) -> Callable[[], object]:
    import torch  # noqa: PLC0415  only the loss needs it

    from structent.losses.torch import StructuredCrossEntropy  # noqa: PLC0415

    torch.set_num_threads(1)
    loss = StructuredCrossEntropy(size.structure)
    logits = torch.randn(size.rows, size.classes, requires_grad=True)
    labels = torch.randint(size.classes, (size.rows,))

    def step() -> None:
        logits.grad = None
        loss(logits, labels).backward()

    return step


def _linear(size: Size) -> Callable[[], object]:
    from structent import StructuredLogisticRegression  # noqa: PLC0415

    features, labels = _problem(size)
    model = StructuredLogisticRegression(size.structure, max_iter=N_ITERATIONS, tol=1e-12)
    return partial(model.fit, features, labels)


def _engine(size: Size) -> Callable[[], object]:
    from structent import StructuredBoostingClassifier  # noqa: PLC0415

    features, labels = _problem(size)
    model = StructuredBoostingClassifier(
        size.structure, n_estimators=N_ROUNDS, max_depth=5, early_stopping_rounds=None,
        random_state=0, n_jobs=1,
    )  # fmt: skip
    return partial(model.fit, features, labels)


def _compare(size: Size) -> Callable[[], object]:
    from structent import compare  # noqa: PLC0415

    features, labels = _problem(size)
    return partial(
        compare, features, labels, size.structure, model="linear", random_state=0, n_jobs=1
    )


WHAT = {
    "loss": Measured(
        Size(1000, 120, 4), (100, 1000, 10_000, 100_000), (12, 120, 1200, 12_000),
        (2, 6, 20, 60), _loss, "a step, forward and backward",
    ),
    "linear model": Measured(
        Size(2000, 120, 4), (1000, 3000, 10_000, 30_000), (12, 120, 480, 960),
        (2, 6, 20, 60), _linear, f"{N_ITERATIONS} iterations",
    ),
    "engine": Measured(
        Size(10_000, 24, 4), (1000, 10_000, 100_000, 1_000_000), (12, 48, 240, 960),
        (2, 4, 8, 12), _engine, f"{N_ROUNDS} rounds of depth 5",
    ),
    "compare": Measured(
        Size(1000, 24, 4), (500, 1000, 3000, 10_000), (12, 24, 48, 96),
        (2, 4, 8, 12), _compare, "a whole comparison, linear",
    ),
}  # fmt: skip
BY = ("rows", "classes", "partitions")


def measure(what: str, size: Size, by: str, repeats: int) -> Line:
    """Return the median time of a point."""
    step = WHAT[what].step_of(size)
    seconds = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits are cut off before they converge
        step()  # compiles, allocates and warms caches
        for _ in range(repeats):
            start = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - start)
    return {
        "what": what, "by": by, "rows": size.rows, "classes": size.classes,
        "partitions": size.partitions, "seconds": median(seconds), "repeats": repeats,
    }  # fmt: skip


def missing(lines: list[Line]) -> Iterator[tuple[str, Size, str]]:
    """Yield the points that have no line yet, the smallest sizes first."""
    known = {_key(line) for line in lines}
    points = [
        (what, size, by)
        for place in range(4)
        for what, measured in WHAT.items()
        for by in BY
        for size in measured.sizes(by)[place : place + 1]
    ]
    for what, size, by in points:
        if (what, by, size.rows, size.classes, size.partitions) not in known:
            yield what, size, by


def _key(line: Line) -> tuple[object, ...]:
    return tuple(line[name] for name in ("what", "by", "rows", "classes", "partitions"))


def slope(x: list[float], seconds: list[float]) -> float:
    """Return the exponent of growth between the last two points; 1 means proportional time.

    >>> slope([1, 10, 100], [5.0, 6.0, 60.0])
    1.0
    """
    (a, b), (s, t) = x[-2:], seconds[-2:]
    return float(np.log(t / s) / np.log(b / a))


def figure(lines: list[Line]) -> Figure:
    """Return a row of panels for each thing, a panel for each size that grows."""
    drawn = Figure(figsize=(9, 2.3 * len(WHAT)), layout="constrained")
    axes = drawn.subplots(len(WHAT), len(BY), squeeze=False)
    for row, (what, measured) in zip(axes, WHAT.items(), strict=True):
        for ax, by in zip(row, BY, strict=True):
            x, y = _curve(lines, what, by)
            ax.loglog(x, y, marker="o", color="#0072b2", linewidth=1.2, markersize=4)
            fixed = ", ".join(f"{getattr(measured.base, o):,} {o}" for o in BY if o != by)
            grows = f", exponent {slope(x, y):.2f}" if len(x) > 1 else ""
            ax.set_title(f"{what}{grows}", fontsize=9)
            ax.set_xlabel(f"{by} ({fixed})", fontsize=8)
            ax.set_xticks(x, [f"{value:,}" for value in x])
            is_flat = max(y, default=1.0) < 3 * min(y, default=1.0)
            ax.yaxis.set_major_locator(LogLocator(subs=range(1, 10) if is_flat else (1, 2, 5)))
            ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            ax.minorticks_off()
            ax.tick_params(labelsize=8)
            ax.grid(alpha=0.3)
        row[0].set_ylabel(f"seconds\n{measured.unit}", fontsize=8)
    return drawn


def page() -> list[str]:
    """Return every point as Markdown, with the exponent of growth between the last two."""
    lines = kept(KEPT)
    if not lines:
        return ["Nothing was measured yet."]
    text = [f"{when_and_where(lines)}. The other sizes stay as in the figure of docs/cost.md.", ""]
    text += table_head("what", "grows", "seconds", "exponent")
    for what in WHAT:
        for by in BY:
            x, y = _curve(lines, what, by)
            points = ", ".join(
                f"{value:,}: {seconds:.2g}" for value, seconds in zip(x, y, strict=True)
            )
            exponent = f"{slope(x, y):.2f}" if len(x) > 1 else "-"
            text.append(table_row(what, by, points, exponent))
    return text


def _curve(lines: list[Line], what: str, by: str) -> tuple[list[float], list[float]]:
    """Return the sizes of a curve and their seconds; the last line of a point counts."""
    found = {
        line[by]: line["seconds"] for line in lines if (line["what"], line["by"]) == (what, by)
    }
    sizes = sorted(found)
    return sizes, [found[size] for size in sizes]


def draw(lines: list[Line], file: Path) -> None:
    """Write the figure as SVG; the same lines give the same bytes."""
    content = BytesIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "structent"}):
        figure(lines).savefig(content, format="svg", metadata={"Date": None})
    file.write_bytes(content.getvalue())
    print(f"{file}: {len(lines)} points. {when_and_where(lines)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", help=f"any of {', '.join(WHAT)}; all if none")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--trial", action="store_true", help="few rows; nothing is kept")
    parser.add_argument("--figure", action="store_true", help="measure nothing")
    given = parser.parse_args()
    if not given.figure:
        for what, size, by in list(missing([] if given.trial else kept(KEPT))):
            if given.what and what not in given.what:
                continue
            if given.trial:
                print(measure(what, size.divided(100), by, 1), flush=True)
            else:
                keep(KEPT, measure(what, size, by, given.repeats))
    if not given.trial:
        lines = kept(KEPT)
        if not lines:
            raise SystemExit("nothing was measured yet; leave out --figure")
        draw(lines, FIGURE)


if __name__ == "__main__":
    main()
