"""The page on the structure in the parameters, from made-up runs, against slow loops."""

import re
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from paper import tasks, ways
from paper.beyond import Asked, prior
from paper.beyond.prior import LINEAR, TREES, Prior
from paper.experiment import key
from tests.paper.made_up_priors import MOST, OWN, keep, prior_runs

RUNS = prior_runs()
STUDENTS_T = 2.7764451  # 97.5 % of Student's t with 4 degrees of freedom, from a table
LOSS, PARAMETERS, BOTH, NONE = ways.LOSS, ways.PARAMETERS, ways.BOTH, ways.NONE


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    keep(RUNS, out / "prior.jsonl")
    return prior.page(Asked(Path("folder"), out, "python -m paper prior --data folder"))


def cells(model):
    """Return task, unit and size of each place in the tables."""
    of_model = {"linear": LINEAR, "trees": TREES}[model]
    return [(task.name, task.unit, size) for task in of_model for size in task.sizes]


def values(model, task, size, way, score="log_loss"):
    """Return the scores of a way in trials 0 to 4; none where it was not tried."""
    found = {}
    for run in RUNS:
        where = (run.settings["model"], run.settings["task"], run.settings["size"])
        if where == (model, task, size) and way in run.result:
            found[run.settings["trial"]] = run.result[way][score]
    return [found[trial] for trial in sorted(found)]


def difference(first, second):
    """Return the mean of differences by trial, and its standard error."""
    each = [one - other for one, other in zip(first, second, strict=True)]
    mean = sum(each) / 5
    variance = sum((value - mean) ** 2 for value in each) / 4
    return mean, (variance / 5) ** 0.5


def n_lower(model, way, other):
    """Count where the log loss of a way is lower than that of another, beyond the interval."""
    count = 0
    for task, _, size in cells(model):
        first, second = (values(model, task, size, each) for each in (way, other))
        if first and second:
            mean, error = difference(first, second)
            count += mean + STUDENTS_T * error < 0
    return count


def n_both_lower(model):
    count = 0
    for task, _, size in cells(model):
        loss, parameters, both = (
            values(model, task, size, way) for way in (LOSS, PARAMETERS, BOTH)
        )
        mean, error = difference(both, loss if sum(loss) < sum(parameters) else parameters)
        count += mean + STUDENTS_T * error < 0
    return count


def tables(text):
    """Return the lines of every table, as cells, by the heading it stands under."""
    found, path = {}, ["", ""]
    for line in text.splitlines():
        if line.startswith("## "):
            path = [line[3:], ""]
        elif line.startswith("### "):
            path[1] = line[4:]
        elif line.startswith("|"):
            found.setdefault(tuple(path), []).append(
                [cell.strip() for cell in line[1:-1].split("|")]
            )
    return found


def cell(mean, error, *, is_bold):
    text = f"{mean:+.4f} ± {error:.4f}"
    return f"**{text}**" if is_bold else text


# Runs


def test_every_task_size_and_trial_is_run_once_and_the_small_sizes_come_first():
    runs = Prior(Path("folder")).runs()
    assert len(runs) == len({key(run) for run in runs}) == 5 * (15 + 16)
    places = [
        next(task for task in (*LINEAR, *TREES) if task.name == run["task"]).sizes.index(
            run["size"]
        )
        for run in runs
    ]
    assert places == sorted(places)
    assert {run["trial"] for run in runs} == set(range(5))


def test_linear_models_and_trees_can_be_run_apart():
    whole = Prior(Path("folder")).runs()
    for model, count in (("linear", 75), ("trees", 80)):
        runs = Prior(Path("folder"), (model,)).runs()
        assert len(runs) == count
        assert runs == [run for run in whole if run["model"] == model]


def test_what_was_tried_is_part_of_the_settings():
    for run in Prior(Path("folder")).runs():
        assert (run["loss"], run["prior"]) == ([0.7, 0.4, 0.1], [0.8, 0.5, 0.2, 0.05])
        assert run["smoothing"] == [0.3, 0.6, 0.8]


def of_task(*what):
    return what


