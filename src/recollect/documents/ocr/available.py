"""Whether text can be recognised here, and what is said where it cannot."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from functools import cache

from recollect.installation import install_command


@cache
def can_recognise() -> bool:
    """Whether the extra ``ocr`` is installed. Nothing is imported for that."""
    return all(importlib.util.find_spec(name) is not None for name in ("rapidocr", "PIL"))


@cache
def can_open_heic() -> bool:
    """Whether what opens HEIC pictures is installed: ``pi_heif``, or ``pillow_heif``, which it is a part of."""
    return heic_opener() is not None


def heic_opener() -> str | None:
    """The package that opens HEIC pictures; None: there is none. Nothing is imported for that."""
    return next((name for name in ("pi_heif", "pillow_heif") if importlib.util.find_spec(name) is not None), None)


def without_text(unread: int, pages: int, *, ocr: bool = True) -> str:
    """What is said of pages that nobody has recognised: ``12 of 40 pages hold no text``, and the remedy.

    Args:
        unread: Pages that are pictures.
        pages: Pages of the file.
        ocr: Whether their text was to be recognised.
    """
    remedy = "their text was not recognised" if can_recognise() else install_command("ocr")
    if not ocr:
        remedy = 'recognition is switched off (rag.documents.ocr = "off")'
    several = "pages holds no text" if unread == 1 else "pages hold no text"
    return f"{unread:,} of {pages:,} {'page holds no text' if pages == 1 else several}: {remedy}"


def pages_without_text(metadata: Mapping[str, object]) -> str | None:
    """`without_text` of a document, by its metadata; None where all its pages were read."""
    unread, pages = metadata.get("pages_without_text"), metadata.get("page_count")
    if not isinstance(unread, int) or not isinstance(pages, int):
        return None
    said = without_text(unread, pages, ocr=metadata.get("ocr") != "off")
    left_out = metadata.get("pages_left_out")
    return f"{said}; {left_out}" if isinstance(left_out, str) else said
