"""The page on Dask clusters, run as it stands."""

import contextlib
import io
import re

import pytest

from tests.conftest import PROJECT

pytestmark = pytest.mark.requires("dask")

PAGE = PROJECT / "docs" / "how-to" / "dask-cluster.md"
SHOWN_BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(\n```text\n(?P<output>.*?)^```\n)?", re.MULTILINE | re.DOTALL
)


def test_the_page_prints_what_it_shows(tmp_path):
    names, printed, shown = {}, [], []
    with contextlib.chdir(tmp_path):
        for block in SHOWN_BLOCK.finditer(PAGE.read_text()):
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile(block["code"], PAGE.name, "exec"), names)  # noqa: S102  our own page
            printed.append(output.getvalue())
            shown.append(block["output"] or "")
    assert printed == shown
    assert len([text for text in shown if text]) == 3
