"""What OpenAI's API calls files: those that were sent to it, and the documents of collections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from recollect.errors import NotFoundError
from recollect.model.page import cursor_at
from recollect.model.uploaded_file import file_of_source
from recollect.server.openai.errors import RefusedRequestError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recollect.model.document_record import DocumentRecord, DocumentStatus
    from recollect.pipeline import View

_HIGHEST = 2**63 - 1
# Documents that are looked up at once, of which some may be left out.
_FEWEST = 100

#: Of documents that were made from files that were sent, these files.
Made = Mapping[int, int]


def file_id(document_id: int, made: Made) -> str:
    """What a document is called by this API: the file that it was made from, or a file of its own number."""
    return f"file-{made.get(document_id, document_id)}"


def id_of(record: DocumentRecord) -> str:
    """What a document is called by this API."""
    sent = sent_file(record)
    return f"file-{record.document_id if sent is None else sent}"


def sent_file(record: DocumentRecord) -> int | None:
    """The file that a document was made from; None: it came another way."""
    return file_of_source(record.origin) if record.source_type == "upload" else None


def made_from(view: View, document_ids: Iterable[int]) -> Made:
    """The files that documents were made from, whenever the view is of."""
    wanted = sorted(set(document_ids))
    return view.view(as_of=None).files.files_of(wanted) if wanted else {}


def number_of(file: str) -> int | None:
    """The number of a file's id; None: it is none."""
    digits = file.removeprefix("file-")
    number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 20 else 0
    return number if 0 < number <= _HIGHEST else None


def required_number(file: str, *, param: str) -> int:
    """The number of a file's id.

    Raises:
        RefusedRequestError: It is none, so there is no such file.
    """
    number = number_of(file)
    if number is None:
        raise no_file(file, param=param)
    return number


def no_file(file: str, *, param: str = "id") -> RefusedRequestError:
    """What is said of a file that there is not, or that may not be read."""
    return RefusedRequestError(f"No such File object: {file[:200]}", param=param, code="file_not_found", status=404)


def document(view: View, file: str, *, collection: str | None = None) -> DocumentRecord:
    """The document that a file's id means.

    Args:
        view: Of whoever asks.
        file: Its id; of a file that was sent, any of the documents made from it.
        collection: Where the document is; None: anywhere.

    Raises:
        RefusedRequestError: There is none that may be read.
    """
    number = number_of(file)
    made = {} if number is None else view.files.documents(number)
    view = view.view(collections=collection or "*")
    numbers = [one for place, one in made.items() if collection in {None, place}]
    for wanted in [*numbers, *([] if number is None or made else [number])]:
        try:
            return view.documents.get(wanted)
        except NotFoundError:
            continue
    raise no_file(file)


def page_of(
    views: Sequence[View],
    *,
    limit: int,
    after: int,
    newest_first: bool = False,
    status: DocumentStatus | None = None,
    sent: bool = True,
) -> list[DocumentRecord]:
    """A page of the documents of several collections, and one more where others follow.

    Args:
        views: Of one collection each.
        limit: Documents at most.
        after: The number of the last document of the page before; 0: the first page.
        newest_first: The largest numbers first.
        status: Only these.
        sent: Also those that were made from files that were sent.
    """
    found: list[DocumentRecord] = []
    for view in views:
        found += _some(view, limit + 1, after, newest_first=newest_first, status=status, sent=sent)
    return sorted(found, key=lambda record: record.document_id, reverse=newest_first)[: limit + 1]


def _some(
    view: View, wanted: int, after: int, *, newest_first: bool, status: DocumentStatus | None, sent: bool
) -> list[DocumentRecord]:
    found: list[DocumentRecord] = []
    many, cursor = max(wanted, _FEWEST), cursor_at(after) if after else None
    while len(found) < wanted:
        page = view.documents.list(status=status, newest_first=newest_first, cursor=cursor, limit=many)
        found += [record for record in page if sent or sent_file(record) is None]
        cursor = page.next_cursor
        if cursor is None:
            break
    return found[:wanted]
