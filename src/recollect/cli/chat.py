"""``recollect chat``: a conversation about the documents, in a terminal or through a pipe."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from recollect.cli import ask
from recollect.cli._access import AccessOptions
from recollect.cli._command_context import CommandContext, argument_text
from recollect.cli._options import command
from recollect.cli._searching import EVERYWHERE, SearchOptions, TimeOptions
from recollect.cli.query import place
from recollect.errors import RecollectError, UsageError
from recollect.model import Answer, TokenUsage
from recollect.model.record import json_of
from recollect.pipeline.chat import Conversation
from recollect.replies.retrieval import shown_answer

if TYPE_CHECKING:
    from recollect.client.client import RemoteView
    from recollect.model import Citation, RetrievalOptions
    from recollect.model.answer import ShownPassage
    from recollect.model.time import Moment
    from recollect.pipeline import View

_HELP = """/sources          what the last answer rests on, in full, and passages
/as-of TIME       from now on, what was known then (2026-01-31, 7d); /as-of now: the present
/tokens           what the language model has cost so far
/save FILE        write the conversation down, as Markdown
/quit             end (as does the end of the input)"""


_WITHOUT_A_MODEL = (
    "Without a language model (--model PROVIDER/NAME) answers are quotes, and each question must stand alone.\n"
    "Ask something; /help says what else can be said."
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "chat", collection=True, remote=True)(_chat)


def _chat(
    ctx: CommandContext,
    search: SearchOptions,
    times: TimeOptions,
    access: AccessOptions,
    *,
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Answer from every collection together, or all that --as may read.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(metavar="PROVIDER/NAME", help="The language model that answers; extractive: none, quotes."),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            metavar="SESSION", help="The conversation to go on with, or a new one's id; by default a new one."
        ),
    ] = None,
    user: Annotated[str | None, typer.Option(help="Whose conversation it is.")] = None,
    forget: Annotated[bool, typer.Option("--forget", help="Remember nothing of what is said.")] = False,
) -> int:
    """Talk about the documents, with citations; with a language model, questions may lean on those before.

    Questions and answers are remembered in the conversation. Each line of the input is a question; /help says what
    else can be said. Through a pipe, answers come one after the other, and with --json one document at the end.
    """
    if everywhere and ctx.names_collection:
        raise UsageError("--everywhere goes without --collection.")
    if forget and session is not None:
        raise UsageError("--forget remembers nothing: leave --session out.")
    principal, search = access.asker(search)
    config = ask.with_model(ctx.config, model)
    given = search.retrieval(config)
    where: dict[str, Any] = {"collections": EVERYWHERE} if everywhere else {}
    name = None if forget else session or f"chat-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    with ctx.view(config, principal=principal, as_of=times.moment(), user=user, **where) as view:
        talk = _Talk(ctx, _conversation(ctx, view, name, times.confine(given)), name, ends=_ends(ctx, everywhere, user))
        if ctx.server is None and config.answer.provider == "extractive":
            talk.begins = _WITHOUT_A_MODEL
        return talk.run(_lines(prompted=sys.stdin.isatty() and not ctx.json))


def _conversation(ctx: CommandContext, view: View, name: str | None, options: RetrievalOptions) -> Conversation:
    if ctx.server is not None:
        if name is None:
            raise UsageError(
                "--forget: a server remembers what is asked in a conversation. recollect ask remembers nothing."
            )
        return cast("Conversation", _ServerConversation(view, session=name, options=options))

    return Conversation(view, session=name, options=options)


def _ends(ctx: CommandContext, everywhere: bool, user: str | None) -> str:
    """The options that a conversation was begun with, and has to be gone on with."""
    ends = " --everywhere" if everywhere else ""
    if ctx.named_collection is not None:
        ends += f" --collection {shlex.quote(ctx.named_collection)}"
    return ends if user is None else f"{ends} --user {shlex.quote(user)}"


def _lines(*, prompted: bool) -> Iterator[str]:
    """Lines of the input, until it ends; in a terminal each behind a prompt, with a history."""
    if prompted:
        import readline  # noqa: F401 - lines can be edited and called back once it is imported
    while True:
        try:
            line = input("› ") if prompted else sys.stdin.readline()
        except EOFError:
            return
        except KeyboardInterrupt:
            if not prompted:
                raise
            print(file=sys.stderr)  # noqa: T201 - behind the prompt that was left
            return
        if not line and not prompted:
            return
        if line.strip():
            yield argument_text(line.strip())


class _Talk:
    """One run of the command: a line in, an answer or what a command of the conversation says out."""

    def __init__(self, ctx: CommandContext, conversation: Conversation, name: str | None, *, ends: str) -> None:
        #: What is said first, in a terminal.
        self.begins = "Ask something; /help says what else can be said."
        self._ctx = ctx
        self._ends = ends
        self._conversation = conversation
        self._name = name
        self._failed = False
        self._commands: dict[str, Callable[[str], None]] = {
            "/help": lambda _: self._say(_HELP),
            "/sources": lambda _: self._sources(),
            "/as-of": self._as_of,
            "/tokens": lambda _: self._tokens(),
            "/save": self._save,
        }

    def run(self, lines: Iterator[str]) -> int:
        """Until the input ends; 1 where a line failed that nobody was there to see."""
        if self._ctx.out.is_terminal and not self._ctx.json:
            self._ctx.note(self.begins)
        for line in lines:
            if line in {"/quit", "/exit"}:
                break
            try:
                self._answer(line)
            except RecollectError as exc:
                self._failed = True
                self._ctx.note(f"Error: {exc}")
            except KeyboardInterrupt:
                if not sys.stdin.isatty():
                    raise
                self._ctx.note("Left unanswered.")
        return self._end()

    def _answer(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word.startswith("/"):
            if word not in self._commands:
                raise UsageError(f"{word} is not known; /help says what is.")
            self._commands[word](rest.strip())
            return
        answer = ask.shown_as_it_comes(self._ctx, self._conversation.ask(line), live=not self._ctx.json)
        if self._ctx.json:
            return
        if answer.rewritten_question:
            self._ctx.out.print(f"({answer.rewritten_question})", style="dim", soft_wrap=True)
        ask.show_answer(self._ctx, replace(answer, citations=(), passages=answer.shown_instead))
        for citation in answer.citations:
            head = place(citation.source, citation.section, citation.page, citation.last_page, given_id=citation.id)
            self._ctx.out.print(f"  [{citation.marker}] ", head, sep="", soft_wrap=True)
        self._ctx.out.print()
        self._ctx.out.file.flush()

    def _sources(self) -> None:
        answer = self._last()
        if not answer.citations and not answer.passages:
            self._say("The last answer cites nothing.")
        ask.show_sources(self._ctx, answer)

    def _as_of(self, moment: str) -> None:
        if not moment:
            raise UsageError("Say the time: /as-of 2026-01-31, /as-of 7d, or /as-of now.")
        self._conversation.as_of(None if moment == "now" else moment)
        self._say("From here on, the present." if moment == "now" else f"From here on, what was known at {moment}.")

    def _tokens(self) -> None:
        used = self._conversation.usage
        about = "about " if used.estimated else ""
        self._say(
            f"{about}{used.input_tokens:,} tokens read, {used.output_tokens:,} written, {used.requests:,} requests"
        )

    def _save(self, name: str) -> None:
        if not name:
            raise UsageError("Say where to: /save conversation.md")
        path = Path(name).expanduser()
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(_as_markdown(self._conversation.answers))
        except FileExistsError as exc:
            raise UsageError(f"{path} is there already; say another name.") from exc
        except OSError as exc:
            raise UsageError(f"{path} cannot be written: {exc.strerror}.") from exc
        self._say(f"Written to {path}.")

    def _last(self) -> Answer:
        if not self._conversation.answers:
            raise UsageError("Nothing was answered yet.")
        return self._conversation.answers[-1]

    def _say(self, text: str) -> None:
        # With --json, standard output is for the document alone.
        (self._ctx.err if self._ctx.json else self._ctx.out).print(text, soft_wrap=True)

    def _end(self) -> int:
        used = self._conversation.usage
        if self._ctx.json:
            answers = [json_of(shown_answer(answer)) for answer in self._conversation.answers]
            self._ctx.emit(
                {"session": self._name, "answers": answers, "usage": json_of(used) if used.requests else None}
            )
        elif self._name is not None and self._conversation.answers and self._ctx.out.is_terminal:
            again = f"recollect chat --session {shlex.quote(self._name)}{self._ends}"
            self._ctx.note(f"Remembered as {self._name}. To go on with it: {again}")
        return 1 if self._failed and not sys.stdin.isatty() else 0


def _as_markdown(answers: list[Answer]) -> str:
    parts = ["# Conversation\n"]
    for answer in answers:
        parts.append(f"## {answer.question}\n\n{answer.text}\n")
        shown = [_passage(one) for one in answer.shown_instead]
        flagged = [f"- not supported by the sources: “{one.text}” ({one.detail})" for one in answer.unsupported]
        cited = [_citation(one) for one in answer.citations]
        if cited or shown or flagged:
            parts.append("\n".join([*cited, *shown, *flagged]) + "\n")
    return "\n".join(parts)


def _citation(one: Citation) -> str:
    return f"{_place(one)}: “{' '.join(one.quote.split())}”"


def _passage(one: ShownPassage) -> str:
    lines = "\n".join(f"  > {line}".rstrip() for line in one.text.splitlines())
    return f"{_place(one)}:\n\n{lines}\n"


def _place(one: Citation | ShownPassage) -> str:
    return f"- [{one.marker}] {one.source}, characters {one.start_offset} to {one.end_offset}"


class _ServerConversation:
    """As `recollect.pipeline.chat.Conversation`, held by a server.

    Args:
        view: The server's view.
        session: The conversation.
        options: How to search.

    Attributes:
        answers: All answers so far, oldest first.
        usage: What the language model has cost.
    """

    def __init__(self, view: View, *, session: str, options: RetrievalOptions | None) -> None:
        self._view = view
        self._session = session
        self._options = options
        self.answers: list[Answer] = []
        self.usage = TokenUsage(input_tokens=0, output_tokens=0, requests=0)

    def as_of(self, moment: Moment | None) -> None:
        """From now on, ask what was known at a time; None: the present."""
        self._view = self._view.view(as_of=moment)

    def ask(self, question: str) -> Iterator[Any]:
        """The answer as it comes."""
        for event in cast("RemoteView", self._view).chat_events(question, self._options, session=self._session):
            if isinstance(event, Answer):
                self.answers.append(event)
                if event.usage is not None:
                    self.usage += event.usage
            yield event
