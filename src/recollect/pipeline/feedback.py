"""Whether what contexts showed has helped, and what answers that are kept were made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from recollect.context import HybridPassage, RetrievalWeights, WeightAdaptation
from recollect.context.hybrid import adapted
from recollect.errors import NotFoundError, PermissionDeniedError, UsageError
from recollect.model.arguments import checked
from recollect.model.feedback import FeedbackCounts
from recollect.operations.conversations import FeedbackOperations
from recollect.operations.declaring import implements
from recollect.pipeline.standpoint import Group, Standpoint, label

if TYPE_CHECKING:
    from recollect.model import Answer, PassageNote, Scope
    from recollect.model.answer import Citation, ShownPassage
    from recollect.model.memory import SessionRecord


_MEMORY = ("memory:", "fact:")


@implements(FeedbackOperations)
@checked
class Feedback(Group, FeedbackOperations):
    """Feedback on the contexts of a view's conversation, which must have begun; without one, on contexts in general.

    See `recollect.View`. Where permissions are enforced, a principal speaks of a conversation of its own.
    """

    def give(self, passages: HybridPassage | str | Sequence[HybridPassage | str], *, helpful: bool) -> WeightAdaptation:
        """Say of passages that a context showed whether they helped.

        Only the side that a passage came from is counted, documents or memory. Where ``[rag.memory] adaptive_weights``
        is on, contexts weigh the side that helps more a little more from then on, within ``max_weight_shift``.

        Args:
            passages: As a context gave them, or their sources (``memory:chat-1``, ``fact:7``, ``hr/leave.md``).
            helpful: Whether they helped.

        Returns:
            What the feedback makes of the weights now, whether that is on or not.

        Raises:
            UsageError: There is no passage.
            NotFoundError: There is no such conversation.
            PermissionDeniedError: The principal would move the weights of everybody.
        """
        given = [passages] if isinstance(passages, str) or not isinstance(passages, Sequence) else list(passages)
        sources = [one if isinstance(one, str) else str(getattr(one, "source", "")) for one in given]
        if not sources or not all(source.strip() for source in sources):
            raise UsageError("Name the passages by the sources that a context gave, such as memory:chat-1 or leave.md.")
        scope = self._at.present()
        of_memory = sum(source.startswith(_MEMORY) for source in sources)
        of_documents = len(sources) - of_memory
        counts = (
            FeedbackCounts(documents_helpful=of_documents, memory_helpful=of_memory)
            if helpful
            else FeedbackCounts(documents_not=of_documents, memory_not=of_memory)
        )
        self._at.store.feedback.add(scope, self._conversation(scope), counts)
        for _ in sources:
            self._at.assembly.activity.count(scope.tenant_id, "feedback", "helpful" if helpful else "not")
        return self.weights()

    @override
    def judge(self, position: int, *, helpful: bool) -> bool:
        at, scope = self._at, self._at.present()
        if at.session is None:
            raise UsageError("Say which conversation this is of: view(session=...).")
        record = at.store.memory.get_session(scope, at.session, user=at.user)
        turns = at.store.memory.turns(scope, record, after=position - 1, limit=1)
        shown = _shown(turns[0].metadata) if turns and turns[0].position == position else 0
        if not shown:
            raise NotFoundError(f"There is no answer at {position} that cites or shows anything.")
        if not at.store.conversations.judge(scope, record, position, helpful=helpful):
            return False
        said = FeedbackCounts(documents_helpful=shown) if helpful else FeedbackCounts(documents_not=shown)
        at.store.feedback.add(scope, record, said)
        return True

    def weights(self, weights: RetrievalWeights | None = None) -> WeightAdaptation:
        """What feedback makes of weights, whether that is on or not.

        Args:
            weights: As configured; None: `RetrievalWeights.memory_focused`.
        """
        return adapted_weights(self._at, weights or RetrievalWeights.memory_focused(), self._at.session)

    @override
    def reset(self) -> int:
        scope = self._at.present()
        return self._at.store.feedback.reset(scope, self._conversation(scope))

    def _conversation(self, scope: Scope) -> SessionRecord | None:
        if self._at.session is not None:
            return self._at.store.memory.get_session(scope, self._at.session, user=self._at.user)
        if scope.principal is not None:
            raise PermissionDeniedError("Weights in general are everybody's: name a conversation of your own.")
        return None


def adapted_weights(at: Standpoint, base: RetrievalWeights, session: str | None) -> WeightAdaptation:
    """What feedback makes of weights in a conversation; None: in general."""
    general, own = at.store.feedback.counts(at.scope, session, user=at.user)
    settings = at.config.memory
    found = adapted(base, tenant=general, session=own, max_shift=settings.max_weight_shift)
    return replace(found, on=settings.adaptive_weights)


# What is remembered of an answer beside its text, so that a conversation can be shown again as it was.


#: In the metadata of an answer's turn: what it cites.
SOURCES = "rag_sources"
#: In the same place: what else is known of it.
ANSWER = "rag_answer"


def _shown(metadata: Mapping[str, Any]) -> int:
    """How many citations or passages a turn refers to; 0 where it refers to none, or not in this form."""
    kept = metadata.get(ANSWER)
    references = (metadata.get(SOURCES), kept.get("passages") if isinstance(kept, Mapping) else None)
    return sum(len(one) for one in references if isinstance(one, list))


def facts_of(answer: Answer, at: Standpoint, *, model: str | None, beside: bool = False) -> dict[str, Any]:
    """What the turn of an answer keeps: where it looks things up, and what was found to be wrong with it.

    Nothing of a document's text is in it: whoever may not read the document any more is not shown it here either.

    Args:
        answer: To a question.
        at: Where it was asked.
        model: What was to write it; None: what is configured.
        beside: Also where passages beside an answer stand, which say nothing of what it rests on.
    """
    versions = _Versions(at)
    passages = answer.passages if beside else answer.shown_instead
    shown: tuple[Citation | ShownPassage, ...] = (*answer.citations, *passages)
    notes = {str(one.marker): [_note(note) for note in one.notes] for one in shown if one.notes}
    kept: dict[str, Any] = {
        "outcome": answer.outcome,
        "model": answer.model,
        "characters": len(answer.text),
        "asked": {
            "collections": list(at.collections or ()),
            "as_of": None if at.as_of is None else at.as_of.isoformat(),
            "model": model,
        },
    }
    if passages:
        kept["passages"] = [
            {
                "marker": one.marker,
                **_place(one, versions),
                "highlights": [[part.start_offset, part.end_offset] for part in one.highlights],
            }
            for one in passages
        ]
    if answer.unsupported:
        kept["unsupported"] = [[one.start_offset, one.end_offset, one.reason] for one in answer.unsupported]
    if answer.rewritten_question is not None:
        kept["rewritten_question"] = answer.rewritten_question
    if notes:
        kept["notes"] = notes
    return {SOURCES: [{"marker": one.marker, **_place(one, versions)} for one in answer.citations], ANSWER: kept}


class _Versions:
    """The versions that documents were read in, each looked up once."""

    def __init__(self, at: Standpoint) -> None:
        self._at = at
        self._known: dict[int, int | None] = {}

    @property
    def session(self) -> str | None:
        """The session that was searched, alone or with collections."""
        return self._at.session

    def of(self, document_id: int) -> int | None:
        """The version of a document; None: it is gone."""
        if document_id not in self._known:
            at = self._at
            try:
                self._known[document_id] = at.store.documents.get(at.scope, document_id).version
            except NotFoundError:  # it went while the answer was written
                self._known[document_id] = None
        return self._known[document_id]


def _place(citation: Citation | ShownPassage, versions: _Versions) -> dict[str, Any]:
    """Where a quote, or a passage, stands; offsets are of the version that it was read in."""
    version = None if citation.server is not None else versions.of(citation.document_id)
    place: dict[str, Any] = {
        "source": citation.source,
        "document_id": citation.document_id,
        "version": version,
        "start_offset": citation.start_offset,
        "end_offset": citation.end_offset,
    }
    more: Mapping[str, Any] = {"section": citation.section, "page": citation.page, "collection": citation.collection}
    if citation.server is not None:
        more = {**more, "server": citation.server}
    elif version is None and citation.collection is None and versions.session is not None:
        # A document of the session, which was searched alone: collections know nothing of it.
        more = {**more, "collection": label(versions.session)}
    return place | {name: value for name, value in more.items() if value is not None}


def _note(note: PassageNote) -> dict[str, Any]:
    return {"kind": note.kind, "at": None if note.at is None else note.at.isoformat(), "source": note.source}
