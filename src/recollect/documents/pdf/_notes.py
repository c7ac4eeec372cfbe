"""What stands on a page without being part of it: what was filled into its form, and what readers have noted."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from recollect.documents._text import clean

_MOST_NOTES = 2_000


def notes_of(page: Any, form: Any) -> list[str]:  # noqa: ANN401 - handles of pdfium
    """The fields of a page that hold something, as ``name: value``, then the texts of its annotations.

    Args:
        page: A page.
        form: The document's form; None: it has none.
    """
    import pypdfium2.raw as pdfium

    fields: list[str] = []
    remarks: list[str] = []
    for index in range(min(pdfium.FPDFPage_GetAnnotCount(page), _MOST_NOTES)):
        note = pdfium.FPDFPage_GetAnnot(page, index)
        if not note:
            continue
        try:
            if pdfium.FPDFAnnot_GetFlags(note) & (pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW):
                continue
            kind = pdfium.FPDFAnnot_GetSubtype(note)
            if kind == pdfium.FPDF_ANNOT_WIDGET:
                fields += _field(form, note) if form else ()
            elif kind not in {pdfium.FPDF_ANNOT_LINK, pdfium.FPDF_ANNOT_POPUP}:
                remarks += _told(partial(pdfium.FPDFAnnot_GetStringValue, note, b"Contents"))
        finally:
            pdfium.FPDFPage_CloseAnnot(note)
    # A field or a remark may be shown in several places of a page.
    return list(dict.fromkeys([*fields, *remarks]))


def _field(form: Any, note: Any) -> Iterator[str]:  # noqa: ANN401
    import pypdfium2.raw as pdfium

    kind = pdfium.FPDFAnnot_GetFormFieldType(form, note)
    if kind in {pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON}:
        if not pdfium.FPDFAnnot_IsChecked(form, note):
            return
        values = _told(partial(pdfium.FPDFAnnot_GetFormFieldExportValue, form, note)) or ["Yes"]
    elif kind in {pdfium.FPDF_FORMFIELD_TEXTFIELD, pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX}:
        values = _told(partial(pdfium.FPDFAnnot_GetFormFieldValue, form, note))
    else:
        return
    names = _told(partial(pdfium.FPDFAnnot_GetFormFieldAlternateName, form, note)) or _told(
        partial(pdfium.FPDFAnnot_GetFormFieldName, form, note)
    )
    for value in values:
        yield f"{names[0]}: {value}" if names else value


def _told(ask: Callable[[Any, int], int]) -> list[str]:
    """A text of pdfium's, which is asked for its length first; empty: there is none."""
    size = ask(None, 0)
    if size <= 2:
        return []
    buffer = (ctypes.c_ushort * (size // 2 + 1))()
    ask(buffer, size)
    text = " ".join(clean(bytes(buffer)[: size - 2].decode("utf-16-le", "replace")).split())
    return [text] if text else []