@pytest.mark.parametrize(
    ("model", "task", "size", "with_learned", "by_itself"),
    [
        ("linear", tasks.IMAGES, 1000, True, True),
        ("linear", tasks.IMAGES, 2500, True, False),
        ("linear", tasks.INTENTS, 5, True, True),
        ("linear", tasks.INTENTS, 10, True, False),
        ("linear", tasks.INCOMES, 2000, False, True),
        ("trees", tasks.INCOMES, 2000, False, True),
        ("trees", tasks.MONTHS, 20_000, False, True),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_a_run_compares_the_ways_on_the_rows_of_its_task(
    monkeypatch, model, task, size, with_learned, by_itself
):
    asked = []
    monkeypatch.setattr(ways, "compared", lambda *args, **options: asked.append((args, options)))
    for each in (*LINEAR, *TREES):
        for what in ("rows", "structure"):  # set past the dataclass, which is frozen
            given = partial(of_task, what, each.name)
            monkeypatch.setitem(each.__dict__, what, given)
    settings = {"model": model, "task": task.name, "size": size, "trial": 3}
    Prior(Path("folder")).run(settings, 1)
    (((its_model, rows, structure), options),) = asked
    assert isinstance(its_model, ways.Linear if model == "linear" else ways.Trees)
    assert rows == ("rows", task.name, Path("folder"), size, 3)
    assert structure == ("structure", task.name, Path("folder"))
    assert options == {"seed": 3, "with_learned": with_learned, "by_itself": by_itself}


# Findings


@pytest.mark.parametrize(
    ("model", "name", "parameters"),
    [("linear", "Linear model", "the prior"), ("trees", "Boosted trees", "smoothed leaves")],
)
def test_counts_are_those_of_a_slow_loop(page, model, name, parameters):
    n = len(cells(model))
    lower = [n_lower(model, way, NONE) for way in (LOSS, PARAMETERS, BOTH)]
    assert (
        f"- {name}: of {n} tasks and sizes, log loss is lower than without structure with the loss "
        f"in {lower[0]}, with {parameters} in {lower[1]}, with both in {lower[2]}.\n"
    ) in page.text
    assert (
        f"- {name}: log loss is lower with {parameters} than with the loss in "
        f"{n_lower(model, PARAMETERS, LOSS)} of them, higher in {n_lower(model, LOSS, PARAMETERS)},"
        f" and lower with both than with the better one alone in {n_both_lower(model)}.\n"
    ) in page.text
    scrambled = f"{PARAMETERS}, scrambled"
    assert (
        f"- {name}: with {parameters} of a scrambled structure, log loss is lower than without "
        f"structure in {n_lower(model, scrambled, NONE)} of them; with the true structure it is "
        f"lower than with the scrambled one in {n_lower(model, PARAMETERS, scrambled)}.\n"
    ) in page.text


def test_counts_of_learned_structures_are_those_of_a_slow_loop(page):
    assert (
        "- With the prior of a learned structure, log loss is lower than without structure in "
        f"{n_lower('linear', ways.LEARNED, NONE)} of 9 tasks and sizes, and lower than with the "
        f"prior of the given structure in {n_lower('linear', ways.LEARNED, PARAMETERS)}.\n"
    ) in page.text


def test_no_count_on_these_runs_is_trivial():
    for model in ("linear", "trees"):
        n = len(cells(model))
        for way, other in ((LOSS, NONE), (PARAMETERS, NONE), (BOTH, NONE), (PARAMETERS, LOSS)):
            assert 0 < n_lower(model, way, other) < n
        assert 0 < n_both_lower(model) < n
    assert 0 < n_lower("linear", ways.LEARNED, NONE) < 9


@pytest.mark.parametrize(
    ("model", "name"), [("linear", "Linear model"), ("trees", "Boosted trees")]
)
def test_shares_of_auto_are_means_over_tasks_and_sizes(page, model, name):
    shares = {way: [] for way in OWN[1:]}
    for task, _, size in cells(model):
        none = values(model, task, size, ways.OWN_NONE)
        for way, so_far in shares.items():
            if none:
                so_far.append(100 * (sum(values(model, task, size, way)) / sum(none) - 1))
    auto, scrambled = (sum(each) / len(each) for each in shares.values())
    assert len(shares[ways.OWN_AUTO]) == {"linear": 13, "trees": 16}[model]
    assert (
        f'- {name}: with "auto", which sees the training rows alone, log loss changes by '
        f"{auto:+.2f} % on average over {len(shares[ways.OWN_AUTO])} tasks and sizes, with "
        f"scrambled structures by {scrambled:+.2f} %."
    ) in page.text


# Tables


@pytest.mark.parametrize(
    ("heading", "ending"), [("Log loss", ""), ("Scrambled structures", ", scrambled")]
)
@pytest.mark.parametrize("model", ["linear", "trees"])
def test_differences_are_in_bold_where_they_are_below_0_beyond_the_interval(
    page, heading, ending, model
):
    name = {"linear": "Linear model", "trees": "Boosted trees"}[model]
    _, _, *lines = tables(page.text)[heading, name]
    assert len(lines) == len(cells(model))
    n_bold = 0
    for line, (task, unit, size) in zip(lines, cells(model), strict=True):
        none = values(model, task, size, NONE)
        expected = [f"{task}, {size:,} {unit}"]
        if not ending:
            error = np.std(none, ddof=1) / 5**0.5
            expected.append(f"{np.mean(none):.4f} ± {error:.4f}")
        for way in (LOSS, PARAMETERS, BOTH):
            mean, error = difference(values(model, task, size, way + ending), none)
            is_bold = mean + STUDENTS_T * error < 0
            n_bold += is_bold
            expected.append(cell(mean, error, is_bold=is_bold))
        if not ending and model == "linear":
            learned = values(model, task, size, ways.LEARNED)
            assert bool(learned) == (task in MOST)
            mean, error = difference(learned, none) if learned else (0.0, 1.0)
            is_bold = mean + STUDENTS_T * error < 0
            expected.append(cell(mean, error, is_bold=is_bold) if learned else "")
        assert line == expected
    assert 0 < n_bold < 3 * len(lines)


def test_accuracies_are_in_bold_where_they_are_above_0_beyond_the_interval(page):
    _, _, *lines = tables(page.text)["Accuracy", ""]
    every = [(model, *place) for model in ("linear", "trees") for place in cells(model)]
    names = {"linear": "linear model", "trees": "boosted trees"}
    n_bold = 0
    for line, (model, task, unit, size) in zip(lines, every, strict=True):
        none = values(model, task, size, NONE, "accuracy")
        expected = [f"{names[model]}: {task}, {size:,} {unit}", f"{sum(none) / 5:.4f}"]
        for way in (LOSS, PARAMETERS, BOTH):
            mean, error = difference(values(model, task, size, way, "accuracy"), none)
            is_bold = mean - STUDENTS_T * error > 0
            n_bold += is_bold
            expected.append(cell(mean, error, is_bold=is_bold))
        assert line == expected
    assert 0 < n_bold < 3 * len(lines)


def test_what_auto_does_is_told_where_it_was_run(page):
    _, _, *lines = tables(page.text)['What "auto" does', ""]
    every = [
        (name, model, *place)
        for name, model in (("linear model", "linear"), ("boosted trees", "trees"))
        for place in cells(model)
        if values(model, place[0], place[2], ways.OWN_NONE)
    ]
    assert len(every) == 13 + 16
    for line, (name, model, task, unit, size) in zip(lines, every, strict=True):
        none = values(model, task, size, ways.OWN_NONE)
        differences, shares = [], []
        for way in OWN[1:]:
            other = values(model, task, size, way)
            mean, error = difference(other, none)
            differences.append(cell(mean, error, is_bold=mean + STUDENTS_T * error < 0))
            shares.append(f"{100 * (sum(other) / sum(none) - 1):+.2f} %")
        assert line[0] == f"{name}: {task}, {size:,} {unit}"
        assert line[2:] == [*differences, *shares]


def test_tables_have_as_many_cells_in_every_line(page):
    for lines in tables(page.text).values():
        assert len({len(line) for line in lines}) == 1


def test_the_page_tells_what_was_run_and_tried(page):
    assert (
        "Command: `python -m paper prior --data folder`. 155 of 155 runs are finished; they took "
        "1.6 hours in all, on 2026-01-02.\n\nMachine: a machine.\n"
    ) in page.text
    assert "in the loss (0.7, 0.4, 0.1), in the prior (0.8, 0.5, 0.2, 0.05)" in page.text
    assert "that leaves borrow (0.3, 0.6, 0.8)" in page.text
    assert "There are 5 trials each" in page.text
    assert "nan" not in page.text
    assert "not run" not in page.text


# The figure


@pytest.fixture(scope="module")
def figure():
    made = prior._figure(prior._cells(RUNS))
    FigureCanvasAgg(made).draw()
    return made


def test_the_figure_of_the_page_is_drawn(page):
    assert re.findall(r"\]\((.*)\.svg\)", page.text) == ["prior"] == list(page.figures)
    assert page.figures["prior"].startswith(b"<?xml")


def test_every_model_and_task_has_a_panel_with_its_differences(figure):
    expected = [("linear", task, f"Linear model: {task.name}") for task in LINEAR]
    expected += [("trees", task, f"Boosted trees: {task.name}") for task in TREES]
    panels = [ax for ax in figure.axes if ax.axison]
    assert [ax.get_title() for ax in panels] == [title for _, _, title in expected]
    tried = (LOSS, PARAMETERS, BOTH, f"{LOSS}, scrambled", f"{PARAMETERS}, scrambled")
    for ax, (model, task, _) in zip(panels, expected, strict=True):
        assert [text.get_text() for text in ax.get_xticklabels()] == [f"{n:,}" for n in task.sizes]
        assert ax.get_xlabel() == task.unit
        lines = [bars.lines[0] for bars in ax.containers]
        for line, way in zip(lines, tried, strict=True):
            means = [
                difference(values(model, task.name, n, way), values(model, task.name, n, NONE))[0]
                for n in task.sizes
            ]
            assert line.get_ydata() == pytest.approx(means)
            assert (line.get_linestyle() == "--") == way.endswith("scrambled")


def test_no_text_of_the_figure_overlaps_or_is_cut(figure):
    texts = [*figure.legends]
    for ax in figure.axes:
        texts += [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels()]
        low, high = ax.get_ylim()
        ticks = zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)
        texts += [label for at, label in ticks if low <= at <= high]  # others are not drawn
    boxes = [text.get_window_extent() for text in texts]
    boxes = [box for box in boxes if box.width and box.height]
    assert len(boxes) > 9 * 6
    whole = figure.bbox
    for box in boxes:
        assert whole.x0 <= box.x0 < box.x1 <= whole.x1
        assert whole.y0 <= box.y0 < box.y1 <= whole.y1
    assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]
