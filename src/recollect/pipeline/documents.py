"""The documents of a view: read, followed through their versions, changed and erased."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, Unpack

from recollect.config import DEFAULT_COLLECTION
from recollect.documents.reader import read_bytes
from recollect.errors import NotFoundError, PermissionDeniedError, UsageError, VersionChangedError
from recollect.model import Document, IngestResult, RetrievalOptions, RetrievedContext, Scope
from recollect.model.activity import show
from recollect.model.arguments import checked
from recollect.model.document import DESCRIBED, DESCRIBED_BY
from recollect.model.document_record import DOCUMENT_STATUSES, DocumentRecord, DocumentStatus, Duplicates, SameDocument
from recollect.model.filter import Condition, conditions_in, parse_filter
from recollect.model.history import (
    DocumentHistory,
    ErasureProbe,
    ErasureReceipt,
    EvidenceDiff,
    MovedEvidence,
    VersionDiff,
    VersionRecord,
)
from recollect.model.page import Page, every, number_at
from recollect.model.search_options import SearchKeywords, refined
from recollect.model.time import Duration, Moment, read_lifetime, read_time
from recollect.pipeline.preparing import make_door, make_preparer, shows_pictures
from recollect.pipeline.refreshing import DIRECTORY, WEB
from recollect.pipeline.standpoint import EVERY_COLLECTION, Group, Standpoint, label, search, session_place
from recollect.sources.declared import connector_class

if TYPE_CHECKING:
    from recollect.model.collection import Collection
    from recollect.model.original import Original
    from recollect.store.contents import Places


@checked
class Documents(Group):
    """The documents of a view; see `recollect.View`.

    A document is named by its number (``document_id``), by its source, or by the id that it was given (`Document.id`),
    and must be in one of the view's collections: those given, else the configured one; ``"*"`` means all. A source that
    documents with ids share names all of them to `delete`, `erase` and grants; a method of one document refuses it.
    For a document elsewhere, the error names its collection. Documents of a session are listed by its view alone.
    What the view's principal may not read does not exist for these methods; what changes a document takes one of the
    principal's own, in a collection that the principal may write to, or of a collection that the principal owns.
    """

    def get(self, document: int | str) -> DocumentRecord:
        """One document with its content.

        One that a job is to store yet, or could not store, has no content: its ``status`` says which. A principal sees
        those of the jobs that they asked for.

        Raises:
            NotFoundError: There is none.
            UsageError: Several have that source.
        """
        scope = self._at.present()
        try:
            return self._stored(scope, document)
        except NotFoundError:
            found = self._unstored(scope, document)
            # Between the two looks its job may have stored it.
            return self._stored(scope, document) if found is None else found

    def _stored(self, scope: Scope, document: int | str) -> DocumentRecord:
        document_id = self._at.resolve(scope, document)
        found = self._at.store.documents.get(scope, document_id)
        show("read", documents=[(document_id, 0)])
        return found

    def _unstored(self, scope: Scope, document: int | str) -> DocumentRecord | None:
        """What a job is to store yet, or could not: there is no version that a principal could be refused."""
        store = self._at.store
        try:
            document_id = document if isinstance(document, int) else self._at.resolve(scope, document)
        except NotFoundError:
            return None
        found = store.jobs.unstored_documents(scope, document_id=document_id)
        if not found or not self._at.names_documents_of(found[0].collection):
            return None
        return None if store.collections.find(scope, found[0].collection) is None else found[0]

    def resolve(self, documents: Sequence[int | str], *, each_one: bool = False) -> list[int]:
        """The ids of documents, deleted ones included.

        Args:
            documents: Their names. A source that documents with ids of their own share means all of these.
            each_one: Refuse such a source: each name means one document.

        Raises:
            NotFoundError: There is no such collection, or one of the documents does not exist.
            UsageError: Several documents have one of the names; the message says how to name each of them.
        """
        scope = self._at.present()
        if each_one:
            return [self._at.resolve(scope, document) for document in documents]
        return self._at.resolve_all(scope, documents)

    def filter_hints(self, options: RetrievalOptions) -> list[str]:
        """A line for each department, tag or field of metadata in a search's filters that no document has.

        Meant for a search that found nothing: every document is read where filters name anything.
        """
        named = named_values(options)
        if not named:
            return []
        scope, store, names = self._at.scope, self._at.store, {*self._at.names}
        places = [one for one in store.collections.list_all(scope) if names & {one.name, EVERY_COLLECTION}]
        return hints(named, store.documents.filterable(scope, places)) if places else []

    def history(self, document: int | str) -> DocumentHistory:
        """Every version of a document, oldest first; the document may be deleted.

        Raises:
            NotFoundError: There is none.
            UsageError: Several have that source.
        """
        scope = self._at.present()
        found = self._at.store.history.versions(scope, self._at.resolve(scope, document))
        show("history", documents=[(found.document_id, 0)])
        return found

    def diff(
        self,
        document: int | str,
        *,
        from_version: int | None = None,
        to_version: int | None = None,
        context_lines: int = 3,
    ) -> VersionDiff:
        """How the text of a document changed from one version to another, as a unified diff.

        Args:
            document: By id or by source.
            from_version: None: the one before ``to_version``.
            to_version: None: the newest.
            context_lines: Unchanged lines shown around each change.

        Raises:
            NotFoundError: There is no such document or version.
            UsageError: The document has one version only, and none is named.
        """
        history = self.history(document)
        known = [version.version for version in history.versions]
        last = known[-1] if to_version is None else to_version
        first = (
            max((number for number in known if number < last), default=None) if from_version is None else from_version
        )
        if first is None:
            raise UsageError(f"There is no version before {last} of {history.source!r}: nothing to compare it with.")
        for number in (first, last):
            if number not in known:
                raise NotFoundError(f"{history.source!r} has no version {number}; it has {_listed(known)}.")
        content = self._at.store.history.content
        texts = [content(self._at.scope, history.document_id, number) for number in (first, last)]
        lines = _unified(texts[0], texts[1], (first, last), context_lines)
        changes = lines[2:]
        return VersionDiff(
            document_id=history.document_id,
            source=history.source,
            department=history.department,
            from_version=first,
            to_version=last,
            lines=tuple(lines),
            added=sum(line.startswith("+") for line in changes),
            removed=sum(line.startswith("-") for line in changes),
        )

    def diff_evidence(
        self,
        question: str,
        *,
        from_time: Moment,
        to_time: Moment | None = None,
        options: RetrievalOptions | None = None,
        **keywords: Unpack[SearchKeywords],
    ) -> EvidenceDiff:
        """How the evidence for a question changed between two moments: what came, went, stayed and changed.

        Args:
            question: In plain words.
            from_time: The earlier moment.
            to_time: The later one; None: now.
            options: How to search; None: as answers are searched for.
            **keywords: Options by name; they win over ``options``.

        Raises:
            UsageError: The question, an option or a time is not valid.
            NotFoundError: There is no such collection.
        """
        given = refined(RetrievalOptions, options, keywords)
        return diff_evidence(self._at, question, from_time=from_time, to_time=to_time, options=given)

    def restore(self, document: int | str, version: int) -> IngestResult:
        """Make what an old version said the newest version; the versions between stay in the history.

        Title, text, metadata, language and dates are the old version's. Department, tags and grants stay as they are,
        and the next ingest of an unchanged file leaves the restored version alone. What was attached to a message then,
        and was deleted with it or left out by a later version, comes back too; what was deleted by itself does not.

        Args:
            document: By id or by source; it may be deleted.
            version: Which one, from 1; a principal must be allowed to read it.

        Raises:
            NotFoundError: There is no such document or version.
            PermissionDeniedError: It is not the principal's to change.
        """
        scope = self._at.present()
        return self._at.store.history.restore(scope, self._at.resolve(scope, document), version, actor=self._at.actor)

    def duplicates(self, document: int | str) -> Duplicates:
        """The other documents of the tenant that say what a document says, or nearly that, wherever they came from.

        Nearly the same are texts with four fifths of their runs of five words in common. What the view's principal may
        not read is not among them.

        Raises:
            NotFoundError: There is no such document, or it is deleted.
        """
        from recollect.ingest.prepare import NEARLY_THE_SAME, likeness

        scope = self._at.present()
        document_id = self._at.resolve(scope, document)
        repository = self._at.store.duplicates
        return repository.of_document(scope, document_id, likeness=likeness, threshold=NEARLY_THE_SAME)

    def list_duplicates(self, *, cursor: str | None = None, limit: int = 100) -> Page[tuple[SameDocument, ...]]:
        """Documents of the tenant that have the same text, group by group.

        Args:
            cursor: ``next_cursor`` of the page before; None: the first page.
            limit: How many groups at most.

        Raises:
            UsageError: The cursor is none of this list.
        """
        found = self._at.store.duplicates.groups(self._at.present(), after=number_at(cursor) or 0, limit=limit + 1)
        return Page.of(found, limit, lambda group: min(one.document_id for one in group))

    def reread(self, document: int | str, *, force: bool = False) -> IngestResult:
        """Read the kept original of a document anew, as files are read, cut and embedded now: a new version.

        Title, tags, department, language, dates and grants stay as they are, and so does metadata that the document
        has; text, headings and pages are read. What is attached to a message is stored with it, unless its source
        names it by itself, as a mailbox does.

        Args:
            document: By id or by source.
            force: Store it anew even if nothing is different.

        Raises:
            NotFoundError: There is no such document, it is deleted, or its original was not kept.
            ParseError: The original cannot be read.
            PermissionDeniedError: It is not the principal's to change.
            UsageError: The original is larger than files may be.
        """
        return reread(self._at, document, force=force)

    def update(
        self,
        document: int | str,
        *,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] | None = None,
        department: str | None = None,
        if_version: int | None = None,
    ) -> IngestResult:
        """Say something else of a document: a new version with the same text.

        The next ingest of an unchanged file or text leaves it alone; one that has changed says these anew.

        Args:
            document: By id or by source.
            title: None: as it is.
            metadata: All of it from now on; None: as it is.
            tags: All of them from now on; None: as they are.
            department: None: as it is.
            if_version: Only while this version is current; None: whichever is.

        Returns:
            What became of the document; ``unchanged`` where it said so before.

        Raises:
            NotFoundError: There is no such document, or it is deleted.
            VersionChangedError: Another version than ``if_version`` is current.
            PermissionDeniedError: It is not the principal's to change.
            UsageError: Something of it cannot be stored.
        """
        said = {"title": title, "metadata": metadata, "tags": None if tags is None else tuple(tags)}
        given = {name: value for name, value in {**said, "department": department}.items() if value is not None}
        return update(self._at, document, given, if_version=if_version)

    def set_ttl(self, document: int | str, ttl: Duration | None) -> None:
        """Decide how long a document is found from now on; None or ``"never"``: it never expires.

        Raises:
            NotFoundError: There is no such document, or it is deleted.
            UsageError: ``ttl`` is no length of time.
            PermissionDeniedError: It is not the principal's to change.
        """
        scope = self._at.present()
        lifetime = read_lifetime(ttl)
        if not self._at.store.expiry.set_lifetime(scope, self._at.resolve(scope, document), lifetime):
            raise NotFoundError(f"The document {document!r} is deleted: it has no time left to live.")

    def delete(self, documents: Sequence[int | str], *, if_version: int | None = None) -> int:
        """Close documents: searches of the present no longer find them, their history stays.

        Args:
            documents: By number, by source or by given id.
            if_version: Only while this version of each is current; None: whichever is.

        Returns:
            How many were current.

        Raises:
            NotFoundError: One of them does not exist; then none is closed.
            VersionChangedError: Of one of them another version than ``if_version`` is current; then none is closed.
            PermissionDeniedError: One of them is not the principal's to change; then none is closed.
        """
        scope = self._at.present()
        ids = self._at.resolve_all(scope, documents)
        return self._at.store.writer.close(scope, ids, if_version=if_version)

    def erase(
        self,
        documents: Sequence[int | str],
        *,
        reason: str | None = None,
        scrub: bool = False,
    ) -> ErasureReceipt:
        """Remove documents physically, with every version, and prove it.

        Turns of conversations that quote them go too: those that repeat seven words in a row, or a shorter document
        whole, that stand in no other document. Afterwards the store is searched for the hashes and for distinctive
        phrases of what was erased. The receipt holds none of the content; the audit keeps it. Where a principal asks,
        nothing goes of others' conversations and sessions, and the receipt tells of the documents alone; the audit's is
        whole.

        Args:
            documents: By number, by source or by given id.
            reason: Why, for the receipt; None: nothing is said.
            scrub: Take it out of the database's files too, as `Maintenance.scrub` does, and look for it in them.

        Raises:
            NotFoundError: One of them does not exist; then none is erased.
            PermissionDeniedError: One of them is not the principal's to change; then none is erased.
            UsageError: A conversation that quotes them was embedded with another model than the configured one.
        """
        scope, store = self._at.present(), self._at.store
        ids = self._at.resolve_all(scope, documents)
        store.documents.require_changeable(scope, ids)
        if scrub and scope.principal is not None:
            raise PermissionDeniedError("To scrub the whole store is for its owner: leave --scrub out.")
        memory = self._at.assembly.memory
        # Before the documents: interrupted here, the same call finds what is left to do.
        quotes = store.quotes.of_documents(scope, ids)
        turns = sum(
            memory(scope.tenant_id).forgetter.forget(scope, session, positions, actor=self._at.actor, user=user)
            for (session, user), positions in quotes.items()
        )

        def finish() -> None:
            self._at.assembly.searcher.forget()
            # The statistics of terms still count the erased words.
            everything = self._at.everything
            for place in store.collections.list_all(everything):
                if place.stats_pending:
                    store.collections.refresh_term_stats(everything, place)

        receipt = store.erasure.erase(
            scope,
            ids,
            actor=self._at.actor,
            reason=reason,
            removed={"episode_quotes": turns},
            finish=finish,
            scrubber=store.scrubber if scrub else None,
        )
        return receipt if scope.principal is None else _of_documents_alone(receipt)

    def each(
        self,
        *,
        department: str | None = None,
        status: DocumentStatus | None = None,
        source: str | None = None,
        tags: Sequence[str] = (),
        newest_first: bool = False,
    ) -> Iterator[DocumentRecord]:
        """All documents that `list` gives with these arguments, page by page as they are read."""
        return every(
            self.list, department=department, status=status, source=source, tags=tags, newest_first=newest_first
        )

    # Last: its name is a type's in what stands before it.
    def list(
        self,
        *,
        department: str | None = None,
        status: DocumentStatus | None = None,
        source: str | None = None,
        tags: Sequence[str] = (),
        newest_first: bool = False,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[DocumentRecord]:
        """The documents of the view's collection, or of its session, by id and without their contents.

        Those that a job is to store are among them as ``pending``, those whose job has failed as ``error``, with the
        reason; searches find neither. A principal sees those of the jobs that they asked for.

        Args:
            department: Only of this one; what is not stored yet has none.
            status: Only ``pending``, ``embedded`` or ``error``.
            source: Only those whose own source, or whose origin (a folder, a web domain, ``upload``), is this.
            tags: Only those with all of these; what is not stored yet has none.
            newest_first: The largest ids first.
            cursor: ``next_cursor`` of the page before; None: the first page.
            limit: How many at most.

        Raises:
            NotFoundError: There is no such collection or session. The default collection is empty rather than missing.
            SessionExpiredError: The session's time is over.
            UsageError: There is no such status, or the cursor is none of this list.
        """
        _require_status(status)
        scope, store, after = self._at.present(), self._at.store, number_at(cursor) or 0
        page: dict[str, Any] = {"source": source, "newest_first": newest_first, "after": after, "limit": limit + 1}
        wanted: dict[str, Any] = {"department": department, "tags": tags, **page}
        if self._at.session is not None:
            with session_place(self._at, scope) as (own, place):
                stored = store.documents.list_page(own, place, **wanted)
            named = [replace(record, collection=label(self._at.session)) for record in stored]
            return Page.of(named, limit, _number)
        name = self._at.collection
        if name == DEFAULT_COLLECTION and store.collections.find(scope, name) is None:
            return Page(())
        place = self._at.place(scope)
        found: dict[int, DocumentRecord] = {}
        if status != "embedded" and department is None and not tags:
            unstored = store.jobs.unstored_documents(scope, place, status=status, **page)
            found = {record.document_id: record for record in unstored}
        if status in {None, "embedded"}:
            # Behind the others: what is stored between the two looks is among these.
            stored = store.documents.list_page(scope, place, **wanted)
            found |= {record.document_id: record for record in stored}
        return Page.of(sorted(found.values(), key=_number, reverse=newest_first), limit, _number)


def _number(record: DocumentRecord) -> int:
    return record.document_id


def _require_status(status: str | None) -> None:
    if status is not None and status not in DOCUMENT_STATUSES:
        raise UsageError(f"status must be one of {', '.join(DOCUMENT_STATUSES)}, not {reprlib.repr(status)}.")


def _of_documents_alone(receipt: ErasureReceipt) -> ErasureReceipt:
    """A receipt without what tells whether others hold, or have said, the same."""
    return replace(
        receipt,
        documents=tuple(replace(one, hashes=()) for one in receipt.documents),
        counts={"documents": receipt.counts["documents"]},
        copies=(),
        probe=ErasureProbe(phrases=0, hashes=0, places=0),
    )


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _unified(before: str, after: str, versions: tuple[int, int], context_lines: int) -> list[str]:
    first, last = (f"version {number}" for number in versions)
    lines = (before.splitlines(), after.splitlines())
    return list(difflib.unified_diff(*lines, first, last, n=max(0, context_lines), lineterm=""))


# Saying something else of documents whose text stays.


def update(at: Standpoint, document: int | str, said: Mapping[str, Any], *, if_version: int | None) -> IngestResult:
    """Give a document a title, metadata, tags or a department; see `Documents.update`."""
    from recollect.ingest.documents import BatchWriter
    from recollect.ingest.prepare import require_storable
    from recollect.store.contents import Places

    present = at.present()
    document_id = at.resolve(present, document)
    at.store.documents.require_changeable(present, [document_id])
    with place_of(at, present, document_id) as (scope, place, record):
        if if_version is not None and record.version != if_version:
            raise VersionChangedError(
                f"The document {document_id} is at version {record.version} by now, not {if_version}: read it again."
            )
        if all(getattr(record, name) == value for name, value in said.items()):
            return IngestResult(document_id, record.version, "unchanged", record.chunk_count)
        anew = replace(_stored(at, scope, Places(collection_ids=(place.collection_id,)), document_id), **said)
        require_storable(anew)
        preparer = make_preparer(at.assembly, scope, place, door=make_door(at.assembly, scope))
        batch_writer = BatchWriter(preparer, at.store.collections, at.store.writer, scope=scope, collection=place)
        cut = preparer.cut(anew, preparer.fingerprint({}))
        # What was read here is what is replaced: not what another has stored meanwhile.
        written = batch_writer.rewrite(document_id, cut, force=True, if_version=record.version, read_alike=True)
        batch_writer.finish()
    shared = {name: said[name] for name in ("tags", "department") if name in said}
    for attached in at.store.attachments.current(present, document_id) if shared else ():
        update(at, attached, shared, if_version=None)
    return written


def _stored(at: Standpoint, scope: Scope, places: Places, document_id: int) -> Document:
    """A stored document as it would be ingested."""
    record = at.store.documents.get(scope, document_id)
    version = at.store.history.versions(scope, document_id).versions[-1]
    headings, pages = at.store.contents.structure(scope, places, document_id)
    return Document(
        content=record.content or "",
        source=record.source,
        id=record.id,
        title=record.title,
        metadata=record.metadata,
        tags=record.tags,
        department=record.department,
        mime_type=record.mime_type,
        language=record.language,
        headings=headings,
        pages=pages,
        event_time=version.event_time,
        event_end=version.event_end,
        ttl=time_left(version),
        original=_original(at, scope, places, document_id),
    )


def _original(at: Standpoint, scope: Scope, places: Places, document_id: int) -> Original | None:
    try:
        return at.store.contents.original(scope, places, document_id)
    except NotFoundError:
        return None


# How the evidence for a question changed between two moments.

# Two passages of one document that have less in common than this are two passages, not one that changed.
_SAME_PASSAGE = 0.4

# Comparing takes time with the product of the lengths; the beginning tells as much.
_COMPARED_CHARACTERS = 2_000


def diff_evidence(
    at: Standpoint,
    question: str,
    *,
    from_time: Moment,
    to_time: Moment | None,
    options: RetrievalOptions | None,
) -> EvidenceDiff:
    """See `recollect.pipeline.documents.Documents.diff_evidence`."""
    scope = at.present()
    now = datetime.now(UTC)
    start = read_time(from_time, now=now, name="from_time")
    end = now if to_time is None else read_time(to_time, now=now, name="to_time")
    if start == end:
        raise UsageError("The two moments are the same: nothing can have changed between them.")
    given = at.answering(options)
    # Copies stand in for one another from one moment to the next: what is compared is what is there.
    collapse = given.collapse_duplicates or False
    given = replace(given, collapse_duplicates=collapse, outline=True, relevance_floor=True)
    before, after = (search(replace(at, as_of=moment), question, given).results for moment in (start, end))
    pairs = match_passages(before, after)
    history = at.store.history
    kept_before = {old.chunk_id for old, _ in pairs}
    kept_after = {new.chunk_id for _, new in pairs}
    went = [one for one in before if one.chunk_id not in kept_before]
    came = [one for one in after if one.chunk_id not in kept_after]
    known_then = history.known_at(scope, _versions(came), start)
    known_now = history.known_at(scope, _versions(went), end)
    return EvidenceDiff(
        question=question,
        collection=", ".join(at.names),
        from_time=start,
        to_time=end,
        came=tuple(MovedEvidence(passage=one, outranked=one.version_id in known_then) for one in came),
        went=tuple(MovedEvidence(passage=one, outranked=one.version_id in known_now) for one in went),
        stayed=tuple(new for old, new in pairs if old.content == new.content),
        changed=tuple((old, new) for old, new in pairs if old.content != new.content),
    )


def match_passages(
    before: Sequence[RetrievedContext], after: Sequence[RetrievedContext]
) -> list[tuple[RetrievedContext, RetrievedContext]]:
    """The passages that are each other's at two moments, in the order of ``after``; no passage is used twice.

    Passages of one document belong together that read the same; of the others, those that have most in common.

    Args:
        before: Found at the one moment.
        after: Found at the other.
    """
    free_before, free_after = list(before), list(after)
    pairs: list[tuple[RetrievedContext, RetrievedContext]] = []
    alike = [
        (_alikeness(old, new), -j, -i)
        for i, old in enumerate(before)
        for j, new in enumerate(after)
        if old.document_id == new.document_id
    ]
    used_before: set[int] = set()
    used_after: set[int] = set()
    for likeness, j, i in sorted(alike, reverse=True):
        if likeness < _SAME_PASSAGE or -i in used_before or -j in used_after:
            continue
        used_before.add(-i)
        used_after.add(-j)
        pairs.append((free_before[-i], free_after[-j]))
    return sorted(pairs, key=lambda pair: pair[1].rank)


def _alikeness(old: RetrievedContext, new: RetrievedContext) -> float:
    """From 0 (nothing in common) to 2 (one and the same chunk)."""
    if old.content == new.content:
        return 2.0 if old.chunk_id == new.chunk_id else 1.5
    texts = (old.content[:_COMPARED_CHARACTERS].split(), new.content[:_COMPARED_CHARACTERS].split())
    return difflib.SequenceMatcher(None, *texts, autojunk=False).ratio()


def _versions(passages: Iterable[RetrievedContext]) -> list[int]:
    return [one.version_id for one in passages if one.version_id is not None]


# What a filter names that no document has: said where nothing is found, so that a slip of the pen is seen.

_SHOWN = 8

_NAMES = {"department": "department", "tags": "tag", "metadata": "metadata field"}


def named_values(options: RetrievalOptions) -> list[tuple[str, str]]:
    """The departments, tags and keys of metadata that the filters of a search ask for, each once."""
    named = [("department", name) for name in options.department]
    named += [("tags", name) for name in options.tags]
    named += [("metadata", key) for key in options.metadata_filters]
    if options.filters:
        for condition in conditions_in(parse_filter(options.filters)):
            named += _of_condition(condition)
    return list(dict.fromkeys(named))


def _of_condition(condition: Condition) -> Iterator[tuple[str, str]]:
    if condition.field == "metadata" and condition.operator not in {"exists", "ne", "nin"}:
        yield "metadata", condition.path[0]
    elif condition.field in {"department", "tags"} and condition.operator in {"eq", "in", "contains"}:
        values = condition.value if isinstance(condition.value, tuple) else (condition.value,)
        yield from ((condition.field, value) for value in values if isinstance(value, str))


def hints(named: Sequence[tuple[str, str]], there: Mapping[str, Sequence[str]]) -> list[str]:
    """A line for each name that no document has, with those that there are, the nearest first.

    Args:
        named: As of `named_values`.
        there: The names that documents have, by kind.
    """
    return [_line(kind, name, there[kind]) for kind, name in named if name not in there[kind]]


def _line(kind: str, name: str, there: Sequence[str]) -> str:
    what = _NAMES[kind]
    if not there:
        return f"No document has the {what} {name!r}, or any other."
    folded = {one.casefold(): one for one in reversed(there)}
    near = [folded[one] for one in get_close_matches(name.casefold(), folded, n=3)]
    if near:
        return f"No document has the {what} {name!r}. Did you mean {' or '.join(map(repr, near))}?"
    more = f" and {len(there) - _SHOWN:,} more" if len(there) > _SHOWN else ""
    return f"No document has the {what} {name!r}. There are: {', '.join(there[:_SHOWN])}{more}."


# Reading the kept originals of documents anew, with the present settings.


#: What the metadata says of how a document was read the last time.
_OF_READING = {
    *(DESCRIBED, DESCRIBED_BY, "pictures_left_out", "attachments_left_out"),
    *("pages_recognised", "pages_without_text", "pages_damaged", "drawings_not_read"),
}


def reread(at: Standpoint, document: int | str, *, force: bool) -> IngestResult:
    """Read a document's original anew; see `Documents.reread`."""
    from recollect.ingest.documents import BatchWriter, given_of
    from recollect.store.contents import Places

    present = at.present()
    document_id = at.resolve(present, document)
    at.store.documents.require_changeable(present, [document_id])
    with place_of(at, present, document_id) as (scope, place, record):
        original = at.store.contents.original(scope, Places(collection_ids=(place.collection_id,)), document_id)
        _require_size(original, at.config.ingest.max_file_bytes)
        version = at.store.history.versions(scope, document_id).versions[-1]
        apart = _names_apart(at, scope, document_id)
        read = read_bytes(
            original.read(),
            name=original.name,
            mime_type=original.mime_type,
            attachments=not apart,
            pictures=shows_pictures(at.assembly, scope),
            workers=at.assembly.parser_workers,
        )
        anew = _merged(read, record, version)
        preparer = make_preparer(at.assembly, scope, place, door=make_door(at.assembly, scope))
        batch_writer = BatchWriter(preparer, at.store.collections, at.store.writer, scope=scope, collection=place)
        # As the next ingest of the folder or of the document would say it, so that this one finds it unchanged.
        of_folder = PurePath(record.origin).is_absolute()
        given = {"department": record.department, "tags": ()} if of_folder else given_of(anew)
        cut = preparer.cut(anew, preparer.fingerprint(given))
        rewrite = batch_writer.rewrite if apart else batch_writer.rewrite_whole
        written = rewrite(document_id, cut, force=force)
        batch_writer.finish()
    return written


