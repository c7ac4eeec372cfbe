"""Git as a process that is told everything: nobody's configuration, no hooks, one transport, one address."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from recollect import interruption
from recollect.errors import SourceError

#: What Git is told for every command. What the mirror's own configuration says is ours, and empty.
_ALWAYS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.askPass": "",
    "credential.helper": "",
    "protocol.allow": "never",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "http.followRedirects": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    # One file, which a limit on the size of files can bound.
    "fetch.unpackLimit": "1",
}
# What of the environment Git may see: where programs are, whom to trust, and the agent that holds keys.
_INHERITED = ("PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "SSH_AUTH_SOCK", "TMPDIR", "SYSTEMROOT")

_WAIT_SECONDS = 0.1
_BLOCK = 512

# What a failure means, by what Git says of it; the second: whether it may be over later.
_REASONS = (
    ("Authentication failed", "its server does not accept the credentials", False),
    ("could not read Username", "its server does not accept the credentials, or asks for some (token)", False),
    ("could not read Password", "its server does not accept the credentials, or asks for some (token)", False),
    ("returned error: 403", "its server refuses to hand it out", False),
    ("Permission denied", "its server does not accept the credentials", False),
    ("Host key verification failed", "its server's key is not known: add it to known_hosts", False),
    ("couldn't find remote ref", "it has no such branch", False),
    ("not found", "there is no such repository", False),
    ("does not appear to be a git repository", "there is no such repository", False),
    ("unable to update url base from redirection", "its server redirects, which is not followed", False),
    ("early EOF", "its server broke off", True),
    ("unexpected disconnect", "its server broke off", True),
    ("invalid index-pack output", "it is larger than max_repository_bytes", False),
    ("died of signal 25", "it is larger than max_repository_bytes", False),
    ("File too large", "it is larger than max_repository_bytes", False),
    ("not allowed", "its transport is not allowed", False),
    ("transport '", "its transport is not allowed", False),
    ("Could not resolve host", "its server's name cannot be resolved now", True),
    ("Connection refused", "its server does not answer", True),
    ("timed out", "its server does not answer in time", True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """How a repository is reached.

    Attributes:
        url: What Git is given.
        protocol: The only one that is allowed.
        config: Further configuration, secrets among it: in the environment, where others cannot see it.
        ssh: What ssh is told besides.
    """

    url: str
    protocol: str
    config: Mapping[str, str] = field(default_factory=dict)
    ssh: Sequence[str] = ()


def authorization(user: str, token: str) -> str:
    """The header that carries a token."""
    return "Authorization: Basic " + base64.b64encode(f"{user}:{token}".encode()).decode()


class Git:
    """Runs Git on a bare repository of its own.

    Args:
        location: For messages.
        folder: Where the repository is, made when it is missing.
        environment: What to take `_INHERITED` from.
        seconds: How long one command may take.
        most_bytes: How large a file it may write.
    """

    def __init__(
        self, location: str, folder: Path, environment: Mapping[str, str], *, seconds: float, most_bytes: int
    ) -> None:
        self._location = location
        self._folder = folder
        self._environment = {name: environment[name] for name in _INHERITED if name in environment}
        self._seconds = seconds
        self._blocks = max(1, most_bytes // _BLOCK)
        self._lock = threading.Lock()
        self._reader: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        """End the process that objects are read from."""
        with self._lock:
            self._end_reader()

    def make(self) -> None:
        """Make the repository where there is none, and one in the place of what is none.

        It is made beside its place and moved there whole, so of two that make it at once, one takes the other's.
        """
        if self._made():
            return
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="new-", dir=self._folder.parent, ignore_cleanup_errors=True) as made:
            new = Path(made, self._folder.name)
            new.mkdir(mode=0o700)
            self._require(self._call("init", "--quiet", "--bare", "--template=", ".", folder=new))
            try:
                new.rename(self._folder)
            except OSError:
                if self._made():
                    return
                shutil.rmtree(self._folder, ignore_errors=True)
                new.rename(self._folder)

    def _made(self) -> bool:
        return (self._folder / "HEAD").is_file() and self._call("rev-parse", "--git-dir").returncode == 0

    def fetch(self, transport: Transport, refspec: str) -> None:
        """Fetch one commit, without its history where the server can do that.

        Raises:
            SourceError: It cannot be fetched.
        """
        options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--force")
        words = ("fetch", *options, "--depth=1", "--end-of-options", transport.url, refspec)
        done = self._call(*words, transport=transport)
        if done.returncode and b"does not support shallow" in done.stderr:
            done = self._call(*(word for word in words if word != "--depth=1"), transport=transport)
        self._require(done)

    def run(self, *words: str, stdin: bytes = b"") -> bytes:
        """What a command prints.

        Raises:
            SourceError: It fails.
        """
        return self._require(self._call(*words, stdin=stdin))

    def has(self, name: str) -> bool:
        """Whether there is such an object."""
        return self._call("cat-file", "-e", name).returncode == 0

    def read(self, number: str, *, most_bytes: int) -> tuple[int, bytes | None]:
        """The size of a blob and its bytes; None where they are more than that.

        Raises:
            KeyError: There is no such blob.
            SourceError: The repository cannot be read.
        """
        with self._lock:
            reader = self._reader or self._start_reader()
            assert reader.stdin is not None and reader.stdout is not None, "both are pipes"
            try:
                reader.stdin.write(f"{number}\n".encode())
                reader.stdin.flush()
                header = reader.stdout.readline().split()
                if len(header) != 3 or header[1] != b"blob":
                    self._end_reader()
                    raise KeyError(number)
                size = int(header[2])
                if size > most_bytes:
                    self._end_reader()
                    return size, None
                return size, _exactly(reader.stdout, size + 1)[:-1]
            except (OSError, EOFError) as exc:
                self._end_reader()
                raise SourceError(self._location, "its copy on this machine cannot be read", retryable=True) from exc

    def _start_reader(self) -> subprocess.Popen[bytes]:
        self._reader = subprocess.Popen(
            ["git", "cat-file", "--batch"],
            cwd=self._folder,
            env=self._env(None),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        return self._reader

    def _end_reader(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            with _ended(reader):
                for pipe in (reader.stdin, reader.stdout):
                    if pipe is not None:
                        with suppress(OSError):
                            pipe.close()

    def _call(
        self, *words: str, stdin: bytes = b"", transport: Transport | None = None, folder: Path | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        limited = ["/bin/sh", "-c", 'ulimit -f "$1" && shift && exec "$@"', "sh", str(self._blocks)]
        try:
            process = subprocess.Popen(
                [*limited, "git", *words],
                cwd=folder or self._folder,
                env=self._env(transport),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                umask=0o077,
            )
        except OSError as exc:
            raise SourceError(self._location, f"Git cannot be started ({exc.strerror})", retryable=False) from exc
        with _ended(process):
            deadline = time.monotonic() + self._seconds
            given: bytes | None = stdin
            while True:
                try:
                    out, err = process.communicate(given, timeout=_WAIT_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    given = None
                    interruption.check()
                    if time.monotonic() > deadline:
                        raise SourceError(
                            self._location, "its server does not answer in time", retryable=True
                        ) from None
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def _env(self, transport: Transport | None) -> dict[str, str]:
        config = {**_ALWAYS, **({} if transport is None else transport.config)}
        if transport is not None:
            config[f"protocol.{transport.protocol}.allow"] = "always"
        numbered: dict[str, str] = {}
        for rank, (key, value) in enumerate(config.items()):
            numbered |= {f"GIT_CONFIG_KEY_{rank}": key, f"GIT_CONFIG_VALUE_{rank}": value}
        return {
            **self._environment,
            **numbered,
            "GIT_CONFIG_COUNT": str(len(config)),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_DIR": ".",
            # Paths are names, not patterns.
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": "none" if transport is None else transport.protocol,
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_SSH_VARIANT": "ssh",
            "GIT_SSH_COMMAND": " ".join(("ssh", *_SSH, *(() if transport is None else transport.ssh))),
            "HOME": str(self._folder),
            "LC_ALL": "C",
        }

    def _require(self, done: subprocess.CompletedProcess[bytes]) -> bytes:
        if done.returncode:
            raise self._error(done)
        return done.stdout

    def _error(self, done: subprocess.CompletedProcess[bytes]) -> SourceError:
        said = done.stderr.decode("utf-8", "replace")
        for words, reason, retryable in _REASONS:
            if words in said:
                return SourceError(self._location, reason, retryable=retryable)
        # What the server says is not repeated.
        return SourceError(self._location, f"Git failed (status {done.returncode})", retryable=True)


_SSH = tuple(
    word
    for option in ("BatchMode=yes", "StrictHostKeyChecking=yes", "ForwardAgent=no", "ClearAllForwardings=yes")
    for word in ("-o", option)
)


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return data


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Whatever happens, the process and what it has started are gone afterwards."""
    try:
        yield
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError, PermissionError):
                if os.getpgid(process.pid) == process.pid:
                    os.killpg(process.pid, 9)
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
