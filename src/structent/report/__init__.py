"""What a comparison or a test found, as one page of HTML that needs nothing else."""

from structent._optional import load_optional

load_optional("jinja2", extra="cli", purpose="A report")

from structent.report.page import (  # noqa: E402  after the advice
    comparison_page,
    structure_test_page,
    write_page,
)

__all__ = ["comparison_page", "structure_test_page", "write_page"]
