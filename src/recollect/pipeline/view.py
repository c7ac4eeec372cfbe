"""A view: whose knowledge, who asks, when and where, said once; and what is done every day with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack, overload

from typing_extensions import get_protocol_members

from recollect.config import RAGConfig
from recollect.embedding.base import EmbeddingProvider
from recollect.errors import UsageError
from recollect.model import (
    Answer,
    Document,
    IngestResult,
    Principal,
    RetrievalOptions,
    RetrievedContext,
    Scope,
    SearchReply,
)
from recollect.model.activity import shown
from recollect.model.arguments import checked
from recollect.model.audit import require_actor
from recollect.model.search_options import RecallKeywords, SearchKeywords, refined
from recollect.model.time import Moment, read_time
from recollect.pipeline.assembly import Assembly, DownloadProgress
from recollect.pipeline.standpoint import Standpoint

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.chunking.base import ChunkingStrategy
    from recollect.context import AssembledContext
    from recollect.embedding.models import ModelCache
    from recollect.fetching.client import Method
    from recollect.fetching.crawl import CrawlPlan
    from recollect.ingest.report import IngestReport, ProgressCallback
    from recollect.llm.base import ChatModel
    from recollect.model.job import Job, JobCallback
    from recollect.model.memory import RecallOptions, Recollection, Remembered, Turn
    from recollect.model.remote import Remote
    from recollect.model.why_not import WhyNot
    from recollect.pipeline.answering import AskEvent
    from recollect.pipeline.audit import Audit
    from recollect.pipeline.collections import Collections
    from recollect.pipeline.contents import Contents
    from recollect.pipeline.documents import Documents
    from recollect.pipeline.feedback import Feedback
    from recollect.pipeline.files import Files
    from recollect.pipeline.grants import Grants
    from recollect.pipeline.jobs import Jobs
    from recollect.pipeline.keys import Keys, Logins
    from recollect.pipeline.maintenance import Maintenance
    from recollect.pipeline.memory import ConversationMemory, Facts
    from recollect.pipeline.sessions import Sessions
    from recollect.pipeline.sources import Sources
    from recollect.pipeline.spaces import Spaces
    from recollect.pipeline.tenants import Tenants
    from recollect.retrieval.rerank.base import Reranker
    from recollect.retrieval.retrievers import Retriever
    from recollect.store.store import Store


def _group(module: str, kind: str, says: str) -> Any:  # noqa: ANN401 - the annotation beside it says which
    """A group of a view: made when it is asked for, and its module is imported then."""

    def make(groups: Groups) -> object:
        return getattr(import_module(make.__module__), kind)(groups._at)

    make.__module__, make.__annotations__["return"] = f"recollect.pipeline.{module}", kind
    return property(make, doc=says)


class Groups:
    """The groups of a view."""

    def __init__(self, at: Standpoint) -> None:
        self._at = at

    documents: Documents = _group("documents", "Documents", "Documents, their versions, and what becomes of them.")
    contents: Contents = _group(
        "contents", "Contents", "What the documents say: listed, outlined, read in parts, and searched exactly."
    )
    files: Files = _group("files", "Files", "Files that were sent to be kept, and what collections make of them.")
    collections: Collections = _group(
        "collections", "Collections", "Collections: made, listed, shared, and written to and read from files."
    )
    sources: Sources = _group(
        "sources", "Sources", "Where documents come from, and how what changes there changes here."
    )
    spaces: Spaces = _group("spaces", "Spaces", "The embedding model of the collection, changed while it is searched.")
    sessions: Sessions = _group("sessions", "Sessions", "Sessions with documents of their own.")
    memory: ConversationMemory = _group("memory", "ConversationMemory", "Conversations, and contexts made of them.")
    facts: Facts = _group("memory", "Facts", "Facts drawn from conversations.")
    feedback: Feedback = _group("feedback", "Feedback", "Whether what contexts showed has helped.")
    grants: Grants = _group("grants", "Grants", "Who may read what.")
    keys: Keys = _group("keys", "Keys", "What programs present to a server.")
    logins: Logins = _group("keys", "Logins", "Who is logged in to a server with a browser.")
    tenants: Tenants = _group("tenants", "Tenants", "The tenants of the store.")
    audit: Audit = _group("audit", "Audit", "What was done, by whom and when.")
    jobs: Jobs = _group("jobs", "Jobs", "Work in the background: looked at, waited for, stopped and tried again.")
    maintenance: Maintenance = _group(
        "maintenance",
        "Maintenance",
        "The store as a whole: what it holds, whether it is sound, and what has passed its time.",
    )


class _Unchanged:
    """Stands for what a new view has from the one that it is made of."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Any = _Unchanged()


