"""What a first user meets: the wrong collection, a slip of the pen in a filter, options that do not go together."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from program import Recollect
from recollect.cli.main import PANELS


@pytest.fixture
def two(recollect, office, tmp_path):
    """The office in the collection ``a``, and one of its files, changed, in ``b``."""
    recollect("ingest", office, "-c", "a")
    other = tmp_path / "other" / "hr"
    other.mkdir(parents=True)
    (other / "leave.md").write_text("# Leave\n\nThe branch gives 25 days of annual leave.\n", encoding="utf-8")
    recollect("ingest", other.parent, "-c", "b")
    return recollect


def test_status_of_a_collection_shows_that_one_or_is_an_error(two):
    whole = two("status", "--json").json
    assert (whole["total_documents"], len(whole["collections"])) == (5, 2)
    one = two("status", "-c", "b", "--json").json
    assert (one["total_documents"], one["departments"].keys()) == (1, {"hr"})
    assert [place["name"] for place in one["collections"]] == ["b"]
    assert set(one["search"]["collections"]) <= {"b"}
    assert two("status", "-c", "b").out.startswith("1 document, 1 chunk, ")
    missing = two("status", "-c", "nope", "--json", status=1)
    assert missing.json["error"]["type"] == "NotFoundError"
    assert "'nope'" in missing.err


def test_documents_are_named_within_a_collection(two):
    def command(*arguments, **expected):
        return two(*arguments, "-c", "b", **expected)

    before = two("-c", "b", "documents", "show", "hr/leave.md", "--json").json
    shown = command("documents", "show", "hr/leave.md", "--json").json
    assert before == shown
    assert (shown["collection"], "25 days" in shown["content"]) == ("b", True)
    for name in ("documents history", "history"):
        history = command(*name.split(), "hr/leave.md", "--json").json
        assert (history["collection"], history["document_id"]) == ("b", shown["document_id"])
    command("documents", "ttl", "hr/leave.md", "30d")
    command("documents", "restore", "hr/leave.md", "1")
    assert command("grants", "list", "hr/leave.md", "--json").json["documents"][0]["collection"] == "b"
    command("grants", "add", "hr/leave.md", "--who", "role:hr")
    assert command("documents", "delete", "hr/leave.md", "--json").json == {"deleted": 1}
    assert command("documents", "erase", "hr/leave.md", "--yes", "--json").json["erased"] == 1
    missing = command("documents", "show", "hr/leave.md", "--json", status=1)
    assert "is in collection 'a', not in 'b'" in missing.json["error"]["message"]
    assert two("documents", "show", "hr/leave.md", "-c", "*", "--json").json["collection"] == "a"


def test_a_source_in_two_collections_asks_which(two):
    for name, *rest in (["show"], ["history"], ["delete"], ["erase", "--yes"], ["ttl", "30d"]):
        refused = two("documents", name, "hr/leave.md", *rest, "-c", "*", "--json", status=2)
        error = refused.json["error"]
        assert error["type"] == "UsageError"
        for word in ("'a'", "'b'", "--collection"):
            assert word in error["message"]
    assert two("documents", "list", "-c", "b", "--json").json["items"], "nothing was changed"


def test_names_mean_the_configured_collection(two, tmp_path):
    """Every command that takes a document: with ``b`` configured, nothing happens to one of ``a``."""
    (tmp_path / "b.toml").write_text('[rag]\ncollection = "b"\n', encoding="utf-8")
    before = two("documents", "list", "-c", "a", "--json").json
    (known,) = [one["document_id"] for one in before["items"] if one["source"] == "it/errors.md"]
    for command, *rest in (
        ["documents show"],
        ["documents delete"],
        ["documents erase", "--yes"],
        ["documents original", "--output", tmp_path / "copy"],
        ["documents reread"],
        ["documents history"],
        ["documents diff"],
        ["documents restore", "1"],
        ["documents ttl", "1d"],
        ["history"],
        ["grants list"],
        *([f"grants {change}", "--who", "user:eve"] for change in ("add", "remove", "deny")),
    ):
        # Commands look for a document in one place, by its id as by its name.
        for document in (known, "it/errors.md") if command in {"documents show", "grants add"} else ("it/errors.md",):
            refused = two(*command.split(), document, *rest, "--config", tmp_path / "b.toml", status=1)
            assert "is in collection 'a', not in 'b'" in refused.err
            assert "--collection a" in refused.err
    assert two("documents", "list", "-c", "a", "--json").json == before


def test_documents_of_an_id_are_not_looked_for_elsewhere(two):
    (only,) = two("documents", "list", "-c", "b", "--json").json["items"]
    refused = two("documents", "delete", only["document_id"], "-c", "a", status=1)
    assert "is in collection 'b', not in 'a'" in refused.err
    assert "no collection 'nope'" in two("documents", "show", "hr/leave.md", "-c", "nope", status=1).err


def test_a_file_that_is_too_large_is_named_with_the_limit(recollect, office):
    outcome = recollect("ingest", office, "--max-file-size", "60")
    assert "too large" in outcome.out
    line = next(line for line in outcome.err.splitlines() if "hr/leave.md" in line)
    assert "60 bytes" in line
    assert "--max-file-size" in line
    listed = recollect("ingest", office, "--max-file-size", "60", "--json").json["too_large"]
    assert [str(office / "hr/leave.md")] == [one["path"] for one in listed if "leave" in one["path"]]
    assert all("60 bytes" in one["error"] for one in listed)


def test_an_empty_collection_names_those_that_are_not(two):
    for command in (
        ["query", "leave"],
        ["ask", "How much leave?"],
        ["documents", "list"],
        ["query", "leave", "--context"],
        ["context", "leave"],
    ):
        told = two(*command)
        assert "The collection 'default' is empty" in told.out + told.err, command
        assert "'a' (4 documents), 'b' (1 document)" in told.out + told.err, command
        assert "'a' (4 documents)" in two(*command, "--json").json["warnings"][0], command
    assert "is empty" not in two("query", "leave", "--everywhere", "--department", "nope").out


FILTERS = [
    (["--department", "HR"], "department 'HR'", "Did you mean 'hr'?"),
    (["--department", "sales"], "department 'sales'", "There are: hr, it"),
    (["--tag", "polices"], "tag 'polices'", "Did you mean 'policies'?"),
    (["--where", "fromat=html"], "metadata field 'fromat'", "Did you mean 'format'?"),
    (["--filter", '{"metadata.fromat": {"gte": 2024}}'], "metadata field 'fromat'", "Did you mean 'format'?"),
    (
        ["--filter", '{"not": {"department": {"in": ["hr", "ti"]}}, "tags": {"contains": "x"}}'],
        "'ti'",
        "There are: hr, it",
    ),
]


def test_a_filter_that_nothing_has_is_said(tagged):
    others = [(command, *FILTERS[0]) for command in (["ask", "How much leave?"], ["query", "leave", "--context"])]
    for command, given, name, hint in [*((["query", "leave"], *one) for one in FILTERS), *others]:
        told = tagged(*command, *given)
        assert name in told.out + told.err, given
        assert hint in told.out + told.err, given
        assert any(name in warning for warning in tagged(*command, *given, "--json").json["warnings"]), given


@pytest.fixture
def tagged(recollect, office):
    recollect("ingest", office, "--tag", "policies")
    return recollect


def test_nothing_is_said_of_filters_that_find_something_or_are_right(tagged):
    assert "warnings" not in tagged("query", "leave", "--department", "hr", "--json").json
    right = ["--department", "hr", "--tag", "policies", "--where", "format=none"]
    assert "warnings" not in tagged("query", "leave", *right, "--json").json
    assert "No document has" not in tagged("query", "leave", *right).out


def test_a_hint_names_only_what_somebody_may_read(tagged):
    tagged("grants", "add", "it/errors.md", "--who", "role:it", "--only")
    wrong = ["query", "leave", "--filter", '{"department": "ti"}']
    assert tagged(*wrong, "--as", "bob").out.splitlines() == ["No document has the department 'ti'. There are: hr."]
    seen = tagged(*wrong, "--as", "ann", "--roles", "it").out
    assert seen.splitlines() == ["No document has the department 'ti'. There are: hr, it."]


def test_documents_of_a_department_that_is_none(tagged):
    assert "Did you mean 'hr'?" in tagged("documents", "list", "--department", "hrr").out
    assert tagged("documents", "list", "--department", "hrr", "--json").json["warnings"]


def test_an_unknown_name_of_a_strategy_is_refused_with_the_known_ones(recollect, office):
    for name in ["--chunking", "--rerank", "--mode", "--fusion", "--strategy"]:
        command = {"--chunking": ["ingest", office], "--strategy": ["context", "leave"]}.get(name, ["query", "leave"])
        refused = recollect(*command, name, "nope", status=2)
        assert "nope" in refused.err
        known = {"--chunking": "recursive", "--rerank": "consensus", "--mode": "hybrid", "--fusion": "rrf"}
        assert known.get(name, "episodic") in refused.err


def test_the_summary_of_the_commands_is_grouped(recollect):
    wide = replace(recollect, environment=recollect.environment | {"COLUMNS": "80"})
    shown = wide("--help").out
    places = [shown.index(f"─ {panel} ─") for panel in PANELS]
    assert places == sorted(places)
    assert "─ Commands ─" not in shown
    for panel, names in PANELS.items():
        block = shown[shown.index(f"─ {panel} ─") :].split("╰", 1)[0]
        for name in names:
            assert f"│ {name} " in block, (panel, name)


LONG_FOLDER = "a_folder_whose_name_goes_on/" * 3
CONVERSATION = "a-conversation-with-a-name-of-more-than-a-third-of-the-line"
LONG_TITLE = "契約書の保存期間について、" * 5
WIDE = {
    f"{LONG_FOLDER}an_equally_long_file_name_of_a_document.md": "# Leave\n\nLong.\n",
    "法務部/契約書_保存期間_とても長いファイル名_二千二十六年版.md": f"# {LONG_TITLE}\n\n十年間。\n",
    "hr/חופשה_שנתית.md": f"# {'חופשה שנתית בחברה ' * 6}\n\n25 ימים.\n",
    "it/title.md": f"# {'A title that is much longer than a terminal is wide ' * 3}\n\nText.\n",
}


@pytest.fixture
def wide(recollect, write):
    recollect("ingest", write(WIDE), "-c", "名前がとても長いコレクション、とてもとても長い名前、そしてさらに長い名前")
    recollect("remember", CONVERSATION, "Hello.", "--user", "ann@x.example")
    recollect("sessions", "create", "documents-of-a-session-with-a-name-of-more-than-half-of-the-line")
    recollect("tenants", "create", "a tenant whose name goes on and on until it is wider than the column")
    collection = recollect("collections", "list", "--json").json["items"][0]["name"]
    return replace(recollect, environment=recollect.environment | {"COLUMNS": "80", "RECOLLECT_COLLECTION": collection})


def test_tables_are_eighty_columns_wide_and_cut_no_name_that_is_typed_again(wide):
    names = {"documents list": list(WIDE), "grants list 1 2 3 4": list(WIDE), "sessions list": [CONVERSATION]}
    for command in (*names, "status", "collections list", "tenants list"):
        shown = wide(*command.split()).out
        lines = shown.splitlines()
        assert max(cell_len(line.rstrip()) for line in lines) <= 80, shown
        together = "".join(shown.split())
        for name in names.get(command, []):
            # A folded name stands in pieces below one another.
            assert name[:12] in together, (name, shown)
            assert name[-3:] in together, (name, shown)
            assert "…" not in next(line for line in lines if name[:8] in line).split("  ")[0], shown
    numbers = [line[:2].strip() for line in wide("documents", "list").out.splitlines()]
    assert [number for number in numbers if number.isdigit()] == ["1", "2", "3", "4"]


def test_the_next_page_is_of_the_same_collection(two):
    told = two("documents", "list", "-c", "a", "--department", "hr", "--limit", "1").err
    command = told.split("recollect ", 1)[1].split()
    assert [one["source"] for one in two(*command, "--json").json["items"]] == ["hr/pay.txt"]


def test_an_empty_folder_is_said_to_be_empty(recollect: Recollect, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    assert "nothing to read in empty" in recollect("ingest", "empty").err
    (tmp_path / "empty" / "a.md").write_text("Annual leave is 30 days.", encoding="utf-8")
    assert recollect("ingest", "empty").err == recollect("ingest", "empty").err == ""


def test_a_mistyped_collection_is_answered_with_the_one_that_is_meant(recollect: Recollect, tmp_path: Path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("Annual leave is 30 days.", encoding="utf-8")
    assert recollect("ingest", "docs", "-c", "handbook").err == "Created the collection 'handbook'.\n"
    assert recollect("ingest", "docs", "-c", "handbook").err == ""
    for command in (
        ("query", "leave", "-c", "handbok"),
        ("ask", "leave", "-c", "Hanbook"),
        ("documents", "list", "-c", "hndbook"),
        ("collections", "delete", "handbooks", "-y"),
    ):
        assert "Did you mean 'handbook'?" in recollect(*command, status=1).err
    assert "Did you mean" not in recollect("query", "leave", "-c", "finance", status=1).err
    assert "Did you mean 'handbook'?" in recollect("ingest", "docs", "-c", "handbok").err


def test_reembed_and_watch_in_a_pipe_say_what_they_do(recollect: Recollect, tmp_path: Path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("Annual leave is 30 days.", encoding="utf-8")
    recollect("ingest", "docs")
    done = recollect("reembed", "--model", "hashing", "--provider", "hashing", "--dimensions", "128")
    assert "Embedding default with hashing." in done.err
    watching = recollect.start("watch", "docs")
    assert "Reading the folders." in watching.stderr.readline()
    assert "docs: 1 unchanged" in watching.stdout.readline()
    watching.send_signal(signal.SIGINT)
    out, err = watching.communicate(timeout=60)
    assert not [text for text in (done.out, done.err, out, err) if "\x1b" in text or "\r" in text]


def test_a_list_tells_documents_of_several_folders_apart_by_names_that_work(recollect: Recollect, tmp_path: Path):
    for folder in ("api", "web"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "README.md").write_text(f"The {folder} is here.", encoding="utf-8")
    recollect("ingest", "api", "web")
    listed = recollect("documents", "list").out
    for folder in ("api", "web"):
        assert f"{folder}/README.md" in listed
        assert f"The {folder} is here." in recollect("documents", "show", f"{folder}/README.md").out
