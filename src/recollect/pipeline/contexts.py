"""Sentences that situate chunks in their documents: estimated, and written document by document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.errors import UsageError
from recollect.ingest.contextualise import (
    AROUND_CHARACTERS,
    BEGINNING_CHARACTERS,
    REPLY_TOKENS,
    Contextualiser,
    ContextWriter,
)
from recollect.llm.base import BYTES_PER_TOKEN, ChatModel
from recollect.model.contexts import ContextEstimate, ContextReport
from recollect.pipeline.models import language_model, named_answer_settings
from recollect.pipeline.preparing import make_door, make_preparer
from recollect.retrieval.indexing import TermIndexer
from recollect.store.repair import ContextRepository, Mender

if TYPE_CHECKING:
    from recollect.model import Scope
    from recollect.model.collection import Collection
    from recollect.pipeline.assembly import Assembly
    from recollect.pipeline.standpoint import Standpoint

_TOKENS_OF_RULES = 200


@dataclass(frozen=True)
class _Work:
    scope: Scope
    place: Collection
    contextualiser: Contextualiser
    repository: ContextRepository


def estimate(at: Standpoint) -> ContextEstimate:
    """What `write` would ask for; see `Maintenance.estimate_contexts`."""
    work = _work(at)
    documents, chunks, size = work.repository.size(
        work.scope, work.place, work.contextualiser.made_by, beginning=BEGINNING_CHARACTERS, around=AROUND_CHARACTERS
    )
    read, written = size // BYTES_PER_TOKEN + chunks * _TOKENS_OF_RULES, chunks * REPLY_TOKENS
    answer = at.config.answer
    priced = at.config.ingest.contextualise == f"{answer.provider}/{answer.model}" and answer.input_price is not None
    cost = None
    if priced:
        cost = (read * (answer.input_price or 0) + written * (answer.output_price or 0)) / 1_000_000
    return ContextEstimate(
        model=at.config.ingest.contextualise or "",
        documents=documents,
        chunks=chunks,
        input_tokens=read,
        output_tokens=written,
        cost=cost,
    )


def require_contextualising(at: Standpoint) -> None:
    """Refuse what `write` could not do.

    Raises:
        UsageError: No model is configured for it, or it cannot be made here.
        NotFoundError: There is no such collection.
        PermissionDeniedError: Somebody in particular asks.
    """
    _work(at)


def write(at: Standpoint, on_progress: Callable[[int, int], None] | None = None) -> ContextReport:
    """Write what is missing, each document in one transaction; see `Maintenance.write_contexts`."""
    work = _work(at)
    scope, place = work.scope, work.place
    total = estimate(at).documents
    mender = Mender(at.store.database, scope)
    rewriter = ContextWriter(
        mender,
        collection=place,
        indexer=TermIndexer(place.language, salt=place.collection_id),
        preparer=make_preparer(at.assembly, scope, place),
        contextualiser=work.contextualiser,
        door=make_door(at.assembly, scope),
    )
    documents = chunks = without = after = 0
    while page := work.repository.pending(scope, place, work.contextualiser.made_by, after=after):
        for version_id in page:
            given = rewriter.rewrite(version_id)
            documents += 1
            chunks += len(given)
            without += sum(not one for one in given)
            if on_progress is not None:
                on_progress(documents, max(total, documents))
        after = page[-1]
    if documents:
        at.store.collections.refresh_term_stats(scope, at.store.collections.get(scope, place.name))
        at.assembly.searcher.forget()
    return ContextReport(documents=documents, chunks=chunks, without=without)


def _work(at: Standpoint) -> _Work:
    scope = at.owner()
    model = _model(at.assembly)
    contextualiser = Contextualiser(model=model, timeout_seconds=at.config.answer.timeout_seconds)
    return _Work(scope, at.place(scope), contextualiser, ContextRepository(at.store.database))


def _model(assembly: Assembly) -> ChatModel:
    spec = assembly.config.ingest.contextualise
    if spec is None:
        raise UsageError(
            'No language model is to situate chunks: [rag.ingest] contextualise = "provider/model" names one.'
        )
    if assembly.given_chat_model is not None:
        return assembly.given_chat_model

    model = language_model(named_answer_settings(assembly.config.answer, spec), recorder=assembly.record_request)
    assert model is not None, "extractive is no provider of a model"
    return model
