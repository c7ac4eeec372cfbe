"""What somebody may not read influences nothing that he sees, and changes of grants count at once."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from recollect import Document, Principal, RAGConfig, RAGPipeline, RetrievalOptions, TemporalRAG, Turn
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import NotFoundError, PermissionDeniedError, UsageError
from recollect.model import Scope
from recollect.model.principal import Permissions
from recollect.retrieval import sql_candidates

ANN = Principal(user_id="ann", roles=("clerk",), department="hr")
BOB = Principal(user_id="bob", department="it", groups=("project",))
OPEN, SECRET = "leave.md", "salaries.md"


@pytest.fixture
def rag(pipeline: RAGPipeline) -> RAGPipeline:
    return _filled(pipeline)


@pytest.fixture(scope="module")
def unchanged(
    clone: Callable[..., AbstractContextManager[str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RAGPipeline]:
    """The same, for tests that only read."""
    with clone() as dsn:
        config = RAGConfig.load(
            storage={"data_dir": tmp_path_factory.mktemp("unused"), "dsn": dsn}, embedding={"provider": "hashing"}
        )
        with RAGPipeline(config, embedder=HashingEmbedder()) as opened:
            yield _filled(opened)


def _filled(pipeline: RAGPipeline) -> RAGPipeline:
    pipeline.ingest(Document(content="Annual leave is 30 days for everybody.", source=OPEN, department="hr"))
    pipeline.ingest(
        Document(
            content="Salaries of the Executive Leave Board (ELB) are annual secrets of the ELB.",
            source=SECRET,
            department="board",
            metadata={"level": "secret"},
            permissions=("role:clerk",),
        )
    )
    return pipeline


def sources(rag: RAGPipeline, principal: Principal | None, query: str = "annual leave", **options) -> list[str]:
    return sorted({one.source for one in rag.view(principal=principal).retrieve(query, RetrievalOptions(**options))})


def test_the_owner_of_the_store_sees_everything_and_others_what_they_may(unchanged: RAGPipeline):
    assert sources(unchanged, None) == sources(unchanged, ANN) == [OPEN, SECRET]
    assert sources(unchanged, BOB) == [OPEN]
    assert sources(unchanged, Principal()) == [OPEN]


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_no_filter_gets_around_it(unchanged: RAGPipeline, mode: str):
    for options in (
        {"source": (SECRET,)},
        {"department": ("board",)},
        {"metadata_filters": {"level": "secret"}},
        {"filters": {"or": [{"source": SECRET}, {"title": {"exists": True}}]}},
        {"top_k": 100, "similarity_threshold": -1.0, "collapse_duplicates": False, "neighbours": 10},
    ):
        assert SECRET not in sources(unchanged, BOB, "salaries annual secrets", mode=mode, use_cache=False, **options)


def test_counts_and_weights_in_explanations_are_of_what_he_may_read(unchanged: RAGPipeline):
    rag = unchanged
    options = RetrievalOptions(explain=True, metadata_filters={"level": "secret"})
    told = rag.view(principal=BOB).search("annual salaries", options).explain
    assert (told.filter_kept, told.filter_removed, [count for _, count in told.removed_by]) == (0, 1, [1])
    assert rag.search("annual salaries", options).explain.filter_kept == 1
    plain = rag.view(principal=BOB).search("annual salaries", RetrievalOptions(explain=True))
    weights = dict(plain.explain.terms)
    assert weights["salari"] == 0.0 and weights["annual"] > 0
    # As far as he can tell, that document was never written.
    alone = rag.view(principal=ANN).search("annual", RetrievalOptions(explain=True)).explain
    assert dict(alone.terms)["annual"] != weights["annual"]


def test_acronyms_come_from_what_he_may_read(unchanged: RAGPipeline):
    told = {who: unchanged.view(principal=who).search("ELB", RetrievalOptions(explain=True)) for who in (ANN, BOB)}
    assert "executive leave board" in " ".join(told[ANN].explain.enhancements).lower()
    assert "board" not in " ".join(told[BOB].explain.enhancements).lower()


def test_answers_and_contexts_rest_on_what_he_may_read(unchanged: RAGPipeline):
    rag = unchanged
    assert SECRET in rag.view(principal=ANN).context("annual secrets").text
    context = rag.view(principal=BOB).context("annual secrets")
    assert "secret" not in context.text.lower()
    answer = rag.view(principal=BOB).ask("What are annual secrets?")
    assert all(citation.source != SECRET for citation in answer.citations)
    assert answer.nearest is None or answer.nearest.evidence.source != SECRET


def test_documents_lists_status_and_exports_show_what_he_may_read(rag: RAGPipeline):
    assert [one.source for one in rag.view(principal=BOB).documents.list()] == [OPEN]
    place = rag.view(principal=BOB).collections.list()[0]
    assert (place.document_count, place.chunk_count, place.stats_chunks) == (1, 1, 0)
    status = rag.view(principal=BOB).maintenance.status()
    assert (status.total_documents, status.total_chunks, dict(status.departments)) == (1, 1, {"hr": 1})
    assert rag.maintenance.status().total_documents == rag.view(principal=ANN).maintenance.status().total_documents == 2
    rag.collections.create("board")
    rag.view(collections="board").grants.set_collection(readers=["role:clerk"])
    rag.view(collections="board").ingest("Annual dividends.")
    rag.view(collections="board").search("annual")
    told = rag.view(principal=BOB).maintenance.status()
    assert [place.name for place in told.collections] == ["default"] and told.database_bytes == 0
    assert [json.loads(line)["source"] for line in rag.view(principal=BOB).collections.export_lines()] == [OPEN]


def test_what_he_may_not_read_is_told_of_as_what_never_was(rag: RAGPipeline):
    number = str(rag.documents.get(SECRET).document_id)

    def told(action, name: str) -> str:
        with pytest.raises(NotFoundError) as error:
            action(name)
        return str(error.value).replace(name, "X")

    for action in (
        lambda name: rag.view(principal=BOB).documents.get(name),
        lambda name: rag.view(principal=BOB).why_not("annual", name),
    ):
        assert told(action, SECRET) == told(action, "never.md")
        assert told(action, number) == told(action, "987654")
    rag.collections.create("board")
    rag.view(collections="board").grants.set_collection(readers=["role:clerk"])
    for action in (
        lambda name: rag.view(collections=name, principal=BOB).search("annual"),
        lambda name: rag.view(collections=name, principal=BOB).ask("annual?"),
        lambda name: rag.view(collections=name, principal=BOB).documents.list(),
        lambda name: list(rag.view(collections=name, principal=BOB).collections.export_lines()),
        lambda name: rag.view(collections=name, principal=BOB).why_not("annual", OPEN),
        lambda name: rag.view(collections=name, principal=BOB).ingest("text"),
    ):
        assert told(action, "board") == told(action, "nowhere")
    assert [place.name for place in rag.view(principal=BOB).collections.list()] == ["default"]
    assert rag.view(collections="board", principal=ANN).search("annual").results == ()


def test_a_denial_beats_every_grant_and_owners_beat_every_denial(rag: RAGPipeline):
    rag.grants.add("user:bob", documents=SECRET)
    assert SECRET in sources(rag, BOB)
    rag.grants.deny("group:project", documents=SECRET)
    assert SECRET not in sources(rag, BOB)
    rag.grants.add(["*", "user:bob"], documents=SECRET)
    assert SECRET not in sources(rag, BOB)
    rag.grants.set_collection(owners=["user:bob"], readers=[])
    assert sources(rag, BOB) == [OPEN, SECRET]
    assert not rag.view(collections="default", principal=ANN).search("annual").results
    with pytest.raises(NotFoundError):
        rag.view(principal=ANN).documents.get(OPEN)
    rag.grants.remove("!group:project", documents=SECRET)
    assert rag.grants.of_documents(SECRET)[0].permissions == Permissions(grants=("*", "role:clerk", "user:bob"))


def test_changes_count_from_the_next_search_on_whatever_is_cached(rag: RAGPipeline):
    for _ in range(2):
        assert sources(rag, BOB) == [OPEN]
    rag.grants.add("department:it", documents=SECRET)
    assert sources(rag, BOB) == [OPEN, SECRET]
    rag.grants.remove("department:it", documents=SECRET)
    assert sources(rag, BOB) == [OPEN]
    rag.view(collections="default").grants.remove("*", default=True)
    assert sources(rag, BOB) == [] and sources(rag, ANN) == [SECRET]
    rag.view(collections="default").grants.add("*", default=True)
    rag.grants.set_collection(readers=["role:clerk"])
    assert rag.view(principal=BOB).search("annual").results == ()


def test_equal_rights_share_cached_replies_and_different_ones_never(rag: RAGPipeline):
    first, eve = rag.view(principal=BOB).search("annual leave"), Principal(user_id="eve")
    assert not first.cached and rag.view(principal=eve).search("annual leave").cached
    owner = rag.search("annual leave")
    assert not owner.cached and len(owner.results) == 2
    clerk = rag.view(principal=ANN).search("annual leave")
    assert not clerk.cached and len(clerk.results) == 2
    assert len(rag.view(principal=eve).search("annual leave").results) == 1


def test_the_grants_of_then_and_of_today_decide_who_reads_the_past(rag: RAGPipeline):
    before = rag.documents.get(SECRET).known_from
    rag.ingest(Document(content="Salaries are annual and public now.", source=SECRET))
    assert sources(rag, BOB) == [OPEN]
    assert {one.source for one in rag.view(as_of=before, principal=BOB).retrieve("annual")} == {OPEN}
    rag.grants.add("user:bob", documents=SECRET)
    # What was written before he was granted it stays closed to him, and open to whom it was granted.
    assert {one.source for one in rag.view(as_of=before, principal=BOB).retrieve("annual salaries")} == {OPEN}
    past = rag.view(as_of=before, principal=ANN).retrieve("annual salaries")
    assert any("secrets" in one.content for one in past)
    rag.documents.delete([SECRET])
    rag.grants.remove("user:bob", documents=SECRET)
    assert {one.source for one in rag.view(as_of=before, principal=BOB).retrieve("annual")} == {OPEN}


def lists_of(rag: RAGPipeline, table: str) -> list[tuple]:
    with rag.store.database.transaction(Scope()) as connection:
        return connection.execute(f"SELECT ctid::text, access_id FROM {table} ORDER BY 1").fetchall()


def test_histories_and_evidence_of_what_he_may_not_read_do_not_exist(rag: RAGPipeline):
    start = rag.documents.get(SECRET).known_from
    rag.ingest(Document(content="Annual salaries changed.", source=SECRET))
    for ask in ("history", "diff"):
        assert getattr(rag.view(principal=ANN).documents, ask)(SECRET).source == SECRET
        with pytest.raises(NotFoundError):
            getattr(rag.view(principal=BOB).documents, ask)(SECRET)
    told = rag.view(principal=BOB).documents.diff_evidence("annual salaries", from_time=start)
    assert (told.came, told.went, told.changed) == ((), (), ()) and {one.source for one in told.stayed} == {OPEN}
    assert rag.view(principal=ANN).documents.diff_evidence("annual salaries", from_time=start).came
    bobs = TemporalRAG(rag, principal=BOB)
    assert {one.source for one in bobs.search("annual salaries", as_of=start).results} == {OPEN}
    assert all(citation.source == OPEN for citation in bobs.ask("What about annual salaries?").citations)


@pytest.fixture
def talked(rag: RAGPipeline) -> RAGPipeline:
    rag.view(session="anns", user="ann").remember(["I plan my annual leave in May.", "And then I go sailing."])
    rag.view(session="bobs", user="bob").remember("My annual leave is in June.")
    rag.view(session="nobodys").remember("Annual leave is for everybody.")
    return rag


def test_conversations_are_those_of_his_own_user_id(talked: RAGPipeline):
    def heard(principal: Principal | None, **where) -> set[str]:
        found = talked.view(principal=principal, **where).recall("annual leave")
        return {one.episode.session for one in found}

    assert heard(None) == {"anns", "bobs", "nobodys"}
    assert heard(ANN) == heard(ANN, user="ann") == heard(ANN, session="anns") == {"anns"}
    # Neither the name of somebody else, nor that of his session, nor being nobody in particular gets around it.
    assert heard(ANN, user="bob") == heard(ANN, session="anns", user="bob") - {"anns"} == set()
    assert heard(Principal(department="hr")) == heard(Principal(user_id="eve")) == set()
    assert [one.name for one in talked.view(principal=BOB).memory.list()] == ["bobs"]
    assert talked.view(user="ann", principal=BOB).memory.list() == []
    for ask in (
        lambda name: talked.view(session=name, principal=BOB).recall("annual leave"),
        lambda name: talked.view(principal=BOB).memory.get(name),
        lambda name: talked.view(principal=BOB).memory.turns(name),
    ):
        messages = set()
        for name in ("anns", "nobodys", "never"):
            with pytest.raises(NotFoundError) as error:
                ask(name)
            messages.add(str(error.value).replace(name, "X"))
        assert len(messages) == 1
    assert len(talked.view(principal=ANN).memory.turns("anns")) == 2


def test_facts_are_those_of_his_own_conversations(pipeline: RAGPipeline):
    for user, city in (("ann", "Lisbon"), ("bob", "Porto"), (None, "Bremen")):
        pipeline.view(session=f"{user}s", user=user).remember(
            Turn(content=f"I live in {city}.", role=user or "Somebody")
        )
    for episode in pipeline.recall("Who lives where?"):
        assert episode.episode.session
    pipeline.facts.consolidate(min_retrievals=1)
    facts = {fact.statement: fact for fact in pipeline.facts.list()}
    assert len(facts) == 3
    mine = list(pipeline.view(principal=BOB).facts.list())
    assert [("Porto" in fact.statement) for fact in mine] == [True]
    for whose in ({"user": "ann"}, {"session": "anns"}):
        assert not pipeline.view(**whose, principal=BOB).facts.list()
    assert {one.fact.fact_id for one in pipeline.view(principal=BOB).facts.search("Who lives where?")} == {
        mine[0].fact_id
    }
    assert pipeline.view(user="ann", principal=BOB).facts.search("Who lives where?") == []
    assert pipeline.view(principal=Principal(roles=("clerk",))).facts.search("Who lives where?") == []
    others = [fact.fact_id for fact in facts.values() if fact.fact_id != mine[0].fact_id]
    for fact_id in (*others, 987_654):
        with pytest.raises(NotFoundError):
            pipeline.view(principal=BOB).facts.get(fact_id)
        with pytest.raises(NotFoundError):
            pipeline.view(principal=BOB).facts.history(fact_id)
    assert pipeline.view(principal=BOB).facts.get(mine[0].fact_id) == mine[0]
    assert pipeline.view(principal=BOB).facts.history(mine[0].fact_id) == mine


def test_contexts_of_documents_and_conversations_hold_what_is_his(talked: RAGPipeline):
    strategies = ("rag", "hybrid", "episodic", "semantic", "bm25")
    sessions = (None, "anns", "bobs", "nobodys", "begins now")
    for principal, allowed in (
        (ANN, {OPEN, SECRET, "memory:anns"}),
        (BOB, {OPEN, "memory:bobs"}),
        (Principal(), {OPEN}),
    ):
        for user in (None, "ann", "bob"):
            assembler = talked.view(user=user, principal=principal).memory.assembler()
            for strategy, session in product(strategies, sessions):
                context = assembler.assemble("annual leave and secrets", strategy, 1_000, session)
                assert set(context.sources) <= allowed
                if principal is not ANN:
                    assert "sailing" not in context.text and "Salaries" not in context.text
    anns = talked.view(principal=ANN).memory.retriever().retrieve_hybrid("annual leave", "anns")
    assert set(anns.sources) == {OPEN, SECRET, "memory:anns"}


def test_a_list_of_these_documents_alone_is_changed_where_it_is(rag: RAGPipeline):
    for number in range(3):
        rag.ingest(Document(content=f"Note {number} of the board.", source=f"n{number}", permissions=("role:clerk",)))
    assert len({access_id for _, access_id in lists_of(rag, "documents")}) == 2
    before = lists_of(rag, "chunk_vectors")
    assert rag.grants.add("user:bob", documents=[SECRET, "n0", "n1", "n2"]) == 4
    assert lists_of(rag, "chunk_vectors") == before
    assert rag.grants.deny("user:bob", documents=["n0"]) == 1
    assert sources(rag, BOB, "note board salaries") == [OPEN, "n1", "n2", SECRET]
    assert rag.grants.deny("user:bob", documents=["n0"]) == 0
    assert rag.maintenance.check() == []


def test_permissions_given_at_ingest_replace_grants_but_never_denials(rag: RAGPipeline):
    rag.grants.deny("user:ann", documents=SECRET)
    rag.ingest(Document(content="New text of the annual salaries.", source=SECRET, permissions=("user:bob",)))
    assert rag.grants.of_documents(SECRET)[0].permissions == Permissions(grants=("user:bob",), denials=("user:ann",))
    rag.ingest(Document(content="Newer text of the annual salaries.", source=SECRET))
    assert rag.grants.of_documents(SECRET)[0].permissions == Permissions(grants=("user:bob",), denials=("user:ann",))
    rag.ingest(Document(content="Newest text of the annual salaries.", source=SECRET, permissions=("!group:g",)))
    assert rag.grants.of_documents(SECRET)[0].permissions.as_tokens() == ("user:bob", "!group:g", "!user:ann")
    assert sources(rag, BOB) == [OPEN, SECRET]
    assert rag.maintenance.check() == []


@pytest.mark.parametrize("given", [(), ("hr",), ("role:",), "hr", ("role:a", None)])
def test_permissions_that_are_none_store_nothing(unchanged: RAGPipeline, given):
    with pytest.raises(UsageError, match="permissions"):
        unchanged.ingest(Document(content="Something annual.", source="new", permissions=given))
    with pytest.raises(UsageError, match="permissions"):
        unchanged.ingest(Document(content="Something annual.", source="new", metadata={"permissions": given}))
    assert unchanged.documents.list()[-1].source == SECRET


def test_folders_are_ingested_for_whom_the_option_or_the_files_say(pipeline: RAGPipeline, tmp_path: Path):
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.md").write_text("---\npermissions: user:bob\n---\nThe annual text of a.", encoding="utf-8")
    (folder / "b.md").write_text("The annual text of b.", encoding="utf-8")
    (folder / "c.md").write_text("---\npermissions: bob\n---\nThe annual text of c.", encoding="utf-8")
    report = pipeline.ingest(folder)
    assert (report.added, report.failed) == (2, 1) and "permissions" in report.errors[0].error
    assert sources(pipeline, BOB) == ["a.md", "b.md"] and sources(pipeline, ANN) == ["b.md"]
    pipeline.ingest(folder, permissions=["role:clerk"])
    assert sources(pipeline, BOB) == [] and sources(pipeline, ANN) == ["a.md", "b.md"]
    assert pipeline.ingest(folder, permissions=["role:clerk"]).unchanged == 2
    name = pipeline.documents.get("a.md").origin
    assert pipeline.grants.add("*", source=name, only=True) == 2
    assert sources(pipeline, BOB) == ["a.md", "b.md"]
    with pytest.raises(NotFoundError, match="nowhere"):
        pipeline.grants.add("*", source="nowhere")


def test_an_export_carries_permissions_into_another_collection(rag: RAGPipeline, tmp_path: Path):
    rag.grants.deny("user:eve", documents=SECRET)
    file = tmp_path / "all.jsonl"
    file.write_text("".join(rag.collections.export_lines()), encoding="utf-8")
    rag.view(collections="copy").collections.import_file(file)
    copies = {one.source: one for one in rag.view(collections="copy").documents.list()}
    told = rag.view(collections="copy").grants.of_documents(copies[SECRET].document_id)[0]
    assert told.permissions == Permissions(grants=("role:clerk",), denials=("user:eve",))
    assert rag.view(collections="copy").grants.of_documents(copies[OPEN].document_id)[0].inherited
    line = json.loads(file.read_text(encoding="utf-8").splitlines()[1]) | {"permissions": ["nobody"], "source": "x"}
    file.write_text(json.dumps(line), encoding="utf-8")
    assert rag.view(collections="copy").collections.import_file(file).failed == 1


def test_the_index_serves_who_reads_much_and_a_comparison_who_reads_little(dsn: str, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(sql_candidates, "_INDEX_PAYS", 5)
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn, "index_threshold": 1},
        embedding={"provider": "hashing"},
        retrieval={"resident_memory_mb": 0},
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        lists = [("group:few", "group:half")] * 2 + [("group:half",), ("group:rest",)] * 19
        rag.ingest(
            Document(content=f"Annual note {number}.", source=f"n{number:02}", permissions=given)
            for number, given in enumerate(lists)
        )
        rag.store.dense_indexer.build(Scope(), "default")
        everybody = {"few": {0, 1}, "half": {0, 1, *range(2, 40, 2)}}
        for group, numbers in everybody.items():
            for mode in ("dense", "hybrid"):
                options = RetrievalOptions(mode=mode, top_k=100, collapse_duplicates=False)
                reply = rag.view(principal=Principal(groups=(group,))).search("annual note", options)
                assert {one.source for one in reply.results} == {f"n{number:02}" for number in numbers}
                assert reply.paths["dense"] == ("index" if group == "half" else "exact")


def test_only_writers_and_owners_store_documents(rag: RAGPipeline):
    rag.grants.set_collection(writers=["role:clerk"], owners=["group:project"])
    for principal in (ANN, BOB, None):
        assert rag.view(principal=principal).ingest(Document(content=f"By {principal}.")).status == "added"
    with pytest.raises(PermissionDeniedError, match="owners"):
        rag.view(principal=Principal(user_id="eve")).ingest(Document(content="By nobody."))


def test_everything_is_searched_at_once_by_what_he_may_read(rag: RAGPipeline):
    rag.view(collections="interns").ingest(Document(content="Annual leave of interns is 20 days.", source="interns.md"))
    rag.view(collections="closed").ingest(Document(content="Annual budgets are leaving.", source="budget.md"))
    rag.view(collections="closed").grants.set_collection(readers=["role:clerk"])
    reply = rag.view(collections="*", principal=BOB).search("annual leave")
    assert {(one.collection, one.source) for one in reply.results} == {("default", OPEN), ("interns", "interns.md")}
    assert [one.rank for one in reply.results] == [1, 2] and reply.collection == "*"
    assert len(rag.view(collections="*", principal=ANN).search("annual leave").results) == 4
    assert (
        len(
            rag.view(collections="*", principal=ANN)
            .search("annual leave", RetrievalOptions(top_k=1, mode="lexical"))
            .results
        )
        == 1
    )
    with pytest.raises(UsageError):
        rag.view(collections="*", principal=BOB).search(" ")


def test_what_is_stored_while_somebody_searches_is_not_found_before_his_rights_are_known(dsn: str, tmp_path: Path):
    """Between the look at the rights and the retrievers, the first document that he may not read is stored."""

    class Slow(HashingEmbedder):
        meanwhile = None

        def embed_query(self, text: str):
            action, self.meanwhile = self.meanwhile, None
            if action is not None:
                action()
            return super().embed_query(text)

    embedder = Slow()
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        retrieval={"query_cache_entries": 0},
    )
    with RAGPipeline(config, embedder=embedder) as rag:
        rag.ingest(Document(content="The annual report is open.", source=OPEN))
        secret = Document(content="The annual report is secret.", source=SECRET, permissions=("role:clerk",))
        for use_cache in (True, False):
            for mode in ("hybrid", "dense"):
                embedder.meanwhile = partial(rag.ingest, replace(secret, content=secret.content + mode))
                assert sources(rag, BOB, "annual report", mode=mode, use_cache=use_cache) == [OPEN]
                rag.documents.erase([SECRET]).counts["documents"]
        embedder.meanwhile = lambda: rag.grants.deny("user:bob", documents=OPEN)
        assert sources(rag, BOB, "annual report", use_cache=False) == []


def test_many_change_grants_and_store_at_once(pipeline: RAGPipeline):
    """Neither do they wait for one another in a circle, nor is a change lost, nor does a search see half of one."""
    names = [f"d{number}" for number in range(6)]
    pipeline.ingest(Document(content=f"Annual {name}.", source=name) for name in names)
    generators = [random.Random(seed) for seed in range(6)]

    def change(number: int) -> None:
        mine, chance = f"user:u{number}", generators[number]
        for _ in range(8):
            some = chance.sample(names, chance.randint(1, len(names)))
            match chance.randrange(4):
                case 0:
                    pipeline.grants.add(mine, documents=some)
                case 1:
                    pipeline.grants.deny(mine, documents=some)
                case 2:
                    # Grants given here would replace those of the others, by right.
                    given = chance.choice([None, (f"!{mine}",)])
                    text = f"Annual {chance.random()}."
                    pipeline.ingest(Document(content=text, source=name, permissions=given) for name in some)
                case _:
                    # Whom everything is granted from the beginning finds all of it all the time.
                    assert len(pipeline.view(principal=Principal(user_id="boss")).documents.list()) == len(names)
        pipeline.grants.add(mine, documents=names)
        pipeline.grants.remove(f"!{mine}", documents=names)

    pipeline.grants.set_collection(owners=["user:boss"])
    with ThreadPoolExecutor(6) as executor:
        list(executor.map(change, range(6)))
    for told in (pipeline.grants.of_documents(name)[0].permissions for name in names):
        assert {f"user:u{number}" for number in range(6)} - set(told.grants) == set()
        assert not any(denial.startswith("user:u") for denial in told.denials)
    assert pipeline.maintenance.check() == [] and pipeline.maintenance.verify().clean
    options = RetrievalOptions(top_k=100, collapse_duplicates=False)
    found = pipeline.view(principal=Principal(user_id="u3")).retrieve("annual", options)
    assert {one.source for one in found} == set(names)


def test_preference_mode_moves_the_order_and_hides_nothing(dsn: str, tmp_path: Path):
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        access={"mode": "preference", "privileged_roles": ("Boss",)},
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        for department in ("hr", "it"):
            text = f"The rules for annual leave of {department}."
            rag.ingest(Document(content=text, source=department, department=department, permissions=("user:nobody",)))
        # Scores say how far above the other candidates something stands: these two alone would be far apart.
        for other in ("Printers need paper.", "The canteen opens at noon.", "Cars are parked behind the house."):
            rag.ingest(Document(content=other, source=other))

        def found(principal, **options):
            return rag.view(principal=principal).retrieve(
                "rules for annual leave", RetrievalOptions(explain=True, **options)
            )

        for department in ("hr", "it"):
            mine = found(Principal(department=department))
            assert mine[0].source == department
            assert [one.explain.preference for one in mine] == [1.2, 0.9, 1.0, 1.0, 1.0]
        boss = found(Principal(department="it", roles=("Boss",)))
        assert [(one.source, pytest.approx(one.score)) for one in boss] == [
            (one.source, one.score) for one in found(None)
        ]
        assert all(one.explain.preference is None for one in boss)
        least = max(one.score for one in found(None)) * 1.01
        assert [one.source for one in found(Principal(department="it"), min_score=least)] == ["it"]


def test_where_permissions_are_off_nobody_is_asked_for(dsn: str, tmp_path: Path):
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        access={"mode": "off"},
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        rag.ingest(Document(content="Annual secrets.", source=SECRET, permissions=("user:nobody",)))
        assert sources(rag, BOB) == [SECRET]
        with pytest.raises(UsageError, match="Principal"):
            rag.view(principal="bob").search("annual")


def test_copies_of_access_lists_that_differ_are_found_and_mended(rag: RAGPipeline):
    with rag.store.database.autocommit() as connection:
        connection.execute("UPDATE chunk_vectors SET access_id = 0")
        connection.execute("UPDATE chunk_lexical SET access_id = 0")
    assert SECRET in sources(rag, BOB, use_cache=False), "this is what must not stay"
    assert any("access list than their version" in finding.problem for finding in rag.maintenance.check())
    assert not rag.maintenance.verify().clean
    assert rag.maintenance.verify(repair=True).clean
    assert sources(rag, BOB) == [OPEN] and rag.maintenance.check() == []


def test_another_tenants_lists_grant_nothing(rag: RAGPipeline):
    with rag.store.database.autocommit() as connection:
        connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (2, 'two')")
    rag.view(tenant=2).ingest(Document(content="Annual leave of two.", source="two"))
    rag.view(tenant=2).grants.set_collection(owners=["user:bob"])
    assert sources(rag, BOB) == [OPEN]
    assert {one.source for one in rag.view(tenant=2, principal=BOB).retrieve("annual")} == {"two"}
    with pytest.raises(NotFoundError):
        rag.view(tenant=2).grants.add("user:bob", documents=SECRET)
