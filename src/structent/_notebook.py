"""How values look in a notebook: small pieces of HTML, with every name escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib import import_module
from typing import Any


def paragraph(text: str, *, bold: bool = False) -> str:
    """Return a paragraph.

    Examples
    --------
    >>> paragraph("a < b", bold=True)
    '<p><b>a &lt; b</b></p>'
    """
    return f"<p><b>{escape(text)}</b></p>" if bold else f"<p>{escape(text)}</p>"


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table; numbers are written as they are given.

    Examples
    --------
    >>> table(["level"], [["<genus>"]])
    '<table><tr><th>level</th></tr><tr><td>&lt;genus&gt;</td></tr></table>'
    """
    lines = ["".join(f"<th>{escape(name)}</th>" for name in header)]
    lines += ["".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows]
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def drawing_html(structure: Any) -> str:
    """Return a structure as a picture if matplotlib is there, else as text."""
    try:
        # It is in a higher layer, so it is loaded only when a notebook shows a structure.
        plots = import_module("structent.plots.structure")
    except ImportError:
        return f"<pre>{escape(str(structure))}</pre>"
    picture: str = plots.structure_svg(structure)
    return picture
