"""``recollect config``: what is set, where, and whether it can be worked with."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.cli._terminal import one_line
from recollect.config.inspection import inspect_settings
from recollect.errors import ConfigurationError, RecollectError
from recollect.installation import install_command
from recollect.providers.catalogue import PROVIDERS, detect_keys
from recollect.providers.registry import installed
from recollect.store.embedded import EmbeddedServer
from recollect.store.migrate import code_schema_version, stored_schema_version
from recollect.store.replica import compare

if TYPE_CHECKING:
    from recollect.config import RAGConfig
    from recollect.config.inspection import Inspection

app = typer.Typer(help="What is set, where, and whether it can be worked with.", no_args_is_help=True)


def _check(
    ctx: CommandContext,
    *,
    connect: Annotated[
        bool, typer.Option("--connect", help="Also ask the database, and look for the keys that are needed.")
    ] = False,
) -> int:
    """Tell everything that is wrong with the settings, at once. Exit status 1 if something is.

    Nothing is changed: with --connect the schema of the database is looked at and left as it is.
    """
    found = _inspected(ctx)
    problems = [{"where": one.where, "setting": one.setting, "message": one.message} for one in found.problems]
    lines = [str(one) for one in found.problems]
    notes: list[str] = []
    if connect and found.config is not None:
        for message in _unreachable(found.config, notes):
            problems.append({"where": None, "setting": None, "message": message})
            lines.append(message)
    if ctx.json:
        ctx.emit({"file": _file(found), "valid": not problems, "problems": problems, "notes": notes})
        return 1 if problems else 0
    for line in lines:
        ctx.out.print(one_line(line), soft_wrap=True)
    for note in notes:
        ctx.out.print(one_line(note), soft_wrap=True)
    if not problems:
        ctx.out.print(f"The settings are valid ({_file(found) or 'no file'}).", soft_wrap=True)
    return 1 if problems else 0


def _show(
    ctx: CommandContext,
    *,
    changed: Annotated[bool, typer.Option("--changed", help="Only what differs from the defaults.")] = False,
) -> int:
    """Show every setting, its value, and where that comes from. Secrets are not shown."""
    found = _inspected(ctx)
    shown = [one for one in found.settings if not changed or one.source != "default"]
    if found.problems:
        for problem in found.problems:
            ctx.err.print(one_line(str(problem)), soft_wrap=True)
    if ctx.json:
        rows = [{"name": one.name, "value": one.value, "source": one.source, "where": one.where} for one in shown]
        ctx.emit({"file": _file(found), "settings": rows, "problems": [str(one) for one in found.problems]})
        return 1 if found.problems else 0
    for one in shown:
        where = f"{one.source}: {one.where}" if one.where else one.source
        value = json.dumps(one.value, ensure_ascii=False)
        ctx.out.print(one_line(f"{one.name} = {value} ({where})"), soft_wrap=True)
    return 1 if found.problems else 0


def _inspected(ctx: CommandContext) -> Inspection:
    return inspect_settings(ctx.options.config, **ctx.overrides)


def _file(found: Inspection) -> str | None:
    return None if found.file is None else str(found.file)


def _unreachable(config: RAGConfig, notes: list[str]) -> list[str]:
    """What the settings need, and what is not there."""
    problems = [*_missing_keys(config), *_missing_token_secret(config)]
    try:
        notes.append(_database(config))
    except RecollectError as exc:
        problems.append(f"The database: {exc}")
        return problems
    try:
        notes.extend(_replica(config))
    except RecollectError as exc:
        problems.append(f"The replica: {exc}")
    return problems


def _replica(config: RAGConfig) -> list[str]:
    storage = config.storage
    if storage.read_dsn is None:
        return []

    if storage.dsn is None:
        raise ConfigurationError("read_dsn needs dsn: the embedded server of a data directory has no replicas.")

    status = compare(storage.dsn.get_secret_value(), storage.read_dsn.get_secret_value())
    return [f"The replica: reached; it is {status.behind_bytes:,} bytes of the write-ahead log behind."]


def _database(config: RAGConfig) -> str:
    dsn, data_dir = config.storage.dsn, config.storage.data_dir
    if dsn is not None:
        version = stored_schema_version(dsn.get_secret_value())
    elif not (data_dir / "pg").exists():
        return f"The database: {data_dir} has no store yet; the first command makes one."
    else:
        with EmbeddedServer(data_dir) as address:
            version = stored_schema_version(address)
    if version is None:
        return "The database: reached; it has no store yet, and the first command makes one."
    newest = code_schema_version()
    later = "" if version == newest else f"; the next command that opens it brings it to version {newest}"
    return f"The database: reached; its schema has version {version}{later}."


def _missing_keys(config: RAGConfig) -> list[str]:
    held = {key.provider for key in detect_keys()}
    problems: list[str] = []
    for name in ("embedding", "reranking", "answer"):
        section: Any = getattr(config, name)
        row = PROVIDERS.get(section.provider)
        if row is None:
            continue
        if not installed(row):
            problems.append(f"rag.{name}.provider: {row.name} needs its package: {install_command(row.extra)}")
        if row.key_variables and section.api_key is None and section.base_url is None and row.name not in held:
            problems.append(f"rag.{name}.api_key: {row.name} needs a key: set {' or '.join(row.key_variables)}")
    return problems


def _missing_token_secret(config: RAGConfig) -> list[str]:
    jwt = config.server.jwt
    problems: list[str] = []
    if jwt.secret is not None and not os.environ.get(jwt.secret.removeprefix("env:")):
        problems.append(f"rag.server.jwt.secret: {jwt.secret.removeprefix('env:')} is not in the environment")
    client_secret = config.server.login.oidc.client_secret
    if client_secret is not None and not os.environ.get(client_secret.removeprefix("env:")):
        name = client_secret.removeprefix("env:")
        problems.append(f"rag.server.login.oidc.client_secret: {name} is not in the environment")
    if jwt.public_key is not None and not jwt.public_key.is_file():
        problems.append(f"rag.server.jwt.public_key: there is no file {str(jwt.public_key)!r}")
    return problems


command(app, "check", local="it is about the settings of the machine that it runs on")(_check)
command(app, "show", local="it is about the settings of the machine that it runs on")(_show)
