"""What somebody may not read influences nothing that he sees, and changes of grants count at once."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from recollect import Document, Principal, RAGConfig, RAGPipeline, RetrievalOptions, TemporalRAG, Turn
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import NotFoundError, PermissionDeniedError, UsageError
from recollect.model import Scope
from recollect.model.principal import Permissions
from recollect.retrieval import arms

ANN = Principal(user_id="ann", roles=("clerk",), department="hr")
BOB = Principal(user_id="bob", department="it", groups=("project",))
OPEN, SECRET = "leave.md", "salaries.md"


@pytest.fixture
def rag(pipeline: RAGPipeline) -> RAGPipeline:
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
    return sorted({one.source for one in rag.retrieve(query, RetrievalOptions(**options), principal=principal)})


def test_the_owner_of_the_store_sees_everything_and_others_what_they_may(rag: RAGPipeline):
    assert sources(rag, None) == sources(rag, ANN) == [OPEN, SECRET]
    assert sources(rag, BOB) == [OPEN]
    assert sources(rag, Principal()) == [OPEN]


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_no_filter_gets_around_it(rag: RAGPipeline, mode: str):
    for options in (
        {"source": (SECRET,)},
        {"department": ("board",)},
        {"metadata_filters": {"level": "secret"}},
        {"filters": {"or": [{"source": SECRET}, {"title": {"exists": True}}]}},
        {"top_k": 1000, "similarity_threshold": -1.0, "collapse_duplicates": False, "neighbours": 10},
    ):
        assert SECRET not in sources(rag, BOB, "salaries annual secrets", mode=mode, use_cache=False, **options)


def test_counts_and_weights_in_explanations_are_of_what_he_may_read(rag: RAGPipeline):
    options = RetrievalOptions(explain=True, metadata_filters={"level": "secret"})
    told = rag.search("annual salaries", options, principal=BOB).explain
    assert (told.filter_kept, told.filter_removed, [count for _, count in told.removed_by]) == (0, 1, [1])
    assert rag.search("annual salaries", options).explain.filter_kept == 1
    plain = rag.search("annual salaries", RetrievalOptions(explain=True), principal=BOB)
    weights = dict(plain.explain.terms)
    assert weights["salari"] == 0.0 and weights["annual"] > 0
    # As far as he can tell, that document was never written.
    alone = RAGPipeline.search(rag, "annual", RetrievalOptions(explain=True), principal=ANN).explain
    assert dict(alone.terms)["annual"] != weights["annual"]


def test_acronyms_come_from_what_he_may_read(rag: RAGPipeline):
    told = {who: rag.search("ELB", RetrievalOptions(explain=True), principal=who) for who in (ANN, BOB)}
    assert "executive leave board" in " ".join(told[ANN].explain.enhancements).lower()
    assert "board" not in " ".join(told[BOB].explain.enhancements).lower()


def test_answers_and_contexts_rest_on_what_he_may_read(rag: RAGPipeline):
    assert SECRET in rag.context("annual secrets", principal=ANN).text
    context = rag.context("annual secrets", principal=BOB)
    assert "secret" not in context.text.lower()
    answer = rag.ask("What are annual secrets?", principal=BOB)
    assert all(citation.source != SECRET for citation in answer.citations)
    assert answer.nearest is None or answer.nearest.evidence.source != SECRET


def test_documents_lists_status_and_exports_show_what_he_may_read(rag: RAGPipeline):
    assert [one.source for one in rag.list_documents(principal=BOB)] == [OPEN]
    place = rag.list_collections(principal=BOB)[0]
    assert (place.document_count, place.chunk_count, place.stats_chunks) == (1, 1, 0)
    status = rag.status(principal=BOB)
    assert (status.total_documents, status.total_chunks, dict(status.departments)) == (1, 1, {"hr": 1})
    assert rag.status().total_documents == rag.status(principal=ANN).total_documents == 2
    rag.create_collection("board")
    rag.set_collection_access("board", readers=["role:clerk"])
    rag.ingest("Annual dividends.", collection="board")
    rag.search("annual", collection="board")
    told = rag.status(principal=BOB)
    assert [place.name for place in told.collections] == ["default"] and told.database_bytes == 0
    assert [json.loads(line)["source"] for line in rag.export_lines(principal=BOB)] == [OPEN]


def test_what_he_may_not_read_is_told_of_as_what_never_was(rag: RAGPipeline):
    number = str(rag.get_document(SECRET).document_id)

    def told(action, name: str) -> str:
        with pytest.raises(NotFoundError) as error:
            action(name)
        return str(error.value).replace(name, "X")

    for action in (
        lambda name: rag.get_document(name, principal=BOB),
        lambda name: rag.why_not("annual", name, principal=BOB),
    ):
        assert told(action, SECRET) == told(action, "never.md")
        assert told(action, number) == told(action, "987654")
    rag.create_collection("board")
    rag.set_collection_access("board", readers=["role:clerk"])
    for action in (
        lambda name: rag.search("annual", collection=name, principal=BOB),
        lambda name: rag.ask("annual?", collection=name, principal=BOB),
        lambda name: rag.list_documents(collection=name, principal=BOB),
        lambda name: list(rag.export_lines(collection=name, principal=BOB)),
        lambda name: rag.why_not("annual", OPEN, collection=name, principal=BOB),
        lambda name: rag.ingest("text", collection=name, principal=BOB),
    ):
        assert told(action, "board") == told(action, "nowhere")
    assert [place.name for place in rag.list_collections(principal=BOB)] == ["default"]
    assert rag.search("annual", collection="board", principal=ANN).results == ()


def test_a_denial_beats_every_grant_and_owners_beat_every_denial(rag: RAGPipeline):
    rag.grant("user:bob", documents=SECRET)
    assert SECRET in sources(rag, BOB)
    rag.deny("group:project", documents=SECRET)
    assert SECRET not in sources(rag, BOB)
    rag.grant(["*", "user:bob"], documents=SECRET)
    assert SECRET not in sources(rag, BOB)
    rag.set_collection_access(owners=["user:bob"], readers=[])
    assert sources(rag, BOB) == [OPEN, SECRET]
    with pytest.raises(NotFoundError):
        rag.search("annual", RetrievalOptions(), collection="default", principal=ANN) and rag.get_document(
            OPEN, principal=ANN
        )
    rag.revoke("!group:project", documents=SECRET)
    assert rag.permissions_of(SECRET)[0].permissions == Permissions(grants=("*", "role:clerk", "user:bob"))


def test_changes_count_from_the_next_search_on_whatever_is_cached(rag: RAGPipeline):
    for _ in range(2):
        assert sources(rag, BOB) == [OPEN]
    rag.grant("department:it", documents=SECRET)
    assert sources(rag, BOB) == [OPEN, SECRET]
    rag.revoke("department:it", documents=SECRET)
    assert sources(rag, BOB) == [OPEN]
    rag.revoke("*", collection="default")
    assert sources(rag, BOB) == [] and sources(rag, ANN) == [SECRET]
    rag.grant("*", collection="default")
    rag.set_collection_access(readers=["role:clerk"])
    assert rag.search("annual", principal=BOB).results == ()


def test_equal_rights_share_cached_replies_and_different_ones_never(rag: RAGPipeline):
    first, eve = rag.search("annual leave", principal=BOB), Principal(user_id="eve")
    assert not first.cached and rag.search("annual leave", principal=eve).cached
    owner = rag.search("annual leave")
    assert not owner.cached and len(owner.results) == 2
    clerk = rag.search("annual leave", principal=ANN)
    assert not clerk.cached and len(clerk.results) == 2
    assert len(rag.search("annual leave", principal=eve).results) == 1


def test_the_grants_of_then_and_of_today_decide_who_reads_the_past(rag: RAGPipeline):
    before = rag.get_document(SECRET).known_from
    rag.ingest(Document(content="Salaries are annual and public now.", source=SECRET))
    assert sources(rag, BOB) == [OPEN]
    assert {one.source for one in rag.retrieve("annual", as_of=before, principal=BOB)} == {OPEN}
    rag.grant("user:bob", documents=SECRET)
    # What was written before he was granted it stays closed to him, and open to whom it was granted.
    assert {one.source for one in rag.retrieve("annual salaries", as_of=before, principal=BOB)} == {OPEN}
    past = rag.retrieve("annual salaries", as_of=before, principal=ANN)
    assert any("secrets" in one.content for one in past)
    rag.delete_documents([SECRET])
    rag.revoke("user:bob", documents=SECRET)
    assert {one.source for one in rag.retrieve("annual", as_of=before, principal=BOB)} == {OPEN}


def lists_of(rag: RAGPipeline, table: str) -> list[tuple]:
    with rag.store.database.transaction(Scope()) as connection:
        return connection.execute(f"SELECT ctid::text, access_id FROM {table} ORDER BY 1").fetchall()


def test_histories_and_evidence_of_what_he_may_not_read_do_not_exist(rag: RAGPipeline):
    start = rag.get_document(SECRET).known_from
    rag.ingest(Document(content="Annual salaries changed.", source=SECRET))
    for ask in (rag.document_history, rag.document_diff):
        assert ask(SECRET, principal=ANN).source == SECRET
        with pytest.raises(NotFoundError):
            ask(SECRET, principal=BOB)
    told = rag.diff_evidence("annual salaries", from_time=start, principal=BOB)
    assert (told.came, told.went, told.changed) == ((), (), ()) and {one.source for one in told.stayed} == {OPEN}
    assert rag.diff_evidence("annual salaries", from_time=start, principal=ANN).came
    bobs = TemporalRAG(rag, principal=BOB)
    assert {one.source for one in bobs.search("annual salaries", as_of=start).results} == {OPEN}
    assert all(citation.source == OPEN for citation in bobs.ask("What about annual salaries?").citations)


@pytest.fixture
def talked(rag: RAGPipeline) -> RAGPipeline:
    rag.remember("anns", ["I plan my annual leave in May.", "And then I go sailing."], user="ann")
    rag.remember("bobs", "My annual leave is in June.", user="bob")
    rag.remember("nobodys", "Annual leave is for everybody.")
    return rag


def test_conversations_are_those_of_his_own_user_id(talked: RAGPipeline):
    def heard(principal: Principal | None, **where) -> set[str]:
        found = talked.recall("annual leave", principal=principal, **where)
        return {one.episode.session for one in found}

    assert heard(None) == {"anns", "bobs", "nobodys"}
    assert heard(ANN) == heard(ANN, user="ann") == heard(ANN, session="anns") == {"anns"}
    # Neither the name of somebody else, nor that of his session, nor being nobody in particular gets around it.
    assert heard(ANN, user="bob") == heard(ANN, session="anns", user="bob") - {"anns"} == set()
    assert heard(Principal(department="hr")) == heard(Principal(user_id="eve")) == set()
    assert [one.name for one in talked.list_sessions(principal=BOB)] == ["bobs"]
    assert talked.list_sessions(user="ann", principal=BOB) == []
    for ask in (
        lambda name: talked.recall("annual leave", session=name, principal=BOB),
        lambda name: talked.get_session(name, principal=BOB),
        lambda name: talked.session_turns(name, principal=BOB),
    ):
        messages = set()
        for name in ("anns", "nobodys", "never"):
            with pytest.raises(NotFoundError) as error:
                ask(name)
            messages.add(str(error.value).replace(name, "X"))
        assert len(messages) == 1
    assert len(talked.session_turns("anns", principal=ANN)) == 2


def test_facts_are_those_of_his_own_conversations(pipeline: RAGPipeline):
    for user, city in (("ann", "Lisbon"), ("bob", "Porto"), (None, "Bremen")):
        pipeline.remember(f"{user}s", Turn(content=f"I live in {city}.", role=user or "Somebody"), user=user)
    for episode in pipeline.recall("Who lives where?"):
        assert episode.episode.session
    pipeline.consolidate(min_retrievals=1)
    facts = {fact.statement: fact for fact in pipeline.list_facts()}
    assert len(facts) == 3
    mine = pipeline.list_facts(principal=BOB)
    assert [("Porto" in fact.statement) for fact in mine] == [True]
    assert pipeline.list_facts(user="ann", principal=BOB) == pipeline.list_facts(session="anns", principal=BOB) == []
    assert {one.fact.fact_id for one in pipeline.recall_facts("Who lives where?", principal=BOB)} == {mine[0].fact_id}
    assert pipeline.recall_facts("Who lives where?", user="ann", principal=BOB) == []
    assert pipeline.recall_facts("Who lives where?", principal=Principal(roles=("clerk",))) == []
    others = [fact.fact_id for fact in facts.values() if fact.fact_id != mine[0].fact_id]
    for fact_id in (*others, 987_654):
        with pytest.raises(NotFoundError):
            pipeline.get_fact(fact_id, principal=BOB)
        with pytest.raises(NotFoundError):
            pipeline.fact_history(fact_id, principal=BOB)
    assert pipeline.get_fact(mine[0].fact_id, principal=BOB) == mine[0]
    assert pipeline.fact_history(mine[0].fact_id, principal=BOB) == mine


@pytest.mark.parametrize("strategy", ["rag", "hybrid", "episodic", "semantic", "bm25"])
def test_contexts_of_documents_and_conversations_hold_what_is_his(talked: RAGPipeline, strategy: str):
    for principal, allowed in (
        (ANN, {OPEN, SECRET, "memory:anns"}),
        (BOB, {OPEN, "memory:bobs"}),
        (Principal(), {OPEN}),
    ):
        for user in (None, "ann", "bob"):
            assembler = talked.context_assembler(user=user, principal=principal)
            for session in (None, "anns", "bobs", "nobodys", "begins now"):
                context = assembler.assemble("annual leave and secrets", strategy, 1_000, session)
                assert set(context.sources) <= allowed
                if principal is not ANN:
                    assert "sailing" not in context.text and "Salaries" not in context.text
    anns = talked.hybrid_retriever(principal=ANN).retrieve_hybrid("annual leave", "anns")
    assert set(anns.sources) == {OPEN, SECRET, "memory:anns"}


def test_a_list_of_these_documents_alone_is_changed_where_it_is(rag: RAGPipeline):
    for number in range(3):
        rag.ingest(Document(content=f"Note {number} of the board.", source=f"n{number}", permissions=("role:clerk",)))
    assert len({access_id for _, access_id in lists_of(rag, "documents")}) == 2
    before = lists_of(rag, "chunk_vectors")
    assert rag.grant("user:bob", documents=[SECRET, "n0", "n1", "n2"]) == 4
    assert lists_of(rag, "chunk_vectors") == before
    assert rag.deny("user:bob", documents=["n0"]) == 1
    assert sources(rag, BOB, "note board salaries") == [OPEN, "n1", "n2", SECRET]
    assert rag.deny("user:bob", documents=["n0"]) == 0
    assert rag.check() == []


def test_permissions_given_at_ingest_replace_grants_but_never_denials(rag: RAGPipeline):
    rag.deny("user:ann", documents=SECRET)
    rag.ingest(Document(content="New text of the annual salaries.", source=SECRET, permissions=("user:bob",)))
    assert rag.permissions_of(SECRET)[0].permissions == Permissions(grants=("user:bob",), denials=("user:ann",))
    rag.ingest(Document(content="Newer text of the annual salaries.", source=SECRET))
    assert rag.permissions_of(SECRET)[0].permissions == Permissions(grants=("user:bob",), denials=("user:ann",))
    rag.ingest(Document(content="Newest text of the annual salaries.", source=SECRET, permissions=("!group:g",)))
    assert rag.permissions_of(SECRET)[0].permissions.as_tokens() == ("user:bob", "!group:g", "!user:ann")
    assert sources(rag, BOB) == [OPEN, SECRET]
    assert rag.check() == []


@pytest.mark.parametrize("given", [(), ("hr",), ("role:",), "hr", ("role:a", None)])
def test_permissions_that_are_none_store_nothing(rag: RAGPipeline, given):
    with pytest.raises(UsageError, match="permissions"):
        rag.ingest(Document(content="Something annual.", source="new", permissions=given))
    with pytest.raises(UsageError, match="permissions"):
        rag.ingest(Document(content="Something annual.", source="new", metadata={"permissions": given}))
    assert rag.list_documents()[-1].source == SECRET


def test_folders_are_ingested_for_whom_the_option_or_the_files_say(pipeline: RAGPipeline, tmp_path: Path):
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.md").write_text("---\npermissions: user:bob\n---\nThe annual text of a.", encoding="utf-8")
    (folder / "b.md").write_text("The annual text of b.", encoding="utf-8")
    (folder / "c.md").write_text("---\npermissions: bob\n---\nThe annual text of c.", encoding="utf-8")
    report = pipeline.ingest_paths([folder])
    assert (report.added, report.failed) == (2, 1) and "permissions" in report.errors[0].error
    assert sources(pipeline, BOB) == ["a.md", "b.md"] and sources(pipeline, ANN) == ["b.md"]
    pipeline.ingest_paths([folder], permissions=["role:clerk"])
    assert sources(pipeline, BOB) == [] and sources(pipeline, ANN) == ["a.md", "b.md"]
    assert pipeline.ingest_paths([folder], permissions=["role:clerk"]).unchanged == 2
    name = pipeline.get_document("a.md").origin
    assert pipeline.grant("*", source=name, only=True) == 2
    assert sources(pipeline, BOB) == ["a.md", "b.md"]
    with pytest.raises(NotFoundError, match="nowhere"):
        pipeline.grant("*", source="nowhere")


def test_an_export_carries_permissions_into_another_collection(rag: RAGPipeline, tmp_path: Path):
    rag.deny("user:eve", documents=SECRET)
    file = tmp_path / "all.jsonl"
    file.write_text("".join(rag.export_lines()), encoding="utf-8")
    rag.import_file(file, collection="copy")
    copies = {one.source: one for one in rag.list_documents(collection="copy")}
    told = rag.permissions_of(copies[SECRET].document_id)[0]
    assert told.permissions == Permissions(grants=("role:clerk",), denials=("user:eve",))
    assert rag.permissions_of(copies[OPEN].document_id)[0].inherited
    line = json.loads(file.read_text(encoding="utf-8").splitlines()[1]) | {"permissions": ["nobody"], "source": "x"}
    file.write_text(json.dumps(line), encoding="utf-8")
    assert rag.import_file(file, collection="copy").failed == 1


def test_the_index_serves_who_reads_much_and_a_comparison_who_reads_little(dsn: str, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(arms, "_INDEX_PAYS", 5)
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn, "index_threshold": 1}, embedding={"provider": "hashing"}
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        lists = [("group:few", "group:half")] * 2 + [("group:half",), ("group:rest",)] * 19
        rag.ingest_many(
            Document(content=f"Annual note {number}.", source=f"n{number:02}", permissions=given)
            for number, given in enumerate(lists)
        )
        rag.store.dense_indexer.build(Scope(), "default")
        everybody = {"few": {0, 1}, "half": {0, 1, *range(2, 40, 2)}}
        for group, numbers in everybody.items():
            for mode in ("dense", "hybrid"):
                options = RetrievalOptions(mode=mode, top_k=100, collapse_duplicates=False)
                reply = rag.search("annual note", options, principal=Principal(groups=(group,)))
                assert {one.source for one in reply.results} == {f"n{number:02}" for number in numbers}
                assert reply.paths["dense"] == ("index" if group == "half" else "exact")


def test_only_writers_and_owners_store_documents(rag: RAGPipeline):
    rag.set_collection_access(writers=["role:clerk"], owners=["group:project"])
    for principal in (ANN, BOB, None):
        assert rag.ingest(Document(content=f"By {principal}."), principal=principal).status == "added"
    with pytest.raises(PermissionDeniedError, match="owners"):
        rag.ingest(Document(content="By nobody."), principal=Principal(user_id="eve"))


def test_everything_is_searched_at_once_by_what_he_may_read(rag: RAGPipeline):
    rag.ingest(Document(content="Annual leave of interns is 20 days.", source="interns.md"), collection="interns")
    rag.ingest(Document(content="Annual budgets are leaving.", source="budget.md"), collection="closed")
    rag.set_collection_access("closed", readers=["role:clerk"])
    reply = rag.augment_context("annual leave", BOB)
    assert {(one.collection, one.source) for one in reply.results} == {("default", OPEN), ("interns", "interns.md")}
    assert [one.rank for one in reply.results] == [1, 2] and reply.collection == "*"
    assert len(rag.augment_context("annual leave", ANN).results) == 4
    assert len(rag.augment_context("annual leave", ANN, RetrievalOptions(top_k=1, mode="lexical")).results) == 1
    with pytest.raises(UsageError):
        rag.augment_context(" ", BOB)


def test_what_is_stored_while_somebody_searches_is_not_found_before_his_rights_are_known(dsn: str, tmp_path: Path):
    """Between the look at the rights and the arms, the first document that he may not read is stored."""

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
                rag.erase_documents([SECRET])
        embedder.meanwhile = lambda: rag.deny("user:bob", documents=OPEN)
        assert sources(rag, BOB, "annual report", use_cache=False) == []


def test_many_change_grants_and_store_at_once(pipeline: RAGPipeline):
    """Neither do they wait for one another in a circle, nor is a change lost, nor does a search see half of one."""
    names = [f"d{number}" for number in range(6)]
    pipeline.ingest_many(Document(content=f"Annual {name}.", source=name) for name in names)
    generators = [random.Random(seed) for seed in range(6)]

    def change(number: int) -> None:
        mine, chance = f"user:u{number}", generators[number]
        for _ in range(8):
            some = chance.sample(names, chance.randint(1, len(names)))
            match chance.randrange(4):
                case 0:
                    pipeline.grant(mine, documents=some)
                case 1:
                    pipeline.deny(mine, documents=some)
                case 2:
                    # Grants given here would replace those of the others, by right.
                    given = chance.choice([None, (f"!{mine}",)])
                    text = f"Annual {chance.random()}."
                    pipeline.ingest_many(Document(content=text, source=name, permissions=given) for name in some)
                case _:
                    # Whom everything is granted from the beginning finds all of it all the time.
                    assert len(pipeline.list_documents(principal=Principal(user_id="boss"))) == len(names)
        pipeline.grant(mine, documents=names)
        pipeline.revoke(f"!{mine}", documents=names)

    pipeline.set_collection_access(owners=["user:boss"])
    with ThreadPoolExecutor(6) as executor:
        list(executor.map(change, range(6)))
    for told in (pipeline.permissions_of(name)[0].permissions for name in names):
        assert {f"user:u{number}" for number in range(6)} - set(told.grants) == set()
        assert not any(denial.startswith("user:u") for denial in told.denials)
    assert pipeline.check() == [] and pipeline.verify().clean
    options = RetrievalOptions(top_k=100, collapse_duplicates=False)
    found = pipeline.retrieve("annual", options, principal=Principal(user_id="u3"))
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
            return rag.retrieve(
                "rules for annual leave", RetrievalOptions(explain=True, **options), principal=principal
            )

        for department in ("hr", "it"):
            mine = found(Principal(department=department))
            assert mine[0].source == department
            assert [one.explain.preference for one in mine] == [1.2, 0.9, 1.0, 1.0, 1.0]
        boss = found(Principal(department="it", roles=("Boss",)))
        assert [(one.source, one.score) for one in boss] == [(one.source, one.score) for one in found(None)]
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
            rag.search("annual", principal="bob")


def test_copies_of_access_lists_that_differ_are_found_and_mended(rag: RAGPipeline):
    with rag.store.database.autocommit() as connection:
        connection.execute("UPDATE chunk_vectors SET access_id = 0")
        connection.execute("UPDATE chunk_lexical SET access_id = 0")
    assert SECRET in sources(rag, BOB, use_cache=False), "this is what must not stay"
    assert any("others may read" in finding.problem for finding in rag.check())
    assert not rag.verify().clean
    assert rag.verify(repair=True).clean
    assert sources(rag, BOB) == [OPEN] and rag.check() == []


def test_another_tenants_lists_grant_nothing(rag: RAGPipeline):
    with rag.store.database.autocommit() as connection:
        connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (2, 'two')")
    rag.ingest(Document(content="Annual leave of two.", source="two"), 2)
    rag.set_collection_access(owners=["user:bob"], tenant_id=2)
    assert sources(rag, BOB) == [OPEN]
    assert {one.source for one in rag.retrieve("annual", tenant_id=2, principal=BOB)} == {"two"}
    with pytest.raises(NotFoundError):
        rag.grant("user:bob", documents=SECRET, tenant_id=2)
