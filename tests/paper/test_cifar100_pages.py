"""The pages of Experiments 1A to 1D, and their figures."""

import re
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from paper.cifar100_pages import (
    figures,
    markdown,
    plot_trajectories,
    trajectories_figure,
)
from paper.cifar100_results import Case, summary, trials_of
from paper.cifar100_tables import claims
from tests.paper.made_up_runs import pair, run

NAMES = ("1A", "1B", "1C", "1D")
EVERYTHING = [
    *pair([0.1, 0.2], size=1000),
    *pair([0.1, 0.2], size=5000),
    *[run("soft labels 10", trial, entropy=[2.5], size=5000) for trial in (0, 1)],
    *[run("scrambled", trial, entropy=[3.5], size=5000, experiment="1B") for trial in (0, 1)],
    *pair([0.1], size=5000, experiment="1C", network="mobilenet_v2_imagenet"),
    *pair([0.1, 0.2], size=1000, experiment="1D", network="mobilenet_v2_imagenet"),
]


def headings(text):
    return re.findall(r"^#+ (.*)$", text, flags=re.M)


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_of_a_page_is_there_and_no_other(name):
    links = re.findall(r"\]\((.*)\.svg\)", markdown(name, EVERYTHING, []))
    assert links == list(figures(name, EVERYTHING))
    assert links


@pytest.mark.parametrize("name", NAMES)
def test_tables_have_as_many_cells_in_every_line(name):
    text = markdown(name, EVERYTHING, [])
    for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.M):
        assert len({line.count("|") for line in table.splitlines()}) == 1


@pytest.mark.parametrize("name", NAMES)
def test_what_it_is_about_stands_under_the_title(name):
    text = markdown(name, EVERYTHING, ["Command: x.", "Preset: quick."])
    first, second, third, _ = text.split("\n\n", 3)
    assert first.startswith(f"# CIFAR-100, experiment {name}: ")
    assert (second, third) == ("Command: x.", "Preset: quick.")


@pytest.mark.parametrize("name", NAMES)
def test_without_runs_a_page_has_the_papers_numbers_alone(name):
    text = markdown(name, [], [])
    assert "not run" in text
    assert "in the paper" in text
    assert "nan" not in text
    assert "Trajectories" not in headings(text)
    assert figures(name, []) == {}
    assert summary(name, [])["results"] == []
    assert {claim.holds for claim in claims(name, [])} == {"not run"}


def test_all_losses_are_compared_where_they_were_run():
    assert headings(markdown("1A", EVERYTHING, []))[-3:] == [
        "Which loss to choose",
        "5,000 images",
        "Trajectories",
    ]
    assert "Which loss to choose" not in headings(markdown("1B", EVERYTHING, []))
    assert "Which loss to choose" in headings(markdown("1D", EVERYTHING, []))


def test_sizes_that_were_not_run_are_on_the_page():
    text = markdown("1A", EVERYTHING, [])
    assert text.count("| 50,000 images | standard | not run |") == 2


def test_the_chosen_epochs_are_listed():
    # Cross-entropy is least at epochs 10 and 30, of 30; accuracy is highest at 30 and 20.
    runs = [
        run("standard", 0, entropy=[1, 1, 1], validation=[1, 2, 3], accuracy=[0.1, 0.2, 0.3]),
        run("standard", 1, entropy=[1, 1, 1], validation=[3, 2, 1], accuracy=[0.1, 0.3, 0.2]),
    ]
    listed = "- 1,000 images: standard 20 for cross-entropy, 25 for Acc, of 30\n"
    assert listed in markdown("1A", runs, [])


def test_the_page_of_1b_has_all_three_losses_and_their_differences():
    text = markdown("1B", EVERYTHING, [])
    # 3.5 against 3, and against 2.9 and 2.8.
    lines = text.splitlines()
    (minus_standard,) = [x for x in lines if "scrambled - standard | chosen" in x]
    (minus_structured,) = [x for x in lines if "scrambled - structured | chosen" in x]
    assert "**+0.5000 ± 0.0000**" in minus_standard
    assert "+0.6500 ± 0.0500" in minus_structured


# Figures

SMALL = Case(1000, "small CNN")


def by_loss(runs, losses=("standard", "structured")):
    return {loss: trials_of(runs, SMALL, loss) for loss in losses}


RUNS = [
    run("standard", 0, entropy=[5.0, 3.0, 2.0], accuracy=[0.1, 0.2, 0.3]),
    run("standard", 1, entropy=[5.0, 4.0, 3.0], accuracy=[0.1, 0.2, 0.3]),
    run("structured", 0, entropy=[4.0, 2.0, 1.0], accuracy=[0.2, 0.3, 0.4]),
]


