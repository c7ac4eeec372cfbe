"""What a running command knows: the global options, the configuration, and where to write."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from recollect.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from recollect.client import Client
    from recollect.config import RAGConfig
    from recollect.model import Principal
    from recollect.model.record import Record
    from recollect.model.time import Moment
    from recollect.pipeline import RAGPipeline, View
    from recollect.replies.me import MeJson


_PANEL = "Everywhere"


@dataclass(frozen=True, kw_only=True)
class GlobalOptions:
    """The options that every command takes, before or behind its name."""

    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the embedded database keeps its data.", rich_help_panel=_PANEL),
    ] = None
    dsn: Annotated[
        str | None,
        typer.Option(help="A PostgreSQL server with pgvector, in place of the embedded one.", rich_help_panel=_PANEL),
    ] = None
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A TOML file of settings.", rich_help_panel=_PANEL)
    ] = None
    tenant: Annotated[
        str | None,
        typer.Option(
            metavar="TENANT",
            help="Whose knowledge, by name or number; by default the store's own.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document and nothing else.", rich_help_panel=_PANEL)
    ] = False
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Ask this server in place of a store; by default RECOLLECT_SERVER. The key is in RECOLLECT_API_KEY.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    key_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --server: the file that the key stands in.", rich_help_panel=_PANEL),
    ] = None
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Log more, and show where errors come from.", rich_help_panel=_PANEL),
    ] = False


@dataclass(frozen=True)
class RootOptions:
    """What stood before the command's name."""

    options: GlobalOptions
    collection: str | None


