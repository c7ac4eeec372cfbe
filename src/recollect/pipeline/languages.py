"""The languages that much of a collection is in and that its embedding model does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.languages import AUTO
from recollect.retrieval.model_languages import undeclared_languages

if TYPE_CHECKING:
    from recollect.pipeline.view import View

# A quotation or a list of names is in some language, too: nobody changes a model for it.
_LEAST_SHARE = 0.1
_DOCUMENTS = 2_000


def unknown_languages(view: View) -> list[str]:
    """Those that at least a tenth of the view's collection is in, by the chunks of the documents stored last.

    Another model would find such texts by what they mean; the words are found as they are.
    """
    at = view.standpoint
    place = view.collections.get(at.collection)
    unknown = undeclared_languages(place)
    if not unknown or place.language != AUTO:
        return list(unknown)
    chunks = at.assembly.store.status.languages(at.scope, place, documents=_DOCUMENTS)
    least = _LEAST_SHARE * sum(chunks.values())
    return [code for code in unknown if chunks.get(code, 0) >= max(least, 1)]
