"""A conversation as its page shows it: read from what is remembered of it, so that a page loaded again is the same."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markupsafe import Markup

from recollect.answer.readable import RULE, beginning, readable
from recollect.answer.writing import Draft
from recollect.errors import NotFoundError
from recollect.model import Answer, Citation, SearchReply, UnsupportedSentence
from recollect.model.memory import ConversationEntry, Episode, SessionRecord
from recollect.pipeline import View
from recollect.pipeline.feedback import ANSWER, SOURCES, facts_of
from recollect.ui.languages import _
from recollect.ui.markdown import Marked, finished, to_html
from recollect.ui.visit import link

if TYPE_CHECKING:
    from recollect.model.answer import ShownPassage
    from recollect.pipeline.answering import AskEvent
    from recollect.ui.languages import Language
    from recollect.ui.visit import Visit

_ROWS = re.compile(r"(?:^[ \t]*\|.*\|[ \t]*(?:\n|\Z))+", re.MULTILINE)

REASONS = {
    "uncited": _("The answer cites nothing."),
    "no_source": _("It cites a source that there is not."),
    "wrong_source": _("The source that it cites does not say that."),
    "no_evidence": _("No source says that."),
    "number": _("A number in it stands in no source, or is said of something else there."),
    "date": _("A date in it stands in no source, or is said of something else there."),
    "name": _("A name in it stands in no source, or is said of something else there."),
    "identifier": _("An identifier in it stands in no source, or is said of something else there."),
    "contradiction": _("The sources say the opposite."),
}


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation's address.

    Attributes:
        session: Its id.
        user: Whose, where the owner of a store looks at somebody's; None: nobody's in particular, or the caller's.
    """

    session: str
    user: str | None = None

    def path(self, action: str | None = None, **query: str | int | None) -> str:
        """Its page, or what is done with it."""
        name = quote(self.session, safe="")
        place = f"/chat/{name}" if action is None else f"/conversations/{name}/{action}"
        return link(place, user=self.user, **query)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """A place in a document that an answer rests on.

    Attributes:
        marker: The number of its footnote; 0: none.
        source: The document's path.
        section: The headings above it.
        page: From 1.
        path: Where it is shown beside the answer; empty: another server has it.
        notes: Why it is not the last word: kind, moment, newer source.
    """

    marker: int
    source: str
    section: str | None
    page: int | None
    path: str
    notes: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A passage that may help where there is no answer, or beside one.

    Attributes:
        cited: Where it stands; its link leads to what is highlighted.
        text: As its document has it; empty: only its place is remembered.
        html: The text as it is shown, what is highlighted marked; None: only its place is remembered.
    """

    cited: Cited
    text: str = ""
    html: Markup | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAnswer:
    """An answer.

    Attributes:
        text: In Markdown, with its markers.
        position: Where it stands in its conversation.
        outcome: Whether it is an answer, passages that may help, or nothing.
        model: Who wrote it; None: nobody, it is quoted.
        known: Whether this is known of it: answers that others have put into the conversation are text alone.
        cited: What it rests on.
        unsupported: Its sentences that the sources do not support: from, to, reason; without a place: left out.
        passages: What may help where it is no answer.
        rewritten: What was searched for in place of the question.
        collections: Where was searched; empty, or ``*``: everywhere.
        as_of: What was known then was asked.
        at: When it was given.
        helpful: What was said of it; None: nothing.
    """

    text: str
    position: int | None = None
    outcome: str = "answer"
    model: str | None = None
    known: bool = True
    cited: Sequence[Cited] = ()
    unsupported: Sequence[tuple[int | None, int | None, str]] = ()
    passages: Sequence[Passage] = ()
    rewritten: str | None = None
    collections: Sequence[str] = ()
    as_of: datetime | None = None
    at: datetime | None = None
    helpful: bool | None = None

    @property
    def faults(self) -> list[tuple[str | None, str]]:
        """What is unsupported, and why in words; None: the sentence was left out."""
        return [
            (None if start is None else self.text[start:end], REASONS.get(reason, REASONS["no_evidence"]))
            for start, end, reason in self.unsupported
        ]

    def html(self, language: Language, base: str) -> Markup:
        """Its text, with footnotes and marks."""
        return answer_html(self.text, self.cited, self.unsupported, language=language, base=base)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A question and its answer; one of them may be missing.

    Attributes:
        position: Of the first of them.
        question: What was asked.
        asked_by: Its role, where that is not the user's.
        asked_at: When.
        answer: What was replied.
    """

    position: int | None
    question: str | None
    asked_by: str = "user"
    asked_at: datetime | None = None
    answer: ShownAnswer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A conversation, or the end of it.

    Attributes:
        talk: Its address.
        title: What it is called; None: it has not begun.
        exchanges: In their order.
        earlier: Before which position there is more; None: there is not.
    """

    talk: Talk
    title: str | None = None
    exchanges: Sequence[Exchange] = field(default=())
    earlier: int | None = None


def answer_html(
    text: str,
    cited: Sequence[Cited],
    unsupported: Sequence[tuple[int | None, int | None, str]],
    *,
    language: Language,
    base: str,
    offset: int = 0,
) -> Markup:
    """The text of an answer, or a part of it, with footnotes and marks.

    Args:
        text: In Markdown.
        cited: What its markers stand for.
        unsupported: What is marked, by its place in the whole answer.
        language: Of what is said of marks.
        base: What paths of the server begin with.
        offset: Where the part begins in the whole answer.
    """
    marked = [
        Marked(start - offset, end - offset, language.gettext(REASONS.get(reason, REASONS["no_evidence"])))
        for start, end, reason in unsupported
        if start is not None and end is not None and offset <= start < end <= offset + len(text)
    ]
    by_marker = {one.marker: one for one in cited}
    return to_html(text, footnote=partial(_footnote, by_marker, language, base), marked=marked)


def passage_html(passage: ShownPassage) -> Markup:
    """The text of a passage, with its formatting, what is highlighted marked."""
    text, shown, begin = passage.text, readable(passage.text), beginning(passage)
    shown[:begin] = [""] * begin
    for rows in _ROWS.finditer(text):
        if not RULE.search(rows.group()):  # they are cut off from the head of their table
            columns = rows.group().partition("\n")[0].count("|") - 1
            shown[rows.start()] = f"\n{'| ' * columns}|\n{'|---' * columns}|\n{shown[rows.start()]}"
    places = [*accumulate(map(len, shown), initial=0)]
    marked = [
        Marked(places[one.start_offset - passage.start_offset], places[one.end_offset - passage.start_offset])
        for one in passage.highlights
    ]
    return to_html("".join(shown), marked=marked)


def _footnote(by_marker: Mapping[int, Cited], language: Language, base: str, number: int) -> Markup | None:
    cited = by_marker.get(number)
    if cited is None:
        return None
    label = language.gettext("Source {number}: {source}").format(number=number, source=cited.source)
    if not cited.path:
        return Markup('<span class="footnote" title="{label}">{number}</span>').format(label=label, number=number)
    return Markup(
        '<a class="footnote" href="{path}" hx-get="{path}" hx-target="#source-content" hx-swap="innerHTML" '
        'aria-label="{label}" title="{source}">{number}</a>'
    ).format(path=base + cited.path, label=label, source=cited.source, number=number)


def read(view: View, talk: Talk, *, before: int | None = None, limit: int = 60) -> Shown:
    """A conversation's last turns, or those before a position.

    Args:
        view: Of whoever looks.
        talk: Which conversation.
        before: Where the page behind begins; None: up to the end.
        limit: How many turns.

    Raises:
        NotFoundError: There is none that is theirs.
    """
    record = own_record(view, talk)
    turns = view.memory.latest(talk.session, before=before, limit=limit + 1)
    more = len(turns) > limit
    turns = turns[1:] if more else turns
    if more and turns and turns[0].role == "assistant":
        turns = turns[1:]  # its question is on the page before
    exchanges = list(exchanges_of(talk, turns, record))
    title = title_of(view, record)
    return Shown(talk=talk, title=title, exchanges=exchanges, earlier=turns[0].position if more and turns else None)


def own_record(view: View, talk: Talk) -> SessionRecord:
    """A conversation that is the caller's.

    Raises:
        NotFoundError: There is none.
    """
    record = view.memory.get(talk.session)
    # Where rights are not enforced, an id alone would open what is another's.
    if view.standpoint.user is not None and record.user not in {view.standpoint.user, None}:
        raise NotFoundError(f"There is no conversation {talk.session!r}.")
    return record


def title_of(view: View, record: SessionRecord) -> str:
    """What a conversation is called: as somebody has said, or by its first line."""
    if record.title is not None:
        return record.title
    first = view.memory.turns(record.name, limit=1)
    return ConversationEntry(record=record, opening=first[0].content if first else "").title or record.name


def exchanges_of(talk: Talk, turns: Sequence[Episode], record: SessionRecord) -> Iterator[Exchange]:
    """Turns as questions with their answers."""
    helpful = record.helpful
    asked: Episode | None = None
    for turn in turns:
        if turn.role == "assistant":
            answer = shown_answer(talk, turn, helpful.get(turn.position))
            yield _exchange(asked, answer)
            asked = None
            continue
        if asked is not None:
            yield _exchange(asked, None)
        asked = turn
    if asked is not None:
        yield _exchange(asked, None)


def shown_answer(talk: Talk, turn: Episode, helpful: bool | None = None) -> ShownAnswer:
    """An answer from the turn that remembers it."""
    try:
        return _kept_answer(talk, turn, helpful)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        # Whoever remembers turns by the API gives them what metadata they like.
        return ShownAnswer(text=turn.content, position=turn.position, known=False, at=turn.at)


def exchange_not_kept(view: View, talk: Talk, answer: Answer) -> Exchange:
    """A question and its answer as they are shown where nothing remembers them."""
    at = datetime.now(UTC)
    turn = Episode(
        episode_id=0,
        session=talk.session,
        position=0,
        role="assistant",
        content=answer.text,
        at=at,
        turn_id=None,
        known_from=at,
        metadata=facts_of(answer, view.standpoint, model=None),
    )
    shown = replace(shown_answer(talk, turn), position=None)
    return with_passages(view, talk, Exchange(position=None, question=answer.question, answer=shown), answer)


def with_passages(view: View, talk: Talk, exchange: Exchange, answer: Answer) -> Exchange:
    """The exchange with the passages and their texts, of which only the places are remembered, or nothing."""
    if exchange.answer is None or not answer.passages:
        return exchange
    facts = facts_of(answer, view.standpoint, model=None, beside=True)[ANSWER]
    passages = [
        Passage(cited=_highlighted(talk, place, facts), text=one.text, html=passage_html(one))
        for place, one in zip(facts["passages"], answer.passages, strict=True)
    ]
    return replace(exchange, answer=replace(exchange.answer, passages=passages))


def _kept_answer(talk: Talk, turn: Episode, helpful: bool | None) -> ShownAnswer:
    kept, sources = turn.metadata.get(ANSWER), turn.metadata.get(SOURCES)
    cited = _cited(talk, sources if isinstance(sources, list) else [], kept if isinstance(kept, dict) else {})
    if not isinstance(kept, dict):
        return ShownAnswer(
            text=turn.content, position=turn.position, known=False, cited=cited, at=turn.at, helpful=helpful
        )
    asked = kept.get("asked") or {}
    as_of = None if asked.get("as_of") is None else datetime.fromisoformat(asked["as_of"])
    # Where personal data was taken out of the text, offsets are of another one.
    whole = kept.get("characters") == len(turn.content)
    return ShownAnswer(
        text=turn.content,
        position=turn.position,
        outcome=str(kept.get("outcome") or ("none" if kept.get("refused") else "answer")),
        model=None if kept.get("model") is None else str(kept["model"]),
        cited=cited,
        unsupported=[
            (int(start), int(end), str(reason)) if whole and start is not None else (None, None, str(reason))
            for start, end, reason in kept.get("unsupported", ())
        ],
        passages=[Passage(cited=_highlighted(talk, one, kept)) for one in kept.get("passages", ())],
        rewritten=kept.get("rewritten_question"),
        collections=[str(name) for name in asked.get("collections", ())],
        as_of=as_of,
        at=turn.at,
        helpful=helpful,
    )


def cited_at(talk: Talk, place: Mapping[str, Any], *, notes: Sequence[Mapping[str, Any]] = ()) -> Cited:
    """What a citation shows, from where it stands."""
    # Documents of a conversation are found in it alone.
    session = talk.session if str(place.get("collection") or "").startswith("session:") else None
    where = {"start": place.get("start_offset"), "end": place.get("end_offset"), "version": place.get("version")}
    server = place.get("server")
    return Cited(
        marker=int(place.get("marker") or 0),
        source=f"{place.get('source') or ''} ({server})" if server else str(place.get("source") or ""),
        section=None if place.get("section") is None else str(place["section"]),
        page=None if place.get("page") is None else int(place["page"]),
        path="" if server else link(f"/documents/{int(place['document_id'])}/source", **where, session=session),
        notes=[{name: str(note.get(name) or "") for name in ("kind", "at", "source")} for note in notes],
    )


def _cited(talk: Talk, sources: Sequence[Mapping[str, Any]], kept: Mapping[str, Any]) -> list[Cited]:
    notes = kept.get("notes") or {}
    places = [one for one in sources if isinstance(one, dict)]
    return [cited_at(talk, one, notes=notes.get(str(one.get("marker")), ())) for one in places]


def _highlighted(talk: Talk, place: Mapping[str, Any], kept: Mapping[str, Any]) -> Cited:
    """A passage's place, whose link leads to what is highlighted in it."""
    start, end = next(iter(place.get("highlights") or ()), (place.get("start_offset"), place.get("end_offset")))
    notes = (kept.get("notes") or {}).get(str(place.get("marker")), ())
    return cited_at(talk, {**place, "start_offset": start, "end_offset": end}, notes=notes)


