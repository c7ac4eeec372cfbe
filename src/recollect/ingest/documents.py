"""Documents into the store: single ones whose text is there already, and many in batches, embedded side by side."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Generic, Literal, ParamSpec, TypeVar

from recollect import interruption
from recollect.errors import ModelChangedError, NotFoundError, RecollectError, StoreUnavailableError
from recollect.ingest.prepare import CutDocument, Embedded, Preparer, average_length, require_storable
from recollect.ingest.report import IngestProgress, IngestReport, ProgressCallback, Tally
from recollect.model import Document, IngestResult, Scope
from recollect.model.source import MANUAL_SOURCE

if TYPE_CHECKING:
    from recollect.documents.workers import ParserWorkers
    from recollect.model.collection import Collection
    from recollect.store.collections import CollectionRepository
    from recollect.store.documents import DocumentRepository, Source
    from recollect.store.prepared import PreparedDocument
    from recollect.store.writer import DocumentWriter


# Below this the statistics are counted again after every write: it costs a few milliseconds.
_SMALL_COLLECTION_CHUNKS = 1_000
_STALE_SHARE = 0.01

# Stored one at a time, so many chunks are sorted into the lexical index together.
_FEW_CHUNKS = 64


class BatchWriter:
    """Embeds and stores batches of cut documents in one collection.

    Args:
        preparer: Embeds.
        collections: Knows the collection's reference length and statistics.
        writer: Stores.
        scope: The tenant, and who stores.
        collection: Where the documents go.
        renew: Gives what embeds for the collection after a change of its model; None: a batch fails then.
    """

    def __init__(
        self,
        preparer: Preparer,
        collections: CollectionRepository,
        writer: DocumentWriter,
        *,
        scope: Scope,
        collection: Collection,
        renew: Callable[[Collection], Preparer] | None = None,
    ) -> None:
        # Together, because a change of the model replaces them while others embed.
        self._current = (collection, preparer)
        self._renew = renew
        self._collections = collections
        self._writer = writer
        self._scope = scope
        # Statistics are the whole collection's, whoever writes.
        self._everything = replace(scope, principal=None)
        self._first_space = collection.space_id
        self._reference_length = collection.reference_length
        # Chunks, stored since the lexical index was settled, and since the statistics were looked at.
        self._unsettled = self._unseen = 0

    def embed(self, batch: Sequence[CutDocument]) -> list[Embedded]:
        """Embed a batch for the space that the collection uses, as far as that is known here."""
        collection, preparer = self._current
        return [replace(one, space_id=collection.space_id) for one in preparer.embed(batch)]

    def write(
        self, source: Source, batch: Sequence[CutDocument], embedded: Sequence[Embedded], *, force: bool
    ) -> list[IngestResult]:
        """Store a batch in one transaction; if the collection's model was changed meanwhile, embedded again."""
        while True:
            collection, preparer = self._current
            if any((one.space_id or self._first_space) != collection.space_id for one in embedded):
                embedded = self.embed(batch)
                continue
            try:
                return self._write(source, batch, preparer, embedded, force=force)
            except ModelChangedError:
                if not self._follow(collection):
                    raise

    def write_each(
        self, source: Source, batch: Sequence[CutDocument], embedded: Sequence[Embedded], *, force: bool
    ) -> list[IngestResult | RecollectError]:
        """Store a batch as `write` does; one that cannot be stored as a whole, document by document.

        Returns:
            What became of each, in order; an error is its document's alone.

        Raises:
            StoreUnavailableError: The database went away: no other document will fare better.
            NotFoundError: The collection is gone; the same.
        """
        try:
            return [*self.write(source, batch, embedded, force=force)]
        except (StoreUnavailableError, NotFoundError):
            raise
        except RecollectError as error:
            if len(batch) == 1:
                return [error]
        # One document spoils a whole transaction: alone, the others can be stored.
        pairs = zip(batch, embedded, strict=True)
        return [self.write_each(source, [cut], [own], force=force)[0] for cut, own in pairs]

    def _write(
        self,
        source: Source,
        batch: Sequence[CutDocument],
        preparer: Preparer,
        embedded: Sequence[Embedded],
        *,
        force: bool,
    ) -> list[IngestResult]:
        collection, _ = self._current
        if self._reference_length is None:
            self._reference_length = self._collections.ensure_reference_length(
                self._scope, collection, average_length(batch)
            )
        prepared = preparer.finish(batch, embedded, reference_length=self._reference_length)
        written = self._writer.write(self._scope, collection, source, prepared, force=force)
        self._wrote(batch)
        return written

    def _wrote(self, batch: Sequence[CutDocument]) -> None:
        chunks = sum(len(one.chunks) for cut in batch for one in (cut, *cut.attached))
        self._unsettled += chunks
        self._unseen += chunks

    def rewrite(
        self,
        document_id: int,
        cut: CutDocument,
        *,
        force: bool,
        if_version: int | None = None,
        read_alike: bool = False,
    ) -> IngestResult:
        """Store a new version of a document that there is, whatever its source; see `DocumentWriter.rewrite`."""

        def write(collection: Collection, item: PreparedDocument) -> IngestResult:
            return self._writer.rewrite(
                self._scope, collection, document_id, item, force=force, if_version=if_version, read_alike=read_alike
            )

        return self._rewritten(cut, write)

    def rewrite_whole(self, document_id: int, cut: CutDocument, *, force: bool) -> IngestResult:
        """The same of a message with what is attached to it; see `DocumentWriter.rewrite_whole`."""

        def write(collection: Collection, item: PreparedDocument) -> IngestResult:
            return self._writer.rewrite_whole(self._scope, collection, document_id, item, force=force)

        return self._rewritten(cut, write)

    def _rewritten(
        self, cut: CutDocument, write: Callable[[Collection, PreparedDocument], IngestResult]
    ) -> IngestResult:
        while True:
            collection, preparer = self._current
            length = self._collections.ensure_reference_length(self._scope, collection, average_length([cut]))
            (prepared,) = preparer.finish([cut], preparer.embed([cut]), reference_length=length)
            try:
                written = write(collection, prepared)
            except ModelChangedError:
                if not self._follow(collection):
                    raise
                continue
            self._wrote([cut])
            return written

    def _follow(self, collection: Collection) -> bool:
        """From now on embed with the model that the collection has now, where that can be made."""
        if self._renew is None:
            return False
        now = self._collections.get(self._everything, collection.name)
        self._current = (now, self._renew(now))
        return True

    def finish(self) -> None:
        """After the last batch: settle the lexical index, and recount its statistics, where that is due."""
        now = self._seen()
        # A few new words wait at little cost; whoever adds the sixty-fourth chunk, or recounts, takes care of all.
        few = now.stats_pending % _FEW_CHUNKS >= self._unsettled and not recount_is_due(now)
        if self._unsettled and not few:
            self._writer.settle(self._scope)
            self._unsettled = 0
        self._recount(now)

    def refresh_statistics(self) -> None:
        """Recount the lexical statistics where enough has changed to matter."""
        self._recount(self._seen())

    def statistics_lag_far(self) -> bool:
        """Whether a search during a long ingest would go by statistics of a much smaller collection."""
        if self._unseen < _FEW_CHUNKS:
            return False
        now = self._seen()
        return now.stats_pending > max(_SMALL_COLLECTION_CHUNKS, now.stats_chunks)

    def _seen(self) -> Collection:
        self._unseen = 0
        return self._collections.get(self._everything, self._current[0].name)

    def _recount(self, now: Collection) -> None:
        if recount_is_due(now):
            self._collections.refresh_term_stats(self._everything, now)


