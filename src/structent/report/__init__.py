"""What a comparison or a test found, as one page of HTML that needs nothing else."""

from structent._optional import load_optional

load_optional("jinja2", extra="cli", purpose="A report")

from structent.report.page import (  # noqa: E402  after the advice  # noqa: E402
    report_html,
    structure_test_html,
    write_report,
    write_structure_test,
)

__all__ = ["report_html", "structure_test_html", "write_report", "write_structure_test"]
