"""A search of collections, other servers and retrievers of somebody's own together, fused by relevance."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from recollect.client.client import Client, RemoteView, passages_within
from recollect.errors import (
    AuthenticationError,
    ConfigurationError,
    NotFoundError,
    PermissionDeniedError,
    PluginError,
    RateLimitedError,
    ServerUnavailableError,
    UsageError,
)
from recollect.interruption import TimedCall, TimedCalls
from recollect.model import RetrievalOptions, RetrievedContext, Scope, SearchReply
from recollect.model.remote import Remote
from recollect.model.search_options import validate
from recollect.retrieval.candidates import heading
from recollect.retrieval.retrievers import MODES, checked_passages, retrieved

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.config import RAGConfig
    from recollect.model.scope import Target

logger = logging.getLogger(__name__)

# Searches of one remote that may be under way at once, those that nobody waits for any more included.
_CALLS = 16
_OWN_OPTIONS = ("rerank", "rerank_candidates", "rerank_from", "enhance", "use_cache", "explain", "min_score")
_ELSEWHERE: Mapping[str, Any] = {
    name: getattr(RetrievalOptions(), name) for name in (*_OWN_OPTIONS, "pseudo_relevance", "outline")
}
# Below every number of a turn or a fact with its sign turned (`recollect.context.hybrid`), and exact in JavaScript.
_CHUNKS_FROM = -(1 << 52)


def found_together(
    own: Callable[[], SearchReply], scope: Scope, query: str, options: RetrievalOptions, target: Target, tenant_id: int
) -> SearchReply:
    """What a store and remotes find.

    Each keeps its own order. The relevance of what it found, sorted, says where its first, second, … passage stands
    among the others'.

    Args:
        own: Searches the store.
        scope: Whose, who and when.
        query: In plain words.
        options: How to search, ``top_k`` given.
        target: Where.
        tenant_id: Whose the remotes are that take no scope.

    Raises:
        RecollectError: The store failed. A remote that fails is named in ``warnings``.
    """
    started = time.perf_counter()
    # Before anybody is asked; the name of a retriever is no mode that others know.
    validate(query, options)
    asked = replace(options, mode=options.mode if options.mode in MODES else None)
    calls = [(remote, _begun(remote, scope, query, asked, tenant_id)) for remote in target.remotes]
    reply = own()
    warnings, found, numbers = list(reply.warnings), [], Numbers()
    for remote, call in calls:
        try:
            if isinstance(call, Exception):
                raise call
            left = remote.timeout_seconds - (time.perf_counter() - started)
            found.append(numbers.attributed(remote.name, call.wait(left, limit=remote.timeout_seconds)))
        except Exception as exc:  # noqa: BLE001 - whatever a remote does, the search has an answer without it
            logger.warning("The remote %s did not answer a search: %s", remote.name, exc)
            warnings.append(f"The remote {remote.name!r} {_reason(exc)}: its passages are missing.")
    milliseconds = (time.perf_counter() - started) * 1000
    timings = {**reply.timings_ms, "total": milliseconds}
    results = _fused([reply.results, *found], options) if any(found) else reply.results
    return replace(reply, results=results, warnings=tuple(warnings), timings_ms=timings)


def passages_of(
    retriever: Any,  # noqa: ANN401 - whoever's it is
    query: str,
    options: RetrievalOptions,
    as_of: datetime | None,
) -> list[RetrievedContext]:
    """What a retriever finds by itself, for a context; its passages are named as its own.

    Raises:
        RecollectError: It failed.
    """
    remote = Remote(name_of(retriever), retriever)
    scope = Scope(as_of=as_of)
    search = _search_of(remote, scope, query, options, scope.tenant_id)
    return Numbers().attributed(remote.name, checked_passages(remote.name, search(), top_k=options.top_k))


def found_by(
    retriever: Any,  # noqa: ANN401 - whoever's it is
    scope: Scope,
    query: str,
    options: RetrievalOptions,
    target: Target,
    *,
    mode: str,
    tenant_id: int,
) -> SearchReply:
    """What a retriever finds in the store's place; its name is the mode.

    Raises:
        UsageError: The query or an option is not valid, or the retriever takes no scope and needs one.
        PluginError: It failed.
    """
    validate(query, options)
    asked = replace(options, mode=None)
    passages = retrieved(mode, retriever, query, asked, scope, tenant_id=tenant_id)
    name = heading(target, ())
    return SearchReply(query=query, collection=name, mode=mode, results=tuple(passages), timings_ms={})


def _begun(
    remote: Remote, scope: Scope, query: str, options: RetrievalOptions, tenant_id: int
) -> TimedCall[list[RetrievedContext]] | Exception:
    search = _search_of(remote, scope, query, options, tenant_id)

    def checked() -> list[RetrievedContext]:
        return checked_passages(remote.name, search(), top_k=options.top_k)

    try:
        return _calls(remote.name).start(checked, name=f"recollect-remote-{remote.name}")
    except Exception as exc:  # noqa: BLE001 - told with what the others found
        return exc


def _search_of(
    remote: Remote, scope: Scope, query: str, options: RetrievalOptions, tenant_id: int
) -> Callable[[], list[RetrievedContext]]:
    """A search of one remote; nothing is asked yet."""
    # What says something of this store's ways, or of scores that are comparable here alone, says nothing elsewhere.
    asked = replace(options, **_ELSEWHERE)
    if not isinstance(remote.retriever, RemoteView):
        return partial(retrieved, remote.name, remote.retriever, query, asked, scope, tenant_id=tenant_id)
    seconds, client = remote.timeout_seconds, remote.retriever
    return partial(passages_within, client, query, asked, seconds=seconds, as_of=scope.as_of)


@lru_cache(maxsize=256)
def _calls(name: str) -> TimedCalls:
    return TimedCalls(f"the remote {name!r}", most=_CALLS)


def _reason(exc: Exception) -> str:
    """Why a remote has no part in a search: nothing of addresses and programs, which the log tells."""
    match exc:
        case TimeoutError() | ServerUnavailableError():
            return "does not reply"
        case AuthenticationError() | PermissionDeniedError():
            return "does not accept the key"
        case RateLimitedError():
            return "was asked too much in too short a time"
        case PluginError():
            return "gave no valid reply"
        case NotFoundError() | UsageError():
            return "refuses the search"
        case _:
            return "gave no valid reply"


def _fused(lists: Sequence[Sequence[RetrievedContext]], options: RetrievalOptions) -> tuple[RetrievedContext, ...]:
    placed = []
    for which, found in enumerate(lists):
        levels = sorted((one.relevance or 0.0 for one in found), reverse=True)
        placed += [(-level, which, place, one) for place, (level, one) in enumerate(zip(levels, found, strict=True))]
    placed.sort(key=lambda item: item[:3])
    kept: dict[Any, tuple[float, RetrievedContext]] = {}
    for level, which, place, one in placed:
        # Servers may hold the same documents.
        key = (which, place) if options.collapse_duplicates is False else one.content.strip()
        kept.setdefault(key, (-level, one))
    return tuple(
        replace(one, rank=rank, score=level)
        for rank, (level, one) in enumerate([*kept.values()][: options.top_k], start=1)
    )


@dataclass(slots=True)
class Numbers:
    """Gives what others found numbers of its own: theirs may be those of other documents here."""

    _documents: dict[tuple[str, int], int] = field(default_factory=dict)
    _chunks: int = 0

    def attributed(self, server: str, passages: Iterable[RetrievedContext]) -> list[RetrievedContext]:
        """Passages of a server, named as its own; negative numbers are no document's of this store."""
        return [self._attributed(server, one) for one in passages]

    def _attributed(self, server: str, one: RetrievedContext) -> RetrievedContext:
        self._chunks += 1

        def number(document_id: int) -> int:
            return self._documents.setdefault((server, document_id), -1 - len(self._documents))

        return replace(
            one,
            server=server,
            chunk_id=_CHUNKS_FROM - self._chunks,
            chunk_ids=(),
            duplicates=(),
            document_id=number(one.document_id),
            version_id=None,
            also_in=tuple(replace(also, document_id=number(also.document_id)) for also in one.also_in),
            notes=tuple(
                replace(note, document_id=None if note.document_id is None else number(note.document_id))
                for note in one.notes
            ),
        )