def _exchange(asked: Episode | None, answer: ShownAnswer | None) -> Exchange:
    if asked is None:
        return Exchange(position=None if answer is None else answer.position, question=None, answer=answer)
    return Exchange(
        position=asked.position, question=asked.content, asked_by=asked.role, asked_at=asked.at, answer=answer
    )


# An answer as it comes, as the parts of the page that show it.


#: Reads the exchange that was remembered, and what the conversation is called now; None: it is not kept.
Reading = Callable[[Answer], tuple[Exchange, str | None]]


@dataclass
class _Writing:
    """The answer so far: only its last block is made anew when something comes."""

    visit: Visit
    talk: Talk
    offset: int = 0
    block: str = ""
    cited: dict[int, Cited] = field(default_factory=dict)
    unsupported: list[tuple[int | None, int | None, str]] = field(default_factory=list)

    def add(self, text: str) -> str:
        """Take a sentence; returns the blocks that are whole now."""
        self.block += text
        cut = finished(self.block)
        whole = self._html(self.block[:cut]) if cut else ""
        self.offset, self.block = self.offset + cut, self.block[cut:]
        return whole

    def last(self) -> str:
        """The block that goes on."""
        return self._html(self.block)

    def _html(self, text: str) -> str:
        return answer_html(
            text,
            list(self.cited.values()),
            self.unsupported,
            language=self.visit.language,
            base=self.visit.base,
            offset=self.offset,
        )


