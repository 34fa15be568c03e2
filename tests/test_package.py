"""The package as a newcomer meets it: its imports, its names, its wheel, its documents."""

import ast
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

import structent
from tests.conftest import PROJECT

PACKAGE = PROJECT / "src" / "structent"
FRAMEWORKS = {
    *("torch", "keras", "jax", "tensorflow", "xgboost", "lightgbm", "sklearn", "dask"),
    *("pandas", "polars", "networkx", "onnx", "matplotlib", "typer", "rich"),
}


NEEDS_SCIKIT_LEARN = {
    *("StructuredBoostingClassifier", "StructuredLogisticRegression", "StructureLearner"),
    *("Comparison", "StructureTest", "compare", "learn_structure", "structure_test"),
}


def printed(code, *arguments):
    """Return what code prints in a fresh interpreter."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_importing_the_package_loads_no_framework():
    code = f"import sys, structent; print({FRAMEWORKS} & set(sys.modules))"
    assert printed(code) == "set()"


def test_every_public_name_is_there_and_documented():
    for name in structent.__all__:
        assert getattr(structent, name).__doc__


@pytest.mark.requires("sklearn")
def test_the_estimators_and_studies_are_listed_and_loaded_when_asked_for():
    assert set(structent.__all__) >= NEEDS_SCIKIT_LEARN
    with pytest.raises(AttributeError, match="has no attribute 'StructuredForest'"):
        structent.StructuredForest  # noqa: B018  asking is all


def test_completion_shows_public_names_and_subpackages_alone():
    code = "import structent; print(*(n for n in dir(structent) if not n.startswith('__')))"
    shown = set(printed(code).split())
    packages = {name for name in shown if (PACKAGE / name / "__init__.py").exists()} | {"errors"}
    assert shown == set(structent.__all__) | NEEDS_SCIKIT_LEARN | packages
    assert packages >= {
        "datasets",
        "decisions",
        "entropy",
        "inputs",
        "losses",
        "metrics",
        "studies",
    }
    assert not any(name.startswith("_") for name in shown)


def test_subpackages_need_no_import_of_their_own():
    assert printed("import structent; print(structent.metrics.skill.__name__)") == "skill"


def test_a_star_import_works_without_scikit_learn():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "from structent import *\n"
        "import structent\n"
        "print('hierarchy' in globals(), 'compare' in globals(), 'compare' in dir(structent))\n"
        "try: structent.compare\n"
        "except ImportError as error: print(error)"
    )
    answer, advice = printed(code).split("\n")
    assert answer == "True False True"
    assert advice.endswith("needs sklearn: pip install 'structent[sklearn]'")


def test_type_checkers_see_the_names_that_are_there():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {(alias.asname, node.module) for node in checked.body for alias in node.names}
    assert seen == set(structent._MODULE_OF.items())


def test_the_library_is_tested_without_the_paper_and_the_benchmarks():
    own = {"paper", "benchmarks"}
    tests = [path for path in (PROJECT / "tests").rglob("*.py") if not own & {*path.parts}]
    imports = re.compile(r"^\s*(?:from|import) (?:paper|benchmarks)\b", re.MULTILINE)
    assert [path.name for path in tests if imports.search(path.read_text())] == []


def test_the_version_is_that_of_the_project():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert structent.__version__ == project["version"]
    changelog = (PROJECT / "CHANGELOG.md").read_text()
    assert f"## {structent.__version__}" in changelog
    assert f"version: {structent.__version__}" in (PROJECT / "CITATION.cff").read_text()


def test_every_direct_dependency_is_pinned_in_the_constraints():
    content = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    wanted = [
        *content["project"]["dependencies"],
        *(r for extra in content["project"]["optional-dependencies"].values() for r in extra),
        *(r for group in content["dependency-groups"].values() for r in group),
    ]
    names = {re.split(r"[\[<>=]", requirement)[0] for requirement in wanted} - {"structent"}
    lines = (PROJECT / "constraints.txt").read_text().splitlines()
    pinned = {line.split("==")[0] for line in lines if "==" in line}
    assert names <= pinned


def test_the_project_itself_gives_lower_bounds_only():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for requirement in [*project["dependencies"], *(r for e in extras.values() for r in e)]:
        assert requirement.startswith("structent[") or re.search(r">=[\d.]+$", requirement)


PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("document", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_the_code_in_the_documents_runs_and_prints_what_they_show(
    document, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # they save models
    text = (PROJECT / document).read_text()
    blocks = PYTHON_BLOCK.findall(text)
    assert blocks or document != "README.md"
    names: dict = {}
    for block in blocks:
        if document == "README.md":
            names = {}  # a reader pastes one block, not all of them
        exec(compile(block, document, "exec"), names)  # noqa: S102  our own documents
        assert capsys.readouterr().out in text


def test_the_readme_has_at_most_900_words():
    assert len((PROJECT / "README.md").read_text().split()) <= 900


TREES = """
from structent import StructuredBoostingClassifier
X, y = [[0.0], [1.0]] * 30, ["a", "b"] * 30
model = StructuredBoostingClassifier(random_state=0).fit(X, y)
model.save("model.structent")
print(StructuredBoostingClassifier.load("model.structent").predict([[1.0]]))
try: StructuredBoostingClassifier(engine="xgboost").fit(X, y)
except ImportError as error: print(error)
"""


def test_trees_and_the_command_need_no_other_booster():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["sklearn"], *extras["cli"]]
    names = {re.split(r"[<>=]", requirement)[0] for requirement in needed}
    assert "scikit-learn" in names
    assert not names & {"xgboost", "lightgbm"}


@pytest.fixture(scope="module")
def clean_environment(tmp_path_factory):
    """An environment with nothing in it but the wheel of the project and what that needs."""
    folder = tmp_path_factory.mktemp("clean")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", folder, PROJECT], check=True)
    (wheel,) = folder.glob("structent-*.whl")
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / "bin" / "python"
    constraints = PROJECT / "constraints.txt"

    def install(extra=""):
        command = [*pip, "--python", python, "install", "-c", constraints, f"{wheel}{extra}"]
        subprocess.run(command, check=True)

    install()
    return python, install


def run_clean(python: Path, *command: str):
    return subprocess.run(
        [python.parent / command[0], *command[1:]],
        capture_output=True,
        text=True,
        check=False,
        cwd=python.parent,
    )


@pytest.mark.slow
def test_the_wheel_works_in_a_clean_environment(clean_environment):
    python, install = clean_environment
    code = (
        "import structent, structent.structure.catalog as c;"
        "print(structent.structured_entropy([1.0] + [0.0] * 57,"
        " structent.SpanningTreePartitions(c.california_counties(), 5, .5).sample(0)))"
    )
    result = run_clean(python, "python", "-c", code)
    assert (result.stderr, result.stdout) == ("", "0.0\n")
    without_extra = run_clean(python, "structent", "demo")
    assert without_extra.returncode == 2
    assert without_extra.stderr == (
        "structent: The structent command needs typer: pip install 'structent[cli]'\n"
    )
    install("[sklearn]")
    result = run_clean(python, "python", "-c", TREES)
    assert result.stdout.splitlines() == [
        "['b']",
        "The structured loss for XGBoost needs xgboost: pip install 'structent[xgboost]'",
    ], result.stderr
    install("[cli]")
    where = "import structent.datasets as d; print(d.seattle_weather_file())"
    table = run_clean(python, "python", "-c", where).stdout.strip()
    about = (table, "--target", "month", "--structure", "circular:width=3", "--folds", "3")
    compared = run_clean(python, "structent", "compare", *about, "--repeats", "1")
    assert compared.returncode == 0, compared.stderr
    assert "95 %" in compared.stdout
    assert run_clean(python, "python", "-c", "import xgboost").returncode == 1


@pytest.mark.slow
def test_the_wheel_holds_the_types_and_the_graphs(clean_environment):
    python, _ = clean_environment
    (package,) = python.parent.parent.glob("lib/python*/site-packages/structent")
    assert (package / "py.typed").exists()
    assert (package / "structure" / "data" / "us_states.json").exists()
    assert not list(package.rglob("test_*"))
    assert not (package.parent / "paper").exists()
