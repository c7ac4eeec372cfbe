"""A schema that somebody has changed: noticed, named, and put back, or not served to several tenants."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from recollect import Document, RAGConfig, RAGPipeline
from recollect.errors import IsolationError
from recollect.store.store import Store

#: Each with a word of what is said of it.
PUT_BACK = {
    "ALTER POLICY tenant ON chunks USING (true)": "policy tenant on chunks",
    "CREATE POLICY more ON documents USING (true)": "policy more on documents",
    "ALTER POLICY tenant ON documents TO postgres": "policy tenant on documents",
    "DROP POLICY tenant ON facts": "policy tenant on facts",
    "ALTER TABLE episodes DISABLE ROW LEVEL SECURITY": "table episodes",
    "ALTER TABLE episodes FORCE ROW LEVEL SECURITY": "table episodes",
    "GRANT INSERT, UPDATE ON tenants TO recollect_app": "grant on table tenants",
    "GRANT UPDATE (name) ON tenants TO PUBLIC": "grant on column tenants.name",
    "GRANT DELETE ON audit TO recollect_app": "grant on table audit",
    "GRANT SELECT ON audit_default TO recollect_app": "grant on table partition of recollect.audit",
    "GRANT CREATE ON SCHEMA recollect TO recollect_app": "grant on schema recollect",
    "GRANT EXECUTE ON FUNCTION collections_shared_with(int) TO PUBLIC": "grant on function recollect.coll",
    "CREATE OR REPLACE FUNCTION require_tenant(p_tenant int) RETURNS void LANGUAGE sql STABLE AS ''": "require_tenant",
    "CREATE OR REPLACE FUNCTION current_tenant() RETURNS int LANGUAGE sql STABLE AS 'SELECT 1'": "current_tenant",
    "ALTER FUNCTION dense_candidates SET search_path = public, recollect": "dense_candidates",
    "ALTER FUNCTION enter_tenant(int) LEAKPROOF": "enter_tenant",
}
LEFT = {
    "CREATE RULE away AS ON DELETE TO audit_heads DO INSTEAD NOTHING": "rule away",
    "CREATE FUNCTION spy() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'; "
    "CREATE TRIGGER spy BEFORE INSERT ON chunks FOR EACH ROW EXECUTE FUNCTION spy()": "trigger spy",
    "ALTER TABLE chunks DISABLE TRIGGER ALL": "trigger of a key on chunks",
    "CREATE VIEW everything AS SELECT * FROM chunks": "table everything",
    "CREATE FUNCTION open() RETURNS SETOF chunks LANGUAGE sql SECURITY DEFINER AS 'TABLE recollect.chunks'": "open()",
    "CREATE OPERATOR recollect.&& (LEFTARG = anyarray, RIGHTARG = anyarray, FUNCTION = arrayoverlap)": "object: ",
    "ALTER DATABASE {database} SET recollect.tenant_id = 1": "recollect.tenant_id=1 for every role",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA recollect GRANT ALL ON TABLES TO PUBLIC": "later objects of owner",
    "ALTER TABLE chunks OWNER TO recollect_app": "table chunks",
    "CREATE FUNCTION onward() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'; "
    "CREATE EVENT TRIGGER onward ON ddl_command_end EXECUTE FUNCTION onward()": "event trigger onward",
}
ADMINISTRATORS_OWN = {
    "GRANT SELECT ON documents TO pg_monitor": "(another role) grant on table documents to pg_monitor",
    "ALTER TABLE documents ADD COLUMN note text": "column documents.note",
    "GRANT CREATE ON SCHEMA public TO PUBLIC": "may create objects in the schema public",
}


@pytest.fixture
def two(dsn: str, tmp_path: Path) -> Iterator[RAGConfig]:
    """A closed store with a second tenant."""
    config = RAGConfig.load(storage={"data_dir": tmp_path, "dsn": dsn}, embedding={"provider": "hashing"})
    with RAGPipeline(config) as rag:
        rag.tenants.create("other")
        rag.view(tenant=2).ingest(Document(content="The zebrafish swims.", source="a.txt"))
    yield config


def change(dsn: str, statement: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET search_path = recollect, public")
        connection.execute(statement.replace("{database}", connection.info.dbname))


def test_what_can_be_put_back_is_noticed_named_and_put_back(two: RAGConfig, dsn: str, caplog: pytest.LogCaptureFixture):
    with RAGPipeline(two) as rag:
        assert rag.maintenance.check() == []
        for statement in PUT_BACK:
            change(dsn, statement)
        told = "\n".join(finding.problem for finding in rag.maintenance.check())
    assert [name for name in PUT_BACK.values() if name not in told] == []
    with caplog.at_level(logging.WARNING), RAGPipeline(two) as rag:
        told = "\n".join(finding.problem for finding in rag.maintenance.check())
        assert [name for name in PUT_BACK.values() if name not in told] == []
        assert rag.search("zebrafish").results == () and len(rag.view(tenant=2).search("zebrafish").results) == 1
    assert "had been changed, and was put back" in caplog.text
    caplog.clear()
    with RAGPipeline(two) as rag:
        assert rag.maintenance.check() == []
    assert caplog.text == ""


@pytest.mark.parametrize("statement", PUT_BACK, ids=range(len(PUT_BACK)))
def test_each_of_them_alone_is_noticed(store: Store, dsn: str, statement: str):
    from recollect.store.catalogue import read_differences

    change(dsn, statement)
    assert PUT_BACK[statement] in "\n".join(read_differences(store.database))


def test_what_cannot_be_put_back_is_not_served_to_several_tenants(two: RAGConfig, dsn: str):
    with RAGPipeline(two) as open_before:
        open_before.tenants.list()
        for statement, name in LEFT.items():
            change(dsn, statement)
            with pytest.raises(IsolationError), RAGPipeline(two) as rag:
                rag.documents.list()
            assert name in "\n".join(finding.problem for finding in open_before.maintenance.check()), name


def test_one_tenant_is_served_and_told(dsn: str, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    change(dsn, next(iter(LEFT)))
    Store(data_dir=tmp_path, dsn=dsn).close()
    assert "rule away" in caplog.text


def test_what_is_the_administrators_to_decide_is_said_and_served(
    two: RAGConfig, dsn: str, caplog: pytest.LogCaptureFixture
):
    for statement in ADMINISTRATORS_OWN:
        change(dsn, statement)
    with RAGPipeline(two) as rag:
        assert rag.search("zebrafish").results == ()
        told = "\n".join(finding.problem for finding in rag.maintenance.check())
    assert [name for name in ADMINISTRATORS_OWN.values() if name not in told] == []
    assert caplog.text == ""


def test_partitions_and_indexes_that_the_program_makes_are_no_difference(two: RAGConfig):
    from recollect.model import Scope

    with RAGPipeline(two) as rag:
        rag.store.audit.maintain(Scope(), partitions="daily", retention_days=None)
        rag.store.dense_indexer.build(Scope(tenant_id=2), "default")
        assert rag.maintenance.check() == []
