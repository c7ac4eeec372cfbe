"""The whole of recollect behind one object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from recollect.config import DEFAULT_COLLECTION, RAGConfig
from recollect.errors import NotFoundError
from recollect.model import DEFAULT_TENANT_ID, Answer, Document, RetrievalOptions, RetrievedContext, Scope, SearchReply
from recollect.pipeline.parts import DownloadProgress, Parts
from recollect.pipeline.status import PipelineStatus, read_status

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider
    from recollect.embedding.models import ModelCache
    from recollect.ingest.report import IngestReport, IngestResult, ProgressCallback
    from recollect.llm.base import ChatModel
    from recollect.store.collections import Collection
    from recollect.store.documents import DocumentRecord
    from recollect.store.status import Finding
    from recollect.store.store import Store


class RAGPipeline:
    """Ingests documents, searches them and answers from them.

    A context manager, safe to share between threads. Nothing is opened before it is needed: the store at the first
    call, the embedding model at the first text that must be embedded.

    Args:
        config: Settings; None: the defaults and the environment.
        embedder: Used in place of the configured one.
        chat_model: Used in place of the configured one.
        on_download: Told how the download of a model advances, in bytes.

    Example:
        >>> from recollect import Document, RAGPipeline
        >>> with RAGPipeline() as rag:  # doctest: +SKIP
        ...     rag.ingest(Document(content="Annual leave is 30 days.", source="leave.txt"))
        ...     rag.ask("How long is annual leave?").text
    """

    def __init__(
        self,
        config: RAGConfig | None = None,
        *,
        embedder: EmbeddingProvider | None = None,
        chat_model: ChatModel | None = None,
        on_download: DownloadProgress | None = None,
    ) -> None:
        self.config = config or RAGConfig()
        self._parts = Parts(self.config, embedder=embedder, chat_model=chat_model, on_download=on_download)

    def __enter__(self) -> RAGPipeline:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the store and let go of its server; the next call opens it again."""
        self._parts.close()

    @property
    def store(self) -> Store:
        """The open store.

        Raises:
            StoreUnavailableError: It cannot be started or reached.
            SchemaVersionError: It was written by a newer recollect.
        """
        return self._parts.store

    @property
    def models(self) -> ModelCache:
        """The local models on this machine, and the way to fetch more."""
        return self._parts.models

    @property
    def embedder(self) -> EmbeddingProvider:
        """The embedding model, before any cache."""
        return self._parts.embedder

    # Ingest

    def ingest(
        self,
        document: Document | str,
        tenant_id: int | None = None,
        *,
        collection: str | None = None,
        force: bool = False,
    ) -> IngestResult:
        """Store a document: cut, embedded, indexed, and findable when this returns.

        A document of the same ``source`` becomes a new version, and the old one is closed; an equal one is left alone.

        Args:
            document: The document, or its text.
            tenant_id: Whose it is; None: the default tenant's.
            collection: Where it goes, made where it is missing; None: the configured one.
            force: Store it anew even if it is unchanged.

        Raises:
            UsageError: The document holds no text.
            ProviderError: The embedding model failed.
        """
        return self.ingest_many([document], tenant_id, collection=collection, force=force)[0]

    def ingest_many(
        self,
        documents: Iterable[Document | str],
        tenant_id: int | None = None,
        *,
        collection: str | None = None,
        force: bool = False,
    ) -> list[IngestResult]:
        """Store documents, as `ingest` does each, in batches that are transactions; any number, from any iterable."""
        from recollect.ingest.documents import ingest_documents

        scope = _scope(tenant_id)
        complete = (Document(content=item) if isinstance(item, str) else item for item in documents)
        place = self.ensure_collection(collection, tenant_id)
        preparer = self._parts.preparer(scope, place)
        results = ingest_documents(
            complete,
            scope=scope,
            preparer=preparer,
            batch_writer=self._parts.batch_writer(scope, place, preparer),
            repository=self.store.documents,
            collection=place,
            force=force,
        )
        self._index_if_due(scope, place, None)
        return results

    def ingest_paths(
        self,
        paths: Sequence[Path | str],
        tenant_id: int | None = None,
        *,
        collection: str | None = None,
        sync: bool = False,
        force: bool = False,
        tags: Sequence[str] = (),
        on_progress: ProgressCallback | None = None,
    ) -> IngestReport:
        """Ingest files and folders, recursively and incrementally.

        Files whose bytes are unchanged cost no embedding. The first folder below a given one becomes the department.
        Interrupting it at any moment leaves every document whole or absent; running it again completes the work.

        Args:
            paths: Folders and files.
            tenant_id: Whose they are; None: the default tenant's.
            collection: Where they go, made where it is missing; None: the configured one.
            sync: Close the documents whose files have disappeared from the folders.
            force: Store every document anew, changed or not.
            tags: Given to every document.
            on_progress: Told after every batch.

        Raises:
            NotFoundError: A path does not exist.
            ProviderError: The embedding model failed.
        """
        from recollect.ingest.folder import FolderIngest

        scope = _scope(tenant_id)
        place = self.ensure_collection(collection, tenant_id)
        preparer = self._parts.preparer(scope, place)
        run = FolderIngest(
            scope=scope,
            collection=place,
            preparer=preparer,
            batch_writer=self._parts.batch_writer(scope, place, preparer),
            repository=self.store.documents,
            writer=self.store.writer,
            readers=self.config.ingest.readers,
            max_file_bytes=self.config.ingest.max_file_bytes,
            tags=tags,
            force=force,
            on_progress=on_progress,
        )
        report = run.run([Path(path) for path in paths], sync=sync)
        self._index_if_due(scope, place, on_progress)
        return report

    def import_file(
        self,
        path: Path | str,
        tenant_id: int | None = None,
        *,
        collection: str | None = None,
        force: bool = False,
        on_progress: ProgressCallback | None = None,
    ) -> IngestReport:
        """Import documents from JSON Lines, with chunks and vectors where they are given; any size, bounded memory.

        Args:
            path: The file; `recollect.ingest.records` has its forms.
            tenant_id: Whose the documents are; None: the default tenant's.
            collection: Where they go, made where it is missing; None: the configured one. Given vectors must be those
                of its model.
            force: Store every document anew, changed or not.
            on_progress: Told after every batch.

        Returns:
            What became of the lines; a bad one is an error that names it and does not stop the others.

        Raises:
            NotFoundError: There is no such file.
        """
        from recollect.ingest.transfer import Importer

        scope = _scope(tenant_id)
        place = self.ensure_collection(collection, tenant_id)
        preparer = self._parts.preparer(scope, place)
        importer = Importer(
            scope=scope,
            collection=place,
            preparer=preparer,
            batch_writer=self._parts.batch_writer(scope, place, preparer),
            repository=self.store.documents,
            on_progress=on_progress,
        )
        report = importer.run(Path(path), force=force)
        self._index_if_due(scope, place, on_progress)
        return report

    def export_lines(self, *, collection: str | None = None, tenant_id: int | None = None) -> Iterator[str]:
        """A collection as JSON Lines, one document with its chunks and vectors a line, in the form of `import_file`.

        Raises:
            NotFoundError: There is no such collection.
        """
        from recollect.ingest.records import to_line

        scope = _scope(tenant_id)
        place = self.store.collections.get(scope, collection or self.config.collection)
        return map(to_line, self.store.exports.documents(scope, place))

    def _index_if_due(self, scope: Scope, place: Collection, on_progress: ProgressCallback | None) -> None:
        if not self.store.dense_indexer.due(scope, place.name):
            return
        if on_progress:
            from recollect.ingest.report import IngestProgress

            on_progress(IngestProgress(done=0, total=0, chunks=0, stage="index"))
        self.store.dense_indexer.build(scope, place.name)

    # Search and answers

    def search(
        self,
        query: str,
        options: RetrievalOptions | None = None,
        *,
        collection: str | None = None,
        tenant_id: int | None = None,
    ) -> SearchReply:
        """Find the passages that answer a query, with timings and the paths taken.

        Args:
            query: In plain words.
            options: How to search; None: the configured defaults.
            collection: Where to search; None: the configured one.
            tenant_id: Whose knowledge; None: the default tenant's.

        Raises:
            UsageError: The query or an option is not valid.
            NotFoundError: There is no such collection. The default one is empty rather than missing.
        """
        name = collection or self.config.collection
        given = options or self.default_options()
        try:
            return self._parts.searcher.search(_scope(tenant_id), query, given, collection=name)
        except NotFoundError:
            if name != DEFAULT_COLLECTION:
                raise
            return SearchReply(query=query, collection=name, mode=given.mode, results=(), timings_ms={})

    def retrieve(
        self,
        query: str,
        options: RetrievalOptions | None = None,
        *,
        collection: str | None = None,
        tenant_id: int | None = None,
    ) -> list[RetrievedContext]:
        """The passages that answer a query, best first: `search` without what stands around them."""
        return list(self.search(query, options, collection=collection, tenant_id=tenant_id).results)

    def default_options(self) -> RetrievalOptions:
        """The configured options of a search."""
        return RetrievalOptions(top_k=self.config.retrieval.top_k, mode=self.config.retrieval.mode)

    def ask(
        self,
        question: str,
        options: RetrievalOptions | None = None,
        *,
        collection: str | None = None,
        tenant_id: int | None = None,
    ) -> Answer:
        """Answer a question from the knowledge base, with citations, or refuse.

        Args:
            question: In plain words.
            options: How to search for the passages; None: the configured defaults.
            collection: Where to search; None: the configured one.
            tenant_id: Whose knowledge; None: the default tenant's.

        Raises:
            UsageError: The question or an option is not valid.
            NotFoundError: There is no such collection.
            ProviderError: The language model failed.
        """
        *_, answer = self.ask_stream(question, options, collection=collection, tenant_id=tenant_id)
        assert isinstance(answer, Answer), "a stream ends with the answer"
        return answer

    def ask_stream(
        self,
        question: str,
        options: RetrievalOptions | None = None,
        *,
        collection: str | None = None,
        tenant_id: int | None = None,
    ) -> Iterator[str | Answer]:
        """As `ask`, but yields the answer's pieces as they come, and the whole `Answer` at the end."""
        from recollect.answer.service import stream_answer_sync
        from recollect.pipeline.answering import answer_options

        name = collection or self.config.collection
        given = options or replace(self.default_options(), top_k=self.config.answer.passages)
        reply = self.search(question, given, collection=name, tenant_id=tenant_id)
        place = self.store.collections.find(_scope(tenant_id), name)
        for piece in stream_answer_sync(
            question,
            reply.results,
            embedder=self.embedder,
            chat_model=self._parts.chat_model,
            options=answer_options(self.config, place, self.embedder.model_name),
        ):
            if isinstance(piece, Answer):
                search_ms = {f"search_{stage}": ms for stage, ms in reply.timings_ms.items()}
                yield replace(piece, timings_ms={**search_ms, **piece.timings_ms})
            else:
                yield piece

    # Collections

    def ensure_collection(self, name: str | None = None, tenant_id: int | None = None) -> Collection:
        """The collection of that name, made with the configured settings where it is missing."""
        from recollect.errors import ConflictError

        wanted = name or self.config.collection
        found = self.store.collections.find(_scope(tenant_id), wanted)
        if found is not None:
            return found
        try:
            return self.create_collection(wanted, tenant_id=tenant_id)
        except ConflictError:  # another process was faster
            return self.store.collections.get(_scope(tenant_id), wanted)

    def create_collection(
        self,
        name: str,
        *,
        tenant_id: int | None = None,
        description: str = "",
        language: str | None = None,
        chunking: Mapping[str, Any] | None = None,
    ) -> Collection:
        """Make an empty collection.

        Args:
            name: Unique for the tenant.
            tenant_id: Whose; None: the default tenant's.
            description: For people.
            language: ISO 639-1; None: the configured one.
            chunking: ``strategy`` and its parameters; None: the configured ones.

        Raises:
            ConflictError: There is one of that name.
            UsageError: The name or the chunking is not valid.
        """
        from recollect.retrieval.analysis import Analyzer

        configured = {"strategy": self.config.chunking.strategy, **self.config.chunking.parameters}
        return self.store.collections.create(
            _scope(tenant_id),
            name,
            embedding_model=self.embedder.model_name,
            embedding_dimension=self.embedder.dimension,
            language=Analyzer(language or self.config.language).language,
            chunking=self._parts.chunking_description(chunking or configured),
            description=description,
        )

    def list_collections(self, tenant_id: int | None = None) -> list[Collection]:
        """Every collection, by name."""
        return self.store.collections.list_all(_scope(tenant_id))

    def delete_collection(self, name: str, *, tenant_id: int | None = None) -> None:
        """Remove a collection with everything in it, physically.

        Raises:
            NotFoundError: There is none of that name.
        """
        self.store.collections.delete(_scope(tenant_id), name)

    # Documents

    def list_documents(
        self,
        *,
        collection: str | None = None,
        department: str | None = None,
        after: int = 0,
        limit: int = 100,
        tenant_id: int | None = None,
    ) -> list[DocumentRecord]:
        """Documents by id, without their contents; ``after`` is the last id of the page before.

        Raises:
            NotFoundError: There is no such collection.
        """
        scope = _scope(tenant_id)
        name = collection or self.config.collection
        if name == DEFAULT_COLLECTION and self.store.collections.find(scope, name) is None:
            return []
        place = self.store.collections.get(scope, name)
        return self.store.documents.list_page(scope, place, department=department, after=after, limit=limit)

    def get_document(self, document: int | str, *, tenant_id: int | None = None) -> DocumentRecord:
        """One document with its content, by id or by source.

        Raises:
            NotFoundError: There is none.
            UsageError: Several have that source.
        """
        return self.store.documents.get(_scope(tenant_id), self.store.documents.resolve(_scope(tenant_id), document))

    def delete_documents(self, documents: Sequence[int | str], *, tenant_id: int | None = None) -> int:
        """Close documents: searches of the present no longer find them, their history stays.

        Returns:
            How many were current.

        Raises:
            NotFoundError: One of them does not exist; then none is closed.
        """
        ids = [self.store.documents.resolve(_scope(tenant_id), document) for document in documents]
        return self.store.writer.close(_scope(tenant_id), ids)

    def erase_documents(self, documents: Sequence[int | str], *, tenant_id: int | None = None) -> int:
        """Remove documents physically: every version, chunk, vector and cached embedding.

        Returns:
            How many there were.

        Raises:
            NotFoundError: One of them does not exist; then none is erased.
        """
        ids = [self.store.documents.resolve(_scope(tenant_id), document) for document in documents]
        scope = _scope(tenant_id)
        erased = self.store.writer.erase(scope, ids)
        self._parts.searcher.forget()
        # The statistics of terms still count the erased words.
        for place in self.store.collections.list_all(scope):
            if place.stats_pending:
                self.store.collections.refresh_term_stats(scope, place)
        return erased

    # The store as a whole

    def status(self, tenant_id: int | None = None) -> PipelineStatus:
        """What the store holds."""
        return read_status(self.store, _scope(tenant_id), self.embedder, collection=self.config.collection)

    def check(self, tenant_id: int | None = None) -> list[Finding]:
        """Everything in the store that contradicts itself; an empty list for a sound one."""
        return self.store.status.check(_scope(tenant_id))


def _scope(tenant_id: int | None) -> Scope:
    return Scope(tenant_id=DEFAULT_TENANT_ID if tenant_id is None else tenant_id)
