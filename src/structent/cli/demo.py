"""The demonstration: how structured entropy goes from coarse to fine with the weight."""

import numpy as np
from rich.console import Console
from rich.table import Table

from structent import hierarchy, maximum_entropy_distribution, structured_entropy

_OUTCOMES = {"died": ("sick",), "readmitted": ("sick",), "well": ("not sick",)}
_PATIENTS = (0.10, 0.20, 0.70)


def show_hospital(console: Console) -> None:
    """Print the structured entropy of the paper's hospital example for a few weights."""
    shares = ", ".join(
        f"{outcome} {share:.0%}" for outcome, share in zip(_OUTCOMES, _PATIENTS, strict=True)
    )
    console.print(f"Patients 30 days after discharge: {shares}.")
    console.print("Dying and being readmitted are alike: both are in the block sick.\n")
    table = Table(title="Structured entropy, in bits")
    table.add_column("weight of the\nthree outcomes", justify="right")
    table.add_column("weight of\nsick / not sick", justify="right")
    table.add_column("entropy of\nthese patients", justify="right")
    table.add_column("entropy is largest at", justify="right")
    for weight in np.linspace(0.0, 1.0, 5):
        structure = hierarchy(_OUTCOMES, weights=[1.0 - weight, weight])
        entropy = structured_entropy(_PATIENTS, structure, base=2)
        largest = ", ".join(f"{p:.3f}" for p in maximum_entropy_distribution(structure))
        table.add_row(f"{weight:.2f}", f"{1.0 - weight:.2f}", f"{entropy:.4f}", largest)
    console.print(table)
    console.print("The first row asks only: sick or not? The last is Shannon's entropy.")
