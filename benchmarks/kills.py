r"""The service under load, killed with ``kill -9`` again and again: the server, the worker, PostgreSQL, or several.

Callers write all the time (texts, descriptions, uploads, turns, chats, feedback, grants, keys, closed and erased
documents) and read. A ledger keeps what was acknowledged, and what was only tried. Each round kills something at a
random moment; whatever ends is started anew by a supervisor that does what systemd does with ``Restart=always``
(`service.py`). PostgreSQL runs with ``fsync``, and is killed with all of its sessions, or one session alone is, after
which it recovers within itself. Then each round requires:

- the service answers again by itself, and where PostgreSQL alone was killed neither server nor worker was restarted;
- everything that was acknowledged is there, exactly once; what was only tried is there once at most;
- every job has ended; each acknowledged upload has succeeded and made one version (uploads are forced: a second run
  would make a second version);
- every fifth time ``recollect db check`` finds nothing; at the end also ``db verify`` and ``audit verify``.

Run from the repository root::

    python benchmarks/kills.py --rounds 20
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import random
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import psutil
from harness import machine, percentile, say, store_folder, table, versions
from service import COMMAND, Service, running, until

TARGETS = (
    ("PostgreSQL",),
    ("server",),
    ("worker",),
    ("a session of PostgreSQL",),
    ("server", "worker"),
    ("PostgreSQL", "worker"),
    ("PostgreSQL", "server"),
    ("PostgreSQL", "server", "worker"),
)
SETTINGS = {
    "RECOLLECT_EMBEDDING__PROVIDER": "hashing",
    "RECOLLECT_JOBS__BACKOFF_SECONDS": "0.5",
    "RECOLLECT_SERVER__LOG_FORMAT": "json",
}
WRITERS, READERS = 4, 2
JOBS_SECONDS = 120.0


@dataclass
class Ledger:
    """What callers were told, by kind of write; a name stands for what was written.

    Attributes:
        tried: Everything that was sent.
        told: What was acknowledged of it, with what the reply said.
    """

    tried: dict[str, dict[str, object]] = field(default_factory=lambda: defaultdict(dict))
    told: dict[str, dict[str, object]] = field(default_factory=lambda: defaultdict(dict))
    statuses: Counter[str] = field(default_factory=Counter)
    defects: list[str] = field(default_factory=list)

    def counts(self) -> str:
        """How many of each kind were acknowledged, and tried."""
        return ", ".join(f"{kind} {len(self.told[kind])}/{len(tried)}" for kind, tried in sorted(self.tried.items()))


class Caller:
    """Writes one thing after the other, and notes what the replies said.

    Args:
        service: Which is asked.
        ledger: What is noted in.
        seed: Of what is done.
        number: Of the caller.
    """

    def __init__(self, service: Service, ledger: Ledger, seed: int, number: int) -> None:
        self._client = httpx2.Client(base_url=service.url, timeout=60)
        self._ledger = ledger
        self._random = random.Random(f"{seed}/{number}")
        self._names = (f"{seed}-{number}-{count}" for count in itertools.count())
        self._documents: dict[int, str] = {}

    def write(self) -> None:
        """One write, of any kind."""
        doing = [self._text, self._upload, self._turn, self._chat, self._feedback, self._key]
        if self._documents:
            doing += [self._describe, self._grant, self._close, self._erase]
        self._random.choice(doing)(next(self._names))

    def read(self) -> None:
        """One read."""
        asked = self._random.choice(("/v1/collections", "/v1/jobs?limit=5", "/v1/stats", "search"))
        if asked == "search":
            self._send("read", "", "POST", "/v1/search", json={"query": "what was said of number 7"})
        else:
            self._send("read", "", "GET", asked)

    def _send(self, kind: str, name: str, method: str, path: str, *, note: object = None, **given: object):
        """Send a request once; what it would write is tried, and what is acknowledged told."""
        if kind != "read":
            self._ledger.tried[kind][name] = note
        try:
            reply = self._client.request(method, path, **given)
        except httpx2.TransportError as exc:
            self._ledger.statuses[type(exc).__name__] += 1
            time.sleep(0.2)
            return None
        self._ledger.statuses[str(reply.status_code)] += 1
        if reply.status_code in {500, 502} or (reply.status_code == 503 and "retry-after" not in reply.headers):
            self._ledger.defects.append(f"{method} {path}: {reply.status_code} {reply.text[:300]}")
        if not reply.is_success:
            if 400 <= reply.status_code < 500 and reply.status_code not in {404, 409, 412}:
                self._ledger.defects.append(f"{method} {path}: {reply.status_code} {reply.text[:300]}")
            return None
        if kind != "read":
            self._ledger.told[kind][name] = note
        return reply

    def _text(self, name: str) -> None:
        content = f"Text {name}. It says what was said of number {self._random.randrange(1000)}."
        body = {"source": f"text-{name}", "content": content}
        reply = self._send("text", f"text-{name}", "POST", "/v1/collections/default/documents", note=content, json=body)
        if reply is not None:
            self._documents[reply.json()["document_id"]] = f"text-{name}"

    def _some(self) -> tuple[int, str]:
        document_id = self._random.choice(list(self._documents))
        return document_id, self._documents[document_id]

    def _describe(self, name: str) -> None:
        document_id, source = self._some()
        body = {"metadata": {"is": name}}
        headers = {"Idempotency-Key": name}
        for _ in range(3):
            path = f"/v1/documents/{document_id}"
            if self._send("description", name, "PUT", path, note=source, json=body, headers=headers) is not None:
                return
            time.sleep(0.2)

    def _upload(self, name: str) -> None:
        content = f"# File {name}\n\nIt says what was said of number {self._random.randrange(1000)}.\n"
        files = {"file": (f"file-{name}.md", content.encode(), "text/markdown")}
        path, headers = "/v1/collections/default/files", {"Idempotency-Key": name}
        for _ in range(3):
            reply = self._send(
                "upload", f"file-{name}.md", "POST", path, files=files, data={"force": "true"}, headers=headers
            )
            if reply is not None:
                self._ledger.told["upload"][f"file-{name}.md"] = reply.json()["jobs"][0]["job_id"]
                return
            time.sleep(0.2)

    def _turn(self, name: str) -> None:
        body = {"turns": [{"content": f"Said {name}."}]}
        self._send("turn", f"Said {name}.", "POST", f"/v1/sessions/talk-{name.rpartition('-')[0]}/turns", json=body)

    def _chat(self, name: str) -> None:
        body = {"session": f"chat-{name.rpartition('-')[0]}", "question": f"What was said of {name}?"}
        self._send("chat", body["question"], "POST", "/v1/chat", json=body)

    def _feedback(self, name: str) -> None:
        self._send("feedback", name, "POST", "/v1/feedback", json={"sources": ["text"], "helpful": True})

    def _key(self, name: str) -> None:
        reply = self._send("key", f"key-{name}", "POST", "/v1/keys", json={"name": f"key-{name}"})
        if reply is not None:
            self._ledger.told["key"][f"key-{name}"] = reply.json()["secret"]

    def _grant(self, name: str) -> None:
        _, source = self._some()
        body = {"change": "add", "who": [f"user:u{name}"], "documents": [source]}
        self._send("grant", f"user:u{name}", "POST", "/v1/grants", note=source, json=body)

    def _close(self, _: str) -> None:
        document_id, source = self._some()
        del self._documents[document_id]
        self._send("closed", source, "DELETE", f"/v1/documents/{document_id}")

    def _erase(self, _: str) -> None:
        document_id, source = self._some()
        del self._documents[document_id]
        self._send("erased", source, "POST", f"/v1/documents/{document_id}/erase", json={})


def load(service: Service, ledger: Ledger, seed: int, until_ended: threading.Event) -> list[threading.Thread]:
    """Callers in threads of their own, until they are told to end."""

    def calling(number: int) -> None:
        caller = Caller(service, ledger, seed, number)
        act = caller.write if number < WRITERS else caller.read
        while not until_ended.wait(0.02):
            act()

    threads = [threading.Thread(target=calling, args=(number,)) for number in range(WRITERS + READERS)]
    for thread in threads:
        thread.start()
    return threads


def kill(service: Service, targets: tuple[str, ...], generator: random.Random) -> None:
    """End them with SIGKILL, as good as at once."""
    for target in targets:
        if target == "PostgreSQL":
            service.postgres.kill(with_children=True)
        elif target == "a session of PostgreSQL":
            sessions = [one for one in service.postgres.family()[1:] if _is_session(one)]
            with suppress(psutil.NoSuchProcess, IndexError):
                generator.choice(sessions).kill()
        else:
            {"server": service.server, "worker": service.worker}[target].kill(with_children=True)


def _is_session(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return " [local] " in " ".join(process.cmdline())
    return False


def ready(service: Service) -> bool:
    """Whether the server answers, and the database behind it."""
    with suppress(httpx2.TransportError):
        return httpx2.get(f"{service.url}/readyz", timeout=40).status_code == 200
    return False


def play(service: Service, ledger: Ledger, number: int, seed: int) -> list[object]:
    """One round; returns its row of figures."""
    generator = random.Random(f"{seed}/round {number}")
    targets = TARGETS[number % len(TARGETS)]
    ended = threading.Event()
    before = service.server.starts, service.worker.starts
    acknowledged = sum(map(len, ledger.told.values()))
    threads = load(service, ledger, seed * 1000 + number, ended)
    time.sleep(generator.uniform(1.0, 4.0))
    kill(service, targets, generator)
    # The supervisor needs a moment to see it.
    time.sleep(0.1)
    recovered = until(lambda: ready(service), what=f"the service answers after {targets} were killed")
    time.sleep(generator.uniform(0.5, 2.0))
    ended.set()
    for thread in threads:
        thread.join()
    wanted = before[0] + ("server" in targets), before[1] + ("worker" in targets)
    found = [] if (service.server.starts, service.worker.starts) == wanted else ["a program had to be restarted"]
    idle = until(lambda: jobs_ended(service), what="every job ends", seconds=JOBS_SECONDS)
    found += broken(service, ledger)
    if number % 5 == 4:
        found += command_finds(service, "db", "check")
    acknowledged = sum(map(len, ledger.told.values())) - acknowledged
    row = [
        number + 1,
        " + ".join(targets),
        acknowledged,
        f"{recovered:.1f}",
        f"{idle:.1f}",
        "; ".join(found) or "sound",
    ]
    say(*row)
    return [*row, recovered]


def jobs_ended(service: Service) -> bool:
    """Whether no job waits or runs, and the queue is empty."""
    with service.connect() as connection:
        waiting = connection.execute("SELECT count(*) FROM jobs WHERE finished_at IS NULL").fetchone()
        return waiting == (0,)


def broken(service: Service, ledger: Ledger) -> list[str]:
    """What of the ledger is not in the store as it was acknowledged."""
    with service.connect() as connection:
        found = [line for look in LOOKS for line in look(connection, ledger)]
    for name, secret in ledger.told["key"].items():
        me = httpx2.get(f"{service.url}/v1/me", headers={"X-API-Key": str(secret)}, timeout=60)
        if me.status_code != 200:
            found.append(f"{name} opens nothing: {me.status_code}")
    return found


def _documents(connection, ledger: Ledger) -> list[str]:
    rows = connection.execute(
        "SELECT uri, count(*), count(*) FILTER (WHERE known_to = 'infinity'), array_agg(DISTINCT content_hash), "
        "count(DISTINCT document_id) FROM document_versions GROUP BY uri"
    ).fetchall()
    there = {uri: tuple(row) for uri, *row in rows}
    gone = ledger.tried["closed"].keys() | ledger.tried["erased"].keys()
    told, tried = Counter(ledger.told["description"].values()), Counter(ledger.tried["description"].values())
    found = []
    for source, content in ledger.told["text"].items():
        if source in gone:
            continue
        versions, current, hashes, documents = there.get(source, (0, 0, [], 0))
        if (current, hashes, documents) != (1, [hashlib.sha256(str(content).encode()).digest()], 1):
            found.append(f"{source}: {current} current of {versions} versions of {documents} documents")
        if not 1 + told[source] <= versions <= 1 + tried[source]:
            found.append(f"{source}: {versions} versions, {told[source]} of {tried[source]} changes acknowledged")
    found += [f"{name}: {there.get(name)}" for name in ledger.told["upload"] if there.get(name, (0, 0))[:2] != (1, 1)]
    found += [f"{uri}: {row[0]} versions of an upload" for uri, row in there.items() if "file-" in uri and row[0] != 1]
    found += [f"{uri} was closed" for uri in ledger.told["closed"] if there.get(uri, (0, 0))[1]]
    found += [f"{uri} was erased" for uri in ledger.told["erased"] if uri in there]
    return found


def _jobs(connection, ledger: Ledger) -> list[str]:
    rows = connection.execute("SELECT job_id, status, error FROM jobs").fetchall()
    by_id = {job_id: (status, error) for job_id, status, error in rows}
    found = [f"job {job_id}: {told}" for job_id, told in by_id.items() if told[0] != "succeeded"]
    return found + [
        f"job {job_id} of {name} is not there" for name, job_id in ledger.told["upload"].items() if job_id not in by_id
    ]


def _turns(connection, ledger: Ledger) -> list[str]:
    said = Counter(row[0] for row in connection.execute("SELECT content FROM episodes WHERE role = 'user'"))
    found = [
        f"{words!r} is there {said[words]} times"
        for kind in ("turn", "chat")
        for words in ledger.told[kind]
        if said[words] != 1
    ]
    return found + [f"{words!r} is there {count} times" for words, count in said.items() if count > 1]


def _feedback(connection, ledger: Ledger) -> list[str]:
    count = connection.execute("SELECT coalesce(sum(documents_helpful), 0) FROM context_feedback").fetchone()[0]
    told, tried = len(ledger.told["feedback"]), len(ledger.tried["feedback"])
    return [] if told <= count <= tried else [f"feedback: {count}, {told} of {tried} acknowledged"]


def _keys(connection, ledger: Ledger) -> list[str]:
    named = Counter(row[0] for row in connection.execute("SELECT name FROM api_keys"))
    return [f"{name} is there {named[name]} times" for name in ledger.told["key"] if named[name] != 1]


def _grants(connection, ledger: Ledger) -> list[str]:
    rows = connection.execute(
        "SELECT d.uri, a.grants FROM documents d JOIN access_lists a USING (tenant_id, collection_id, access_id)"
    ).fetchall()
    granted = defaultdict(set)
    for uri, who in rows:
        granted[uri].update(who)
    gone = ledger.tried["closed"].keys() | ledger.tried["erased"].keys()
    return [
        f"{who} may not read {source}"
        for who, source in ledger.told["grant"].items()
        if source not in gone and who not in granted[source]
    ]


LOOKS: tuple[Callable[..., list[str]], ...] = (_documents, _jobs, _turns, _feedback, _keys, _grants)


def command_finds(service: Service, *command: str) -> list[str]:
    """What a command that checks the store has found."""
    done = subprocess.run(
        [*COMMAND, *command, "--json"], env=service.server.environment, capture_output=True, text=True, check=False
    )
    if done.returncode == 0 and json.loads(done.stdout).get("ok", True):
        return []
    return [f"{' '.join(command)}: {done.stdout[-500:]} {done.stderr[-500:]}"]


def main() -> None:
    parser = argparse.ArgumentParser(description="The service under load, killed again and again.")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    ledger = Ledger()
    with store_folder() as folder, running(Path(folder), environment=SETTINGS) as service:
        until(lambda: ready(service), what="the service answers")
        with service.connect() as connection:
            told = [connection.execute(f"SHOW {name}").fetchone()[0] for name in ("fsync", "synchronous_commit")]
        say("fsync, synchronous_commit:", *told)
        rows = [play(service, ledger, number, arguments.seed) for number in range(arguments.rounds)]
        final = [*command_finds(service, "db", "verify"), *command_finds(service, "audit", "verify")]
    head = ["round", "killed", "acknowledged", "answers again after, s", "jobs ended after, s", "verdict"]
    print(f"{machine()}\n{'; '.join(versions())}\n\n{table(head, [row[:-1] for row in rows])}")
    seconds = [row[-1] for row in rows]
    print(f"\nanswers again: half within {percentile(seconds, 50):.1f} s, all within {max(seconds):.1f} s")
    print(f"acknowledged/tried: {ledger.counts()}\nreplies: {dict(ledger.statuses)}")
    print(f"db verify, audit verify: {'; '.join(final) or 'sound'}")
    for defect in dict.fromkeys(ledger.defects):
        print("unexpected:", defect)
    if final or ledger.defects or any(row[-2] != "sound" for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