def recount_is_due(collection: Collection) -> bool:
    """Whether enough has changed since a collection's words were counted to count them anew."""
    small = collection.chunk_count <= _SMALL_COLLECTION_CHUNKS
    return collection.stats_pending > 0 and (
        small or collection.stats_pending >= _STALE_SHARE * collection.stats_chunks
    )


def ingest_documents(
    documents: Iterable[Document],
    *,
    scope: Scope,
    preparer: Preparer,
    batch_writer: BatchWriter,
    repository: DocumentRepository,
    collection: Collection,
    force: bool = False,
    keep_originals: bool = True,
) -> list[IngestResult]:
    """Ingest documents that are in memory or come from a stream, in batches that are transactions each.

    One batch is written while the next is embedded; the documents in memory are bounded however many come.

    Returns:
        What became of each, in order.

    Raises:
        UsageError: A document holds no text or cannot be stored as it is; the batches before it are stored.
    """
    source = repository.ensure_source(scope, collection, MANUAL_SOURCE, "manual")
    finished: list[IngestResult] = []

    def cut(document: Document) -> CutDocument:
        require_storable(document)
        if not keep_originals:
            document = replace(document, original=None)
        return preparer.cut(document, preparer.fingerprint(given_of(document)))

    def write(batch: list[CutDocument], embedded: list[Embedded]) -> None:
        finished.extend(batch_writer.write(source, batch, embedded, force=force))
        if batch_writer.statistics_lag_far():
            batch_writer.refresh_statistics()

    with threads(1, "reader") as reader:
        cuts = ahead(reader, cut, documents, size=_size, max_items=DOCUMENTS_AHEAD, max_size=BYTES_AHEAD)
        embed_and_write(
            batches(cuts, cut=lambda one: one, source_id=lambda _: source.source_id), batch_writer.embed, write
        )
    batch_writer.finish()
    return finished