@checked
class View(Groups):
    """Somebody's view of a store: *whose* knowledge, *who* asks, *when* and *where*. Made by `RAGPipeline.view`.

    Immutable, made without a look at the database, and safe to share between threads: a server makes one for each
    request. What there is to do every day stands here, the rest in groups: `documents`, `contents`, `collections`,
    `sources`, `sessions`, `memory`, `facts`, `feedback`, `grants`, `keys`, `tenants`, `audit`, `jobs` and
    `maintenance`.
    """

    def __repr__(self) -> str:
        names = ("tenant", "principal", "collections", "as_of", "session", "user")
        shown = ((name, getattr(self._at, name)) for name in names)
        return f"View({', '.join(f'{name}={value!r}' for name, value in shown if value is not None)})"

    def view(
        self,
        *,
        tenant: int | str | None = UNCHANGED,
        principal: Principal | None = UNCHANGED,
        collections: Sequence[str] | str | None = UNCHANGED,
        as_of: Moment | None = UNCHANGED,
        session: str | None = UNCHANGED,
        user: str | None = UNCHANGED,
        remotes: Sequence[Remote | Retriever | str] | None = UNCHANGED,
        actor: str = UNCHANGED,
    ) -> View:
        """A view that differs from this one in what is named here.

        Args:
            tenant: Whose knowledge, by number or name; None: the configured tenant's.
            principal: Who asks: what they may not read does not exist for them; None: the owner of the store.
            collections: Where is searched, together where there are several; ``"*"``: in all that the principal may
                read. What is written goes to a single one. None: the configured one.
            as_of: What was known at this time (without a zone: UTC), or so long ago (``7d``). Such a view is searched,
                recalled and asked for facts, and changes nothing. None: the present.
            session: The id of a session. Searches find the documents of its own (`sessions`), alone or together with
                ``collections``, and what is ingested goes there; `recall`, `remember` and contexts are of the
                conversation of that id.
            user: Whose conversations, beside the session's; None: with a session that one alone, otherwise everybody's.
            remotes: What is searched together with the collections, for contexts and answers too: servers (a
                `recollect.Client`, whose key says what it may read), retrievers of your own, each alone or as a
                `recollect.Remote` with its name and time limit, or the name of a configured one. None: what is
                configured (``[[rag.remotes]]``, ``RAGPipeline(remotes=…)``), of the configured tenant.
            actor: The name of the caller in the audit log and on receipts; ``library`` by default.

        Raises:
            UsageError: ``as_of`` is no time, ``collections`` names none, something among ``remotes`` is none, or
                ``actor`` is no name.
        """
        given: dict[str, Any] = {"tenant": tenant, "principal": principal, "session": session, "user": user}
        if as_of is not UNCHANGED:
            given["as_of"] = None if as_of is None else read_time(as_of, name="as_of")
        if collections is not UNCHANGED:
            given["collections"] = _names(collections)
        if remotes is not UNCHANGED:
            from recollect.pipeline.federation import as_remotes

            given["remotes"] = None if remotes is None else as_remotes(remotes, self._at.assembly.remotes)
        if actor is not UNCHANGED:
            require_actor(actor)
            given["actor"] = actor
        changes = {name: value for name, value in given.items() if value is not UNCHANGED}
        return View(replace(self._at, **changes))

    # Searches and answers

    def search(
        self, query: str, options: RetrievalOptions | None = None, **keywords: Unpack[SearchKeywords]
    ) -> SearchReply:
        """Find the passages that answer a query, with timings and the paths taken.

        Args:
            query: In plain words.
            options: How to search; None: the configured defaults.
            **keywords: Options by name, for instance ``top_k=3``; they win over ``options``.

        Returns:
            A reply that names the collection, or the session and collections. Where several are searched together,
            words weigh as much as they are rare in all of them, and each passage names its own.

        Raises:
            UsageError: The query or an option is not valid.
            NotFoundError: There is no such collection or session. The default collection is empty rather than missing.
            SessionExpiredError: The session's time is over.
        """
        at, given = self._at, refined(RetrievalOptions, options, keywords)
        if at.session is None:
            return shown(at.assembly.search(at.scope, query, given, at.target()))
        from recollect.pipeline.standpoint import search

        return shown(search(at, query, given))

    def retrieve(
        self, query: str, options: RetrievalOptions | None = None, **keywords: Unpack[SearchKeywords]
    ) -> list[RetrievedContext]:
        """The passages that answer a query, best first: `search` without what stands around them."""
        return list(self.search(query, options, **keywords).results)

    def context(
        self,
        query: str,
        options: RetrievalOptions | None = None,
        *,
        token_budget: int | None = None,
        max_context_length: int | None = None,
        count_tokens: Callable[[str], int] | None = None,
        **keywords: Unpack[SearchKeywords],
    ) -> AssembledContext:
        """What a language model should read to answer a query: the passages found, numbered, within a budget.

        No language model is asked. Where nothing relevant is found, the context is empty. `memory` has contexts of
        documents, conversations and facts.

        Args:
            query: In plain words.
            options: How to search, ``top_k`` being the most passages shown; None: the configured defaults.
            token_budget: Tokens at most, headers included; None: the configured number.
            max_context_length: Characters at most, headers included; None: the configured number.
            count_tokens: Counts the tokens of a text as the model does that will read it; None: the local model's
                tokenizer, or a quarter of the bytes where there is none.
            **keywords: As of `search`.

        Raises:
            UsageError: The query, an option or a limit is not valid.
            NotFoundError: There is no such collection or session.
        """
        from recollect.pipeline.answering import assembled_context

        return assembled_context(
            self._at,
            query,
            refined(RetrievalOptions, options, keywords),
            token_budget=token_budget,
            max_context_length=max_context_length,
            count_tokens=count_tokens,
        )

    def augment_context(
        self, query: str, *, top_k: int = 100, rerank_from: int = 40, token_budget: int | None = None
    ) -> AssembledContext:
        """A `context` of every collection that may be read: its best passages, as many as the budget holds.

        Args:
            query: In plain words.
            top_k: Passages that are searched for.
            rerank_from: They are reranked where so many come back, or more.
            token_budget: As of `context`.

        Raises:
            UsageError: The query or a number is not valid.
        """
        options = RetrievalOptions(top_k=top_k, rerank_candidates=max(1, top_k), rerank_from=rerank_from)
        return self.view(collections="*").context(query, options, token_budget=token_budget)

    def ask(self, question: str, options: RetrievalOptions | None = None, **keywords: Unpack[SearchKeywords]) -> Answer:
        """Answer a question from the knowledge base, with citations, or show the passages that may help.

        Args:
            question: In plain words.
            options: How to search for the passages; None: the configured defaults.
            **keywords: As of `search`.

        Raises:
            UsageError: The question or an option is not valid.
            NotFoundError: There is no such collection or session.
            ProviderError: The language model failed.
        """
        *_, answer = self.ask_stream(question, options, **keywords)
        assert isinstance(answer, Answer), "a stream ends with the answer"
        return answer

    def ask_stream(
        self, question: str, options: RetrievalOptions | None = None, **keywords: Unpack[SearchKeywords]
    ) -> Iterator[str | Answer]:
        """As `ask`, but yields the answer as it comes, in whole checked sentences, and the `Answer` at the end."""
        events = self.ask_events(question, options, **keywords)
        return (event for event in events if isinstance(event, str | Answer))

    def ask_events(
        self, question: str, options: RetrievalOptions | None = None, **keywords: Unpack[SearchKeywords]
    ) -> Iterator[AskEvent]:
        """As `ask_stream`, with the `SearchReply`, and each sentence with its `Citation`s and `UnsupportedSentence`.

        `Decided` says whether it is an answer: before everything else without a language model, with one before the
        first sentence.
        """
        from recollect.pipeline.answering import answer_stream

        given = self._at.answering(refined(RetrievalOptions, options, keywords))
        yield from answer_stream(self._at, question, given, writer=self._at.assembly.chat_model)

    def chat(
        self,
        question: str,
        options: RetrievalOptions | None = None,
        *,
        session: str,
        **keywords: Unpack[SearchKeywords],
    ) -> Answer:
        """Answer a question of a conversation, which is remembered with its answer.

        With a language model it may lean on what was said before.

        Args:
            question: In plain words.
            options: How to search for the passages; None: the configured defaults.
            session: The id of the conversation, which begins with its first question.
            **keywords: As of `search`.

        Raises:
            UsageError: The question or an option is not valid, or the view has a session of its own.
            PersonalDataError: The question holds personal data, which the tenant's policy refuses to remember.
            PermissionDeniedError: The principal would write another's conversation.
            NotFoundError: There is no such collection.
            ProviderError: The language model failed.
        """
        *_, answer = self.chat_events(question, options, session=session, **keywords)
        assert isinstance(answer, Answer), "a stream ends with the answer"
        return answer

    def chat_events(
        self,
        question: str,
        options: RetrievalOptions | None = None,
        *,
        session: str,
        **keywords: Unpack[SearchKeywords],
    ) -> Iterator[AskEvent]:
        """As `chat`, but yields what `ask_events` yields."""
        from recollect.pipeline.chat import Conversation

        if self._at.session is not None:
            raise UsageError("A conversation is about collections: chat with a view that has no session of its own.")
        given = refined(RetrievalOptions, options, keywords)
        yield from Conversation(self, session=session, options=given).ask(question)

    def why_not(
        self,
        query: str,
        document: int | str,
        options: RetrievalOptions | None = None,
        **keywords: Unpack[SearchKeywords],
    ) -> WhyNot:
        """Where a document stands at every stage of a search, what kept it out, and what to change.

        The search is run some ten times in different ways, so this takes as much longer than a search.

        Args:
            query: As it was searched.
            document: The document that is missed: its id, source, title, or the end of its path.
            options: As they were searched with; None: the configured defaults.
            **keywords: As of `search`.

        Raises:
            UsageError: The query or an option is not valid, several documents are meant, or several collections.
            NotFoundError: There is no such collection or document.
        """
        at = self._at
        given = refined(RetrievalOptions, options, keywords)
        return at.assembly.why_not().ask(at.present(), query, document, given, collection=at.collection)

    def default_options(self) -> RetrievalOptions:
        """The configured options of a search."""
        return RetrievalOptions(top_k=self.config.top_k, mode=self.config.retrieval.mode)

    # Writing

    @overload
    def ingest(self, what: Document | str, *, force: bool = False) -> IngestResult: ...  # type: ignore[overload-overlap]

    @overload
    def ingest(
        self,
        what: Path | Sequence[Path],
        *,
        force: bool = False,
        sync: bool = False,
        follow_links: bool | None = None,
        tags: Sequence[str] = (),
        permissions: Sequence[str] | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> IngestReport: ...

    @overload
    def ingest(self, what: Iterable[Document | str], *, force: bool = False) -> list[IngestResult]: ...

    def ingest(
        self,
        what: Document | str | Path | Iterable[Document | str | Path],
        *,
        force: bool = False,
        sync: bool = False,
        follow_links: bool | None = None,
        tags: Sequence[str] = (),
        permissions: Sequence[str] | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> IngestResult | IngestReport | list[IngestResult]:
        """Store documents, or files and folders: cut, embedded, indexed, and findable when this returns.

        They go into the view's collection, which the owner of the store makes where it is missing, or into its session.
        A document of the same ``source`` becomes a new version, and the old one is closed; an equal one is left alone.
        What others have stored under the same source stays beside it, unless the principal owns the collection. Files
        whose bytes are unchanged cost no embedding; the first folder below a given one becomes the department. Batches
        are transactions: interrupting it at any moment leaves every document whole or absent, and running it again
        completes the work.

        Args:
            what: A document or its text; any number of them, from any iterable; or a `Path`, or several.
                A ``str`` is always a text, and never a path, which `ingest_files` takes.
            force: Store it anew even if it is unchanged.
            sync: Of files: close the documents whose files have disappeared from the folders.
            follow_links: Of files: whether links below a folder are followed, wherever they lead; None: as configured.
                What is behind one that is not followed is left as it is, ``sync`` included.
            tags: Of files: given to every document.
            permissions: Of files: who may read every document, for instance ``("role:hr", "!group:interns")``, whatever
                the files' front matter says. None: what that says, or what a document has, or the collection's default.
            on_progress: Of files: told after every batch.

        Returns:
            What became of the document, of each document, or a report on the files. Files that cannot be read are among
            its errors, and so are those for which a session had no room.

        Raises:
            UsageError: A document holds no text, a text is the name of a file or folder that is there,
                documents and files are mixed, or an option is not for documents.
            PersonalDataError: A document holds personal data, which the tenant's policy refuses; of files, an error of
                the report.
            NotFoundError: A path or the session does not exist, or for the principal the collection.
            PermissionDeniedError: The principal may not write there.
            SessionExpiredError: The session's time is over.
            SessionFullError: It holds as many documents as it may; the batches before are stored.
            ProviderError: The embedding model failed.
        """
        from recollect.pipeline.ingesting import sorted_out, store_documents

        alone = isinstance(what, Document | str | Path)
        documents, paths = sorted_out([what] if alone else what)  # type: ignore[list-item, arg-type]
        if paths:
            return self.ingest_files(
                paths,
                force=force,
                sync=sync,
                follow_links=follow_links,
                tags=tags,
                permissions=permissions,
                on_progress=on_progress,
            )
        if sync or follow_links is not None or tags or permissions is not None or on_progress is not None:
            raise UsageError("sync, follow_links, tags, permissions and on_progress are for files, which are a Path.")
        results = store_documents(self._at, documents, force=force)
        return results[0] if alone else results

    def ingest_files(
        self,
        paths: Path | str | Sequence[Path | str],
        *,
        force: bool = False,
        sync: bool = False,
        follow_links: bool | None = None,
        tags: Sequence[str] = (),
        permissions: Sequence[str] | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> IngestReport:
        """Store files and what folders hold: `ingest` of a `Path`, or of several.

        Args:
            paths: A file or folder, or several.
            force: As of `ingest`, like the others.
            sync: As there.
            follow_links: As there.
            tags: As there.
            permissions: As there.
            on_progress: As there.

        Raises:
            NotFoundError: A path does not exist; the others are `ingest`'s.

        Example:
            >>> from recollect import RAGPipeline
            >>> with RAGPipeline() as rag:  # doctest: +SKIP
            ...     rag.ingest_files("handbook/").added
            12
        """
        from recollect.pipeline.ingesting import FileOptions, store_files

        several = [paths] if isinstance(paths, str | PathLike) else paths
        options = FileOptions(
            force=force, follow_links=follow_links, tags=tags, permissions=permissions, on_progress=on_progress
        )
        return store_files(self._at, [Path(path) for path in several], options, sync=sync)

    def ingest_url(
        self,
        url: str,
        *,
        method: Method = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | str | None = None,
        chunk_size: int | None = None,
        chunk_overlap: int | None = None,
        tags: Sequence[str] = (),
        permissions: Sequence[str] | None = None,
        force: bool = False,
        crawl: CrawlPlan | None = None,
        wait: bool = True,
        on_progress: JobCallback | None = None,
    ) -> Job:
        """Store a page of the web, or the pages of a site, as documents of the source named after its domain.

        It is fetched as ``[rag.sources]`` allows: nothing but public addresses, unless that says otherwise. Web pages
        are cut down to their main content; every format that files may have is read, and feeds. A page that has not
        changed is left alone; one that has becomes a new version of the document, whose source is the URL.

        Args:
            url: Where it is; ``http`` or ``https``.
            method: How it is asked for.
            headers: Sent with the request, to its site alone. They are kept with the job until it has ended, and
                shown to nobody.
            body: Sent with the request, and kept in the same way.
            chunk_size: Of the longest chunk, in the unit of the collection's strategy; None: as the collection has it.
            chunk_overlap: Of neighbouring chunks; None: the same.
            tags: Given to every page.
            permissions: Who may read the pages; None: the collection's default.
            force: Store them anew even if they are unchanged.
            crawl: How far to follow the page's links within its site; None: not at all.
            wait: Whether to wait until it is stored; where no worker runs, it is done here meanwhile. False: it is done
                when a worker comes, or when somebody waits for the job.
            on_progress: Told the job whenever it has come further.

        Returns:
            The job. One that has failed or was refused says why in its ``error``.

        Raises:
            UsageError: The method, a header or an option is not allowed.
            FetchError: The URL is none of the web's.
            PermissionDeniedError: The principal may not write there.

        Example:
            >>> from recollect import RAGPipeline
            >>> with RAGPipeline() as rag:  # doctest: +SKIP
            ...     job = rag.ingest_url("https://example.com/manual")
            ...     job.status
            'succeeded'
        """
        from recollect.fetching.client import PageRequest
        from recollect.ingest.site import PageOptions
        from recollect.pipeline.web import UrlRequest, ask_for

        sent: object = body.encode() if isinstance(body, str) else body
        if sent is not None and not isinstance(sent, bytes):
            raise UsageError(f"body is a text or bytes, not {type(body).__name__}.")
        request = UrlRequest(
            page=PageRequest(url=url, method=method, headers=headers or {}, body=sent),
            options=PageOptions(
                tags=tuple(tags),
                permissions=None if permissions is None else tuple(permissions),
                chunk_size=chunk_size,
                chunk_overlap=chunk_overlap,
            ),
            force=force,
            plan=crawl,
        )
        return ask_for(self._at, request, wait=wait, on_progress=on_progress)

    def remember(
        self,
        turns: Turn | str | Sequence[Turn | str],
        *,
        role: str = "user",
        at: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Remembered:
        """Append turns to the view's conversation; they can be recalled when this returns.

        Args:
            turns: What was said, in its order. A turn whose ``turn_id`` is stored already is not stored again.
            role: Who said what is given as text alone: ``user``, ``assistant``, or a name.
            at: When that was said (without a zone: UTC); None: not known.
            metadata: Of the conversation, where it is made.

        Returns:
            Where each turn stands in its conversation.

        Raises:
            UsageError: The view has no session, a name or a turn is not valid, or several users have a conversation of
                that id and the view names none; then nothing is stored.
            ConflictError: A turn's id is stored with other words.
            PermissionDeniedError: The principal would write another's conversation.
            PersonalDataError: A turn holds personal data, which the tenant's policy refuses; then nothing is stored.
            ProviderError: The embedding model failed.

        Example:
            >>> from recollect import RAGPipeline
            >>> with RAGPipeline() as rag:  # doctest: +SKIP
            ...     ada = rag.view(user="ada")
            ...     ada.view(session="chat-1").remember("My sister lives in Lisbon.")
            ...     ada.recall("Where does my sister live?")[0].episode.content
            'My sister lives in Lisbon.'
        """
        from recollect.model.memory import Turn
        from recollect.pipeline.memory import remember

        given = [turns] if isinstance(turns, Turn | str) else turns
        complete = [Turn(content=turn, role=role, at=at) if isinstance(turn, str) else turn for turn in given]
        return remember(self._at, complete, metadata=metadata)

    def recall(
        self, query: str, options: RecallOptions | None = None, **keywords: Unpack[RecallKeywords]
    ) -> list[Recollection]:
        """The turns that answer a question, best first, each with those around it.

        They are the view's conversation's, or its user's; of a view with neither, everybody's, as far as its principal
        may read them.

        Args:
            query: In plain words.
            options: How to search; None: the defaults.
            **keywords: Options by name, for instance ``after=0``; they win over ``options``.

        Raises:
            UsageError: The query or an option is not valid.
            NotFoundError: There is no such conversation.
        """
        from recollect.model.memory import RecallOptions
        from recollect.pipeline.standpoint import recall

        return recall(self._at, query, refined(RecallOptions, options, keywords))

    # What it is made of

    @property
    def standpoint(self) -> Standpoint:
        """Whose, who, when and where, as it was said."""
        return self._at

    @property
    def config(self) -> RAGConfig:
        """The settings."""
        return self._at.config

    @property
    def scope(self) -> Scope:
        """Whose, who and when, as the layers below the view are told.

        Raises:
            NotFoundError: There is no such tenant.
        """
        return self._at.scope

    @property
    def store(self) -> Store:
        """The open store.

        Raises:
            StoreUnavailableError: It cannot be started or reached.
            SchemaVersionError: It was written by a newer recollect.
        """
        return self._at.store

    @property
    def models(self) -> ModelCache:
        """The local models on this machine, and the way to fetch more."""
        return self._at.assembly.models

    @property
    def embedder(self) -> EmbeddingProvider:
        """The embedding model, before any cache."""
        return self._at.assembly.embedder


def _names(collections: Sequence[str] | str | None) -> tuple[str, ...] | None:
    if collections is None:
        return None
    names = tuple(dict.fromkeys([collections] if isinstance(collections, str) else collections))
    if not names:
        raise UsageError('Name at least one collection, "*" for all, or None for the configured one.')
    return names


# The whole of recollect behind one object.


@checked
class RAGPipeline(View):
    """Ingests documents, searches them and answers from them: the view of the defaults, and the way to every other one.

    The defaults are the configured tenant and collection, the owner of the store, and the present. A context manager,
    safe to share between threads. Nothing is opened before it is needed: the store at the first call, the embedding
    model at the first text that must be embedded.

    Args:
        config: Settings; None: the defaults and the environment.
        embedder: Used in place of the configured one.
        chat_model: Used in place of the configured one.
        on_download: Told how the download of a model advances, in bytes.
        chunkers: Chunking strategies of your own (`ChunkingStrategy`), by name: classes whose arguments are the
            strategy's parameters, or objects.
        rerankers: The same of rerankers (`Reranker`); classes are made without arguments.
        retrievers: The same of retrievers (`Retriever`), each the name of a search mode.
        remotes: What is searched together with the configured tenant's collections, beside what is configured; see
            `View.view`.

    Raises:
        UsageError: The embedder, the language model or a part by name lacks what it must have, or a name is taken.
        ConfigurationError: A part that is configured by name does not exist.

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
        chunkers: Mapping[str, ChunkingStrategy | type[ChunkingStrategy]] | None = None,
        rerankers: Mapping[str, Reranker | type[Reranker]] | None = None,
        retrievers: Mapping[str, Retriever | type[Retriever]] | None = None,
        remotes: Sequence[Remote | Retriever] = (),
    ) -> None:
        _require_protocols(embedder, chat_model)
        assembly = Assembly(
            config or RAGConfig(),
            embedder=embedder,
            chat_model=chat_model,
            on_download=on_download,
            chunkers=chunkers,
            rerankers=rerankers,
            retrievers=retrievers,
            remotes=remotes,
        )
        super().__init__(Standpoint(assembly=assembly))

    def __enter__(self) -> RAGPipeline:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the store and let go of its server; the next call opens it again, of every view."""
        self._at.assembly.close()


def _require_protocols(embedder: object | None, chat_model: object | None) -> None:
    """Raise a UsageError that names what a model of somebody's own lacks."""
    if embedder is not None:
        _require(embedder, EmbeddingProvider, name="embedder")
    if chat_model is not None:
        from recollect.llm.base import ChatModel

        _require(chat_model, ChatModel, name="chat_model")


def _require(given: object, protocol: type, *, name: str) -> None:
    # By its class where that has it: a property may load a model.
    kind = type(given)
    missing = [one for one in get_protocol_members(protocol) if not (hasattr(kind, one) or hasattr(given, one))]
    if missing:
        raise UsageError(f"{name} is no {protocol.__name__}: {kind.__name__} has no {', '.join(sorted(missing))}.")
