"""What a comparison found, as one page of HTML that needs nothing else."""

from structent._optional import load_optional

load_optional("jinja2", extra="cli", purpose="A report")

from structent.report.page import report_html, write_report  # noqa: E402  after the advice

__all__ = ["report_html", "write_report"]
