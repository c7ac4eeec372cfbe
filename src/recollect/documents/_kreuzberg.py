"""The one place that calls kreuzberg."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from recollect.documents.formats import UnreadableError

if TYPE_CHECKING:
    from kreuzberg import ExtractionResult

    from recollect.documents.formats import Format

_TIMEOUT_SECONDS = 300
_MEMORY = re.compile(r"out of memory|cannot allocate memory", re.IGNORECASE)
_PROTECTED = re.compile(r"password|encrypt|protected|decrypt", re.IGNORECASE)


def extract(data: bytes, file_format: Format, *, structure: bool = True) -> ExtractionResult:
    """Parses a file, without OCR, network or cache.

    Args:
        data: The whole file.
        file_format: What it is.
        structure: Whether the result has the tree of the document, and its content is Markdown; otherwise the
            content is plain text. (The tree knows headings only beside Markdown.)

    Raises:
        UnreadableError: It is protected or damaged.
        MemoryError: It needs more memory than this process may take.
    """
    import kreuzberg

    config = kreuzberg.ExtractionConfig(
        use_cache=False,
        enable_quality_processing=False,
        output_format="markdown" if structure else "plain",
        include_document_structure=structure,
        extraction_timeout_secs=_TIMEOUT_SECONDS,
    )
    try:
        return kreuzberg.extract_bytes_sync(data, file_format.mime_type, config)
    except Exception as error:  # its errors share no root, and plain ValueError or OSError come through as well
        raise _translate(error, file_format) from error
    except BaseException as error:
        # A panic in Rust arrives as a BaseException that is nobody's wish to stop the program.
        if type(error).__name__ != "PanicException":
            raise
        raise _translate(error, file_format) from error


def _translate(error: BaseException, file_format: Format) -> UnreadableError | MemoryError:
    message = str(error)
    if _MEMORY.search(message):
        return MemoryError(message)
    if _PROTECTED.search(message):
        return UnreadableError("is protected by a password; save it without one")
    if "timeout" in message.lower() or "timed out" in message.lower():
        return UnreadableError(f"took longer than {_TIMEOUT_SECONDS} s to parse")
    detail = " ".join(message.split())[:160]
    return UnreadableError(f"is damaged, or not {file_format.label} ({detail or type(error).__name__})")


def fact(metadata: Mapping[str, object], *names: str) -> str | None:
    """The first of the named entries of kreuzberg's metadata that is text, or a list of texts, and not blank."""
    for name in names:
        value = metadata.get(name)
        if isinstance(value, list):
            value = ", ".join(item for item in value if isinstance(item, str) and item.strip())
        if isinstance(value, str) and value.strip():
            return " ".join(value.split())[:500]
    return None
