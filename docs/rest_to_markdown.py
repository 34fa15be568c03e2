"""Docstrings for the site: their reStructuredText becomes Markdown, formulas become Unicode."""

import re
from textwrap import indent
from typing import Any

from griffe import Extension, NameResolutionError, Object

_ROLE = re.compile(r":(?:func|meth|class):`(?:([^`<]+) <)?(~?)([\w.]+)>?`")
_INLINE_FORMULA = re.compile(r":math:`([^`]+)`")
# The text after ``.. math::``, up to a line that is empty or not indented further.
_FORMULA = re.compile(r"^( *)\.\. math::((?:.*\n(?:\n(?=\1 +\S))?(?:\1 +\S.*\n?)*))", re.MULTILINE)
# What is returned, in plain words: without a colon before them they would be read as a type.
_RETURNS = re.compile(r"(?<=^Returns\n-------\n)((?:\S.*\n?)+)", re.MULTILINE)
_TABLE = re.compile(r"^(=+ +=+)\n((?:.*\n)+?)\1$", re.MULTILINE)
# A page needs no script to show these; what is not listed is shown as it is written.
_SYMBOLS = {
    r"\frac{1}{n}": "1/n", r"\tfrac12": "½", r"\hat I": "Î", r"\mathbb{E}": "E",
    r"\mathcal{S}": "S", r"\mathcal{R}": "R", r"\lambda": "λ", r"\pi": "π",
    r"\alpha": "α", r"\ell": "ℓ", r"\times": "×",  # noqa: RUF001  the symbols themselves
    r"\sum": "Σ", r"\min": "min", r"\log": "log", r"\in": "∈",
    r"^\dagger": "†", r"\|": "‖", r"\lVert": "‖", r"\rVert": "‖", r"\left": "", r"\right": "",
    r"\bigl": "", r"\bigr": "", r"\qquad": "   ", r"\,": " ", r"\;": " ", "&": "", r"\\": "",
}  # fmt: skip
_WORD = re.compile(r"\\(?:operatorname|mathrm|text)\{([^}]*)\}")


class RestToMarkdown(Extension):
    """Translate the docstring of every object that is read from the source."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Translate one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value, obj)


def markdown(text: str, obj: Object) -> str:
    """Return a docstring with formulas, references and tables as the site can show them."""
    text = _FORMULA.sub(_formula_block, text)
    text = _INLINE_FORMULA.sub(lambda found: f"`{_unicode(found[1])}`", text)
    text = _RETURNS.sub(lambda found: ":\n" + indent(found[1], "    "), text)
    text = _TABLE.sub(_table, text)
    return _ROLE.sub(lambda found: _link(found, obj), text)


def _formula_block(found: re.Match[str]) -> str:
    margin, lines = found[1], [line.strip() for line in found[2].strip().splitlines()]
    shown = "\n".join(f"{margin}{_unicode(line)}" for line in lines if line)
    return f"{margin}```text\n{shown}\n{margin}```\n"


def _unicode(formula: str) -> str:
    formula = _WORD.sub(r"\1", formula)
    for command, symbol in _SYMBOLS.items():
        # A command ends where its letters do: \in is not the beginning of \int.
        end = r"(?![a-zA-Z])" if command[-1].isalpha() else ""
        formula = re.sub(re.escape(command) + end, lambda _, s=symbol: s, formula)
    return re.sub(r"(?<=\S) {4,}", "   ", re.sub(r"(?<=\S) {2}(?=\S)", " ", formula))


def _table(found: re.Match[str]) -> str:
    width = found[1].index(" ")
    rows = [(line[:width].strip(), line[width:].strip()) for line in found[2].splitlines()]
    joined: list[list[str]] = []
    for first, second in rows:
        if first:
            joined.append([first, second])
        else:  # a line that goes on
            joined[-1][1] += f" {second}"
    return "\n".join(["| given | meaning |", "|---|---|", *(f"| {a} | {b} |" for a, b in joined)])


def _link(found: re.Match[str], obj: Object) -> str:
    shown, short, target = found.groups()
    name = shown or (target.rpartition(".")[2] if short else target)
    # Optional: what has no place in the reference is shown without a link.
    return f'<autoref identifier="{_path(target, obj)}" optional><code>{name}</code></autoref>'


def _path(target: str, obj: Object) -> str:
    scope: Object | None = obj
    while scope is not None and not target.startswith("structent."):
        try:
            return scope.resolve(target)
        except NameResolutionError:
            scope = scope.parent
    return target
