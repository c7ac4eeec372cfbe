"""Chinese, Japanese and Korean text in PDF files whose fonts are neither in the file nor on the machine.

pdfium leaves out the text of a font that it cannot load, and servers rarely have fonts for these scripts. A font that
draws a square for every character (748 bytes) replaces them. Positions come from the file, so the text is read as it is
on a machine with such fonts. `requirements/squares` makes the font.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

_FONT = Path(__file__).with_name("squares.ttf").read_bytes()
#: An address that names our font to pdfium, which hands it back and never follows it.
_OURS = 1
#: Windows' numbers for Shift-JIS, Korean, simplified and traditional Chinese, as pdfium uses them.
_CHARSETS = frozenset({128, 129, 134, 136})


def _copied(data: bytes, buffer: Any, size: int) -> int:  # noqa: ANN401 - an address
    """The length of the data, which is copied if the buffer has room for it."""
    if buffer and size >= len(data):
        ctypes.memmove(buffer, data, len(data))
    return len(data)


#: What pdfium's functions return for our font. A table of number 0 is the whole file.
_OF_OURS: dict[str, Callable[..., Any]] = {
    "GetFontData": lambda table, buffer, size: 0 if table else _copied(_FONT, buffer, size),
    "GetFaceName": lambda buffer, size: _copied(b"Recollect Squares\0", buffer, size),
    "GetFontCharset": lambda: 1,
    "DeleteFont": lambda: None,
}


@cache
def install() -> Any:  # noqa: ANN401 - a structure of pdfium, which must live as long as pdfium
    """Let pdfium use the squares where the machine has no font for a script."""
    import pypdfium2.raw as pdfium

    machine = pdfium.FPDF_GetDefaultSystemFontInfo()
    info = pdfium.FPDF_SYSFONTINFO(version=machine.contents.version)

    def function(name: str) -> Callable[..., Any]:
        of_machine = getattr(machine.contents, name)
        of_ours = _OF_OURS.get(name)

        def called(_: Any, *arguments: Any) -> Any:  # noqa: ANN401
            if of_ours is not None and arguments[0] == _OURS:
                return of_ours(*arguments[1:])
            found = of_machine(machine, *arguments)
            # The arguments are weight, italic and charset.
            return _OURS if name == "MapFont" and found is None and arguments[2] in _CHARSETS else found

        return called

    for name, kind in pdfium.FPDF_SYSFONTINFO._fields_:
        if name not in {"version", "Release"} and getattr(machine.contents, name):
            setattr(info, name, kind(function(name)))
    pdfium.FPDF_SetSystemFontInfo(info)
    return info
