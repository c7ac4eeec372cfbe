"""Pages as a scanner or a camera gives them: words drawn as pictures."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from PIL import Image, ImageDraw, ImageFont

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

#: Of a page of 8 × 6 inches at 100 dots an inch.
SIZE = (800, 600)


def page(lines: Sequence[str], *, size: tuple[int, int] = SIZE, type_size: int = 26, turned: int = 0) -> Picture:
    """A white page with lines of text from its upper left corner on; turned to the left by so many degrees."""
    picture = Image.new("L", size, 255)
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(size=type_size)
    for at, line in enumerate(lines):
        draw.text((60, 50 + at * 2 * type_size), line, font=font, fill=0)
    return picture.rotate(turned, expand=True, fillcolor=255) if turned else picture


def columns(left: Sequence[str], right: Sequence[str]) -> Picture:
    """A page set in two columns."""
    picture = page(left, size=(1240, 640))
    picture.paste(page(right, size=(600, 640)), (620, 0))
    return picture


def saved(pictures: Sequence[Picture], kind: str, **options: object) -> bytes:
    """Pictures as a file: ``PDF`` and ``TIFF`` of several pages, others of one."""
    out = io.BytesIO()
    first, *others = pictures
    if kind in {"PDF", "TIFF"}:
        options |= {"save_all": True, "append_images": others}
    first.save(out, kind, **{"resolution": 100, **options} if kind == "PDF" else options)
    return out.getvalue()
