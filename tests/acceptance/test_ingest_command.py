from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import threading
import time

import psutil
import psycopg
import pytest

from hostile import EFFORT
from unit.documents.made_bombs import pdf_forms

COUNTS = ["added", "updated", "unchanged", "removed", "failed", "skipped"]
INGEST_KEYS = [*COUNTS, "chunks", "seconds", "errors"]


def counts(outcome) -> dict[str, int]:
    return {name: outcome.json[name] for name in COUNTS if outcome.json[name]}


def test_a_folder_is_ingested_and_the_report_has_exactly_the_promised_shape(recollect, office):
    outcome = recollect("ingest", office, "--json")
    assert list(outcome.json) == INGEST_KEYS
    assert counts(outcome) == {"added": 4}
    assert outcome.json["chunks"] >= 4
    assert outcome.json["seconds"] > 0
    assert outcome.json["errors"] == []

    status = recollect("status", "--json").json
    assert status["total_documents"] == 4
    assert set(status["departments"]) == {"hr", "it", ""}


def test_running_again_does_only_what_has_changed(recollect, office):
    recollect("ingest", office)
    again = recollect("ingest", office, "--json")
    assert counts(again) == {"unchanged": 4}
    assert again.json["chunks"] == 0

    (office / "hr/leave.md").write_text("# Leave\n\nEvery employee has 31 days of annual leave.\n")
    (office / "it/errors.md").unlink()
    (office / "new.txt").write_text("Parking is free for everybody.\n")
    assert counts(recollect("ingest", office, "--json")) == {"added": 1, "updated": 1, "unchanged": 2}
    assert counts(recollect("ingest", office, "--sync", "--json")) == {"unchanged": 4, "removed": 1}
    assert counts(recollect("ingest", office, "--force", "--json")) == {"updated": 4}

    found = recollect("query", "days of annual leave", "--mode", "lexical", "--json").json["results"]
    assert [result["content"] for result in found if "days" in result["content"]] == [
        "# Leave\n\nEvery employee has 31 days of annual leave."
    ]
    assert recollect("query", "ERR-4012", "--mode", "lexical", "--json").json["results"] == []


def test_a_file_that_cannot_be_read_is_named_and_does_not_stop_the_others(recollect, office, write):
    write({"broken.pdf": b"%PDF-1.7\nthis is no PDF", "empty.pdf": b"", ".hidden/secret.txt": "hidden"})
    outcome = recollect("ingest", office, "--json", status=1)
    assert outcome.json["added"] == 4
    assert outcome.json["failed"] == len(outcome.json["errors"]) >= 1
    assert outcome.json["skipped"] >= 1
    broken = next(error for error in outcome.json["errors"] if error["path"].endswith("broken.pdf"))
    assert set(broken) == {"path", "error"}
    assert broken["error"]

    people = recollect("ingest", office, status=1)
    assert "broken.pdf: " in people.err
    assert "unchanged" in people.out


