"""An answer as it comes, as the parts of the page that show it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from recollect.answer.writing import Draft
from recollect.model import Answer, Citation, SearchReply, UnsupportedSentence
from recollect.ui.conversation import Cited, Exchange, Talk, answer_html, cited_at
from recollect.ui.markdown import finished

if TYPE_CHECKING:
    from recollect.pipeline.answering import AskEvent
    from recollect.ui.visit import Visit

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
            yield "piece", {"whole": whole, "html": writing.last()}


def _found(visit: Visit, count: int) -> str:
    if not count:
        return visit.language.gettext("Nothing was found.")
    told = visit.language.ngettext("Reading %(num)s passage…", "Reading %(num)s passages…", count)
    return told % {"num": count}
