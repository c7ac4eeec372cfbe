"""Files that would take the process with them cost one error, and no worker outlives whoever started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psutil
import pytest

from recollect.documents._parsed import as_message
from recollect.documents._worker import main as worker_main
from recollect.documents.formats import UnreadableError
from recollect.documents.reader import parse, read_bytes
from recollect.documents.workers import ParseLimits, ParserWorkers
from recollect.errors import ParseError

from . import made_bombs, made_files

TABLE = b"name,value,unit\n" + b"speed,4,knots\n" * 4
MEBIBYTE = 1 << 20
MEMORY = "MiB of memory to parse (rag.ingest.parse_memory_bytes)"
CHARACTERS = "gives more than 20,000 characters (rag.ingest.max_characters)"


@pytest.fixture(scope="module")
def shared() -> Iterator[ParserWorkers]:
    """One pair of processes for the tests that need nothing but small limits."""
    pool = ParserWorkers(ParseLimits(seconds=60, memory_bytes=64 * MEBIBYTE, characters=20_000), at_once=1)
    yield pool
    pool.close()


@pytest.fixture
def pool() -> Iterator[ParserWorkers]:
    made = ParserWorkers(ParseLimits(seconds=20), at_once=2)
    yield made
    made.close()


def processes(pool: ParserWorkers) -> list[psutil.Process]:
    """The supervisors and their parsers."""
    supervisors = [psutil.Process(worker._process.pid) for worker in pool._workers]
    return [*supervisors, *(child for one in supervisors for child in one.children())]


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("big.docx", lambda: made_bombs.document(250_000), MEMORY),
        ("and.docx", lambda: made_bombs.references(10_000_000), MEMORY),
        ("page.pdf", lambda: made_bombs.pdf_stream(20_000_000), MEMORY),
        ("many.docx", lambda: made_bombs.document(8_000), CHARACTERS),
        ("wide.csv", lambda: b"a rather long name,another,one\n" + b"1,2,3\n" * 600, CHARACTERS),
    ],
)
def test_a_file_that_explodes_costs_one_error_that_names_the_limit(shared, name, data, says):
    with pytest.raises(ParseError) as caught:
        read_bytes(data(), name=name, workers=shared)
    assert caught.value.path == name
    assert says in caught.value.reason
    # And the next file is read.
    assert read_bytes(TABLE, name="t.csv", workers=shared).content.startswith("name: speed")


def test_a_file_that_does_not_end_is_ended():
    pool = ParserWorkers(ParseLimits(seconds=0.5), at_once=1)
    try:
        with pytest.raises(ParseError, match=r"took longer than 0\.5 s to parse \(rag\.ingest\.parse_seconds\)"):
            read_bytes(made_bombs.pdf_forms(7, 10), name="forms.pdf", workers=pool)
        assert read_bytes(TABLE, name="t.csv", workers=pool).content
    finally:
        pool.close()


def test_a_long_text_is_a_file_like_any_other(shared):
    line = b"# " + b"`a" * 490 + b"\n"
    pool = ParserWorkers(ParseLimits(seconds=0.5), at_once=1)
    try:
        with pytest.raises(ParseError, match=r"took longer than 0\.5 s"):
            read_bytes(line * 4_000, name="headings.md", workers=pool)
    finally:
        pool.close()
    with pytest.raises(ParseError, match=r"MiB of memory to parse"):
        read_bytes(b"\n" * 4_000_000 + b"x", name="lines.rst", workers=shared)


def test_a_part_that_a_book_names_again_and_again_is_read_once():
    text = "every word once " * 200
    once = read_bytes(made_bombs.book(1, text), name="book.epub").content
    assert read_bytes(made_bombs.book(20_000, text), name="book.epub").content == once


def test_a_file_may_always_give_as_many_characters_as_it_has_bytes(shared):
    page = b"<html><body>" + b"<p>words in a row</p>" * 2_000 + b"</body></html>"
    assert len(read_bytes(page, name="page.html", workers=shared).content) > 20_000


def test_what_a_worker_gives_is_what_the_parser_gives(shared):
    for name, data in (
        ("a.docx", made_files.docx([("Heading1", "One & two"), ("", "Text."), [["a", "b"], ["c", "d"]]], title="T")),
        ("b.pdf", made_files.pdf([[(20, "Title"), "A line of text."], ["Another page."]], info={"Author": "Ann"})),
        ("c.md", b"---\npermissions: [role:hr]\n---\n# Head\n\nText \xf0\x9f\x99\x82"),
        ("d.html", "<h1>Ünïcode</h1><p>\N{GRINNING FACE}</p>".encode()),
    ):
        assert as_message(shared.parse(data, name=name)) == as_message(parse(data, name))


def test_a_parser_that_is_killed_is_replaced_and_its_file_named(pool):
    read_bytes(TABLE, name="t.csv", workers=pool)
    before = processes(pool)
    supervisor, parser = before
    # The reply is out before its parser has said that it waits again; killed in between, it takes its supervisor along.
    wait_for(lambda: parser.status() == psutil.STATUS_SLEEPING)
    parser.kill()
    # Killed while it waited: nobody's file.
    assert read_bytes(TABLE, name="t.csv", workers=pool).content
    supervisor.kill()
    supervisor.wait(10)
    assert read_bytes(TABLE, name="t.csv", workers=pool).content
    assert not set(before) & set(processes(pool))


def test_a_file_whose_parser_crashes_is_not_tried_again(pool):
    failed: list[str] = []

    def read() -> None:
        try:
            read_bytes(made_bombs.pdf_forms(9, 10), name="forms.pdf", workers=pool)
        except ParseError as exc:
            failed.append(exc.reason)

    reader = threading.Thread(target=read)
    reader.start()
    parser = wait_for(lambda: next((p for p in processes(pool)[1:] if p.cpu_times().user > 0.1), None))
    parser.send_signal(signal.SIGSEGV)
    reader.join()
    assert failed == ["is damaged: its parser died of it (SIGSEGV)"]
    # The others go on meanwhile and afterwards.
    assert read_bytes(TABLE, name="t.csv", workers=pool).content


def wait_for(look, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if found := look():
                return found
        except psutil.Error:
            pass
        threading.Event().wait(0.01)
    raise AssertionError("it did not come to that")


def test_closing_leaves_no_process_no_zombie_and_no_descriptor(pool):
    read_bytes(TABLE, name="t.csv", workers=pool)
    descriptors = psutil.Process().num_fds()
    started = processes(pool)
    assert len(started) == 2
    pool.close()
    assert not any(process.is_running() for process in started)
    assert psutil.Process().num_fds() == descriptors - 2
    # Used again, it starts again.
    assert read_bytes(TABLE, name="t.csv", workers=pool).content


def test_what_is_not_wanted_any_more_is_ended_at_once(pool):
    began = threading.Event()

    def cancelled() -> bool:
        began.set()
        return True

    with pytest.raises(UnreadableError, match="interrupted"):
        pool.parse(made_bombs.pdf_forms(9, 10), name="forms.pdf", cancelled=cancelled)
    assert began.is_set()
    assert not processes(pool)


def test_a_forked_child_starts_workers_of_its_own(pool):
    read_bytes(TABLE, name="t.csv", workers=pool)
    mine = processes(pool)
    told, tells = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = read_bytes(TABLE, name="t.csv", workers=pool).content
            own = {process.pid for process in processes(pool)}
            pool.close()
            os.write(tells, b"ok" if text and not own & {process.pid for process in mine} else b"no")
        finally:
            os._exit(0)
    os.close(tells)
    with os.fdopen(told, "rb") as file:
        assert file.read() == b"ok"
    os.waitpid(child, 0)
    assert read_bytes(TABLE, name="t.csv", workers=pool).content
    assert processes(pool) == mine


PARENT = """
import sys
from recollect.documents._parsed import as_message
from recollect.documents.reader import parse, read_bytes
from recollect.documents.workers import shared_workers
read_bytes(b"a,b,c\\n1,2,3\\n", name="t.csv")
print(*(worker._process.pid for worker in shared_workers()._workers), flush=True)
if len(sys.argv) > 1:
    from pathlib import Path
    read_bytes(Path(sys.argv[1]).read_bytes(), name="forms.pdf")