def _size(document: Document) -> int:
    return len(document.content) + (document.original.byte_count if document.original else 0)


def given_of(document: Document) -> dict[str, object]:
    """What a document says of itself, for its fingerprint."""
    return {
        "title": document.title,
        "metadata": dict(document.metadata),
        "tags": document.tags,
        "department": document.department,
        "event_time": document.event_time,
        # Only where there is one: documents that never had one keep the fingerprint that they are stored under.
        **({} if document.event_end is None else {"event_end": document.event_end}),
        **({} if document.permissions is None else {"permissions": document.permissions}),
    }


# Stages that overlap: reading ahead within bounds, and writing one batch while the next is embedded.


P = ParamSpec("P")
Item = TypeVar("Item")
Made = TypeVar("Made")
Computed = TypeVar("Computed")

# A batch is embedded and stored once it is this large: enough to sort texts by length, little enough to be lost.
BATCH_CHUNKS = 256
BATCH_DOCUMENTS = 64

# What costs the model nothing is lost at little cost, and a transaction has some thirty statements.
_LIGHT_BATCHES = 4

# How far ahead documents may be read: enough for a full batch, little enough to bound the memory.
DOCUMENTS_AHEAD = 2 * BATCH_DOCUMENTS
BYTES_AHEAD = 16 * 1024 * 1024

#: Batches that are embedded at a time.
EMBEDDED_AT_ONCE = 2


@dataclass(slots=True)
class OnItsWay:
    """Something from outside on its way into the store.

    Attributes:
        cut: Its document; None: it was not read yet, need not be stored, or cannot be.
    """

    cut: CutDocument | None = field(default=None, kw_only=True)

    @property
    def document(self) -> CutDocument:
        """Its document, of what was read."""
        assert self.cut is not None, "only what was read goes further"
        return self.cut


Entry = TypeVar("Entry", bound=OnItsWay)


