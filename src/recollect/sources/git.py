"""Git repositories: the files of a branch, and what changes from one commit to the next."""

from __future__ import annotations

import base64
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, ClassVar
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, ValidationError, field_validator

from recollect import interruption
from recollect.errors import ParseError, SourceError, UsageError
from recollect.sources.base import (
    RULES_BYTES,
    Change,
    Checkpoint,
    ConnectorSettings,
    Content,
    Found,
    GrantRules,
    Item,
    ItemLeftOutError,
    ListingBegins,
    ListingEnds,
    Removed,
    SecretReference,
    Surroundings,
)

# So many items stand between two checkpoints.
_CHECKPOINT_EVERY = 500
_LFS = b"version https://git-lfs.github.com/spec/v1\n"
_LFS_BYTES = 1024

_HEAD, _BASE = "refs/recollect/head", "refs/recollect/base"
_PORTS = {"https": 443, "http": 80}
# More packs than these, of as many refreshes, are made one.
_MOST_PACKS = 20

# A name of a host as a URL has it: nothing that ssh could take for an option.
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*)|\[[0-9A-Fa-f:.]+\]")
# ext::command, fd::17: a program of this machine in place of a URL.
_HELPER = re.compile(r"(?:git\+)?[A-Za-z0-9+.-]*::")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_SCP = re.compile(r"(?P<user>[A-Za-z0-9_][A-Za-z0-9._-]*)@(?P<host>[A-Za-z0-9][A-Za-z0-9.-]*):(?P<path>[^:].*)")
# What Git takes for a name of a branch, less what nobody needs.
_BRANCH = re.compile(r"(?!-)(?!.*(?:\.\.|@\{|//|\.lock(?:/|$)))[^\s\x00-\x1f\x7f~^:?*\[\\]+(?<![/.])")


class GitSettings(ConnectorSettings):
    """What is read of a repository, and how.

    Attributes:
        branch: Or another ref, as ``refs/tags/v1``; None: the server's default branch.
        path: Only what is below this folder; URIs begin behind it.
        token: ``env:NAME``; sent as the password, over HTTPS.
        user: Sent beside it.
        ssh_key: A file with the private key that ssh uses; None: the agent's.
        grants_file: A file of the repository with rules (`recollect.sources.base`); it counts before ``grants``.
        max_repository_bytes: A larger commit is refused, all of its files together and packed.
        fetch_seconds: How long fetching may take.
    """

    branch: str | None = None
    path: str = ""
    token: SecretReference | None = None
    user: str = "x-access-token"
    ssh_key: Path | None = None
    grants_file: str | None = None
    max_repository_bytes: int = Field(2 * 1024**3, ge=1024)
    fetch_seconds: float = Field(1_800.0, gt=0, le=86_400)

    @field_validator("location")
    @classmethod
    def _repository(cls, location: str) -> str:
        read_location(location)
        return location

    @field_validator("branch")
    @classmethod
    def _ref(cls, branch: str | None) -> str | None:
        if branch is not None and not _BRANCH.fullmatch(branch):
            raise ValueError("it is no name of a branch")
        return branch

    @field_validator("path", "grants_file")
    @classmethod
    def _inside(cls, path: str | None) -> str | None:
        if path and (path.startswith("/") or not path.isprintable() or ".." in path.split("/")):
            raise ValueError("it is a path within the repository: docs/handbook")
        return None if path is None else path.strip("/")

    @property
    def refspec(self) -> str:
        """What is fetched."""
        if self.branch is None:
            return f"+HEAD:{_HEAD}"
        return f"+{self.branch if self.branch.startswith('refs/') else f'refs/heads/{self.branch}'}:{_HEAD}"


@dataclass(frozen=True, slots=True)
class RepositoryLocation:
    """Where a repository is, taken apart."""

    scheme: str
    user: str | None
    host: str
    port: int | None
    path: str


