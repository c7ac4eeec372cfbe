from __future__ import annotations

QUERY_KEYS = ["query", "collection", "mode", "results", "timings_ms", "paths", "exact", "reranked"]
RESULT_KEYS = [
    "rank", "score", "relevance", "content", "chunk_id", "document_id", "title", "source", "department",
    "section", "page", "start_offset", "end_offset", "parts", "metadata", "version_id",
]  # fmt: skip
ASK_KEYS = {
    *("question", "answer", "outcome", "refused", "citations", "passages"),
    *("model", "generated_by", "usage", "unsupported", "rewritten_question", "timings_ms"),
}
CITATION_KEYS = [
    "marker", "document_id", "source", "department", "section", "page", "last_page", "start_offset", "end_offset",
    "quote",
]  # fmt: skip
REFUSAL = "I don't have information about that in the approved knowledge base."


def test_the_reply_has_exactly_the_promised_shape(recollect, office):
    recollect("ingest", office)
    reply = recollect("query", "How many days of annual leave?", "--json").json
    assert list(reply) == QUERY_KEYS
    assert (reply["query"], reply["collection"], reply["mode"]) == (
        "How many days of annual leave?",
        "default",
        "hybrid",
    )
    best = reply["results"][0]
    assert best.keys() == {*RESULT_KEYS}
    assert (best["rank"], best["source"], best["section"]) == (1, "hr/leave.md", "Leave > Annual leave") or best[
        "content"
    ].startswith("# Leave")
    assert all(ms >= 0 for ms in reply["timings_ms"].values())

    content = recollect("documents", "show", best["document_id"], "--json").json["content"]
    assert content[best["start_offset"] : best["end_offset"]] == best["content"]


def test_explain_says_how_each_result_came_to_its_rank(recollect, office):
    recollect("ingest", office)
    reply = recollect("query", "annual leave", "--explain", "--json").json
    assert list(reply) == [*QUERY_KEYS, "explain"]
    assert reply["paths"] == {"dense": "exact", "lexical": "exact"}
    assert reply["exact"] is True
    assert reply["reranked"] is True
    assert [term for term, _ in reply["explain"]["terms"]] == ["annual", "leav"]
    for result in reply["results"]:
        assert result.keys() == {*RESULT_KEYS, "explain"}
        assert list(result["explain"]) == ["dense", "lexical", "fused_score", "coverage", "rerank_score"]
        for retriever in ("dense", "lexical"):
            assert result["explain"][retriever] is None or list(result["explain"][retriever]) == ["rank", "score"]
    plain = recollect("query", "annual leave", "--explain", "--json", "--rerank", "none").json
    assert plain["reranked"] is None
    for result in plain["results"]:
        assert list(result["explain"]) == ["dense", "lexical", "fused_score", "coverage"]
        assert result["explain"]["fused_score"] == result["score"]
    ranks = [result["explain"]["lexical"] for result in reply["results"] if "leave" in result["content"]]
    assert ranks[0]["rank"] == 1
    people = recollect("query", "annual leave", "--explain").out
    assert "BM25" in people
    assert "similarity" in people


def test_rare_words_are_found_and_one_number_is_shown(recollect, write):
    common = "The committee of the office meets every week and writes down what was decided about rooms and desks."
    texts = {f"{number}.txt": f"{common} Room {number}." for number in range(30)}
    texts["a.txt"] = "Whoever leaves a room last hands in form QBR-77 at the desk and turns off the light."
    texts["b.txt"] = "Keys that were lost are replaced after a week; the reception keeps QBR-77 for the purpose."
    texts["c.txt"] = "Chairs and tables are ordered by telephone, never by QBR-77, because the supplier changed."
    forms = ("relocates", "relocating", "relocated", "relocation")
    texts |= {
        f"{form}.txt": f"{common} It {form} them once or twice, as floor {place} is full."
        for place, form in enumerate(forms)
    }
    recollect("ingest", write(texts))
    for mode in ("hybrid", "lexical"):
        for form in forms:
            found = recollect("query", form, "--mode", mode, "--json").json["results"]
            assert found[0]["source"] == f"{form}.txt"
        found = recollect("query", "qbr-77", "--mode", mode, "--json").json["results"]
        assert {one["source"] for one in found[:3]} == {"a.txt", "b.txt", "c.txt"}
        asked = recollect("query", "Which room has the form QBR-77?", "--mode", mode, "-k", "1", "--json").json[
            "results"
        ]
        assert asked[0]["source"] in {"a.txt", "b.txt", "c.txt"}
    found = recollect("query", "QBR-77", "--explain", "--json").json["results"]
    moved = [one for one in found if "moved_from" in one["explain"]]
    assert all(one["rank"] < one["explain"]["moved_from"] and "QBR-77" in one["content"] for one in moved)

    shown = recollect("query", "QBR-77").out
    explained = recollect("query", "QBR-77", "--explain").out
    heads = [line for line in shown.splitlines() if line.startswith((" 1  ", " 2  ", " 3  "))]
    assert all(line.endswith("% relevant") for line in heads)
    assert "score" not in shown
    assert f"score {found[0]['score']:.3f}" in explained
    assert all(f"moved up from rank {one['explain']['moved_from']}" in explained for one in moved)


