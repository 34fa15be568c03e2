"""The pages in ``docs/results`` are what the recorded runs give, whose keys are still known."""

import shutil
from pathlib import Path

import matplotlib as mpl
import pytest

from tests.conftest import PROJECT

RECORDED = PROJECT / "docs" / "results"
DATA = "../shared/data"  # as the recorded commands name it; nothing is read from it
BACKBONE = f"{DATA}/weights/mobilenet_v2_imagenet.keras"
ON_NETWORKS = [pytest.mark.requires("keras"), pytest.mark.requires("torch")]


def cifar100(experiment, preset, *options):
    asked = ["cifar100", "--experiment", experiment, "--preset", preset, *options]
    return pytest.param(f"cifar100-{experiment}", asked, marks=ON_NETWORKS, id=experiment)


def learning_rate(backbone):
    asked = ["learning_rate", "--backbone", backbone]
    name = f"learning_rate-{Path(backbone).stem}"
    return pytest.param(name, asked, marks=ON_NETWORKS, id=name)


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("months", ["months", "--preset", "paper"]),
        ("counties", ["counties", "--preset", "paper"]),
        cifar100("1A", "quick"),
        cifar100("1B", "quick"),
        cifar100("1C", "quick", "--backbone", BACKBONE),
        cifar100("1D", "paper", "--backbone", BACKBONE),
        ("answers", ["answers"]),
        ("choices", ["choices"]),
        ("coarse_labels", ["coarse_labels"]),
        ("drawing", ["drawing"]),
        ("joint_targets", ["joint_targets"]),
        pytest.param("layers", ["layers"], marks=ON_NETWORKS),
        ("learned", ["learned"]),
        learning_rate("resnet50_imagenet.keras"),
        learning_rate(BACKBONE),
        pytest.param("longer_training", ["longer_training"], marks=ON_NETWORKS),
        ("prior", ["prior"]),
        ("significance", ["significance"]),
        ("structureboost", ["structureboost"]),
        ("tables", ["tables"]),
    ],
)
def test_recorded_runs_give_the_recorded_page(paper_command, tmp_path, name, asked):
    for kept in RECORDED.glob("*.jsonl"):
        shutil.copy(kept, tmp_path)
    code, _, err = paper_command(*asked, "--data", DATA, "--out", tmp_path, "--report-only")
    assert code == 0, err
    made = {path.name for path in tmp_path.iterdir() if path.suffix != ".jsonl"}
    assert f"{name}.md" in made
    for file in made:
        recorded = (RECORDED / file).read_text(encoding="utf-8")
        # Another version of matplotlib draws other lines.
        if file.endswith(".svg") and f"Matplotlib v{mpl.__version__}," not in recorded:
            continue
        assert (tmp_path / file).read_text(encoding="utf-8") == recorded, file
