"""Undocumented names of libraries: checked with a version that is named, and used in one place."""

import importlib
import re
from pkgutil import resolve_name

import pytest

from structent._private import PrivateInterface
from structent.errors import StructentError
from tests.conftest import PROJECT

# The file that holds the names, the value in it, and one of the names.
HOLDERS = {
    "torch": (
        "structent.losses.torch.private", "TORCH", "torch._C:_are_functorch_transforms_active",
    ),
    "keras": ("structent.losses.keras.private", "KERAS", "keras.src.backend:set_keras_mask"),
    "xgboost": ("structent.losses.boosters.xgboost", "XGBOOST", "xgboost.objective:TreeObjective"),
}  # fmt: skip
EACH_HOLDER = pytest.mark.parametrize(
    ("module", "interface", "path"),
    [pytest.param(*held, marks=pytest.mark.requires(name)) for name, held in HOLDERS.items()],
    ids=HOLDERS,
)


@EACH_HOLDER
def test_they_were_checked_with_the_version_that_the_project_is_tested_with(
    module, interface, path
):
    """If this fails, look at the uses of the names again, then write down the new version."""
    lines = (PROJECT / "constraints.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    used = getattr(importlib.import_module(module), interface)
    assert used.checked_with == pinned[used.package]
    assert path.startswith(used.package)


@EACH_HOLDER
def test_one_that_is_gone_is_named_with_the_version_that_had_it(
    module, interface, path, monkeypatch
):
    adapter = importlib.import_module(module)
    package = getattr(adapter, interface).package
    owner, name = path.split(":")
    monkeypatch.delattr(resolve_name(owner), name)
    with pytest.raises(StructentError, match=rf"needs {path}, .* checked with {package} \d"):
        importlib.reload(adapter)


@pytest.mark.requires("keras")
def test_a_model_of_keras_that_keeps_its_metrics_elsewhere_is_refused_by_name():
    from structent.losses.keras.private import own_metrics

    with pytest.raises(
        StructentError, match=r"Keras needs object\._metrics, .* checked with keras"
    ):
        own_metrics(object())


def test_what_is_there_is_given():
    interface = PrivateInterface("numpy", "2.4.6", "The test")
    assert interface.name("structent._private:PrivateInterface") is PrivateInterface
    assert interface.attribute(interface, "needed_by") == "The test"


def test_what_is_gone_is_an_import_error_too():
    with pytest.raises(ImportError, match="needs numpy:_no_such_name, which is"):
        PrivateInterface("numpy", "2.4.6", "The test").name("numpy:_no_such_name")


def test_no_other_file_uses_them():
    undocumented = re.compile(r"keras\.src|\._metrics\.|torch\._[A-Za-z]|jax\._src|jax\.core")
    holders = {module.replace(".", "/") + ".py" for module, _, _ in HOLDERS.values()}
    library = PROJECT / "src"
    found = {
        path.relative_to(library).as_posix()
        for path in (library / "structent" / "losses").rglob("*.py")
        if undocumented.search(path.read_text())
    }
    assert found <= holders
