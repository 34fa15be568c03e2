"""Figures as SVG inside a page."""

import re

import matplotlib as mpl
import pytest

from structent.report.figures import Tip, page_figure


def written(text, **settings):
    with mpl.rc_context(settings):
        return page_figure(
            "name", lambda ax: ax.text(0, 0, text), (2, 2), caption="c", summary='a "b" <c>'
        ).svg


def test_text_is_text_in_the_ink_of_the_page():
    svg = written("hello")
    assert ">hello</text>" in svg
    assert "fill: currentColor" in svg


def test_a_text_that_looks_like_the_ink_is_left_alone():
    assert '>style="fill: #012345"</text>' in written('style="fill: #012345"')


def test_the_label_is_escaped():
    assert 'aria-label="a &#34;b&#34; &lt;c&gt;"' in written("hello")


@pytest.mark.parametrize("setting", [{"svg.fonttype": "path"}, {"axes.facecolor": "red"}])
def test_the_style_of_the_user_changes_nothing(setting):
    assert written("hello", **setting) == written("hello")


def test_settings_are_as_before_afterwards():
    before = dict(mpl.rcParams)
    written("hello")
    assert dict(mpl.rcParams) == before


def boxes(*tips, size=(4, 2)):
    def draw(ax):
        ax.set_xlim(0, 10)
        ax.set_ylim(0, 1)
        ax.plot([2], [0.5], "o")

    svg = page_figure("name", draw, size, caption="c", summary="s", tips=tips).svg
    number = r"([-\d.]+)"
    pattern = rf'<rect x="{number}" y="{number}" width="{number}" height="{number}"><title>(.*?)<'
    return svg, [
        (*map(float, found[:4]), found[4]) for found in re.findall(pattern, svg, flags=re.S)
    ]


def test_a_tip_lies_over_what_it_is_about():
    svg, [(x, y, width, height, text)] = boxes(Tip(2, 0.5, 2, 0.5, "the dot"))
    assert text == "the dot"
    (dot,) = re.findall(r'<use xlink:href="#[^"]*" x="([\d.]+)" y="([\d.]+)" style="fill', svg)[-1:]
    assert (x + width / 2, y + height / 2) == pytest.approx(tuple(map(float, dot)), abs=0.2)
    assert min(width, height) >= 9


def test_a_tip_is_as_large_as_its_box():
    _, [(_, _, half, _, _), (_, _, whole, high, _)] = boxes(
        Tip(0, 0, 5, 1, "half"), Tip(0, 0, 10, 1, "whole")
    )
    assert whole == pytest.approx(2 * half, abs=0.2)
    assert 72 < high < 144


def test_a_tip_is_text_and_on_one_line():
    svg, [(*_, text)] = boxes(Tip(0, 0, 1, 1, '</title><script>"a"\nb'))
    assert text == "&lt;/title&gt;&lt;script&gt;&#34;a&#34; b"
    assert "<script" not in svg
    assert svg.endswith("</g></svg>")
    assert svg.count("</svg>") == 1


def test_a_figure_without_tips_has_no_boxes():
    assert "tips" not in written("hello")
