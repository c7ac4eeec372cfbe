"""PDF files: their characters put back into lines, columns, tables, headings and pages; pictures of pages likewise."""

from recollect.documents.pdf._library import draw_page, figures_of_pdf
from recollect.documents.pdf._reader import NO_TEXT, parse_pages, parse_pdf

__all__ = ["NO_TEXT", "draw_page", "figures_of_pdf", "parse_pages", "parse_pdf"]
