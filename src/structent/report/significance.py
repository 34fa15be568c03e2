"""The page of a test: where a structure stands among its scrambled copies."""

from __future__ import annotations

import os

from structent.plots import drawing_of
from structent.report.figures import differences_figure, null_figure, structure_figure
from structent.report.tables import facts_of_test, gains_table, levels_table
from structent.report.template import filled
from structent.significance import PartitionGain, StructureTest
from structent.structure.files import save_bytes


def write_structure_test(
    found: StructureTest,
    path: str | os.PathLike[str],
    *,
    data: str,
    target: str,
    n_rows: int,
    gains: tuple[PartitionGain, ...] = (),
    notes: tuple[str, ...] = (),
) -> None:
    """Write what a test found as one HTML file, all or not at all.

    Parameters
    ----------
    found
        What was found.
    path
        The file to write.
    data, target, n_rows
        The name of the table, its label column, and how many rows there were.
    gains
        What each partition adds, if that was asked.
    notes
        What was done to the table, one sentence each.
    """
    html = structure_test_html(
        found, data=data, target=target, n_rows=n_rows, gains=gains, notes=notes
    )
    save_bytes(path, html.encode())


def structure_test_html(
    found: StructureTest,
    *,
    data: str,
    target: str,
    n_rows: int,
    gains: tuple[PartitionGain, ...] = (),
    notes: tuple[str, ...] = (),
) -> str:
    """Return the page that :func:`write_structure_test` writes; equal tests give equal pages."""
    return filled(
        "significance.html.j2",
        found=found,
        data=data,
        target=target,
        notes=(*notes, *found.notes),
        facts=facts_of_test(found, data, target, n_rows),
        null_figure=null_figure(found),
        differences_figure=differences_figure(found),
        gains=gains_table(gains),
        structure_summary=drawing_of(found.structure).summary,
        structure_figure=structure_figure(found),
        levels=levels_table(found),
    )