sys.stdin.read()
"""


@pytest.mark.parametrize("busy", [False, True])
def test_workers_die_with_a_parent_that_is_killed(tmp_path, busy):
    bomb = tmp_path / "forms.pdf"
    bomb.write_bytes(made_bombs.pdf_forms(9, 10))
    command = [sys.executable, "-c", PARENT, *([str(bomb)] if busy else [])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        supervisor = psutil.Process(int(parent.stdout.readline()))
        (parser,) = supervisor.children()
        if busy:
            used = parser.cpu_times().user
            wait_for(lambda: parser.cpu_times().user > used + 0.1)
        parent.kill()
    assert not psutil.wait_procs([supervisor, parser], timeout=20)[1]


def test_a_supervisor_that_is_killed_takes_its_parser_along(pool):
    read_bytes(TABLE, name="t.csv", workers=pool)
    supervisor, parser = processes(pool)
    supervisor.kill()
    assert not psutil.wait_procs([parser], timeout=20)[1]


def test_a_worker_that_answers_nonsense_is_ended(pool, monkeypatch):
    # What took a parser over may write whatever it likes: nothing is unpickled, and offsets must lie in the text.
    read_bytes(TABLE, name="t.csv", workers=pool)
    (worker,) = pool._workers
    reply = {"headings": [[1, "x", 0, 99]], "pages": [], "title": "t", "event_time": None, "metadata": {}}
    monkeypatch.setattr(worker, "ask", lambda *_: ({**reply, "permissions": None, "mime_type": "x"}, b"short"))
    assert read_bytes(TABLE, name="t.csv", workers=pool).content.startswith("name: speed")
    assert worker not in pool._workers


def test_what_the_libraries_take_is_not_the_files(tmp_path, monkeypatch):
    # Nothing is compiled yet, and what is compiled is kept where this process keeps it.
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    pool = ParserWorkers(ParseLimits(memory_bytes=48 * MEBIBYTE), at_once=1)
    try:
        data = made_files.docx([("Heading1", "One & two"), ("", "Text.")])
        assert "Text." in read_bytes(data, name="a.docx", workers=pool).content
    finally:
        pool.close()
    assert list(tmp_path.rglob("_office.*.pyc"))


def test_a_worker_imports_the_parsers_and_not_the_package():
    # What it imports is what each one costs: the settings alone take half a second.
    code = "from recollect.documents import workers as w; w._BOOT = w._BOOT.replace('main()', 'print(*sys.modules)')"
    run = f"{code}; import subprocess, sys, json; subprocess.run([sys.executable, '-I', '-c', w._BOOT, "
    run += "json.dumps([sys.path, None, False]), str(w.Path(w.__file__).parents[1])], check=True)"
    modules = subprocess.run([sys.executable, "-c", run], check=True, capture_output=True, text=True).stdout.split()
    assert "recollect.documents.pdf._reader" in modules
    assert not {"pydantic", "numpy", "psycopg", "recollect.config", "recollect.pipeline"} & set(modules)
    assert worker_main.__module__ == "recollect.documents._worker"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["forms.pdf", "stream.pdf", "big.docx", "book.epub"])
def test_the_worst_stays_within_the_limits_that_hold_by_default(name):
    data = {
        "forms.pdf": lambda: made_bombs.pdf_forms(9, 10),
        "stream.pdf": lambda: made_bombs.pdf_stream(110_000_000),
        "big.docx": lambda: made_bombs.document(5_000_000),
        "book.epub": lambda: made_bombs.book(200_000, "words of a book " * 10_000),
    }[name]()
    limits = ParseLimits()
    assert limits.seconds < 60
    pool = ParserWorkers(limits, at_once=1)
    peak = 0
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.02):
            try:
                peak = max(peak, sum(process.memory_info().rss for process in processes(pool)))
            except psutil.Error:
                continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        if name == "book.epub":
            assert len(read_bytes(data, name=name, workers=pool).content) < 200_000
        else:
            with pytest.raises(ParseError, match=r"rag\.ingest\.parse_"):
                read_bytes(data, name=name, workers=pool)
    finally:
        done.set()
        watcher.join()
        pool.close()
    assert peak < 512 * MEBIBYTE