def test_every_mode_finds_something_and_those_with_words_the_identifier(recollect, office):
    recollect("ingest", office)
    for mode in ("hybrid", "dense", "lexical"):
        reply = recollect("query", "ERR-4012", "--mode", mode, "-k", "1", "--json").json
        assert reply["mode"] == mode
        assert len(reply["results"]) == 1
        if mode != "dense":
            assert reply["results"][0]["source"] == "it/errors.md"


def test_filters_and_options(recollect, office):
    recollect("ingest", office)

    def sources(*options: str) -> set[str]:
        results = recollect("query", "the office rules", "-k", "50", "--json", *options).json["results"]
        return {result["source"] for result in results}

    assert sources() == {"hr/leave.md", "hr/pay.txt", "it/errors.md", "readme.txt"}
    assert sources("--department", "hr") == {"hr/leave.md", "hr/pay.txt"}
    assert sources("--department", "hr", "--department", "it") == {"hr/leave.md", "hr/pay.txt", "it/errors.md"}
    assert sources("--source", "readme.txt") == {"readme.txt"}
    assert sources("--where", "format=markdown") == {"hr/leave.md", "it/errors.md"}
    assert sources("--where", 'format="txt"') == {"hr/pay.txt", "readme.txt"}
    assert sources("--where", "format=nothing") == set()
    assert sources("--min-similarity", "1") == set()
    assert sources("--fusion", "rrf", "--rrf-k", "10", "--candidates", "20", "--dense-weight", "0.2")
    assert "or without --min-similarity." in recollect("query", "x", "--min-similarity", "1").out
    assert "KEY=VALUE" in recollect("query", "x", "--where", "format", status=2).err
    assert "dense_weight" in recollect("query", "x", "--dense-weight", "2", status=2).err
    assert "top_k" in recollect("query", "x", "-k", "0", status=2).err


QUERIES = [
    "the of and to",
    "?!",
    "annual leave " * 770,
    "الإجازة السنوية",
    "年次有給休暇は何日ですか",
    "חופשה שנתית",
    "🏖️🏖️",
    "'; DROP TABLE recollect.documents; --",
    "[bold]markup[/bold] \\[x]",
    "a\tb\nc",
]


def test_any_text_may_be_asked(recollect, office):
    recollect("ingest", office)
    for query in QUERIES:
        reply = recollect("query", query, "--json").json
        assert reply["query"] == query
        assert len(reply["results"]) <= 10
    recollect("query", QUERIES[-2])
    assert recollect("ask", QUERIES[2], "--json").json["outcome"] in {"answer", "passages", "none"}


def test_an_empty_query_and_an_endless_one_are_refused_before_anything_is_opened(recollect, tmp_path):
    for text in ("", "   ", "word " * 10_000):
        assert recollect("query", text, "--dsn", "host=/nowhere", status=2).err.startswith("Error: The query")
        assert recollect("ask", text, "--dsn", "host=/nowhere", status=2).err.startswith("Error: The query")


def test_a_store_without_documents(recollect):
    assert recollect("query", "anything", "--json").json["results"] == []
    assert "recollect ingest" in recollect("query", "anything").out
    answer = recollect("ask", "anything", "--json").json
    assert (answer["answer"], answer["outcome"], answer["citations"]) == (REFUSAL, "none", [])
    error = recollect("query", "anything", "-c", "nowhere", "--json", status=1)
    assert list(error.json) == ["error"]
    assert error.json["error"]["type"] == "NotFoundError"
    assert error.json["error"]["message"] in error.err


