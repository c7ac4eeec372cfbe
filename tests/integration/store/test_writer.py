"""Writing documents: whole or not at all, versions, counters, and no trace after an erasure."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from shelf import Shelf

from hostile import EFFORT
from recollect.errors import NotFoundError, RecollectError
from recollect.model import Scope
from recollect.store.store import Store


@pytest.fixture
def shelf(store: Store) -> Shelf:
    return Shelf(store)


def counts(shelf: Shelf) -> tuple[int, int]:
    now = shelf.now()
    return now.document_count, now.chunk_count


def test_force_and_another_fingerprint_make_a_new_version_of_the_same_content(shelf: Shelf):
    item = shelf.prepared("a", "one")
    shelf.write(item)
    assert shelf.write(item, force=True)[0].version == 2
    assert shelf.write(replace(item, fingerprint="other"))[0].version == 3


def test_other_bytes_of_the_same_content_are_remembered(shelf: Shelf):
    shelf.add("a", "one", file_hash=b"1" * 32)
    assert shelf.add("a", "one", file_hash=b"2" * 32).status == "unchanged"
    stamp = shelf.store.documents.stamps(shelf.scope, shelf.source, ["a"])["a"]
    assert stamp.file_hash == b"2" * 32


def test_an_error_in_the_middle_of_a_batch_leaves_nothing(shelf: Shelf):
    good = shelf.prepared("good", "one")
    bad = shelf.prepared("bad", "two")
    bad = replace(bad, embeddings=np.full_like(bad.embeddings, np.nan))
    with pytest.raises(RecollectError):
        shelf.write(good, bad)
    for table in ("documents", "document_versions", "chunks", "chunk_vectors", "chunk_lexical"):
        assert shelf.rows(f"SELECT count(*) FROM {table}") == [(0,)], table
    assert counts(shelf) == (0, 0)
    assert shelf.write(good)[0].status == "added"


def test_intervals_of_versions_meet_without_overlap_even_if_the_clock_is_set_back(shelf: Shelf):
    shelf.add("a", "one")
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    with shelf.store.database.transaction(shelf.scope) as connection:
        for table in ("document_versions", "chunk_vectors", "chunk_lexical"):
            connection.execute(f"UPDATE {table} SET known_from = %s", (tomorrow,))
    document_id = shelf.add("a", "two").document_id
    shelf.store.writer.close(shelf.scope, [document_id])
    shelf.add("a", "three")
    spans = shelf.rows(
        "SELECT known_from, CASE WHEN known_to = 'infinity' THEN NULL ELSE known_to END "
        "FROM document_versions ORDER BY version"
    )
    assert all(start <= end for start, end in spans[:-1])
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
    assert spans[-1][1] is None


def test_awkward_text_is_stored_with_right_offsets(shelf: Shelf):
    for text in [
        "x\0y",
        "lone \udcff surrogate",
        "\u05e9\u05dc\u05d5\u05dd \u202e RTL",
        "e\u0301 \U0001f9d1\u200d\U0001f680",
        "w" * 100_000,
    ]:
        document_id = shelf.add("a", text).document_id
        assert shelf.store.status.check(shelf.scope) == []
        content = shelf.store.documents.get(shelf.scope, document_id).content
        assert len(content) == len(text)
        assert all(a in (b, "\N{REPLACEMENT CHARACTER}") for a, b in zip(content, text, strict=True))


def test_a_chunk_of_more_terms_than_a_sparse_vector_holds(shelf: Shelf):
    words = " ".join(f"w{number}" for number in range(20_000))
    prepared = shelf.prepared("a", "short")
    [terms] = shelf.preparer._indexer.count([words])
    [row] = shelf.preparer._indexer.weigh([terms], reference_length=3.0)
    assert len(terms.lexemes) > 16_000 >= len(row.lexemes)
    shelf.write(replace(prepared, lexical=[row]))
    assert shelf.store.status.check(shelf.scope) == []
    stored = shelf.store.search.lexical_rows(shelf.scope, list(shelf.vectors()))
    assert stored.counts.tolist() == [len(row.lexemes)]


# Many at once


def hammer(work, workers: int = 6) -> None:
    """Run ``work(n)`` in threads that begin together; the first error surfaces."""
    barrier = threading.Barrier(workers)

    def begin(number: int) -> None:
        barrier.wait()
        work(number)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(begin, range(workers)))


def test_overlapping_batches_neither_block_nor_double(shelf: Shelf):
    items = [shelf.prepared(f"d{number}", f"text {number}") for number in range(12)]

    def work(seed: int) -> None:
        order = random.Random(seed)
        for _ in range(4):
            shelf.write(*order.sample(items, 8), force=order.random() < 0.5)

    hammer(work)
    shelf.write(*items)
    assert counts(shelf) == (12, 12)
    assert shelf.store.status.check(shelf.scope) == []


def test_writing_closing_erasing_recounting_and_deleting_at_once(shelf: Shelf):
    shared = [shelf.prepared(f"d{number}", "the same words\nof everyone") for number in range(8)]
    shelf.write(*shared)
    deleted_meanwhile = []

    def work(seed: int) -> None:
        choice = random.Random(seed)
        for _ in range(6):
            ids = [row[0] for row in shelf.rows("SELECT document_id FROM documents")]
            some = choice.sample(ids, min(4, len(ids)))
            action = choice.choice(["write", "write", "close", "erase", "recount"])
            try:
                if action == "write":
                    shelf.write(*choice.sample(shared, 5), force=True)
                elif action == "recount":
                    shelf.store.collections.refresh_term_stats(shelf.scope, shelf.collection)
                elif action == "close":
                    shelf.store.writer.close(shelf.scope, some)
                else:
                    shelf.store.erasure.erase(shelf.scope, some, actor="x")
            except NotFoundError as exc:
                deleted_meanwhile.append(exc)
        if seed == 5:
            shelf.store.collections.delete(shelf.scope, shelf.name)

    hammer(work)
    assert shelf.store.status.check(shelf.scope) == []
    assert shelf.rows("SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM chunks)") == [(0, 0)]


def test_counters_stay_right_under_concurrent_changes(shelf: Shelf):
    items = [shelf.prepared(f"d{number}", f"words\nof number {number}") for number in range(6)]

    def work(seed: int) -> None:
        choice = random.Random(seed)
        for _ in range(6):
            written = shelf.write(*choice.sample(items, 3), force=True)
            ids = [one.document_id for one in written]
            if choice.random() < 0.5:
                shelf.store.writer.close(shelf.scope, ids[:2])
            else:
                shelf.store.erasure.erase(shelf.scope, ids[:2], actor="x")

    hammer(work)
    assert shelf.store.status.check(shelf.scope) == []
    shelf.write(*items)
    assert counts(shelf) == (6, 12)


PROCESS = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from shelf import Shelf
from recollect.store.store import Store
store = Store(data_dir=Path("/nonexistent"), dsn=sys.argv[1])
shelf = Shelf(store)
items = [shelf.prepared(f"d{n}", f"text {n}\\nmore {n}") for n in range(20)]
print("ready", flush=True); sys.stdin.readline()
added = 0
for start in range(0, 20, 5):
    added += sum(w.status == "added" for w in shelf.write(*items[start:start + 5]))
print(added)
store.close()
"""


