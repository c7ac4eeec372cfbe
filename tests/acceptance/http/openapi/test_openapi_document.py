"""Schemathesis asks for everything that the OpenAPI document describes, and believes nothing of it unseen.

``FUZZ_EFFORT=50 pytest -n0 -s tests/acceptance/http/openapi`` looks fifty times as long, with another seed each time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest
import uvicorn

from hostile import EFFORT
from recollect import Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.llm.scripted import ScriptedChatModel
from recollect.model.key import ACCESS_SCOPES
from recollect.server.app import TOLD, asked_for, create_app

HERE = Path(__file__).parent
SECRET = "a secret of thirty-two bytes or more"
TENANT = "fuzzed"
#: What is tried of every operation alone, and of those that lead to one another. More of each, and the coverage of what
#: every schema says, takes minutes: only where somebody looks for longer.
PHASES = [("fuzzing", 1), ("stateful", 10), *([("coverage", 1)] if EFFORT > 1 else [])]
pytestmark = pytest.mark.timeout(300 * EFFORT)


@pytest.fixture
def rag(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RAGPipeline]:
    """A store with something of everything, in the tenant that is asked."""
    monkeypatch.setenv("TOKENS", SECRET)
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        server={
            "port": 0,
            "authentication": "required",
            "jwt": {"secret": "env:TOKENS", "max_scopes": ACCESS_SCOPES},
            "limits": {"search": None, "answer": None, "ingest": None},
        },
    )
    model = ScriptedChatModel("Thirty days of annual leave [1].")
    with RAGPipeline(config, embedder=HashingEmbedder(), chat_model=model) as opened:
        opened.tenants.create(TENANT)
        view = opened.view(tenant=TENANT)
        view.ingest(Document(content="Thirty days of annual leave.", source="leave.md", title="Leave"))
        view.view(session="talk").remember(["My cat is called Mimi.", "Noted."])
        yield opened


@pytest.fixture
def address(rag: RAGPipeline) -> Iterator[str]:
    """Where it is served."""
    app = create_app(rag)
    app.openapi()  # takes seconds where the machine is busy, and whoever reads it gives up after ten
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    host, port = server.servers[0].sockets[0].getsockname()[:2]
    yield f"http://{host}:{port}"
    server.should_exit = True
    thread.join(60)


@pytest.mark.parametrize(("phases", "examples"), PHASES)
def test_it_answers_as_its_document_says(rag: RAGPipeline, address: str, phases: str, examples: int):
    claims = {"sub": "admin", "tenant": TENANT, "scope": " ".join(ACCESS_SCOPES), "exp": int(time.time()) + 86_400}
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", "schemathesis.toml"),
        *("run", f"{address}/v1/openapi.json", "--phases", phases, "--max-examples", str(examples * EFFORT)),
        *(("--seed", "1") if EFFORT == 1 else ()),
    ]
    done = subprocess.run(
        command,
        cwd=HERE,
        env={**os.environ, "RECOLLECT_TEST_TOKEN": jwt.encode(claims, SECRET, "HS256"), "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    sys.stdout.write(done.stdout)
    assert done.returncode == 0, done.stdout[-30_000:]


def test_every_path_is_led_to(rag: RAGPipeline):
    """An operation that asks for an id in its path is linked from a reply that tells one."""
    document = create_app(rag).openapi()
    operations = {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    linked = {
        link["operationId"]
        for operation in operations.values()
        for response in operation["responses"].values()
        for link in response.get("links", {}).values()
    }
    assert [name for name, one in operations.items() if asked_for(name) and one["operationId"] not in linked] == []
    assert set(TOLD) <= set(operations)
