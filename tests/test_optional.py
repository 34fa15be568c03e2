"""Optional dependencies."""

import subprocess
import sys

import pytest

from structent._optional import load_optional
from structent.errors import MissingDependencyError


def test_a_missing_package_is_named_with_its_extra():
    with pytest.raises(MissingDependencyError, match=r"pip install 'structent\[plots\]'"):
        load_optional("no_such_package", extra="plots", purpose="The report")


def test_a_package_that_is_there_is_loaded():
    assert load_optional("json", extra="plots", purpose="The report").loads("1") == 1


def test_a_package_that_is_broken_says_so_itself(tmp_path, monkeypatch):
    (tmp_path / "broken_package.py").write_text("import its_missing_dependency")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(ModuleNotFoundError, match="its_missing_dependency") as raised:
        load_optional("broken_package", extra="plots", purpose="The report")
    assert not isinstance(raised.value, MissingDependencyError)


@pytest.mark.parametrize("framework", ["torch", "keras", "jax"])
def test_an_adapter_without_its_framework_says_what_to_install(framework):
    code = f"import sys; sys.modules[{framework!r}] = None; import structent.losses.{framework}"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.stderr.splitlines()[-1].endswith(
        f"needs {framework}: pip install 'structent[{framework}]'"
    )