def as_remotes(given: Iterable[object], known: Sequence[Remote] = ()) -> tuple[Remote, ...]:
    """Remotes of what a caller names.

    Args:
        given: Remotes, clients, retrievers, or names of known ones.
        known: Those that are configured.

    Raises:
        UsageError: Something is none of these, or two have one name.
    """
    by_name = {one.name: one for one in known}
    found: dict[str, Remote] = {}
    for one in given:
        if isinstance(one, str) and one not in by_name:
            there = f"there are {', '.join(by_name)}" if by_name else "none is configured ([[rag.remotes]])"
            raise UsageError(f"There is no remote {one!r}; {there}.")
        known_one = by_name[one] if isinstance(one, str) else one
        remote = known_one if isinstance(known_one, Remote) else Remote(name_of(one), one)
        if remote.name in found:
            raise UsageError(f"Two remotes are called {remote.name!r}: give each a name, Remote('north', client).")
        found[remote.name] = remote
    return tuple(found.values())


def name_of(retriever: object) -> str:
    """What a retriever without a name is called: the host of a server, or its class."""
    return urlsplit(retriever.url).netloc if isinstance(retriever, RemoteView) else type(retriever).__name__


def configured_remotes(config: RAGConfig, given: Iterable[object]) -> tuple[tuple[Remote, ...], list[Client]]:
    """The remotes of a pipeline, those it is given and those of the settings, and the clients that are made for them.

    Raises:
        UsageError: Something given is no remote, or two have one name.
        ConfigurationError: An address or a key is none.
    """
    opened, clients = [], []
    for place, one in enumerate(config.remotes):
        variable = (one.key or "").removeprefix("env:")
        key = os.environ.get(variable) if variable else None
        if variable and not key:
            raise ConfigurationError(f"rag.remotes.{place}.key: the environment variable {variable} is not set.")
        try:
            client = Client(one.url, key, retries=0, allow_insecure=one.allow_insecure)
        except UsageError as exc:
            raise ConfigurationError(f"rag.remotes.{place}: {exc}") from exc
        clients.append(client)
        opened.append(Remote(one.name, client.view(collections=one.collection), one.timeout_seconds))
    return as_remotes([*as_remotes(given), *opened]), clients