@dataclass(kw_only=True, eq=False, repr=False)
class IngestRun(Generic[Entry]):
    """What runs over folders, sites and sources do alike: read side by side, embed, store in batches, and count.

    Attributes:
        scope: The tenant, and who stores.
        preparer: Cuts and embeds.
        batch_writer: Stores.
        writer: Closes what has gone.
        workers: The processes that parse.
        readers: How many are read at the same time.
        force: Whether to store every document anew, changed or not.
        on_progress: Told after every one.
    """

    scope: Scope
    preparer: Preparer
    batch_writer: BatchWriter
    writer: DocumentWriter
    workers: ParserWorkers
    readers: int = 2
    force: bool = False
    on_progress: ProgressCallback | None = None
    _interrupted: threading.Event = field(init=False, default_factory=threading.Event)
    # Counts are changed by two threads; the callback is told by one at a time.
    _counting: threading.RLock = field(init=False, default_factory=threading.RLock)
    _tally: Tally = field(init=False, default_factory=Tally)
    _total: int = field(init=False, default=0)
    _done: int = field(init=False, default=0)
    _embedded: int = field(init=False, default=0)

    def _source_of(self, entry: Entry) -> Source:
        """The source that an entry's document belongs to."""
        raise NotImplementedError

    def _settle(self, entry: Entry) -> None:
        """Count an entry that is not stored."""
        raise NotImplementedError

    def _count(self, batch: list[Entry], outcomes: list[IngestResult | RecollectError]) -> None:
        """Count what became of entries that were to be stored."""
        raise NotImplementedError

    def _take_in(self, found: Iterable[Item], read: Callable[[Item], Entry], *, size: Callable[[Item], int]) -> None:
        """Read what was found, and store what is to be stored of it."""
        with threads(self.readers, "reader", on_error=self._interrupted.set) as readers:
            reads = ahead(readers, read, found, size=size, max_items=DOCUMENTS_AHEAD, max_size=BYTES_AHEAD)
            grouped = batches(
                self._changed(reads),
                cut=lambda entry: entry.document,
                source_id=lambda entry: self._source_of(entry).source_id,
            )
            embed_and_write(grouped, self._embed, self._write)

    def _changed(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        for entry in entries:
            if entry.cut is None:
                self._settle(entry)
                self._advance(1)
            else:
                yield entry

    def _embed(self, batch: list[Entry]) -> list[Embedded]:
        embedded = self.batch_writer.embed([entry.document for entry in batch])
        with self._counting:
            self._embedded += sum(len(entry.document.chunks) for entry in batch)
        return embedded

    def _write(self, batch: list[Entry], embedded: list[Embedded]) -> None:
        cuts = [entry.document for entry in batch]
        self._count(batch, self.batch_writer.write_each(self._source_of(batch[0]), cuts, embedded, force=self.force))
        self._advance(len(batch))
        if self.batch_writer.statistics_lag_far():
            self.batch_writer.refresh_statistics()

    def _shown(self, text: object) -> str:
        """A name or a message without personal data that may not be stored."""
        door = self.preparer.door
        return str(text) if door is None else door.shown(str(text))

    def _advance(self, entries: int) -> None:
        with self._counting:
            self._done += entries
            self._report("files")

    def _report(self, stage: Literal["files", "statistics"]) -> None:
        if self.on_progress:
            progress = IngestProgress(done=self._done, total=self._total, chunks=self._embedded, stage=stage)
            self.on_progress(progress)

    def _finish(self, start: float) -> IngestReport:
        self._report("statistics")
        self.batch_writer.finish()
        return self._tally.report(time.perf_counter() - start)


class _Workers(ThreadPoolExecutor):
    """Threads with the context variables of whoever gives them work: what interrupts that one, interrupts them."""

    def submit(self, fn: Callable[P, Made], /, *args: P.args, **kwargs: P.kwargs) -> Future[Made]:
        return super().submit(copy_context().run, partial(fn, *args, **kwargs))


@contextmanager
def threads(count: int, name: str, *, on_error: Callable[[], None] | None = None) -> Iterator[ThreadPoolExecutor]:
    """Worker threads; leaving waits for what they are at, but not for what they have not begun.

    Args:
        count: How many.
        name: What they are called after.
        on_error: Called when they are left by an error or an interrupt, before that wait.
    """
    workers = _Workers(count, thread_name_prefix=f"recollect-{name}")
    try:
        yield workers
    except BaseException:
        if on_error is not None:
            on_error()
        raise
    finally:
        workers.shutdown(wait=True, cancel_futures=True)


def ahead(
    workers: ThreadPoolExecutor,
    make: Callable[[Item], Made],
    items: Iterable[Item],
    *,
    size: Callable[[Item], int],
    max_items: int,
    max_size: int,
) -> Iterator[Made]:
    """``map(make, items)`` in order, made ahead by ``workers``.

    Args:
        workers: Threads that call ``make``.
        make: Called once an item.
        items: Any number of them; taken only as far ahead as the bounds allow.
        size: What an item weighs.
        max_items: How many may be made ahead.
        max_size: What they may weigh together; a single item may weigh more.
    """
    waiting: deque[tuple[int, Future[Made]]] = deque()
    in_flight = 0
    for item in items:
        interruption.check()
        weight = size(item)
        while waiting and (len(waiting) >= max_items or in_flight + weight > max_size):
            done, future = waiting.popleft()
            in_flight -= done
            yield future.result()
        waiting.append((weight, workers.submit(make, item)))
        in_flight += weight
    while waiting:
        interruption.check()
        yield waiting.popleft()[1].result()


def batches(
    items: Iterable[Item],
    *,
    cut: Callable[[Item], CutDocument],
    source_id: Callable[[Item], int],
    light: Callable[[Item], bool] = lambda _: False,
) -> Iterator[list[Item]]:
    """Items in batches that are embedded together and stored in one transaction.

    A batch holds documents of one source, each identity once (a statement cannot give one document two versions),
    and ends once it is large enough.

    Args:
        items: Any number of them.
        cut: The document of an item.
        source_id: The number of its source.
        light: Whether an item is small and need not be embedded: of such, four times as many are a batch.
    """
    batch: list[Item] = []
    taken: set[tuple[str | None, bool]] = set()
    chunks = 0
    for item in items:
        document = cut(item)
        own = [document, *document.attached]
        named = {(one.document.id or one.document.source, one.document.id is not None) for one in own}
        times = _LIGHT_BATCHES if light(item) else 1
        full = chunks >= BATCH_CHUNKS * times or len(batch) >= BATCH_DOCUMENTS * times
        if batch and (full or not named.isdisjoint(taken) or source_id(item) != source_id(batch[0])):
            yield batch
            batch, taken, chunks = [], set(), 0
        batch.append(item)
        taken |= named
        chunks += sum(len(one.chunks) for one in own)
    if batch:
        yield batch


def embed_and_write(
    batches: Iterable[Item], embed: Callable[[Item], Computed], write: Callable[[Item, Computed], None]
) -> None:
    """Embed batches while the ones before them are written in another thread.

    Two batches are embedded at a time, so that the processors have work while one of them asks the cache or waits for
    its last text. Batches are written in order, one at a time; a failure of ``write`` surfaces at the next batch or at
    the end.
    """
    writing: Future[None] | None = None

    def embedded(batch: Item) -> tuple[Item, Computed]:
        return batch, embed(batch)

    with threads(1, "writer") as writer, threads(EMBEDDED_AT_ONCE, "embed-batch") as embedders:
        made = ahead(
            embedders, embedded, batches, size=lambda _: 1, max_items=EMBEDDED_AT_ONCE, max_size=EMBEDDED_AT_ONCE
        )
        for batch, vectors in made:
            if writing is not None:
                writing.result()
            writing = writer.submit(write, batch, vectors)
        if writing is not None:
            writing.result()


def windows(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The items in lists of ``size``, the last one shorter."""
    iterator = iter(items)
    while window := list(islice(iterator, size)):
        yield window
