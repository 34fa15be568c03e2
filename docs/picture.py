"""Draw the structures of docs/index.md: ``python docs/picture.py`` writes images/structures.svg."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from structent import LabelGraph, SpanningTreePartitions, circular, hierarchy
from structent.plots import draw_structure

PLANTS = hierarchy(
    {
        "maple": ("plant", "tree"),
        "oak": ("plant", "tree"),
        "rose": ("plant", "flower"),
        "trout": ("animal", "fish"),
        "salmon": ("animal", "fish"),
    }
)
YEAR = circular(
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
)
BAY = LabelGraph(
    [
        ("Marin", "Sonoma"), ("Sonoma", "Napa"), ("Napa", "Solano"), ("Sonoma", "Solano"),
        ("Solano", "Contra Costa"), ("Contra Costa", "Alameda"), ("Alameda", "Santa Clara"),
        ("Santa Clara", "San Mateo"), ("San Mateo", "San Francisco"), ("San Francisco", "Marin"),
    ]
)  # fmt: skip
SHOWN = {
    "a hierarchy": PLANTS,
    "a circle": YEAR,
    "a graph": SpanningTreePartitions(BAY, n_blocks=3, singleton_weight=0.5),
}

if __name__ == "__main__":
    with mpl.rc_context({"svg.hashsalt": "structent", "font.size": 9}):
        figure = Figure(figsize=(11, 3.9), layout="constrained", facecolor="white")
        for axes, (name, structure) in zip(figure.subplots(1, 3), SHOWN.items(), strict=True):
            draw_structure(structure, axes)
            axes.text(0.5, -0.06, name, transform=axes.transAxes, ha="center", weight="bold")
        target = Path(__file__).parent / "images" / "structures.svg"
        figure.savefig(target, metadata={"Date": None})
