"""PDF files: their characters put back into lines, columns, tables, headings and pages."""

from recollect.documents.pdf._reader import parse_pdf

__all__ = ["parse_pdf"]