def read_location(text: str) -> RepositoryLocation:
    """Take a repository's URL apart.

    Raises:
        ValueError: It is none that is read: of another scheme, with a password, or with what could be an option.
    """
    if any(ord(letter) < 33 or ord(letter) == 127 for letter in text) or text.startswith("-") or _HELPER.match(text):
        raise ValueError("a repository is named by a URL: https://…, ssh://… or git://…")
    scp = _SCP.fullmatch(text)
    if scp is not None:
        return RepositoryLocation("ssh", scp["user"], scp["host"], None, f"/{scp['path'].lstrip('/')}")
    if text.startswith(("/", "file:///")):
        return RepositoryLocation("file", None, "", None, text.removeprefix("file://"))
    try:
        parts = urlsplit(text.removeprefix("git+"))
        port = parts.port
    except ValueError as exc:
        raise ValueError("it is no URL") from exc
    if parts.scheme not in {"https", "http", "ssh", "git"}:
        raise ValueError("a repository is named by a URL: https://…, ssh://… or git://…")
    if parts.password is not None or (parts.username is not None and parts.scheme != "ssh"):
        raise ValueError("credentials do not belong into the URL: set token=env:NAME")
    host = parts.netloc.rpartition("@")[2].removesuffix(f":{port}")
    if not _HOST.fullmatch(host) or (parts.username is not None and not _USER.fullmatch(parts.username)):
        raise ValueError("its host or user is none that can be connected to")
    if not parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError("it names no repository, or more than one")
    return RepositoryLocation(parts.scheme, parts.username, host, port, parts.path)


