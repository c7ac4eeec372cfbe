"""A conversation about what a view finds: follow-up questions stand alone, questions and answers are remembered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from recollect.errors import NotFoundError, ProviderError
from recollect.model import Answer, RetrievalOptions, TokenUsage
from recollect.model.memory import Episode, Remembered, Turn
from recollect.model.search_options import require_question
from recollect.model.time import Moment, read_time
from recollect.pipeline.answering import AskEvent, answer_stream
from recollect.pipeline.feedback import facts_of
from recollect.pipeline.memory import ConversationMemory, remember
from recollect.pipeline.preparing import make_door
from recollect.retrieval.enhance.follow_up import Exchange, standing_question

if TYPE_CHECKING:
    from recollect.pipeline.standpoint import Standpoint

_NOTHING = TokenUsage(input_tokens=0, output_tokens=0, requests=0)
# Turns of a conversation that goes on, which follow-up questions are understood with.
_RESUMED_TURNS = 8


class _Viewing(Protocol):
    """A `recollect.View`, whose own module imports this one."""

    @property
    def standpoint(self) -> Standpoint:
        """Whose, who, when and where."""


class Conversation:
    """Questions one after the other. Of one caller: not to be shared between threads.

    Args:
        view: What is searched, and who asks.
        session: The conversation that questions and answers are added to, and that goes on where it is known; None:
            nothing is remembered.
        options: How to search; None: the configured defaults.
        history: What was said before, where the caller keeps the conversation; None: what is remembered of the session.
        model: What writes answers, as ``provider/model``, or ``extractive``; None: as configured.
        temperature: Of that model; None: as configured.
        instead_of: Where the session's turn stands that the next question replaces, with all that was said behind it;
            they are removed when that question and its answer are remembered.
        drafts: Whether what a language model writes comes before it is checked, too (`Draft`).

    Attributes:
        answers: All answers so far, oldest first.
        usage: What the language model has cost, rewriting included.
        kept: Where the last question and its answer stand in the session; None: nothing was remembered.
    """

    def __init__(
        self,
        view: _Viewing,
        *,
        session: str | None = None,
        options: RetrievalOptions | None = None,
        history: Sequence[Exchange] | None = None,
        model: str | None = None,
        temperature: float | None = None,
        instead_of: int | None = None,
        drafts: bool = False,
    ) -> None:
        self._at = view.standpoint
        self._options = options
        self._session = session
        self._model = model
        self._temperature = temperature
        self._instead_of = instead_of
        self._drafts = drafts
        self.answers: list[Answer] = []
        self.usage = _NOTHING
        self.kept: Remembered | None = None
        self._history = self._resumed() if history is None else list(history)

    def as_of(self, moment: Moment | None) -> None:
        """From now on, ask what was known at a time; None: the present.

        Raises:
            UsageError: It is no time.
        """
        self._at = replace(self._at, as_of=None if moment is None else read_time(moment, name="as_of"))

    def ask(self, question: str) -> Iterator[AskEvent]:
        """The answer as `View.ask_events` gives it.

        Its last `Answer` has the question as asked, and as it was searched for in ``rewritten_question``. It is
        remembered when it has been given whole.

        Raises:
            UsageError: The question is not valid.
            PersonalDataError: It holds personal data, which the tenant's policy refuses to remember.
            ProviderError: The language model failed. That it cannot rewrite a question is no failure.
        """
        require_question(question)
        self._require_admitted(question)
        standing, usage = self._standing(question)
        at = self._at
        options = at.answering(self._options)
        writer = at.assembly.chat_model_of(self._model, temperature=self._temperature)
        for event in answer_stream(at, standing, options, writer=writer, drafts=self._drafts):
            if not isinstance(event, Answer):
                yield event
                continue
            answer = replace(
                event,
                question=question,
                rewritten_question=None if standing == question else standing,
                usage=TokenUsage.total((usage, event.usage)),
            )
            self._keep(answer)
            yield answer

    def _require_admitted(self, question: str) -> None:
        """Refuse before it is asked what could not be remembered afterwards."""
        at = self._at
        door = None if self._session is None else make_door(at.assembly, at.scope)
        if door is not None:
            door.admit_turn(Turn(content=question))

    def _standing(self, question: str) -> tuple[str, TokenUsage | None]:
        chat_model = self._at.assembly.chat_model_of(self._model)
        if not self._history or chat_model is None:
            return question, None
        try:
            found = standing_question(
                question,
                self._history,
                model=chat_model,
                timeout_seconds=self._at.config.answer.timeout_seconds,
            )
        except ProviderError:
            # The answer's own request says what is wrong, if it lasts.
            return question, None
        return found.text, found.usage

    def _keep(self, answer: Answer) -> None:
        self.answers.append(answer)
        self._history.append(Exchange(answer.rewritten_question or answer.question, answer.text))
        self.usage += answer.usage or _NOTHING
        if self._session is None:
            return
        now, at = datetime.now(UTC), self._at
        said = Turn(content=answer.question, role="user", at=now)
        replied = Turn(content=answer.text, role="assistant", at=now, metadata=facts_of(answer, at, model=self._model))
        here = replace(at, as_of=None, session=self._session)
        self.kept = remember(here, [said, replied])
        if self._instead_of is not None:
            # Last: whatever happens meanwhile, what was said before is not lost for an answer that is not there.
            memory, positions = ConversationMemory(here), range(self._instead_of, min(self.kept.positions))
            gone = [turn.position for turn in _turns(memory, self._session, positions)]
            if gone:
                memory.forget(self._session, gone)
            self._instead_of = None

    def _resumed(self) -> list[Exchange]:
        """The last exchanges of a conversation that is known already."""
        if self._session is None:
            return []
        memory = ConversationMemory(replace(self._at, as_of=None))
        try:
            turns = memory.latest(self._session, before=self._instead_of, limit=_RESUMED_TURNS)
        except NotFoundError:
            return []
        return [
            Exchange(asked.content, replied.content)
            for asked, replied in pairwise(turns)
            if (asked.role, replied.role) == ("user", "assistant")
        ]


def _turns(memory: ConversationMemory, session: str, positions: range) -> Iterator[Episode]:
    """The turns at positions of a session, page by page."""
    after = positions.start - 1
    while page := [one for one in memory.turns(session, after=after) if one.position in positions]:
        yield from page
        after = page[-1].position