def test_what_a_terminal_would_obey_does_not_reach_it(recollect, write):
    hostile = "Leave is \x1b[31m30 days\x1b[0m \x1b]0;owned\x07 and \u202egnittirw sdrawkcab\u202c \x9b2J [red]x[/red]."
    recollect("ingest", write({"hostile\x1b[2J.txt": hostile}))
    for command in (["query", "leave"], ["ask", "leave days"], ["documents", "list"], ["documents", "show", "1"]):
        out = recollect(*command).out
        assert "\x1b" not in out
        assert "\x9b" not in out
        assert "\u202e" not in out
    assert "and gnittirw sdrawkcab [red]x[/red]." in " ".join(recollect("query", "leave").out.split())


def test_the_words_of_the_query_are_marked_on_a_terminal_only(recollect, office):
    recollect("ingest", office)
    assert "\x1b" not in recollect("query", "annual leaves").out
    coloured = recollect.environment | {"FORCE_COLOR": "1", "TERM": "xterm"}
    on_terminal = type(recollect)(recollect.folder, coloured)
    assert "\x1b[1;33mleave\x1b[0m" in on_terminal("query", "annual leaves").out
    assert "\x1b[1;33m" not in type(recollect)(recollect.folder, coloured | {"NO_COLOR": "1"})("query", "leaves").out


def test_a_reader_who_has_read_enough_is_no_error(recollect, write):
    recollect("ingest", write({f"{n}.txt": f"Document {n}. " * 400 for n in range(40)}))
    process = recollect.start("query", "document", "-k", "1000", "--json")
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(timeout=60)
    assert errors == ""
    assert process.returncode == 141


def test_global_options_stand_before_or_behind_the_command(recollect, office):
    recollect("-c", "rules", "--json", "ingest", office)
    before = recollect("--collection", "rules", "--json", "query", "leave").json
    behind = recollect("query", "leave", "--collection", "rules", "--json").json
    assert before["collection"] == behind["collection"] == "rules"
    assert before["results"] == behind["results"]
    assert "takes no --collection" in recollect("-c", "rules", "models", "list", status=2).err


def test_a_configuration_file(recollect, office, tmp_path):
    recollect("ingest", office)
    settings = tmp_path / "settings.toml"
    settings.write_text("[rag.retrieval]\ntop_k = 2\n")
    assert len(recollect("query", "leave", "--config", settings, "--json").json["results"]) == 2
    settings.write_text("[rag.retrieval]\ntop_q = 2\n")
    assert (
        "rag.retrieval.top_q: there is no such setting" in recollect("query", "x", "--config", settings, status=2).err
    )


def test_an_unreachable_database_is_one_clear_message(recollect):
    outcome = recollect("status", "--dsn", "host=/nowhere port=1 dbname=x", status=1)
    assert outcome.err.startswith("Error: Cannot connect to PostgreSQL")
    verbose = recollect("status", "--verbose", "--dsn", "host=/nowhere port=1 dbname=x", status=None)
    assert verbose.status == 1
    assert "Traceback" in verbose.err


def test_answers_quote_exact_characters_or_refuse(recollect_with_model, office):
    recollect = recollect_with_model
    recollect("ingest", office)
    answer = recollect("ask", "How many days of annual leave do employees have?", "--json").json
    assert answer.keys() == ASK_KEYS
    assert (answer["outcome"], answer["refused"]) == ("answer", False)
    assert "30 days" in answer["answer"]
    assert "[1]" in answer["answer"]
    assert answer["citations"]
    for citation in answer["citations"]:
        assert list(citation) == CITATION_KEYS
    for shown in (*answer["citations"], *answer["passages"]):
        content = recollect("documents", "show", shown["document_id"], "--json").json["content"]
        assert content[shown["start_offset"] : shown["end_offset"]] == shown.get("quote", shown.get("text"))

    refusal = recollect("ask", "What is the airspeed velocity of an unladen swallow?", "--json").json
    assert (refusal["answer"], refusal["outcome"], refusal["passages"]) == (REFUSAL, "none", [])
    assert (refusal["refused"], refusal["citations"]) == (True, [])

    people = recollect("ask", "How many days of annual leave do employees have?").out
    assert "[1] hr/leave.md › Leave" in people


WHY_NOT_KEYS = ["query", "collection", "document", "found", "rank", "stages", "verdict"]


