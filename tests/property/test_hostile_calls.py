"""Whatever is handed to the library, only recollect's own errors come out, and what is refused stores nothing."""

from __future__ import annotations

import inspect
from collections import deque

import pytest
from hypothesis import HealthCheck, given, settings

import hostile
import recollect
from recollect import (
    ContextAssembler,
    HybridRetriever,
    MultiTenantRAG,
    QueryPatternTracker,
    RAGPipeline,
    RecollectError,
    SessionRAG,
    TemporalRAG,
    TenantQuota,
)
from recollect.pipeline.sessions import SessionSearch

OBJECTS = {
    RAGPipeline: lambda rag: rag,
    SessionRAG: SessionRAG,
    TemporalRAG: TemporalRAG,
    MultiTenantRAG: MultiTenantRAG,
    SessionSearch: lambda rag: SessionRAG(rag).session("desk"),
    ContextAssembler: lambda rag: rag.context_assembler(),
    HybridRetriever: lambda rag: rag.hybrid_retriever(),
    QueryPatternTracker: lambda rag: rag.query_patterns,
}
METHODS = [
    pytest.param(kind, name, id=f"{kind.__name__}.{name}")
    for kind in OBJECTS
    for name, function in inspect.getmembers(kind, inspect.isfunction)
    # A closed pipeline is the next call's to open again.
    if not name.startswith("_") and name != "close" and len(inspect.signature(function).parameters) > 1
]
VALUES = [
    getattr(recollect, name)
    for name in recollect.__all__
    if isinstance(getattr(recollect, name), type)
    and not issubclass(getattr(recollect, name), RecollectError)
    and hasattr(getattr(recollect, name), "__dataclass_fields__")
]


def fuzzed(examples: int):
    suppressed = [HealthCheck.too_slow, HealthCheck.large_base_example, HealthCheck.data_too_large]
    return settings(max_examples=examples * hostile.EFFORT, suppress_health_check=suppressed, deadline=None)


@pytest.mark.parametrize(("kind", "name"), METHODS)
def test_a_method_answers_or_refuses(peopled, stored, kind: type, name: str):
    method = getattr(OBJECTS[kind](peopled), name)

    @fuzzed(12)
    @given(arguments=hostile.calls(method))
    def call(arguments):
        if any(isinstance(value, hostile.Refused) for value in arguments.values()):
            return
        before = stored.rows()
        try:
            found = method(**arguments)
            if inspect.isgenerator(found):
                deque(found, maxlen=0)
        except RecollectError as error:
            assert str(error).strip()
            assert stored.rows() == before

    call()
    # The next method finds the tenant as it was.
    peopled.resume_tenant(1)
    peopled.set_tenant_quota(1, TenantQuota())


def test_a_suspended_tenants_counts_do_not_keep_a_pipeline_from_being_closed(pipeline):
    pipeline.remember("chat", "My locker is 17.")
    pipeline.recall("Which locker?")
    pipeline.suspend_tenant(1)
    pipeline.close()


def test_a_path_that_is_not_there_leaves_no_collection_behind(peopled, stored):
    before = stored.rows()
    for path in ("nowhere.md", "a" * 3_000):
        with pytest.raises(RecollectError):
            peopled.ingest_paths([path], collection="new")
        with pytest.raises(RecollectError):
            peopled.import_file(path, collection="new")
    with pytest.raises(RecollectError):
        peopled.ingest_paths(["leave.md"], collection="new", permissions=["nobody"])
    assert stored.rows() == before


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_is_made_or_refused(kind: type):
    @fuzzed(25)
    @given(arguments=hostile.calls(kind))
    def make(arguments):
        try:
            kind(**arguments)
        except RecollectError as error:
            assert str(error).strip()

    make()