def test_the_mean_over_trials_is_thick_and_trials_are_thin():
    ax = plot_trajectories(by_loss(RUNS), "cross-entropy", Figure().add_subplot())
    mean = next(line for line in ax.lines if line.get_label() == "standard")
    assert mean.get_xydata().tolist() == [[10, 5.0], [20, 3.5], [30, 2.5]]
    thin = [line for line in ax.lines if line.get_linewidth() < mean.get_linewidth()]
    assert [line.get_ydata().tolist() for line in thin] == [[5.0, 3.0, 2.0], [5.0, 4.0, 3.0]]


def test_one_trial_is_its_own_mean():
    ax = plot_trajectories(by_loss(RUNS[2:], ["structured"]), "accuracy", Figure().add_subplot())
    (line,) = ax.lines
    assert line.get_ydata().tolist() == [0.2, 0.3, 0.4]


def test_one_epoch_is_a_dot():
    ax = plot_trajectories(by_loss(pair([0.1])), "cross-entropy", Figure().add_subplot())
    assert [line.get_marker() for line in ax.lines] == ["o", "o"]


def test_the_start_does_not_flatten_the_rest():
    entropy = [100.0, 3.0, 2.5, 2.0, 1.9, 1.8, 1.7, 1.6, 1.5, 1.5]
    runs = by_loss([run("standard", 0, entropy=entropy)], ["standard"])
    ax = plot_trajectories(runs, "cross-entropy", Figure().add_subplot())
    low, high = ax.get_ylim()
    # From the second of ten epochs on, values are from 1.5 to 3.
    assert 1.3 < low < 1.5
    assert 3.0 < high < 3.2


def test_training_that_diverged_is_drawn_as_far_as_it_goes():
    runs = by_loss([run("standard", 0, entropy=[3.0, 2.0, float("nan")])], ["standard"])
    low, high = plot_trajectories(runs, "cross-entropy", Figure().add_subplot()).get_ylim()
    assert low < 2.0
    assert high > 3.0


def test_a_figure_has_a_panel_for_every_metric_and_a_name_for_every_loss():
    figure = trajectories_figure(by_loss(RUNS), "1,000 images")
    assert [ax.get_title() for ax in figure.axes] == [
        "cross-entropy",
        "structured cross-entropy",
        "accuracy: classes",
        "accuracy 2: superclasses",
        "accuracy 3: categories",
        "accuracy 4: supercategories",
    ]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "standard (2 trials)",
        "structured (1 trial)",
    ]


def test_each_case_has_a_figure_of_its_own():
    finished = [
        *pair([0.1], size=1000),
        *pair([0.1], size=5000),
        run("scrambled", 0, entropy=[3.0], size=5000, experiment="1B"),
        *pair([0.1], experiment="1C", network="mobilenet_v2_imagenet", size=2000),
    ]
    assert list(figures("1A", finished)) == ["cifar100-1A-1000", "cifar100-1A-5000"]
    assert list(figures("1C", finished)) == ["cifar100-1C-mobilenet_v2_imagenet-2000"]
    (scrambled,) = figures("1B", finished).values()
    assert [line.get_label() for line in scrambled.axes[0].lines] == [
        "standard",
        "structured",
        "scrambled",
    ]


def test_a_users_dark_style_does_not_whiten_the_letters_on_white():
    with mpl.rc_context({"text.color": "white", "axes.labelcolor": "white"}):
        figure = trajectories_figure(by_loss(RUNS), "1,000 images")
    assert figure.get_facecolor()[:3] == to_rgb("white")
    assert to_rgb(figure.axes[0].title.get_color()) == to_rgb("black")
    assert to_rgb(figure.axes[-1].xaxis.label.get_color()) == to_rgb("black")


@pytest.mark.parametrize("n_epochs", [1, 2, 150])
def test_no_texts_overlap(n_epochs):
    entropy = np.linspace(4.6, 2.9, n_epochs).tolist()
    accuracy = np.linspace(0.01, 0.3, n_epochs).tolist()
    runs = [
        run(loss, 0, entropy=entropy, accuracy=accuracy)
        for loss in ("standard", "structured", "scrambled")
    ]
    title = "MobileNetV2 (mobilenet_v2_imagenet), 50,000 images"
    figure = trajectories_figure(by_loss(runs, ["standard", "structured", "scrambled"]), title)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    texts = [*figure.legends[0].get_texts(), figure.legends[0].get_title()]
    for ax in figure.axes:
        texts += [ax.title, ax.xaxis.label, *_names(ax.xaxis), *_names(ax.yaxis)]
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    assert not [(a, b) for a, b in combinations(boxes, 2) if a.overlaps(b)]
    for box in boxes:
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.x1
        assert box.y1 <= figure.bbox.y1


def _names(axis):
    """The names of ticks that are drawn: matplotlib keeps some beyond the ends of the axis."""
    low, high = sorted(axis.get_view_interval())
    drawn = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [tick.label1 for tick in drawn if tick.label1.get_visible()]
