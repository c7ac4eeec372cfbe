"""``recollect``: the command line's entry point."""

from __future__ import annotations

import inspect
import os
import signal
import sys
import traceback
from collections import UserDict
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import FrameType
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from recollect.cli._command_context import GlobalOptions, RootOptions, write_json
from recollect.cli._options import STATUS_BROKEN_PIPE, CollectionOption, as_parameters
from recollect.errors import RecollectError, UsageError

INTERRUPTED = "interrupted: what was stored is safe; run the same command again to complete"

# 128 and the signal's number, as shells report it.
_STATUS_INTERRUPTED = 130
_STATUS_TERMINATED = 143
_STATUS_HUNG_UP = 129
# Typer's error for wrong usage; older versions take it from click, newer ones bring their own.
_WRONG_USAGE: type[Exception] = typer.BadParameter.__mro__[1]

#: What `recollect --help` shows: the commands by panel, each with the first sentence of its own help. They stand here
#: so that neither the list nor a shell that completes a name imports what they do.
PANELS: Mapping[str, Mapping[str, str]] = {
    "Everyday": {
        "demo": "Ingest an example handbook, ask it three questions, and say what to try next.",
        "ingest": "Read files, folders or pages of the web into a collection, or into a session.",
        "watch": "Ingest folders, and from then on whatever changes in them, until it is interrupted.",
        "query": "Find the passages that answer a question.",
        "ask": "Answer a question from the documents, with citations and passages that may help.",
        "chat": "Talk about the documents, with citations; with a language model, questions may lean on those before.",
        "context": "Print a context of documents, conversations and facts for a prompt, within a budget of tokens.",
        "status": "Show what the store holds, or one collection, and how its searches fare.",
    },
    "Knowledge": {
        "collections": "List, create and delete collections.",
        "documents": "List, show, delete and erase documents.",
        "history": "List the versions of a document, deleted ones and those that expired included.",
        "diff": (
            "Show how the evidence for a question changed from one moment to another: what came, went, changed "
            "and stayed."
        ),
        "import": "Read documents from JSON Lines, with their chunks and vectors where they are given.",
        "export": "Write a collection as JSON Lines: its current documents with their chunks and vectors.",
        "sources": (
            "Buckets, repositories, mailboxes and folders that are read, and refreshed: list, add, refresh, remove."
        ),
        "contextualise": (
            "Have a language model situate each chunk in its document by a sentence, which is indexed with it."
        ),
        "cleanup": (
            "Close the documents whose time to live is over, remove expired sessions, and drop what the audit "
            "need not keep."
        ),
    },
    "Conversations": {
        "remember": "Remember what was said in a conversation, which begins with its first turn.",
        "recall": "Find what was said: the turns that answer, with those around them.",
        "consolidate": "Draw facts from the turns that are asked for again and again; each turn is looked at once.",
        "facts": "List, search, show, follow and delete facts drawn from conversations.",
        "feedback": "Say whether passages of a context helped, and see or forget what that makes of the weights.",
    },
    "People": {
        "grants": "Say who may read documents: user:NAME, role:NAME, department:NAME, group:NAME, or * for everybody.",
        "keys": "Make, list, rotate and revoke the keys that a server takes.",
        "logins": "List who is logged in with a browser, and log them out.",
        "sessions": (
            "Conversations: list, show, rename, forget, delete. Sessions with documents: create, list, show, "
            "renew, end."
        ),
        "tenants": "Make, list, suspend, limit, export and erase tenants, whose knowledge is kept apart.",
    },
    "Quality": {
        "why-not": "Say where a document stands at every stage of a search, and what keeps it out of the results.",
        "rag-test": (
            "Run test cases: precision, recall, MRR and latency; the exit status is 1 if a case falls below its "
            "thresholds."
        ),
        "quality-test": (
            "Measure answers: outcomes, facts, faithfulness, citations, latency, tokens and cost; a table by model."
        ),
        "eval": "Measure retrieval quality on data sets with judgements.",
        "calibrate": "Set how strong evidence must be for an answer, so that few questions without an answer get one.",
    },
    "Operation": {
        "serve": "Serve the store over HTTP, with the web interface, and run its jobs, until it is interrupted.",
        "mcp": (
            "Serve the Model Context Protocol over standard input and output, for a program that starts this command."
        ),
        "worker": "Run the jobs of every tenant, and what is done every so often, until it is interrupted.",
        "jobs": "What is done in the background: listed, looked at, stopped and tried again.",
        "db": "Migrate, check, mend, back up and restore the store.",
        "config": "What is set, where, and whether it can be worked with.",
        "reembed": "Embed a collection with another model while it is searched, compare both, and change to it.",
        "audit": "List, verify and export the audit: what was done, by whom and when.",
        "models": "Fetch and list the embedding models on this machine.",
        "providers": "Whose models are configured and installed, whether they answer, and what else there is.",
        "requests": "What was asked of providers of models, what it took and what it cost; never what it said.",
    },
}


