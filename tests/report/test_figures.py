"""Figures as SVG inside a page."""

import matplotlib as mpl
import pytest

from structent.report.figures import page_figure


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
