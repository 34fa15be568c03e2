"""Text files of a structure: each that cannot be read is refused in a sentence."""

from structent.errors import StructentError
from structent.tables.reading import FilePath, checked_file


def read_text(path: FilePath) -> str:
    """Return the text of a file, without the mark that some programs put before it."""
    file = checked_file(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise StructentError(f"a structure file must be UTF-8 text, got {file}") from None
    if not text.strip():
        raise StructentError(f"{file} must hold a structure, got nothing but white space")
    return text