# Of commands that stand in another module than that of their name.
_MODULES = {
    "eval": "evaluate",
    **dict.fromkeys(("quality-test", "calibrate"), "rag_test"),
    **dict.fromkeys(("import", "export"), "transfer"),
    **dict.fromkeys(("why-not", "diff"), "evidence"),
    **dict.fromkeys(("remember", "recall", "consolidate", "facts"), "memory"),
    "feedback": "context",
    **dict.fromkeys(("audit", "requests"), "logs"),
    **dict.fromkeys(("keys", "logins"), "credentials"),
    **dict.fromkeys(("status", "collections", "cleanup"), "store"),
    "history": "documents",
    "models": "providers",
    **dict.fromkeys(("reembed", "contextualise"), "collection_models"),
    **dict.fromkeys(("worker", "mcp"), "serve"),
    "watch": "sources",
}


class _Commands(UserDict[str, Any]):
    """The commands by name, by panel; a command's module is imported when the command is looked at."""

    def __init__(self) -> None:
        super().__init__({name: None for names in PANELS.values() for name in names})

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - the command's class differs between versions of Typer
        command = super().__getitem__(name)
        if command is None:
            self[name] = command = _imported(name)
        return command


@cache
def _imported(name: str) -> Any:  # noqa: ANN401 - see above
    module = import_module(f"recollect.cli.{_MODULES.get(name, name.replace('-', '_'))}")
    own = typer.Typer(rich_markup_mode="rich", pretty_exceptions_enable=False)
    if hasattr(module, "app"):
        own.add_typer(module.app, name=name)
    else:
        module.register(own)
    return typer.main.get_group(own).commands[name]


class _Root(TyperGroup):
    """Lists the commands by panel, and imports the one that is asked for."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - whatever Typer's group takes
        super().__init__(**attributes)
        self.commands = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002 - see above
        return list(self.commands)

    def get_command(self, ctx: Any, name: str) -> TyperCommand | None:  # noqa: ANN401, ARG002 - see above
        """What is listed of a command."""
        panel = next((panel for panel, commands in PANELS.items() if name in commands), None)
        return None if panel is None else TyperCommand(name, help=PANELS[panel][name], rich_help_panel=panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:  # noqa: ANN401 - see above
        """The command itself."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed and _imported(listed.name), rest


app = typer.Typer(
    name="recollect",
    cls=_Root,
    help="Ingest documents, search them, and get answers that cite exact characters.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from recollect.installation import version

        typer.echo(f"recollect {version()}")
        raise typer.Exit


def _root(*, ctx: typer.Context, version: bool, collection: str | None, **values: Any) -> None:  # noqa: ANN401, ARG001
    ctx.obj = RootOptions(GlobalOptions(**values), collection)


_VERSION = inspect.Parameter(
    "version",
    inspect.Parameter.KEYWORD_ONLY,
    default=typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
    annotation=bool,
)
_CONTEXT = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
_PARAMETERS = [_CONTEXT, *as_parameters(GlobalOptions), *as_parameters(CollectionOption), _VERSION]
_root.__signature__ = inspect.Signature(_PARAMETERS)  # type: ignore[attr-defined]
_root.__annotations__ = {parameter.name: parameter.annotation for parameter in _PARAMETERS}
app.callback()(_root)


def main() -> int:
    """Run the command that ``sys.argv`` names.

    Returns:
        The exit status: 0 all well; 1 an error, or some files of an ingest failed; 2 wrong usage; 130 interrupted.
    """
    if not _has_streams():
        return 1
    for stream in (sys.stdout, sys.stderr):
        # A name or a text that the terminal's encoding cannot show must not end the command.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    signal.signal(signal.SIGTERM, _terminate)
    # A closed terminal ends a command in order, and its server with it; below nohup it ends nothing.
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, _terminate)
    try:
        status = _run()
        if status != STATUS_BROKEN_PIPE:
            sys.stdout.flush()
            return status
    except BrokenPipeError:
        status = STATUS_BROKEN_PIPE
    except OSError as exc:
        _give_up_output()
        return _fail(exc, f"Standard output cannot be written: {exc.strerror or exc}.", 1)
    _give_up_output()
    return status


