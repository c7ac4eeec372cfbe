"""``recollect``: the command line's entry point."""

from __future__ import annotations

import inspect
import os
import signal
import sys
from types import FrameType
from typing import Any

import typer
from typer.core import TyperGroup

from recollect.cli import (
    ask,
    audit,
    calibrate,
    cleanup,
    collections,
    consolidate,
    context,
    db,
    demo,
    diff,
    documents,
    evaluate,
    facts,
    feedback,
    grants,
    history,
    ingest,
    models,
    query,
    rag_test,
    recall,
    remember,
    sessions,
    status,
    tenants,
    transfer,
    why_not,
)
from recollect.cli._options import STATUS_BROKEN_PIPE, CollectionOption, as_parameters
from recollect.cli._session import GlobalOptions, RootOptions, write_json
from recollect.errors import RecollectError, UsageError

INTERRUPTED = "interrupted: what was stored is safe; run the same command again to complete"

# 128 and the signal's number, as shells report it.
_STATUS_INTERRUPTED = 130
_STATUS_TERMINATED = 143
_STATUS_HUNG_UP = 129
# Typer's error for wrong usage; older versions take it from click, newer ones bring their own.
_WRONG_USAGE: type[Exception] = typer.BadParameter.__mro__[1]

#: What `recollect --help` shows the commands under, in that order.
PANELS = {
    "Everyday": ("demo", "ingest", "query", "ask", "context", "status"),
    "Knowledge": ("collections", "documents", "history", "diff", "import", "export", "cleanup"),
    "Conversations": ("remember", "recall", "consolidate", "facts", "feedback"),
    "People": ("grants", "sessions", "tenants"),
    "Quality": ("why-not", "rag-test", "eval", "calibrate"),
    "Operation": ("db", "audit", "models"),
}


def _panel_of(name: str | None) -> str:
    return next(panel for panel, names in PANELS.items() if name in names)


class _Summary(TyperGroup):
    """Lists the commands by panel."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 - the context class differs between versions of Typer
        known = super().list_commands(ctx)
        ordered = [name for names in PANELS.values() for name in names if name in known]
        return [*ordered, *(name for name in known if name not in ordered)]


app = typer.Typer(
    name="recollect",
    cls=_Summary,
    help="Ingest documents, search them, and get answers that cite exact characters.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
for register in (
    *(
        demo.register,
        ingest.register,
        query.register,
        why_not.register,
        ask.register,
        diff.register,
        history.register_history,
        status.register,
        transfer.register,
    ),
    rag_test.register,
    remember.register,
    recall.register,
    consolidate.register,
    context.register,
    calibrate.register,
    cleanup.register,
):
    register(app)
history.register(documents.app)
for name, group in (
    ("collections", collections.app),
    ("documents", documents.app),
    ("grants", grants.app),
    ("sessions", sessions.app),
    ("facts", facts.app),
    ("feedback", feedback.app),
    ("tenants", tenants.app),
    ("audit", audit.app),
    ("models", models.app),
    ("db", db.app),
    ("eval", evaluate.app),
):
    app.add_typer(group, name=name)
for command in app.registered_commands:
    command.rich_help_panel = _panel_of(command.name)
for group_info in app.registered_groups:
    group_info.rich_help_panel = _panel_of(group_info.name)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"recollect {version('recollect')}")
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
        pass
    # What is still buffered goes nowhere, lest the interpreter complain at its end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return STATUS_BROKEN_PIPE


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
    message: str = getattr(exc, "format_message", exc.__str__)()
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
        import traceback

        traceback.print_exception(exc)
    sys.stdout.flush()
    sys.stderr.write(f"{plain(message)}\n" if status == _STATUS_INTERRUPTED else f"Error: {plain(message)}\n")
    if "--json" in own:
        name = "Interrupted" if isinstance(exc, KeyboardInterrupt) else type(exc).__name__
        write_json({"error": {"type": name, "message": message}})
    return status


if __name__ == "__main__":
    sys.exit(main())