async def page_events(
    visit: Visit,
    talk: Talk,
    question: str,
    stream: AsyncGenerator[AskEvent],
    *,
    read: Reading,
    alone: Callable[[], str | None],
) -> AsyncGenerator[tuple[str, Mapping[str, Any]]]:
    """The events of an answer as its page puts them together.

    ``begin`` has the question with room for the answer, ``found`` how many passages are read, ``piece`` blocks that are
    whole and the one that goes on, ``draft`` what is not checked yet, ``done`` the exchange as it is shown from now on.

    Args:
        visit: Who asks.
        talk: In which conversation.
        question: What.
        stream: What `Conversation.ask` gives; closed at the end.
        read: Reads the exchange once it is remembered; it waits for the database.
        alone: Where citations stand that name no collection; None: in the one that was asked.
    """
    writing = _Writing(visit, talk)
    async with aclosing(stream):
        pending = Exchange(position=None, question=question)
        yield "begin", {"html": visit.text("chat/exchange.html", exchange=pending, talk=talk, pending=True)}
        async for piece in stream:
            whole = ""
            match piece:
                case SearchReply():
                    yield "found", {"text": _found(visit, len(piece.results))}
                    continue
                case Draft():
                    yield "draft", {"text": piece.text}
                    continue
                case Answer():
                    exchange, title = await visit.run(read, piece)
                    html = visit.text("chat/exchange.html", exchange=exchange, talk=talk, pending=False)
                    menu = "" if title is None else visit.text("chat/menu.html", talk=talk, title=title)
                    yield "done", {"html": html, "title": title or "", "menu": menu}
                    return
                case str():
                    whole = writing.add(piece)
                case Citation():
                    place = {
                        "marker": piece.marker,
                        "document_id": piece.document_id,
                        "source": piece.source,
                        "start_offset": piece.start_offset,
                        "end_offset": piece.end_offset,
                        "collection": piece.collection or alone(),
                        "server": piece.server,
                    }
                    writing.cited[piece.marker] = cited_at(talk, place)
                case UnsupportedSentence():
                    writing.unsupported.append((piece.start_offset, piece.end_offset, piece.reason))
                case _:
                    continue  # the outcome, which the page shows when it is all there
            yield "piece", {"whole": whole, "html": writing.last()}


def _found(visit: Visit, count: int) -> str:
    if not count:
        return visit.language.gettext("Nothing was found.")
    told = visit.language.ngettext("Reading %(num)s passage…", "Reading %(num)s passages…", count)
    return told % {"num": count}