class GitConnector:
    """Reads the files of one branch, from a copy of its latest commit that is kept on this machine.

    An item's revision is the hash of its bytes, the cursor the commit: the next run reads what differs between that and
    the branch's latest, also where the branch was rewritten. Where that commit is unknown, every file is named. Links
    and submodules are not followed.

    Args:
        settings: Which repository, and how.
        surroundings: What it may use.
    """

    Settings: ClassVar[type[ConnectorSettings]] = GitSettings

    def __init__(self, settings: GitSettings, surroundings: Surroundings) -> None:
        self._settings = settings
        self._surroundings = surroundings
        self._where = read_location(settings.location)
        if self._where.scheme == "file" and not surroundings.allow_local:
            raise UsageError(
                "Repositories of this machine are not read by their path, which could be anybody's: set "
                "allow_local_repositories in [rag.sources] to have them read."
            )
        self._token = None if settings.token is None else surroundings.secret(settings.token)
        if self._token is not None and self._where.scheme != "https" and not _is_loopback(self._where.host):
            raise UsageError("A token is sent over HTTPS alone: name the repository by https://….")
        self._rules = GrantRules.read(settings.grants)
        self._commit = ""
        self._git = Git(
            settings.location,
            surroundings.folder / "repository.git",
            surroundings.environment,
            seconds=settings.fetch_seconds,
            most_bytes=settings.max_repository_bytes,
        )

    def close(self) -> None:
        """End the process that files are read from."""
        self._git.close()

    def changes(self, cursor: str | None) -> Iterator[Change]:
        """As `Connector.changes`."""
        before = _Cursor.read(cursor)
        self._git.make()
        base = before.commit if before.commit and self._git.has(f"{before.commit}^{{commit}}") else None
        if base is not None:
            self._git.run("update-ref", _BASE, base)
        self._git.fetch(self._transport(), self._settings.refspec)
        self._tidy()
        target = self._git.run("rev-parse", "--verify", f"{_HEAD}^{{commit}}").decode().strip()
        self._commit = target
        if self._settings.path and not self._git.has(f"{target}:{self._settings.path}"):
            raise self._error(f"it has no folder {self._settings.path!r}")
        if self._read_rules(target, base):
            base = None  # every file is named, for its grants
        if base != target:
            yield from self._differences(base, target, before)
        yield Checkpoint(_Cursor(commit=target).text())

    def fetch(self, item: Item, *, max_bytes: int) -> Content:
        """As `Connector.fetch`, from the copy of this machine."""
        if item.size is None or item.size > max_bytes:
            raise ParseError(item.uri, f"is larger than the limit ({item.size or 0:,} of {max_bytes:,} bytes)")
        data = self._git.blob(item.key)
        if item.size <= _LFS_BYTES and data.startswith(_LFS):
            raise ItemLeftOutError("is kept in Git LFS: what stands in the repository is a pointer to it")
        return Content(data=data, metadata={"commit": self._commit, "blob": item.key})

    def grants(self, item: Item) -> tuple[str, ...] | None:
        """As `Connector.grants`: the last rule that matches."""
        return self._rules.of(item.uri)

    def _differences(self, base: str | None, target: str, before: _Cursor) -> Iterator[Change]:
        """What changed from one commit to another, behind where an interrupted run had come to; None: every file."""
        options = ("-r", "-z", "--raw", "--no-renames", "--no-commit-id", "--no-abbrev")
        below = ("--", self._settings.path) if self._settings.path else ()
        told = self._git.run("diff-tree", *options, base or self._git.empty_tree(), target, *below).split(b"\0")[:-1]
        # A header holds the modes before and after, the numbers before and after, and what became of the file.
        headers, paths = [header.decode().split() for header in told[::2]], told[1::2]
        sizes = self._git.sizes([number for _, _, _, number, _ in headers])
        uris = [self._uri(path) for path in paths]
        goes_on = (before.commit, before.target) == (base, target) and before.after in uris
        if base is None and not goes_on:
            yield ListingBegins()
        start = uris.index(before.after or "") + 1 if goes_on else 0
        files = islice(zip(uris, paths, headers, strict=True), start, None)
        for rank, (uri, path, (_, mode, _, number, _)) in enumerate(files, 1):
            if mode.startswith("100") and not self._is_rules(path):
                yield Found(Item(uri=uri, revision=number, size=sizes.get(number), key=number))
            elif base is not None:
                yield Removed(uri)
            if rank % _CHECKPOINT_EVERY == 0:
                yield Checkpoint(_Cursor(commit=base, target=target, after=uri).text())
        if base is None:
            yield ListingEnds()

    def _is_rules(self, path: bytes) -> bool:
        """Whether it says who may read what, which is no document."""
        return self._settings.grants_file is not None and path == self._settings.grants_file.encode()

    def _uri(self, path: bytes) -> str:
        text = path.decode("utf-8", "backslashreplace")
        return text[len(self._settings.path) + 1 :] if self._settings.path else text

    def _read_rules(self, target: str, base: str | None) -> bool:
        """Read the repository's own rules; whether they are others than those of the base."""
        name = self._settings.grants_file
        if name is None:
            return False
        now = self._git.number(f"{target}:{name}")
        if now is None:
            raise self._error(f"it has no {name!r}, which says who may read it")
        if self._git.sizes([now]).get(now, 0) > RULES_BYTES:
            raise self._error(f"{name!r} is too long")
        self._rules = GrantRules.with_file(self._settings, name, self._git.blob(now))
        return base is not None and self._git.number(f"{base}:{name}") != now

    def _tidy(self) -> None:
        packs = list((self._surroundings.folder / "repository.git" / "objects" / "pack").glob("*.pack"))
        if len(packs) > _MOST_PACKS:
            self._git.run("gc", "--quiet", "--prune=now")

    def _transport(self) -> Transport:
        """How the repository is reached: at the addresses that were checked, and at no other."""
        where = self._where
        if where.scheme == "file":
            return Transport(url=f"file://{where.path}", protocol="file")
        if where.scheme in _PORTS:
            url = f"{where.scheme}://{where.host}{'' if where.port is None else f':{where.port}'}"
            addresses = self._surroundings.addresses(url)
            port = where.port or _PORTS[where.scheme]
            pinned = ",".join(f"[{one}]" if ":" in one else one for one in addresses)
            config = {"http.curloptResolve": f"{where.host.strip('[]')}:{port}:{pinned}"}
            config |= {"http.lowSpeedLimit": "1", "http.lowSpeedTime": str(int(self._surroundings.timeout_seconds) + 1)}
            if self._token is not None:
                config[f"http.{url}/.extraHeader"] = authorization(self._settings.user, self._token)
            return Transport(url=url + where.path, protocol=where.scheme, config=config)
        address = self._surroundings.addresses(f"https://{where.host}")[0]
        shown = f"[{address}]" if ":" in address else address
        if where.scheme == "git":
            return Transport(url=f"git://{shown}:{where.port or 9418}{where.path}", protocol="git")
        key = self._settings.ssh_key
        options = ["-o", f"HostName={address}", "-o", f"HostKeyAlias={where.host.strip('[]')}", "-o", "CheckHostIP=no"]
        options += ["-o", f"ConnectTimeout={int(self._surroundings.timeout_seconds) + 1}"]
        options += [] if key is None else ["-i", shlex.quote(str(key)), "-o", "IdentitiesOnly=yes"]
        user = "" if where.user is None else f"{where.user}@"
        port_text = "" if where.port is None else f":{where.port}"
        return Transport(url=f"ssh://{user}{where.host}{port_text}{where.path}", protocol="ssh", ssh=options)

    def _error(self, reason: str) -> SourceError:
        return SourceError(self._settings.location, reason, retryable=False)