class CommandContext:
    """One run of one command.

    Args:
        options: The global options, from before and behind the command's name.
        collection: The collection named, if any.
        local: Why it needs the store itself; empty: it works against a server too.
    """

    def __init__(self, options: GlobalOptions, *, collection: str | None, local: str = "") -> None:
        self.options = options
        self.json = options.json
        self._collection = collection
        url = server_of(options.server, local=any((options.dsn, options.data_dir, options.config)))
        if url is not None and local:
            raise UsageError(
                f"This command needs the store itself, and not a server ({url}): {local}. Run it where the store is, "
                f"without --server and {SERVER_VARIABLE}."
            )
        self._server_url = url

    @classmethod
    def of(
        cls,
        root: RootOptions | None,
        own: GlobalOptions,
        *,
        collection: str | None,
        takes_collection: bool,
        local: str = "",
    ) -> CommandContext:
        """Join the options from before the command's name with the command's own, which win.

        Raises:
            UsageError: A collection stands before a command that has no use for it, or a server is named for one that
                needs the store itself.
        """
        before = root or RootOptions(GlobalOptions(), None)
        if before.collection is not None and not takes_collection:
            raise UsageError("This command takes no --collection.")
        joined = GlobalOptions(
            data_dir=own.data_dir or before.options.data_dir,
            dsn=own.dsn or before.options.dsn,
            config=own.config or before.options.config,
            tenant=own.tenant or before.options.tenant,
            json=own.json or before.options.json,
            server=own.server or before.options.server,
            key_file=own.key_file or before.options.key_file,
            verbose=own.verbose or before.options.verbose,
        )
        logging.basicConfig(
            stream=sys.stderr,
            level=logging.INFO if joined.verbose else logging.WARNING,
            format="%(levelname)s %(name)s: %(message)s",
        )
        if not joined.verbose:
            # The driver and its pool warn of each connection that a restart of PostgreSQL has closed, and open others.
            logging.getLogger("psycopg").setLevel(logging.ERROR)
        return cls(joined, collection=collection or before.collection, local=local)

    @cached_property
    def server(self) -> Client | None:
        """The server that the command asks; None: it works on a store.

        Raises:
            UsageError: The address or the key is none, or the tenant is named, which the key says.
        """
        if self._server_url is None:
            return None
        from recollect.client import Client

        if self.options.tenant is not None:
            raise UsageError("With --server, leave --tenant out: whose knowledge it is, the key says.")
        return Client(self._server_url, key_of(self.options.key_file))

    @cached_property
    def config(self) -> RAGConfig:
        """The settings: file, environment and options.

        Raises:
            ConfigurationError: One of them is unknown or not valid.
        """
        if self.server is not None:
            return _settings_of(self.server.me(), None if self._collection is None else argument_text(self._collection))
        from recollect.config import RAGConfig

        return RAGConfig.load(self.options.config, **self.overrides)

    @property
    def overrides(self) -> dict[str, Mapping[str, Any] | str]:
        """The settings that the command line gives, which win over file and environment."""
        storage: dict[str, Any] = {}
        if self.options.data_dir is not None:
            # A data directory on the command line means the embedded server, whatever the environment says.
            storage = {"data_dir": self.options.data_dir, "dsn": None}
        if self.options.dsn is not None:
            storage["dsn"] = self.options.dsn
        overrides: dict[str, Mapping[str, Any] | str] = {"storage": storage} if storage else {}
        if self.options.tenant is not None:
            overrides["tenant"] = argument_text(self.options.tenant)
        if self._collection is not None:
            overrides["collection"] = self._collection
        return overrides

    @property
    def collection(self) -> str:
        """The collection that the command works on."""
        return self.config.collection

    @property
    def names_collection(self) -> bool:
        """Whether a collection was named on the command line."""
        return self._collection is not None

    @property
    def named_collection(self) -> str | None:
        """The collection that was named on the command line."""
        return None if self._collection is None else self.collection

    @contextmanager
    def pipeline(self, config: RAGConfig | None = None, *, embeds: bool = False) -> Iterator[RAGPipeline]:
        """The pipeline, closed at the end. A first download of the model shows its progress.

        Args:
            config: Other settings than the command's.
            embeds: Whether the command is sure to embed something: its model is loaded while the store is opened.
        """
        from recollect.cli._progress import DownloadBar
        from recollect.pipeline import RAGPipeline

        with DownloadBar(lambda: self.err) as bar, RAGPipeline(config or self.config, on_download=bar) as rag:
            if not embeds:
                yield rag
                return
            loading = Thread(target=rag.standpoint.assembly.embedders.load_ahead, name="recollect-model", daemon=True)
            loading.start()
            try:
                yield rag
            finally:
                # An interpreter must not end while a library is being loaded in it.
                loading.join()

    @contextmanager
    def view(
        self,
        config: RAGConfig | None = None,
        *,
        tenant: int | str | None = None,
        principal: Principal | None = None,
        collections: Sequence[str] | str | None = None,
        as_of: Moment | None = None,
        session: str | None = None,
        user: str | None = None,
        embeds: bool = False,
    ) -> Iterator[View]:
        """What the command sees: of the tenant and the collection of the options, where no other are given.

        The arguments are those of `recollect.View.view`; ``config`` and ``embeds`` are `pipeline`'s.

        Raises:
            UsageError: ``as_of`` is no time, or ``config`` differs from the settings of the server that is asked.
        """
        from recollect.model.time import read_time

        where: dict[str, Any] = {
            "principal": principal,
            "collections": self.named_collection if collections is None else collections,
            "as_of": read_time(as_of, name="--as-of") if isinstance(as_of, str) else as_of,
            "session": session,
            "user": user,
        }
        if self.server is not None:
            if (config or self.config) != self.config:
                raise UsageError("This asks a server, whose settings are its own: leave out options that change them.")
            # Its methods are those of a view.
            yield cast("View", self.server.view(**where))
            return
        with self.pipeline(config, embeds=embeds) as rag:
            yield rag.view(tenant=tenant, actor=_actor(), **where)

    def close(self) -> None:
        """Close the connections to the server, however far the command came; idempotent."""
        server = self.__dict__.get("server")
        if server is not None:
            server.close()

    @cached_property
    def out(self) -> Console:
        """Standard output, for people."""
        from rich.console import Console

        return Console(highlight=False, emoji=False, markup=False)

    @cached_property
    def err(self) -> Console:
        """Standard error."""
        from rich.console import Console

        return Console(stderr=True, highlight=False, emoji=False, markup=False)

    def note(self, text: str) -> None:
        """Something worth knowing, on standard error."""
        from recollect.cli._terminal import plain

        self.err.print(plain(text), soft_wrap=True)

    def emit(self, document: Mapping[str, Any] | Record) -> None:
        """Print the command's one JSON document."""
        from recollect.model.record import Record, json_of

        write_json(json_of(document) if isinstance(document, Record) else document)

    def tell(
        self,
        document: Mapping[str, Any] | Record,
        people: str | Callable[[], object],
        *,
        status: int = 0,
        soft_wrap: bool = False,
    ) -> int:
        """Print what the command did, and return its exit status.

        Args:
            document: With ``--json``.
            people: Otherwise: a text, or what prints it.
            status: The exit status.
            soft_wrap: Leave the text in one line, however long.
        """
        if self.json:
            self.emit(document)
        elif isinstance(people, str):
            self.out.print(people, soft_wrap=soft_wrap)
        else:
            people()
        return status

    def emit_line(self, document: Mapping[str, Any]) -> None:
        """Print one of the JSON documents of a command that goes on, on a line of its own."""
        write_json(document, indent=None)

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask a person before something is lost; a script has meant what it says.

        Raises:
            UsageError: The person says no.
        """
        if yes or self.json or not sys.stdin.isatty():
            return
        if not typer.confirm(question, err=True):
            raise UsageError("Nothing was changed.")


def _actor() -> str:
    """Return the name of the user who runs the command, for the audit log."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        # A process without a user of its own, in a container for instance.
        return "command line"


