"""``recollect grants``: who may read what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from recollect.cli._access import ActorOptions
from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.cli._terminal import one_line, print_facts, print_list
from recollect.cli.documents import named_documents
from recollect.errors import UsageError
from recollect.model.access import GrantsReply

if TYPE_CHECKING:
    from recollect.model.access import CollectionAccess, DocumentPermissions
    from recollect.pipeline import View

app = typer.Typer(
    help="Say who may read documents: user:NAME, role:NAME, department:NAME, group:NAME, or * for everybody.",
    no_args_is_help=True,
)

_Documents = Annotated[
    list[str] | None,
    typer.Argument(metavar="[DOCUMENT]…", help="Documents, by number, by source or by given id.", show_default=False),
]
_Who = Annotated[
    list[str], typer.Option("--who", "--grant", metavar="GRANT", help="Whom: role:hr, user:ann, *; repeat for more.")
]
_Source = Annotated[
    str | None, typer.Option(metavar="NAME", help="Every document that came from there: a folder, a domain.")
]
_Default = Annotated[
    bool, typer.Option("--default", help="The collection's documents that have no permissions of their own.")
]
_DOCUMENTS_SHOWN = 20
_OWNERS = "nobody but owners"


def _list(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    documents: _Documents = None,
) -> int:
    """Show who may read documents; without documents, who may do what in the collection."""
    with ctx.view(principal=actor.actor()) as view:
        if documents:
            _show(ctx, GrantsReply(documents=tuple(view.grants.of_documents(named_documents(view, documents)))))
        else:
            _show_collection(ctx, view.grants.of_collection())
    return 0


def _add(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    documents: _Documents = None,
    who: _Who,
    source: _Source = None,
    default: _Default = False,
    only: Annotated[bool, typer.Option("--only", help="Take away every other grant; denials stay.")] = False,
) -> int:
    """Let somebody read documents, though not their past versions; it counts from the next search on."""
    with ctx.view(principal=actor.actor()) as view:
        target = _target(view, documents, source, default=default)
        changed = view.grants.add(who, only=only, **target)
        _report(ctx, view, target, changed)
    return 0


def _remove(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    documents: _Documents = None,
    who: _Who,
    source: _Source = None,
    default: _Default = False,
) -> int:
    """Take grants away; with a ! before it ('!user:bob'), a denial."""
    with ctx.view(principal=actor.actor()) as view:
        target = _target(view, documents, source, default=default)
        changed = view.grants.remove(who, **target)
        _report(ctx, view, target, changed)
    return 0


def _deny(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    documents: _Documents = None,
    who: _Who,
    source: _Source = None,
    default: _Default = False,
) -> int:
    """Keep somebody from documents, whatever grants include them; owners of the collection still read them."""
    with ctx.view(principal=actor.actor()) as view:
        target = _target(view, documents, source, default=default)
        changed = view.grants.deny(who, **target)
        _report(ctx, view, target, changed)
    return 0


def _collection(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    owner: Annotated[
        list[str] | None, typer.Option(metavar="GRANT", help="Reads everything in it, and writes; repeat for more.")
    ] = None,
    reader: Annotated[
        list[str] | None, typer.Option(metavar="GRANT", help="For anybody else it does not exist; repeat for more.")
    ] = None,
    writer: Annotated[
        list[str] | None, typer.Option(metavar="GRANT", help="Puts documents into it; repeat for more.")
    ] = None,
) -> int:
    """Say who owns, reads and writes a collection. What is given replaces what was; the rest stays."""
    with ctx.view(principal=actor.actor()) as view:
        _show_collection(ctx, view.grants.set_collection(owners=owner, readers=reader, writers=writer))
    return 0


def _target(view: View, documents: list[str] | None, source: str | None, *, default: bool) -> dict[str, Any]:
    """What a change is about, as the library takes it."""
    if sum((bool(documents), source is not None, default)) != 1:
        raise UsageError("Name documents, or --source NAME, or --default for the collection: one of them.")
    if documents:
        # By their ids: afterwards, somebody in particular may not be able to name them any more.
        return {"documents": named_documents(view, documents)}
    return {"default": True} if source is None else {"source": source}


def _report(ctx: CommandContext, view: View, target: dict[str, Any], changed: int) -> None:
    now = view.view(principal=None).grants
    if "documents" in target:
        _show(ctx, GrantsReply(changed=changed, documents=tuple(now.of_documents(target["documents"]))))
    else:
        _show(ctx, GrantsReply(changed=changed, collection=now.of_collection() if "default" in target else None))


def _show(ctx: CommandContext, told: GrantsReply) -> None:
    if ctx.json:
        ctx.emit(told)
    elif told.documents is not None:
        _show_documents(ctx, told.documents)
        if told.changed is not None:
            ctx.out.print(f"{told.changed:,} changed.", style="dim")
    elif told.collection is not None:
        _show_collection(ctx, told.collection)
    else:
        ctx.out.print(f"Changed who may read {told.changed:,} document{'' if told.changed == 1 else 's'}.")


def _show_documents(ctx: CommandContext, found: Sequence[DocumentPermissions]) -> None:
    rows = [
        (
            str(one.document_id),
            Text(one_line(one.source), style="cyan"),
            Text(one_line(", ".join(one.grants) or _OWNERS)).append(" (default)" if one.inherited else "", "dim"),
            Text(one_line(", ".join(one.denials)), style="red"),
        )
        for one in found[:_DOCUMENTS_SHOWN]
    ]
    print_list(ctx.out, {"Id": "right", "Source": "fold", "May read": "fold", "May not": "fold"}, rows)
    if len(found) > _DOCUMENTS_SHOWN:
        ctx.note(f"… and {len(found) - _DOCUMENTS_SHOWN:,} more; --json lists all of them")


def _show_collection(ctx: CommandContext, access: CollectionAccess) -> None:
    if ctx.json:
        ctx.emit(access)
        return

    who = {"readers": access.readers, "writers": access.writers, "documents, by default": access.default.as_tokens()}
    facts = [(name, ", ".join(tokens) or _OWNERS) for name, tokens in who.items()]
    print_facts(ctx.out, [("owners", ", ".join(access.owners) or "none"), *facts])


command(app, "list", collection=True, remote=True)(_list)
command(app, "add", collection=True, remote=True)(_add)
command(app, "remove", collection=True, remote=True)(_remove)
command(app, "deny", collection=True, remote=True)(_deny)
command(app, "collection", collection=True, remote=True)(_collection)