def test_processes_that_write_the_same_documents_add_each_once(dsn: str, shelf: Shelf):
    command = [sys.executable, "-c", PROCESS, dsn, str(Path(__file__).parent)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    running = [subprocess.Popen(command, **pipes) for _ in range(2)]
    for process in running:
        assert process.stdout.readline() == "ready\n", process.communicate()
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    outputs = [process.communicate() for process in running]
    assert sum(int(out) for out, _ in outputs) == 20, outputs
    assert counts(shelf) == (20, 40)
    assert shelf.store.status.check(shelf.scope) == []


# Any sequence of changes, beside a model


SOURCES = st.sampled_from(["a", "b", "c"])
TEXTS = st.sampled_from(["one", "one\ntwo", "three\nfour\nfive"])


def machine_for(store: Store) -> type[RuleBasedStateMachine]:  # noqa: C901 - a class inside, one rule a change
    class Writing(RuleBasedStateMachine):
        """Every change beside a dictionary; the store must say the same after each."""

        ids = Bundle("ids")

        def __init__(self):
            super().__init__()
            if store.collections.find(Scope(), "model"):
                store.collections.delete(Scope(), "model")
            self._begin()

        def _begin(self):
            self.shelf = Shelf(store, name="model")
            self.current: dict[str, str] = {}
            self.ids_of: dict[str, int] = {}

        @rule(source=SOURCES, text=TEXTS, force=st.booleans())
        def write(self, source: str, text: str, force: bool):
            written = self.shelf.write(self.shelf.prepared(source, text), force=force)[0]
            before = self.current.get(source)
            expected = "added" if before is None else "unchanged" if before == text and not force else "updated"
            assert written.status == expected
            self.current[source] = text
            self.ids_of[source] = written.document_id

        @rule(first=TEXTS, second=TEXTS)
        def write_a_batch(self, first: str, second: str):
            self.shelf.write(self.shelf.prepared("b", first), self.shelf.prepared("a", second))
            self.current |= {"b": first, "a": second}
            self.ids_of |= {row[0]: row[1] for row in self.shelf.rows(
                "SELECT uri, document_id FROM documents WHERE collection_id = %(c)s",
                c=self.shelf.collection.collection_id)}  # fmt: skip

        @rule(sources=st.sets(SOURCES))
        def close(self, sources: set[str]):
            ids = [self.ids_of[source] for source in sources if source in self.ids_of]
            assert store.writer.close(Scope(), ids) == len(sources & set(self.current))
            for source in sources:
                self.current.pop(source, None)

        @rule(sources=st.sets(SOURCES))
        def erase(self, sources: set[str]):
            ids = [self.ids_of.pop(source) for source in sources if source in self.ids_of]
            assert store.erasure.erase(Scope(), ids, actor="x").counts["documents"] == len(ids)
            for source in sources:
                self.current.pop(source, None)

        @rule()
        def recount(self):
            store.collections.refresh_term_stats(Scope(), self.shelf.now())
            assert self.shelf.now().stats_pending == 0

        @rule()
        def delete_the_collection(self):
            store.collections.delete(Scope(), "model")
            self._begin()

        @invariant()
        def the_store_says_the_same(self):
            assert store.status.check(Scope()) == []
            listed = store.documents.list_page(Scope(), self.shelf.now())
            contents = {one.source: store.documents.get(Scope(), one.document_id).content for one in listed}
            assert contents == self.current
            assert counts(self.shelf) == (
                len(self.current),
                sum(len(text.split("\n")) for text in self.current.values()),
            )

    return Writing


def test_any_sequence_of_changes(store: Store):
    run_state_machine_as_test(
        lambda: machine_for(store)(),
        settings=settings(
            max_examples=5 * EFFORT, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


def test_check_finds_what_someone_broke(shelf: Shelf, dsn: str):
    shelf.add("a", "one\ntwo")
    damages = {
        "UPDATE chunks SET text = 'xxx' WHERE position = 0": "offsets",
        "UPDATE collection_state SET chunk_count = 7": "counters",
        "UPDATE chunk_vectors SET known_to = now()": "time or access list than their version",
        "DELETE FROM chunk_lexical": "without a lexical row",
        "DELETE FROM document_contents": "without their text",
        "UPDATE document_versions SET chunk_count = 9": "more or fewer chunks",
    }
    for statement, words in damages.items():
        with psycopg.connect(dsn) as connection:
            connection.execute("SET search_path = recollect, public")
            connection.execute(statement)
        assert any(words in finding.problem for finding in shelf.store.status.check(shelf.scope)), statement
