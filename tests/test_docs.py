"""The documentation site: its pages run as they stand, and its reference leaves no name out."""

import ast
import contextlib
import importlib.util
import io
import json
import re
import shlex
import sys
from pathlib import Path

import pytest

import structent
from structent.cli import main
from tests.conftest import PROJECT

DOCS = PROJECT / "docs"
# Python code, or commands, and what they print, if anything.
SHOWN_BLOCK = re.compile(
    r"^```(?P<language>python|sh)\n(?P<code>.*?)^```\n(\n```text\n(?P<output>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
ELSEWHERE = {"pytorch-recipes.md", "dask-cluster.md"}  # they have tests of their own
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if page.name not in ELSEWHERE]
NEEDED = {
    "onnx.md": [pytest.mark.requires("onnx"), pytest.mark.requires("onnxruntime")],
    "tour.md": [pytest.mark.requires("keras"), pytest.mark.requires("jax")],
}
# They train dozens of models; tests/cli runs them.
NOT_RUN = ("structent compare", "structent test", "structent demo")


@pytest.mark.requires("xgboost")
@pytest.mark.requires("torch")
@pytest.mark.requires("typer")
@pytest.mark.requires("dask")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=str(page.relative_to(DOCS)), marks=NEEDED.get(page.name, ()))
        for page in PAGES
        if SHOWN_BLOCK.search(page.read_text())
    ],
)
def test_a_page_prints_what_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # pages write files
    monkeypatch.setenv("COLUMNS", "100")
    names: dict = {}
    for block in SHOWN_BLOCK.finditer(page.read_text()):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            if block["language"] == "python":
                exec(compile(block["code"], page.name, "exec"), names)  # noqa: S102  our own page
            else:
                run_commands(block["code"], monkeypatch)
        shown = block["output"]
        if shown is not None or block["language"] == "python":
            assert _trimmed(printed.getvalue()) == _trimmed(shown or ""), block["code"]


def test_the_pages_have_code_to_run():
    n_blocks = [len(SHOWN_BLOCK.findall(page.read_text())) for page in PAGES]
    assert sum(count > 0 for count in n_blocks) >= 10


def run_commands(code, monkeypatch):
    """Run the structent commands of a block; those that end with an error say so in a comment."""
    for line in code.replace("\\\n", " ").splitlines():
        if not line.startswith("structent ") or line.startswith(NOT_RUN):
            continue
        command, _, comment = line.partition("  # ")
        expected = int(comment.removeprefix("exit code ")) if "exit code" in comment else 0
        monkeypatch.setattr(sys, "argv", shlex.split(command))
        with pytest.raises(SystemExit) as ended:
            main()
        assert (ended.value.code or 0) == expected, command


def _trimmed(text):
    """Leave out the blanks at line ends, which Markdown files do not keep."""
    return [line.rstrip() for line in text.rstrip().splitlines()]


# The reference

IDENTIFIER = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)


def documented():
    """Return the names that the reference describes; a function may be called like its module."""
    return {
        re.sub(r"\.(\w+)\.\1$", r".\1", name)
        for page in (DOCS / "reference").glob("*.md")
        for name in IDENTIFIER.findall(page.read_text())
    }


def exported(module):
    """Return the names in ``__all__`` of a package or module, which need not be importable here."""
    place = PROJECT / "src" / Path(*module.split("."))
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return {f"{module}.{name}" for name in ast.literal_eval(node.value)}
    raise AssertionError(f"{module} has no __all__")


@pytest.mark.parametrize(
    "module",
    [
        *(
            "structure",
            "entropy",
            "metrics",
            "decisions",
            "estimators",
            "studies",
            "plots",
            "report",
        ),
        *("datasets", "inputs", "losses.torch", "losses.keras", "losses.jax"),
        *("layers.torch", "layers.keras", "layers.jax"),
    ],
)
def test_every_public_name_is_in_the_reference(module):
    assert exported(f"structent.{module}") <= documented()


def test_every_name_of_the_package_itself_is_in_the_reference():
    assert set(structent.__all__) <= {name.rpartition(".")[2] for name in documented()}


def test_every_name_in_the_reference_is_public():
    for name in documented():
        module, _, attribute = name.rpartition(".")
        assert importlib.util.find_spec(module) is not None, name
        assert not attribute.startswith("_")


# Where pages point

TEST_NAME = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_test_that_the_map_of_the_paper_names_is_there():
    named = TEST_NAME.findall((DOCS / "paper-map.md").read_text())
    assert len(named) >= 20
    for file, test in named:
        assert f"def {test}(" in (PROJECT / file).read_text(), f"{file}::{test}"


NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


@pytest.mark.requires("polars")
@pytest.mark.requires("matplotlib")
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_prints_what_it_shows(notebook, tmp_path, monkeypatch):
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    monkeypatch.chdir(tmp_path)  # it saves a model
    names: dict = {}
    cells = [c for c in json.loads(notebook.read_text())["cells"] if c["cell_type"] == "code"]
    for cell in cells:
        code, value = ast.parse("".join(cell["source"])), None
        last = code.body[-1]
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            if isinstance(last, ast.Expr):
                code.body.pop()
            exec(compile(code, notebook.name, "exec"), names)  # noqa: S102  our own notebook
            if isinstance(last, ast.Expr):
                alone = compile(ast.Expression(last.value), notebook.name, "eval")
                value = eval(alone, names)  # noqa: S307  the same
        shown = {output["output_type"]: output for output in cell["outputs"]}
        stream = "".join(shown["stream"]["text"]) if "stream" in shown else ""
        assert printed.getvalue() == stream
        if "execute_result" in shown:
            assert [repr(value)] == shown["execute_result"]["data"]["text/plain"]
            assert value._repr_html_().startswith("<")
    pyplot.close("all")
    assert len(cells) >= 5