def _give_up_output() -> None:
    """What is still buffered goes nowhere, lest the interpreter complain at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _has_streams() -> bool:
    """Whether there is somewhere to write to; where standard output is closed, says so.

    The number of a closed stream is given to the next file or connection that is opened, and whatever is written to the
    stream then goes there. So none of the three stays closed.
    """
    closed = [name for name in ("stdin", "stdout", "stderr") if getattr(sys, name) is None]
    for name in closed:
        # The lowest number that is free, which is the stream's.
        number = os.open(os.devnull, os.O_RDONLY if name == "stdin" else os.O_WRONLY)
        setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", encoding="utf-8"))
    if "stdout" in closed:
        _fail(OSError(), "Standard output is closed, and nothing could be shown: send it to a file or to /dev/null.", 1)
    return "stdout" not in closed


def _terminate(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a signal handler's signature
    sys.exit(_STATUS_HUNG_UP if number == signal.SIGHUP else _STATUS_TERMINATED)


def _run() -> int:
    try:
        status = app(standalone_mode=False)
    except BrokenPipeError:
        raise
    except RecollectError as exc:
        return _fail(exc, str(exc), 2 if isinstance(exc, UsageError) else 1)
    except _WRONG_USAGE as exc:
        return _explain_usage(exc)
    except (KeyboardInterrupt, typer.Abort):
        status = _STATUS_INTERRUPTED
    except OSError as exc:
        # A path that was typed: too long, a folder where a file is wanted, not to be read or written.
        named = "" if exc.filename is None else f"{str(exc.filename)[:200]!r}: "
        return _fail(exc, f"{named}{exc.strerror or exc}", 1)
    except Exception as exc:  # noqa: BLE001 - the outermost edge: a defect must still end in a message and a status
        message = f"unexpected {type(exc).__name__}: {exc}. This is a defect of recollect; --verbose shows where."
        return _fail(exc, message, 1)
    if status == _STATUS_INTERRUPTED:
        return _fail(KeyboardInterrupt(), INTERRUPTED, _STATUS_INTERRUPTED)
    return int(status or 0)


def _explain_usage(exc: Exception) -> int:
    context = getattr(exc, "ctx", None)
    # Newer versions of Typer validate with Pydantic, which says of every error raised what it was.
    message: str = getattr(exc, "format_message", exc.__str__)().replace(": Value error, ", ": ")
    if not message.strip() or type(exc).__name__ == "NoArgsIsHelpError":
        if context is not None:
            typer.echo(context.get_help(), err=True)
        return 2
    if context is not None:
        typer.echo(context.get_usage(), err=True)
        typer.echo(f"Try '{context.command_path} --help'.", err=True)
    return _fail(UsageError(message), message, 2)


def _fail(exc: BaseException, message: str, status: int) -> int:
    from recollect.cli._terminal import plain

    arguments = sys.argv[1:]
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if {"--verbose", "-v"} & set(own) and exc.__traceback__ is not None:
        traceback.print_exception(exc)
    sys.stdout.flush()
    sys.stderr.write(f"{plain(message)}\n" if status == _STATUS_INTERRUPTED else f"Error: {plain(message)}\n")
    if "--json" in own:
        name = "Interrupted" if isinstance(exc, KeyboardInterrupt) else type(exc).__name__
        write_json({"error": {"type": name, "message": message}})
    return status


if __name__ == "__main__":
    sys.exit(main())