_Commit = Annotated[str, Field(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$")]


class _Cursor(BaseModel):
    """How far a repository was read.

    Attributes:
        commit: Whose files are all known; None: no commit's are.
        target: The commit that a run had come to read that did not end.
        after: The last path of it that was read.
    """

    commit: _Commit | None = None
    target: _Commit | None = None
    after: str | None = None

    @classmethod
    def read(cls, text: str | None) -> _Cursor:
        try:
            return cls.model_validate_json(text or "{}")
        except ValidationError:
            return cls()

    def text(self) -> str:
        return self.model_dump_json(exclude_none=True)


def _is_loopback(host: str) -> bool:
    return host in {"127.0.0.1", "[::1]", "localhost"}


# Git as a process that is told everything: nobody's configuration, no hooks, one transport, one address.


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
        self._lock = threading.RLock()
        self._reader: subprocess.Popen[bytes] | None = None

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

    def number(self, name: str) -> str | None:
        """The number of an object; None: there is none of that name."""
        return self.run("rev-parse", "--verify", name).decode().strip() if self.has(name) else None

    def empty_tree(self) -> str:
        """The number of a folder without files, which everything differs from."""
        return self.run("mktree").decode().strip()

    def sizes(self, numbers: Sequence[str]) -> dict[str, int]:
        """How long objects are, in bytes; those that are missing are left out."""
        told = self.run("cat-file", "--batch-check", stdin="".join(f"{one}\n" for one in numbers).encode())
        found = (line.split() for line in told.decode().splitlines())
        return {words[0]: int(words[2]) for words in found if len(words) == 3}

    def blob(self, number: str) -> bytes:
        """The bytes of a file, read by one process for all of them, which ends with `close`.

        Raises:
            SourceError: The repository cannot be read.
        """
        with self._lock:
            if self._reader is None:
                self._reader = subprocess.Popen(
                    ["git", "cat-file", "--batch"],
                    cwd=self._folder,
                    env=self._env(None),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            asked, told = self._reader.stdin, self._reader.stdout
            assert asked is not None and told is not None, "both are pipes"
            try:
                asked.write(f"{number}\n".encode())
                asked.flush()
                _, kind, size = told.readline().split()
                data = told.read(int(size) + 1)[:-1]
                if kind != b"blob" or len(data) != int(size):
                    raise EOFError
            except (OSError, ValueError, EOFError) as exc:
                self.close()
                raise SourceError(self._location, "its copy on this machine cannot be read", retryable=True) from exc
            return data

    def close(self) -> None:
        """End the process that files are read from."""
        with self._lock:
            reader, self._reader = self._reader, None
            if reader is not None:
                reader.kill()
                reader.communicate()

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
        deadline = time.monotonic() + self._seconds
        given: bytes | None = stdin
        with process:
            try:
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
            finally:
                # Whatever happens, the process and what it has started are gone afterwards.
                if process.poll() is None:
                    with suppress(ProcessLookupError, PermissionError):
                        os.killpg(process.pid, signal.SIGKILL)
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
