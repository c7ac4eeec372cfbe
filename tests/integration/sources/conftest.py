"""Servers that the connectors are tested against: one that speaks S3, and Git's own."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import boto3
import pytest

from recollect import RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder

_NUMBERS = count(1)


@dataclass
class Bucket:
    """A bucket of the test server, filled by a client of its own."""

    client: Any
    name: str
    endpoint_url: str

    @property
    def location(self) -> str:
        return f"s3://{self.name}/docs/"

    def put(self, key: str, text: str, **how: Any) -> None:
        self.client.put_object(Bucket=self.name, Key=f"docs/{key}", Body=text.encode(), **how)

    def delete(self, key: str) -> None:
        self.client.delete_object(Bucket=self.name, Key=f"docs/{key}")


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """A server that speaks S3, on a port of its own."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """An empty bucket, whose credentials are in the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a-key-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-key")
    client = boto3.client("s3", endpoint_url=s3_endpoint, region_name="us-east-1")
    made = Bucket(client, f"bucket-{os.getpid()}-{next(_NUMBERS)}", s3_endpoint)
    client.create_bucket(Bucket=made.name)
    yield made
    client.close()


_GIT = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}


@dataclass
class Repository:
    """A bare repository that the test server hands out, written to directly."""

    folder: Path
    url: str
    password: str = ""
    commits: int = field(default=0)

    def commit(self, files: dict[str, str | bytes | None], *, anew: bool = False, branch: str = "main") -> None:
        """Write files, or delete those that are None; ``anew``: as a first commit, which rewrites the branch."""
        ref = f"refs/heads/{branch}"
        stream = [
            f"reset {ref}\n" if anew else "",
            f"commit {ref}\ncommitter Ada <ada@example.org> 0 +0000\ndata 1\nm\n",
        ]
        if self.commits and not anew:
            stream.append(f"from {ref}^0\n")
        data = "".join(stream).encode()
        for name, content in files.items():
            if content is None:
                data += f"D {name}\n".encode()
                continue
            content = content.encode() if isinstance(content, str) else content
            data += f"M 100644 inline {name}\ndata {len(content)}\n".encode() + content + b"\n"
        self.git("fast-import", "--quiet", "--force", stdin=data + b"\n")
        self.commits += 1

    def git(self, *words: str, stdin: bytes = b"") -> str:
        command = ["git", "-C", str(self.folder), *words]
        return subprocess.run(command, input=stdin, env=_GIT, check=True, capture_output=True).stdout.decode()


class _GitHandler(BaseHTTPRequestHandler):
    """Git's own server, `git http-backend`, behind HTTP; a password where the repository asks for one."""

    def _serve(self) -> None:
        served: _GitServer = self.server  # type: ignore[assignment]
        path, _, query = self.path.partition("?")
        password = served.passwords.get(path.split("/")[1])
        expected = "Basic " + base64.b64encode(f"x-access-token:{password}".encode()).decode()
        if password and self.headers.get("Authorization") != expected:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.end_headers()
            return
        if path.split("/")[1] in served.moved:
            self.send_response(302)
            self.send_header("Location", f"/elsewhere{self.path}")
            self.end_headers()
            return
        served.asked.append(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        environment = {
            **_GIT,
            "GIT_PROJECT_ROOT": str(served.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = _serve  # noqa: N815 - http.server calls them

    def log_message(self, *_: object) -> None:
        pass


class _GitServer(ThreadingHTTPServer):
    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), _GitHandler)
        self.root = root
        self.passwords: dict[str, str] = {}
        self.moved: set[str] = set()
        self.asked: list[str] = []


@pytest.fixture(scope="session")
def git_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_GitServer]:
    """Git over HTTP, on a port of its own."""
    with _GitServer(tmp_path_factory.mktemp("repositories")) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def repository(git_server: _GitServer) -> Repository:
    """An empty repository on the server."""
    name = f"repository-{next(_NUMBERS)}.git"
    folder = git_server.root / name
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(folder)], env=_GIT, check=True)
    return Repository(folder, f"http://127.0.0.1:{git_server.server_port}/{name}")


@pytest.fixture
def pipeline(dsn: str, tmp_path: Path) -> Iterator[RAGPipeline]:
    """A pipeline on an empty store that may contact this machine."""
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "data", "dsn": dsn},
        embedding={"provider": "hashing"},
        sources={"allow_private_addresses": True, "timeout_seconds": 5},
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as opened:
        yield opened
