"""The whole of recollect behind one object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from recollect.config import DEFAULT_COLLECTION, RAGConfig
from recollect.model import Answer, Document, Principal, RetrievalOptions, RetrievedContext, Scope, SearchReply
from recollect.model.arguments import checked
from recollect.model.principal import read_permissions
from recollect.model.scope import Target
from recollect.pipeline.administration import Administration
from recollect.pipeline.auditing import Auditing
from recollect.pipeline.facts import SemanticMemory
from recollect.pipeline.feedback import Feedback
from recollect.pipeline.history import History
from recollect.pipeline.ingesting import index_if_due, ingest_documents_into, ingest_paths_into
from recollect.pipeline.memory import Conversations
from recollect.pipeline.parts import DownloadProgress, Parts
from recollect.pipeline.permissions import Permitting
from recollect.pipeline.tenants import Tenancy

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.context import AssembledContext
    from recollect.embedding.base import EmbeddingProvider
    from recollect.embedding.models import ModelCache
    from recollect.ingest.report import IngestReport, IngestResult, ProgressCallback
    from recollect.llm.base import ChatModel
    from recollect.model.why_not import WhyNot
    from recollect.store.collections import Collection
    from recollect.store.store import Store


@checked
class RAGPipeline(Administration, Permitting, Tenancy, Conversations, SemanticMemory, Feedback, History, Auditing):
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
        principal: Principal | None = None,
    ) -> IngestResult:
        """Store a document: cut, embedded, indexed, and findable when this returns.

        A document of the same ``source`` becomes a new version, and the old one is closed; an equal one is left alone.
        A writer meets his own documents, an owner of the collection the collection's: what others have stored under
        the same source stays beside it.

        Args:
            document: The document, or its text.
            tenant_id: Whose it is; None: the default tenant's.
            collection: Where it goes, made where it is missing; None: the configured one.
            force: Store it anew even if it is unchanged.
            principal: Who stores it: a writer or an owner of the collection; None: the owner of the store.

        Raises:
            UsageError: The document holds no text.
            PermissionDeniedError: The principal may not write there.
            ProviderError: The embedding model failed.
        """
        return self.ingest_many([document], tenant_id, collection=collection, force=force, principal=principal)[0]

    def ingest_many(
        self,
        documents: Iterable[Document | str],
        tenant_id: int | None = None,
        *,
        collection: str | None = None,
        force: bool = False,
        principal: Principal | None = None,
    ) -> list[IngestResult]:
        """Store documents, as `ingest` does each, in batches that are transactions; any number, from any iterable."""
        scope = self._parts.scope(tenant_id, principal=principal)
        place = self._writable(scope, collection)
        return ingest_documents_into(self._parts, scope, place, documents, force=force)

    def ingest_paths(
        self,
        paths: Sequence[Path | str],
        tenant_id: int | None = None,
        *,
        collection: str | None = None,
        sync: bool = False,
        force: bool = False,
        follow_links: bool | None = None,
        tags: Sequence[str] = (),
        permissions: Sequence[str] | None = None,
        on_progress: ProgressCallback | None = None,
        principal: Principal | None = None,
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
            follow_links: Whether links below a folder are followed, wherever they lead; None: as configured. What is
                behind one that is not followed is left as it is, ``sync`` included.
            tags: Given to every document.
            permissions: Who may read every document, for instance ``("role:hr", "!group:interns")``, whatever the
                files' front matter says. None: what that says, or what a document has, or the collection's default.
            on_progress: Told after every batch.
            principal: Who stores them; None: the owner of the store.

        Raises:
            NotFoundError: A path does not exist.
            ProviderError: The embedding model failed.
        """
        from recollect.documents.walk import require_roots

        # Before the collection is made: what is refused leaves nothing behind.
        roots = [Path(path) for path in paths]
        require_roots(roots)
        granted = None if permissions is None else read_permissions(permissions).as_tokens()
        scope = self._parts.scope(tenant_id, principal=principal)
        place = self._writable(scope, collection)
        return ingest_paths_into(
            self._parts,
            scope,
            place,
            roots,
            settings=self.config.ingest,
            sync=sync,
            force=force,
            follow_links=follow_links,
            tags=tags,
            permissions=granted,
            on_progress=on_progress,
        )

    def import_file(
        self,
        path: Path | str,
        tenant_id: int | None = None,
        *,
        collection: str | None = None,
        force: bool = False,
        on_progress: ProgressCallback | None = None,
        principal: Principal | None = None,
    ) -> IngestReport:
        """Import documents from JSON Lines, with chunks and vectors where they are given; any size, bounded memory.

        Args:
            path: The file; `recollect.ingest.records` has its forms.
            tenant_id: Whose the documents are; None: the default tenant's.
            collection: Where they go, made where it is missing; None: the configured one. Given vectors must be those
                of its model.
            force: Store every document anew, changed or not.
            on_progress: Told after every batch.
            principal: Who stores them; None: the owner of the store.

        Returns:
            What became of the lines; a bad one is an error that names it and does not stop the others.

        Raises:
            NotFoundError: There is no such file.
        """
        from recollect.ingest.records import require_file
        from recollect.ingest.transfer import Importer

        require_file(Path(path))
        scope = self._parts.scope(tenant_id, principal=principal)
        place = self._writable(scope, collection)
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
        index_if_due(self._parts, replace(scope, principal=None), place, on_progress=on_progress)
        return report

    def export_lines(
        self, *, collection: str | None = None, tenant_id: int | None = None, principal: Principal | None = None
    ) -> Iterator[str]:
        """A collection as JSON Lines, one document with its chunks and vectors a line, in the form of `import_file`.

        With a ``principal``, what he may read of it.

        Raises:
            NotFoundError: There is no such collection.
        """
        from recollect.ingest.records import to_line

        scope = self._parts.scope(tenant_id, principal=principal)
        place = self.store.collections.get(scope, collection or self.config.collection)
        return map(to_line, self.store.exports.documents(scope, place))

    def _writable(self, scope: Scope, collection: str | None) -> Collection:
        """The collection that somebody stores documents in; the unrestricted caller makes it where it is missing."""
        if scope.principal is not None:
            place = self.store.collections.get(scope, collection or self.config.collection)
            self.store.collections.require_writer(scope, place)
        return self.ensure_collection(collection, scope.tenant_id)

    # Search and answers

    def search(
        self,
        query: str,
        options: RetrievalOptions | None = None,
        *,
        collection: str | None = None,
        tenant_id: int | None = None,
        as_of: datetime | None = None,
        principal: Principal | None = None,
    ) -> SearchReply:
        """Find the passages that answer a query, with timings and the paths taken.

        Args:
            query: In plain words.
            options: How to search; None: the configured defaults.
            collection: Where to search; None: the configured one.
            tenant_id: Whose knowledge; None: the default tenant's.
            as_of: Search what was known at this time (without a zone: UTC); None: now.
            principal: Who asks: what he may not read does not exist for him; None: the owner of the store.

        Raises:
            UsageError: The query or an option is not valid.
            NotFoundError: There is no such collection. The default one is empty rather than missing.
        """
        target = Target(collections=(collection or self.config.collection,), optional=frozenset({DEFAULT_COLLECTION}))
        scope = self._parts.scope(tenant_id, as_of, principal=principal)
        return self._parts.searcher.search(scope, query, options or self.default_options(), target)

    def retrieve(
        self,
        query: str,
        options: RetrievalOptions | None = None,
        *,
        collection: str | None = None,
        tenant_id: int | None = None,
        as_of: datetime | None = None,
        principal: Principal | None = None,
    ) -> list[RetrievedContext]:
        """The passages that answer a query, best first: `search` without what stands around them."""
        reply = self.search(
            query, options, collection=collection, tenant_id=tenant_id, as_of=as_of, principal=principal
        )
        return list(reply.results)

    def context(
        self,
        query: str,
        options: RetrievalOptions | None = None,
        *,
        token_budget: int | None = None,
        max_context_length: int | None = None,
        count_tokens: Callable[[str], int] | None = None,
        collection: str | None = None,
        tenant_id: int | None = None,
        as_of: datetime | None = None,
        principal: Principal | None = None,
    ) -> AssembledContext:
        """What a language model should read to answer a query: the passages found, numbered, within a budget.

        No language model is asked. Where nothing relevant is found, the context is empty.

        Args:
            query: In plain words.
            options: How to search, ``top_k`` being the most passages shown; None: the configured defaults.
            token_budget: Tokens at most, headers included; None: the configured number.
            max_context_length: Characters at most, headers included; None: the configured number.
            count_tokens: Counts the tokens of a text as the model does that will read it; None: the local model's
                tokenizer, or a quarter of the bytes where there is none.
            collection: Where to search; None: the configured one.
            tenant_id: Whose knowledge; None: the default tenant's.
            as_of: Search what was known at this time (without a zone: UTC); None: now.
            principal: Who asks: what he may not read does not exist for him; None: the owner of the store.

        Raises:
            UsageError: The query, an option or a limit is not valid.
            NotFoundError: There is no such collection. The default one is empty rather than missing.
        """
        from recollect.pipeline.answering import assembled_context

        name = collection or self.config.collection
        given = replace(options or self.default_options(), outline=True)
        reply = self.search(query, given, collection=name, tenant_id=tenant_id, as_of=as_of, principal=principal)
        place = self.store.collections.find(self._parts.scope(tenant_id, principal=principal), name)
        return assembled_context(
            self._parts,
            self.config,
            reply,
            place,
            token_budget=token_budget,
            max_context_length=max_context_length,
            count_tokens=count_tokens,
        )

    def why_not(
        self,
        query: str,
        document: int | str,
        options: RetrievalOptions | None = None,
        *,
        collection: str | None = None,
        tenant_id: int | None = None,
        principal: Principal | None = None,
    ) -> WhyNot:
        """Where a document stands at every stage of a search, what kept it out, and what to change.

        The search is run some ten times in different ways, so this takes as much longer than a search.

        Args:
            query: As it was searched.
            document: The document that is missed: its id, source, title, or the end of its path.
            options: As they were searched with; None: the configured defaults.
            collection: Where was searched; None: the configured one.
            tenant_id: Whose knowledge; None: the default tenant's.
            principal: Who asks: what he may not read does not exist for him; None: the owner of the store.

        Raises:
            UsageError: The query or an option is not valid, or several documents are meant.
            NotFoundError: There is no such collection or document.
        """
        name = collection or self.config.collection
        given = options or self.default_options()
        return self._parts.why_not().ask(
            self._parts.scope(tenant_id, principal=principal), query, document, given, collection=name
        )

    def ask(
        self,
        question: str,
        options: RetrievalOptions | None = None,
        *,
        collection: str | None = None,
        tenant_id: int | None = None,
        as_of: datetime | None = None,
        principal: Principal | None = None,
    ) -> Answer:
        """Answer a question from the knowledge base, with citations, or refuse.

        Args:
            question: In plain words.
            options: How to search for the passages; None: the configured defaults.
            collection: Where to search; None: the configured one.
            tenant_id: Whose knowledge; None: the default tenant's.
            as_of: Search what was known at this time (without a zone: UTC); None: now.
            principal: Who asks: what he may not read does not exist for him; None: the owner of the store.

        Raises:
            UsageError: The question or an option is not valid.
            NotFoundError: There is no such collection.
            ProviderError: The language model failed.
        """
        *_, answer = self.ask_stream(
            question, options, collection=collection, tenant_id=tenant_id, as_of=as_of, principal=principal
        )
        assert isinstance(answer, Answer), "a stream ends with the answer"
        return answer

    def ask_stream(
        self,
        question: str,
        options: RetrievalOptions | None = None,
        *,
        collection: str | None = None,
        tenant_id: int | None = None,
        as_of: datetime | None = None,
        principal: Principal | None = None,
    ) -> Iterator[str | Answer]:
        """As `ask`, but yields the answer's pieces as they come, and the whole `Answer` at the end."""
        from recollect.pipeline.answering import answer_stream

        name = collection or self.config.collection
        given = options or replace(self.default_options(), top_k=self.config.answer.passages)
        given = replace(given, outline=True)
        reply = self.search(question, given, collection=name, tenant_id=tenant_id, as_of=as_of, principal=principal)
        place = self.store.collections.find(self._parts.scope(tenant_id, principal=principal), name)
        yield from answer_stream(self._parts, self.config, question, reply, place)
