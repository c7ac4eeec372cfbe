"""The proxies of the guide before the server, as the guide sets them up: TLS, streams, uploads, names and addresses."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from recollect import Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from serving import serving

GUIDE = (Path(__file__).resolve().parents[3] / "docs/how-to/running.md").read_text(encoding="utf-8")
NAME = "knowledge.example.org"
TEXT = "Every employee has thirty days of annual leave."
UPLOAD_BYTES = 2 << 20


def program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


def _sentence(number: int) -> str:
    return f"Every employee has thirty days of annual leave, sentence {number} [1]. "


class HesitantModel:
    """Writes sentences, and no more until whoever asked has seen it."""

    model_name = "hesitant"

    def __init__(self) -> None:
        self.seen, self.ended = threading.Event(), threading.Event()

    async def stream(self, messages: object, **_: object) -> AsyncIterator[str]:
        try:
            # A sentence is checked, and sent, when the next one has begun.
            yield _sentence(1) + _sentence(2)
            await asyncio.to_thread(self.seen.wait, 60)
            yield _sentence(3)
        finally:
            self.ended.set()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for the guide's name that the client is told to trust, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "cert.pem").write_bytes(made.public_bytes(encoding))
    (folder / "key.pem").write_bytes(key.private_bytes(encoding, form, serialization.NoEncryption()))
    return folder / "cert.pem", folder / "key.pem"


def configuration(kind: str, port: int, server: str, certificate: tuple[Path, Path]) -> str:
    """The guide's own, at another port and with the certificate of the test."""
    block = re.search(rf"```{kind}\n(.*?{NAME}.*?)```", GUIDE, re.DOTALL)
    assert block is not None
    text = block[1].replace("127.0.0.1:8321", server)
    if kind == "nginx":
        text = re.sub(
            r"(ssl_certificate|ssl_certificate_key) \S+;",
            "",
            text.replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        )
        tls = f"ssl_certificate {certificate[0]}; ssl_certificate_key {certificate[1]};"
        http = f"{tls} access_log off; client_body_temp_path body; proxy_temp_path proxy;\n{text}"
        return f"daemon off; pid nginx.pid; error_log stderr warn; events {{}}\nhttp {{ {http} }}"
    text = text.replace(
        f"{NAME} {{", f"https://{NAME}:{port} {{\n    bind 127.0.0.1\n    tls {certificate[0]} {certificate[1]}"
    )
    return f"{{\n    admin off\n    auto_https disable_redirects\n}}\n{text}"


@contextmanager
def proxied(kind: str, server: str, certificate: tuple[Path, Path], folder: Path) -> Iterator[httpx2.Client]:
    """A client of a proxy, by the guide's name."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    file = folder / f"{kind}.conf"
    file.write_text(configuration(kind, port, server, certificate), encoding="utf-8")
    arguments = {
        "nginx": ["-p", str(folder), "-c", str(file), "-e", "stderr"],
        "caddy": ["run", "--config", str(file), "--adapter", "caddyfile"],
    }[kind]
    environment = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([str(program(kind)), *arguments], stdout=log, stderr=log, env=environment)
    try:
        while True:
            assert process.poll() is None, (folder / "log").read_text()
            try:
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
                break
            except ConnectionRefusedError:
                continue
        trusting = ssl.create_default_context(cafile=str(certificate[0]))
        with httpx2.Client(verify=trusting, base_url=f"https://127.0.0.1:{port}", timeout=60) as client:
            client.headers["Host"] = NAME
            yield client
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def model() -> HesitantModel:
    return HesitantModel()


@pytest.fixture(scope="module")
def rag(clone, tmp_path_factory: pytest.TempPathFactory, model: HesitantModel) -> Iterator[RAGPipeline]:
    server = {"port": 0, "authentication": "required", "allowed_hosts": [NAME], "max_upload_bytes": 2 * UPLOAD_BYTES}
    with clone() as dsn:
        config = RAGConfig.load(
            storage={"data_dir": tmp_path_factory.mktemp("data") / "unused", "dsn": dsn},
            embedding={"provider": "hashing"},
            server=server,
        )
        with RAGPipeline(config, embedder=HashingEmbedder(), chat_model=model) as rag:
            rag.ingest(Document(content=TEXT, source="leave.md"))
            yield rag


@pytest.fixture(scope="module", params=["nginx", "caddy"])
def client(request, rag, certificate, tmp_path_factory) -> Iterator[httpx2.Client]:
    if program(request.param) is None:
        pytest.skip(f"{request.param} is not installed (Debian: apt-get install {request.param})")
    key = rag.keys.create(f"of {request.param}", scopes=["read", "write"]).secret
    with (
        pytest.MonkeyPatch.context() as patched,
        serving(rag, patched) as url,
        proxied(request.param, url.removeprefix("http://"), certificate, tmp_path_factory.mktemp("proxy")) as client,
    ):
        client.headers["Authorization"] = f"Bearer {key}"
        yield client


def extensions() -> dict[str, dict[str, str]]:
    return {"extensions": {"sni_hostname": NAME}}


def test_searches_go_through(client):
    found = client.post("/v1/search", json={"query": "annual leave"}, **extensions())
    assert found.status_code == 200, found.text
    assert found.json()["results"][0]["source"] == "leave.md"
    told = client.post("/v1/search", json={"query": ""}, **extensions())
    assert told.headers["content-type"] == "application/problem+json"


def test_what_a_proxy_forwards_is_never_the_user_of_this_machine(client):
    for headers in ({"Authorization": ""}, {"Authorization": "", "X-Forwarded-For": "127.0.0.1"}):
        assert client.get("/v1/collections", headers=headers, **extensions()).status_code == 401


def test_events_come_as_they_are_written(client, model):
    model.seen.clear()
    asked = {"question": "How many days of leave?"}
    headers = {"Accept": "text/event-stream"}
    with client.stream("POST", "/v1/ask", json=asked, headers=headers, **extensions()) as reply:
        text = ""
        for piece in reply.iter_text():
            text += piece
            # The model goes on when this has come: a proxy that waited for more would wait for ever.
            if "event: token" in text:
                model.seen.set()
    assert text.count("event: done") == 1


def test_whoever_goes_away_ends_the_model_behind_the_proxy(client, model):
    model.seen.clear()
    model.ended.clear()
    asked = {"question": "How many days of leave are there?"}
    with client.stream("POST", "/v1/ask", json=asked, headers={"Accept": "text/event-stream"}, **extensions()) as reply:
        for piece in reply.iter_text():
            if "event: token" in piece:
                break
    assert model.ended.wait(30)
    model.seen.set()


def test_uploads_go_through_as_far_as_they_may(client):
    def of(size: int) -> dict[str, tuple[str, bytes]]:
        return {"file": (f"{size}.md", b"Annual leave. " * (size // 14))}

    sent = client.post("/v1/collections/default/files", files=of(UPLOAD_BYTES), **extensions())
    assert sent.status_code == 202, sent.text
    refused = client.post("/v1/collections/default/files", files=of(3 * UPLOAD_BYTES), **extensions())
    assert refused.status_code == 413


def test_agents_are_answered(client):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }}}  # fmt: skip
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/list",
    }
    reply = client.post(
        "/mcp", content=json.dumps(body), headers={**headers, "Content-Type": "application/json"}, **extensions()
    )
    assert reply.status_code == 200, reply.text
    assert "search" in reply.text
