"""A template filled, with the style and the script that all pages share."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

_TEMPLATES = "templates"


def filled(template: str, **values: Any) -> str:
    """Return a page: a template of ours with these values; text is escaped."""
    environment = Environment(
        loader=PackageLoader("structent.report", _TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = _own_text("sort.js")
    return environment.get_template(template).render(
        style=Markup(_own_text("style.css")),  # noqa: S704  our own file
        script=Markup(script),  # noqa: S704  our own file
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        **values,
    )


def _own_text(name: str) -> str:
    file = resources.files("structent.report") / _TEMPLATES / name
    return file.read_text(encoding="utf-8")