def test_large_files_are_skipped(recollect, write):
    docs = write({"small.txt": "A small file.", "large.txt": "A large file. " * 200})
    outcome = recollect("ingest", docs, "--max-file-size", "1kB", "--json")
    assert counts(outcome) == {"added": 1, "skipped": 1}
    assert "bytes such as" in recollect("ingest", docs, "--max-file-size", "lots", status=2).err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ingest"], "PATH"),
        (["ingest", "no/such/folder"], "'no/such/folder' does not exist"),
        (["ingest", ".", "--chunk-size", "many"], "chunk-size"),
        (["ingest", ".", "--chunking", "magic"], "There is no chunking strategy 'magic'"),
        (["ingest", ".", "--chunking-option", "unit"], "KEY=VALUE"),
        (["ingest", ".", "--frobnicate"], "--frobnicate"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_what_is_wrong(recollect, arguments, says):
    outcome = recollect(*arguments, status=2)
    assert says in outcome.err
    assert outcome.out == ""
    error = recollect(*arguments, "--json", status=2).json
    assert list(error) == ["error"]
    assert set(error["error"]) == {"type", "message"}


def test_overlap_as_large_as_the_chunks_is_refused(recollect, office):
    outcome = recollect("ingest", office, "--chunk-size", "100", "--chunk-overlap", "100", status=2)
    assert "overlap" in outcome.err


def test_chunking_belongs_to_the_collection(recollect, office):
    recollect(
        "ingest", office, "-c", "small", "--chunking", "fixed_size", "--chunk-size", "40", "--chunk-overlap", "10"
    )
    results = recollect("query", "leave", "-c", "small", "--json").json["results"]
    assert all(result["end_offset"] - result["start_offset"] <= 40 for result in results)
    recollect("ingest", office, "-c", "small", "--chunk-size", "40")
    refused = recollect("ingest", office, "-c", "small", "--chunk-size", "60", status=2)
    assert "size 40, not 60" in refused.err
    refused = recollect("ingest", office, "-c", "small", "--chunking", "paragraph", status=2)
    assert "'fixed_size', not 'paragraph'" in refused.err


def test_tags_are_given_to_every_document(recollect, office):
    recollect("ingest", office, "--tag", "office", "--tag", "rules")
    assert recollect("query", "leave", "--tag", "rules", "--json").json["results"]
    assert recollect("query", "leave", "--tag", "rules", "--tag", "other", "--json").json["results"] == []


def test_strange_names_and_encodings(recollect, write):
    docs = write({
        "ünï/日本 語.txt": "東京の天気は晴れです。",
        "latin.txt": "Die Kündigungsfrist beträgt drei Monate.".encode("latin-1"),
        "עברית.txt": "החופשה השנתית היא שלושים ימים.",
        "[red]markup[/red].txt": "Names may look like markup.",
    })  # fmt: skip
    (docs / os.fsdecode(b"bad\xff.txt")).write_text("A name that is not UTF-8.")
    outcome = recollect("ingest", docs, "--json")
    assert counts(outcome) == {"added": 5}
    listed = recollect("documents", "list")
    assert "[red]markup[/red].txt" in listed.out
    found = recollect("query", "Kündigungsfrist", "--mode", "lexical", "--json").json["results"]
    assert [result["source"] for result in found] == ["latin.txt"]


def test_two_ingests_at_once_leave_no_duplicates(recollect, write):
    docs = write({f"d{n % 5}/file{n}.txt": f"Document number {n} is about subject {n % 7}." for n in range(60)})
    both = [recollect.start("ingest", docs, "--json") for _ in range(2)]
    for process in both:
        _, errors = process.communicate(timeout=200)
        assert process.returncode == 0, errors
    status = recollect("status", "--json").json
    assert (status["total_documents"], status["total_chunks"]) == (60, 60)
    checked = recollect("db", "check", "--json").json
    assert (checked["ok"], checked["findings"], checked["isolation"]["in_force"]) == (True, [], True)


def many_files(write, count: int):
    sentence = "The quick brown fox of chapter {} jumps over the lazy dog number {}. "
    return write({f"p{n % 20}/{n}.txt": "".join(sentence.format(n, i) for i in range(60)) for n in range(count)})


def stored(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        if connection.execute("SELECT to_regclass('recollect.documents')").fetchone()[0] is None:
            return 0
        return connection.execute("SELECT count(*) FROM recollect.documents").fetchone()[0]


@pytest.mark.slow
def test_ctrl_c_leaves_whole_documents_and_running_again_completes(recollect, write, dsn):
    docs = many_files(write, 200)
    process = recollect.start("ingest", docs)
    while stored(dsn) == 0:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (out, err)
    assert "interrupted: what was stored is safe; run the same command again to complete" in err
    assert "Traceback" not in err
    assert out == ""
    assert 0 < stored(dsn) < 200
    assert recollect("db", "check", "--json").json["ok"]
    completed = recollect("ingest", docs, "--json").json
    assert completed["added"] > 0
    assert completed["added"] + completed["unchanged"] == 200


def worked(process: subprocess.Popen[str]) -> float:
    times = psutil.Process(process.pid).cpu_times()
    return times.user + times.system


# An order to end is unwound as an interrupt is; what its status is says test_interrupt.py.
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_command_inside_a_file_that_does_not_end_ends_with_its_parsers(recollect, write, number, status):
    docs = write({"forms.pdf": pdf_forms(9, 10)})
    process = recollect.start("ingest", docs)
    try:
        (parser,) = wait_for(lambda: [p for p in psutil.Process(process.pid).children(True) if is_parsing(p)])
        process.send_signal(number)
        process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == status
    assert not psutil.wait_procs([parser], timeout=20)[1]


def is_parsing(process: psutil.Process) -> bool:
    return not process.children() and "_worker" in " ".join(process.cmdline()) and process.cpu_times().user > 0.3


def wait_for(look):
    for _ in range(6_000):
        with contextlib.suppress(psutil.Error):
            if found := look():
                return found
        threading.Event().wait(0.01)
    raise AssertionError("it did not come to that")


def test_links_are_skipped_and_followed_on_request(recollect, write, tmp_path):
    docs = write({"a.txt": "words of a"})
    (tmp_path / "secret.txt").write_text("words of others", encoding="utf-8")
    (docs / "b.txt").symlink_to(tmp_path / "secret.txt")
    assert "1 skipped (1 linked and not followed)" in " ".join(recollect("ingest", docs).out.split())
    assert recollect("ingest", docs, "--follow-links", "--json").json["added"] == 1


@pytest.mark.slow
def test_killed_at_random_moments_the_embedded_store_opens_and_is_completed(recollect_embedded, write):
    docs = many_files(write, 150)
    seed = random.randrange(1 << 30)
    moments = random.Random(seed)
    for _ in range(EFFORT):
        process = recollect_embedded.start("ingest", docs)
        # Of its own work, which is the same on every machine: from its start to shortly before its end.
        work_seconds = moments.uniform(0.3, 2)
        while process.poll() is None and worked(process) < work_seconds:
            time.sleep(0.005)
        process.kill()
        process.communicate()
        assert recollect_embedded("db", "check", "--json").json["ok"], f"seed {seed}"
    completed = recollect_embedded("ingest", docs, "--json").json
    assert completed["added"] + completed["unchanged"] == 150, f"seed {seed}"
    status = recollect_embedded("status", "--json").json
    assert status["total_documents"] == 150
    assert recollect_embedded("db", "check", "--json").json["ok"], f"seed {seed}"


def test_another_model_is_suggested_where_much_of_a_collection_is_in_a_language_that_the_model_lacks(
    recollect_with_model, write
):
    english = "The cables of the station are looked at in spring, and whoever finds a fault reports it to the office. "
    german = "Die Kabel der Anlage werden im Frühjahr geprüft, und wer einen Fehler findet, der meldet ihn sofort."
    folder = write({"cables.txt": english * 60, "zitat.txt": german})
    assert "multilingual" not in recollect_with_model("ingest", folder).err
    write({"kabel.txt": german * 20})
    assert "does not know de:" in " ".join(recollect_with_model("ingest", folder).err.split())
    assert "multilingual" not in recollect_with_model("ingest", folder).err