def test_why_not_says_what_kept_a_document_out(recollect, office):
    recollect("ingest", office)
    told = recollect("why-not", "annual leave", "pay.txt", "--department", "it", "-k", "1", "--json").json
    assert list(told) == WHY_NOT_KEYS
    assert (told["query"], told["collection"], told["found"], told["rank"]) == ("annual leave", "default", False, None)
    assert list(told["document"]) == ["document_id", "title", "source", "department"]
    assert told["document"]["source"] == "hr/pay.txt"
    for stage in told["stages"]:
        assert list(stage)[:3] == ["stage", "passed", "detail"]
    (kept_out,) = [stage for stage in told["stages"] if stage["stage"] == "filter"]
    assert kept_out["conditions"] == [{"condition": "department = 'it'", "passed": False}]
    assert "department = 'it' excludes it: its department is 'hr'" in told["verdict"]

    found = recollect("why-not", "annual leave", "hr/leave.md", "--json").json
    assert found["found"] is True and found["rank"] == 1
    assert all(stage["passed"] for stage in found["stages"])

    people = recollect("why-not", "annual leave", "hr/pay.txt", "-k", "1").out
    assert "hr/pay.txt is not found" in people and "top_k" in people
    assert "never ingested" in recollect("why-not", "annual leave", "nowhere.txt", status=1).err
    assert "empty" in recollect("why-not", " ", "hr/pay.txt", status=2).err


def test_explain_tells_people_what_was_done(recollect, office):
    recollect("ingest", office)
    told = recollect("query", "annual leave", "--explain", "--department", "hr").out
    assert "words" in told and "annual" in told
    assert "keeps 2 documents, removes 2" in told
    assert "consensus" in told
    assert " ms" in told
    nothing = recollect("query", "annual leave", "--explain", "--department", "none").out
    assert "No document has the department 'none'" in nothing and "keeps 0 documents, removes 4" in nothing
    assert "keeps" not in recollect("query", "annual leave", "--department", "hr").out


def test_a_context_for_a_prompt_is_the_text_alone(recollect, office):
    recollect("ingest", office)
    whole = recollect("query", "days of annual leave", "--context", "--mode", "lexical")
    assert whole.out.startswith("[Source 1: hr/leave.md | Section: Leave")
    assert "30 days of annual leave." in whole.out
    assert "1 passage, " in whole.err
    told = recollect("query", "days of annual leave", "--context", "--mode", "lexical", "--json").json
    assert list(told) == ["query", "collection", "context", "token_count", "omitted", "cached", "passages"]
    assert told["context"] == whole.out.rstrip("\n")
    (shown,) = told["passages"]
    content = recollect("documents", "show", shown["document_id"], "--json").json["content"]
    assert content[shown["start_offset"] : shown["end_offset"]] in told["context"]
    assert (shown["number"], shown["source"], shown["shortened"]) == (1, "hr/leave.md", False)
    assert 0 < shown["relevance"] <= 1


def test_a_contexts_limits_hold(recollect, office):
    recollect("ingest", office)
    tight = recollect("query", "leave salaries errors", "--context", "--max-context-length", "120", "--json").json
    assert 0 < len(tight["context"]) <= 120
    assert tight["omitted"] > 0
    few = recollect("query", "leave salaries errors", "--context", "--token-budget", "25", "--json").json
    assert 0 < few["token_count"] <= 25
    none = recollect("query", "leave", "--context", "--department", "nobody")
    assert none.out == ""
    unknown = "No document has the department 'nobody'. There are: hr, it."
    assert none.err.splitlines() == [unknown, "0 passages, 0 tokens"]
    assert "give --context" in recollect("query", "leave", "--token-budget", "5", status=2).err
    assert "--token-budget" in recollect("query", "leave", "--context", "--token-budget", "0", status=2).err


def test_a_piece_of_a_table_is_shown_with_the_names_of_its_columns(recollect, tmp_path):
    rows = [f"| Cost of line {n} in the whole of the year | {n},500 | ({n},400) |" for n in range(30)]
    header = "| (in millions) | 2024 | 2023 |"
    (tmp_path / "costs.md").write_text("\n".join(["Costs by line", "", header, "|---|---|---|", *rows]))
    recollect("ingest", tmp_path / "costs.md")
    found = recollect("query", "cost of line 29 in 2023", "--mode", "lexical", "--json").json["results"]
    piece = next(one for one in found if rows[29] in one["content"])
    assert piece["table_header"] == header
    assert all(line in rows for line in piece["content"].split("\n"))
    assert header in recollect("query", "cost of line 29 in 2023", "--mode", "lexical").out
    assert "Table header: (in millions) / 2024 / 2023" in recollect("context", "cost of line 29 in 2023").out
