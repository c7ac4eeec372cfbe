"""A view and a client are the same thing: the same methods, with the same parameters, defaults and results.

`test_asynchronous_view` compares `AsyncView` with `View`, and `acceptance/client/test_coverage` the two clients.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator

from recollect import View
from recollect.client import groups
from recollect.client.client import RemoteView

#: What one of the two has alone, and why. Nothing else may differ.
ALONE = {
    "the parts that a view is made of": """
        config embedder models scope store
        memory.assembler memory.patterns memory.retriever""",
    "what a connection is": "me url with_options",
    "the one who runs the store does it on its machine": """
        audit.verify_accesses maintenance.check maintenance.close_expired maintenance.scrub maintenance.verify
        maintenance.write_contexts sessions.end_expired sources.refresh_all sources.watch
        spaces.reembed spaces.reembedded spaces.rollback tenants.export tenants.isolation""",
    "what doors are made of: a server gives it in its own way": """
        collections.note collections.notes files grants.explain keys.authenticate keys.users
        memory.latest memory.overview tenants.change""",
    "tenants.share, of the tenant that the caller means": """
        collections.share collections.shared collections.unshare""",
    "combines two others": "augment_context",
}
#: Parameters that one of the two has alone, by their name or by method and name.
ALONE_PARAMETERS = {
    "the credential says it": "view.tenant view.actor keys.create.maker keys.create_widget.maker keys.rotate.maker",
    "a function in this process": "context.count_tokens collections.update.check grants.set_collection.check",
    "how HTTP asks for the same": """
        grants.set_collection.if_match tenants.resume.if_match tenants.set_pii.if_match tenants.set_quota.if_match
        tenants.suspend.if_match""",
    "a server's jobs come in turn": """
        jobs.contextualise.priority jobs.ingest.priority jobs.reembed.priority jobs.rollback.priority
        jobs.upload.priority""",
    "a server's cursor goes on by itself": "memory.list.after sessions.list.after",
    "not built yet": """
        remember.metadata feedback.weights.weights jobs.events.timeout_seconds jobs.upload.folders""",
}
#: What differs in its type: views are of their own kind, and a file that is sent is a job of its own. The type of lines
#: and bytes that come as they are read is `lined`'s.
OTHER_TYPES = {
    "audit.export",
    "collections.export_lines",
    "contents.download",
    "jobs.upload.files",
    "view",
    "view.remotes",
}


def names(reasons: dict[str, str]) -> set[str]:
    return {name for several in reasons.values() for name in several.split()}


def members(kind: type) -> dict[str, object]:
    return {name: inspect.getattr_static(kind, name) for name in dir(kind) if not name.startswith("_")}


def group_of(kind: type, name: str) -> type | None:
    """The class of a view's or a client's group; None: it is no group."""
    value = inspect.getattr_static(kind, name)
    if not isinstance(value, property):
        return None
    where = groups if kind is RemoteView else importlib.import_module(value.fget.__module__)
    return getattr(where, str(value.fget.__annotations__["return"]), None)


def pairs() -> Iterator[tuple[str, type, type]]:
    yield "", View, RemoteView
    for name in members(View).keys() & members(RemoteView).keys():
        own = group_of(RemoteView, name)
        if own is not None:
            yield f"{name}.", group_of(View, name), own


def of_calls(annotation: object) -> str:
    """What a method gives, of what makes its calls."""
    text = str(annotation)
    while found := re.fullmatch(r"(Call|Steps)\[(.*)\]", text):
        text = found[2]
    return re.sub(r"^(Pages|EventStream)\[", "Iterator[", text).replace("list[", "Sequence[")


def test_what_one_has_the_other_has():
    alone = set()
    for prefix, view, client in pairs():
        alone |= {prefix + name for name in members(view).keys() ^ members(client).keys()}
    assert alone == names(ALONE)


def test_they_take_and_give_the_same():
    alone, others = set(), set()
    for prefix, view, client in pairs():
        for name in members(view).keys() & members(client).keys():
            one, other = members(view)[name], members(client)[name]
            if isinstance(one, property):
                continue
            of_view, of_client = inspect.signature(one), inspect.signature(other)
            alone |= {f"{prefix}{name}.{left}" for left in of_view.parameters.keys() ^ of_client.parameters.keys()}
            both = [each for each in of_view.parameters if each in of_client.parameters]
            assert both == [each for each in of_client.parameters if each in of_view.parameters], f"order: {name}"
            for each in both:
                mine, theirs = of_view.parameters[each], of_client.parameters[each]
                assert mine.kind == theirs.kind, f"{prefix}{name}({each})"
                assert repr(mine.default) == repr(theirs.default), f"{prefix}{name}({each})"
                if mine.annotation != theirs.annotation:
                    others.add(f"{prefix}{name}.{each}")
            if of_calls(of_view.return_annotation) != of_calls(of_client.return_annotation):
                others.add(prefix + name)
    assert alone == names(ALONE_PARAMETERS)
    assert others == OTHER_TYPES