def write_json(document: Mapping[str, Any], *, indent: int | None = 2) -> None:
    """Print a JSON document on standard output, as UTF-8 whatever the terminal's encoding."""
    text = json.dumps(document, ensure_ascii=False, indent=indent, default=str)
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
    sys.stdout.flush()


def argument_text(text: str) -> str:
    """An argument with what is not UTF-8 replaced, as nothing could be looked for by it."""
    return os.fsencode(text).decode("utf-8", "replace")


def _settings_of(me: MeJson, collection: str | None) -> RAGConfig:
    """The settings as a server has them, as far as commands need to know them; the others are the defaults."""
    from recollect.config import AnswerConfig, ChunkingConfig, MemoryConfig, RAGConfig, RetrievalConfig

    told = me["settings"]
    return RAGConfig.model_construct(
        collection=collection or told["collection"],
        language=told["language"],
        retrieval=RetrievalConfig(mode=told["mode"], fusion=told["fusion"], top_k=told["top_k"]),
        chunking=ChunkingConfig(**told["chunking"]),
        memory=MemoryConfig(adaptive_weights=told["adaptive_weights"]),
        # Which provider writes the answers is the server's to know; that one does is shown while they come.
        answer=AnswerConfig.model_construct(
            passages=told["passages"], provider="openai" if told["writes_answers"] else "extractive"
        ),
    )


# Which server a command asks, and what the caller is known by there.


#: Where the server is that commands ask, and what they are known by there.
SERVER_VARIABLE = "RECOLLECT_SERVER"
KEY_VARIABLE = "RECOLLECT_API_KEY"


def server_of(named: str | None, *, local: bool) -> str | None:
    """The server that a command asks; None: the store on this machine, or the one that is named otherwise.

    Args:
        named: On the command line.
        local: Whether the command line names a store.

    Raises:
        UsageError: It names both.
    """
    if named is not None and local:
        raise UsageError("--server asks a server, which has its own store: leave --dsn, --data-dir and --config out.")
    found = named or ("" if local else os.environ.get(SERVER_VARIABLE, ""))
    # As a JSON object it is the section [rag.server] of the settings.
    return None if not found or found.lstrip().startswith("{") else found


def key_of(file: Path | None) -> str | None:
    """What the caller is known by: in a file, or in a variable; never on the command line, where everybody sees it.

    Raises:
        UsageError: The file cannot be read.
    """
    named = file or os.environ.get(f"{KEY_VARIABLE}_FILE")
    if not named:
        return os.environ.get(KEY_VARIABLE) or None
    try:
        return Path(named).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as exc:
        raise UsageError(
            f"The key's file {str(named)!r} cannot be read: {getattr(exc, 'strerror', None) or exc}."
        ) from exc
