"""Settings of what is read of documents beside their text."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from recollect.config.sections import Section


class DocumentsConfig(Section):
    """``[rag.documents]``: pictures in documents, and pages that are pictures."""

    ocr: Literal["auto", "off"] = Field(
        "auto",
        description="Whether the text of pages that are pictures is recognised: auto, where the extra ocr is "
        "installed; off: such pages are counted and named.",
    )
    ocr_seconds: float = Field(
        1800.0,
        gt=0,
        le=86_400,
        description="Seconds after which no further page of a document is recognised; the pages left are named.",
    )
    describe_images: str | None = Field(
        None,
        pattern=r"^[a-z]+/.+$",
        description="A language model that sees, as provider/model, which describes the pictures in documents: found "
        "and cited as written by it. By default none does.",
    )