def _names_apart(at: Standpoint, scope: Scope, document_id: int) -> bool:
    """Whether what is attached to a document comes from elsewhere than its file: from a connector that names it."""
    connector = at.store.sources.connector_of(scope, document_id)
    if connector in {None, DIRECTORY, WEB}:
        return at.store.attachments.names_apart(scope, document_id)
    try:
        return getattr(connector_class(connector), "names_attachments", False)
    except UsageError:  # of a package that is not installed here
        return at.store.attachments.names_apart(scope, document_id)


@contextmanager
def place_of(at: Standpoint, scope: Scope, document_id: int) -> Iterator[tuple[Scope, Collection, DocumentRecord]]:
    """Where a document is, and as it is."""
    if at.session is not None:
        with session_place(at, scope) as (own, place):
            yield own, place, at.store.documents.get(own, document_id)
        return
    record = at.store.documents.get(scope, document_id)
    yield scope, at.store.collections.get(scope, record.collection), record


def _require_size(original: Original, max_bytes: int) -> None:
    if original.byte_count > max_bytes:
        raise UsageError(
            f"The original {original.name!r} is larger than files may be ({original.byte_count:,} of {max_bytes:,} "
            "bytes): raise [rag.ingest] max_file_bytes to read it."
        )


def _merged(read: Document, record: DocumentRecord, version: VersionRecord) -> Document:
    """What was read, under what is said of the document: nobody's title, tags or grants are taken back by reading."""
    dated = record.event_time is not None
    said = {name: value for name, value in record.metadata.items() if name not in _OF_READING}
    return replace(
        read,
        source=record.source,
        id=record.id,
        title=record.title,
        metadata={**read.metadata, **said},
        tags=record.tags,
        department=record.department,
        language=record.language,
        event_time=version.event_time if dated else read.event_time,
        event_end=version.event_end if dated else read.event_end,
        permissions=None,
        ttl=time_left(version),
    )


def time_left(version: VersionRecord) -> float | Literal["never"]:
    """The seconds until a version expires, or ``"never"``, whatever is configured for documents by default."""
    if version.expires_at is None:
        return "never"
    return max((version.expires_at - datetime.now(UTC)).total_seconds(), 1.0)
