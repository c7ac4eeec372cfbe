"""Whatever is handed to the library, only recollect's own errors come out, and what is refused stores nothing."""

from __future__ import annotations

import inspect
from collections import deque
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hostile
import recollect
from recollect import (
    ContextAssembler,
    HybridRetriever,
    MultiTenantRAG,
    QueryPatternTracker,
    RecollectError,
    SessionRAG,
    TemporalRAG,
    View,
)
from recollect.errors import OutOfBoundsError
from recollect.model.tenant import TenantQuota
from recollect.pipeline.audit import Audit
from recollect.pipeline.collections import Collections
from recollect.pipeline.contents import Contents
from recollect.pipeline.documents import Documents
from recollect.pipeline.feedback import Feedback
from recollect.pipeline.files import Files
from recollect.pipeline.grants import Grants
from recollect.pipeline.jobs import Jobs
from recollect.pipeline.keys import Keys, Logins
from recollect.pipeline.maintenance import Maintenance
from recollect.pipeline.memory import ConversationMemory, Facts
from recollect.pipeline.sessions import Sessions
from recollect.pipeline.sources import Sources
from recollect.pipeline.tenants import Tenants

#: What there is to call on a view, whose own arguments are tried with those of each method.
VIEWS = {
    View: lambda view: view,
    Audit: lambda view: view.audit,
    Collections: lambda view: view.collections,
    Contents: lambda view: view.contents,
    ConversationMemory: lambda view: view.memory,
    Documents: lambda view: view.documents,
    Facts: lambda view: view.facts,
    Feedback: lambda view: view.feedback,
    Files: lambda view: view.files,
    Grants: lambda view: view.grants,
    Jobs: lambda view: view.jobs,
    Keys: lambda view: view.keys,
    Logins: lambda view: view.logins,
    Maintenance: lambda view: view.maintenance,
    Sessions: lambda view: view.sessions,
    Sources: lambda view: view.sources,
    Tenants: lambda view: view.tenants,
}
OBJECTS = {
    **VIEWS,
    SessionRAG: SessionRAG,
    TemporalRAG: TemporalRAG,
    MultiTenantRAG: MultiTenantRAG,
    ContextAssembler: lambda rag: rag.memory.assembler(),
    HybridRetriever: lambda rag: rag.memory.retriever(),
    QueryPatternTracker: lambda rag: rag.memory.patterns,
}
METHODS = [
    pytest.param(kind, name, id=f"{kind.__name__}.{name}")
    for kind in OBJECTS
    for name, function in inspect.getmembers(kind, inspect.isfunction)
    # A closed pipeline is the next call's to open again.
    if not name.startswith("_")
    and name != "close"
    and (kind in VIEWS or len(inspect.signature(function).parameters) > 1)
]
VALUES = {
    value
    for value in (*(getattr(recollect, name) for name in recollect.__all__), *hostile.CLASSES)
    if hasattr(value, "__dataclass_fields__")
}


def fuzzed(examples: int):
    suppressed = [HealthCheck.too_slow, HealthCheck.large_base_example, HealthCheck.data_too_large]
    return settings(max_examples=examples * hostile.EFFORT, suppress_health_check=suppressed, deadline=None)


def test_a_list_holds_one_entry_at_least(peopled):
    limited = [one.values for one in METHODS if "limit" in inspect.signature(getattr(*one.values)).parameters]
    assert len(limited) > 20
    for kind, name in limited:
        with pytest.raises(OutOfBoundsError, match=r"limit.* 1, not 0"):
            getattr(OBJECTS[kind](peopled), name)(limit=0)


@pytest.mark.parametrize(("kind", "name"), METHODS)
def test_a_method_answers_or_refuses(peopled, stored, kind: type, name: str):
    # Of a view, every other one is of somebody and something that the method has not met.
    views = st.one_of(st.just({}), hostile.calls(peopled.view)) if kind in VIEWS else st.just({})

    @fuzzed(8)
    @given(view=views, arguments=hostile.calls(getattr(OBJECTS[kind](peopled), name)))
    def call(view, arguments):
        if any(isinstance(value, hostile.Refused) for value in (*view.values(), *arguments.values())):
            return
        before = stored.rows()
        try:
            found = getattr(OBJECTS[kind](peopled.view(**view) if view else peopled), name)(**arguments)
            if inspect.isgenerator(found):
                deque(found, maxlen=0)
        except RecollectError as error:
            assert str(error).strip()
            assert stored.rows() == before

    call()
    # The next method finds the tenant as it was.
    peopled.tenants.resume(1)
    peopled.tenants.set_quota(1, TenantQuota())


def test_the_limits_of_a_context_are_refused_before_anything_is_searched(peopled, monkeypatch):
    searched = []
    monkeypatch.setattr(type(peopled.standpoint.assembly.searcher), "search", lambda *args: searched.append(args))
    for limits in ({"token_budget": 0}, {"max_context_length": -1}):
        with pytest.raises(RecollectError, match="must be at least 1"):
            peopled.context("How long is leave?", **limits)
    assert searched == []


def test_a_suspended_tenants_counts_do_not_keep_a_pipeline_from_being_closed(pipeline):
    pipeline.view(session="chat").remember("My locker is 17.")
    pipeline.recall("Which locker?")
    pipeline.tenants.suspend(1)
    pipeline.close()


def test_a_path_that_is_not_there_leaves_no_collection_behind(peopled, stored):
    before = stored.rows()
    for path in ("nowhere.md", "a" * 3_000):
        with pytest.raises(RecollectError):
            peopled.view(collections="new").ingest(Path(path))
        with pytest.raises(RecollectError):
            peopled.view(collections="new").collections.import_file(path)
    with pytest.raises(RecollectError):
        peopled.view(collections="new").ingest(Path("leave.md"), permissions=["nobody"])
    assert stored.rows() == before


@pytest.mark.parametrize("kind", sorted(VALUES, key=lambda kind: kind.__name__))
def test_a_value_is_made_or_refused(kind: type):
    @fuzzed(25)
    @given(arguments=hostile.calls(kind))
    def make(arguments):
        try:
            kind(**arguments)
        except RecollectError as error:
            assert str(error).strip()

    make()
