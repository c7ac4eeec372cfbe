"""What other people's programs hold on to is what it was. Run as a program, this writes it anew.

``surface/`` has a file for each part: a change of one is a change that users see, and belongs into CHANGELOG.md.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from pydantic import BaseModel

import recollect
from recollect import Principal, RAGConfig, RAGPipeline
from recollect.model.key import ACCESS_SCOPES
from recollect.server.app import create_app
from recollect.server.problems import _ROWS
from recollect.server.sse import ANSWER_EVENTS
from recollect.tools import TOOLS
from recollect.ui import install
from server import data_directory

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).with_name("surface")


#: Texts for people: they may become better at any time.
TEXTS = {"description", "summary", "title", "examples", "example"}


def bare(value: object) -> object:
    """A document without texts. ``properties`` names fields, some of which are called as texts are."""
    if isinstance(value, list):
        return [bare(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {name: one for name, one in value.items() if name not in TEXTS or not isinstance(one, str | list)}
    return {
        name: {field: bare(schema) for field, schema in one.items()} if name == "properties" else bare(one)
        for name, one in kept.items()
    }


def lines(named: dict[str, object]) -> str:
    """A line for each thing, so that a difference shows which one it is."""
    return "".join(f"{name} {json.dumps(bare(value), sort_keys=True)}\n" for name, value in sorted(named.items()))


def openapi(app: FastAPI) -> str:
    document = app.openapi()
    operations = {
        f"{path} {method}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    return lines(operations) + lines(document["components"]["schemas"])


def tools(_: FastAPI) -> str:
    return lines({one.name: one.schema for one in TOOLS})


def names(app: FastAPI) -> str:
    routes = [one for one in app.routes if isinstance(one, APIRoute) and not one.include_in_schema]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    parts = {
        "Python": recollect.__all__,
        "imports in the documentation": shown_imports(),
        "settings": settings(RAGConfig),
        "programs": project["scripts"],
        "extras": project["optional-dependencies"],
        "groups of entry points": re.findall(r'group="(recollect\.\w+)"', sources()),
        "problems": {row.name for row in _ROWS},
        "events of answers": ANSWER_EVENTS,
        "metrics": re.findall(r"^# TYPE (\S+ \S+)$", metrics(app), re.MULTILINE),
        "pages": {f"{method} {route.path}" for route in routes for method in route.methods},
    }
    return "\n".join(f"[{title}]\n" + "".join(f"{one}\n" for one in sorted(part)) for title, part in parts.items())


def sources() -> str:
    return "\n".join(file.read_text("utf-8") for file in (ROOT / "src").rglob("*.py"))


def metrics(app: FastAPI) -> str:
    with TestClient(app) as client:
        client.get("/v1/nothing")
        return client.get("/metrics").text


def shown_imports() -> set[str]:
    """Each name with the module from which a page imports it."""
    pages = chain((ROOT / "docs").rglob("*.md"), [ROOT / "README.md"])
    found = (
        re.findall(r"^\s*from (recollect[\w.]*) import (\([^)]+\)|.+)$", page.read_text("utf-8"), re.MULTILINE)
        for page in pages
    )
    return {f"{module} {name}" for module, given in chain(*found) for name in re.findall(r"\w+", given.split("#")[0])}


def settings(model: type[BaseModel], before: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from settings(inner, f"{before}{name}.")
        else:
            yield f"{before}{name}"


ANN = Principal(user_id="ann", roles=("clerk",))

#: Whose keys ask every operation. None opens what another one does.
KEYS: dict[str, dict[str, object]] = {
    **{scope: {"scopes": [scope]} for scope in ACCESS_SCOPES},
    **{f"ann {scope}": {"scopes": [scope], "principal": ANN} for scope in ("read", "write", "admin")},
}


def rights(app: FastAPI) -> str:
    """What every operation replies to every kind of key, asked for things that there are not, with an empty body."""
    rag = app.state.service.rag
    secrets = {name: rag.keys.create(name, **given).secret for name, given in KEYS.items()}
    found: dict[str, object] = {}
    with TestClient(create_app(rag), base_url="http://127.0.0.1:8321", raise_server_exceptions=False) as client:
        for path, methods in app.openapi()["paths"].items():
            nowhere = re.sub(r"{(?:job_id|document_id|fact_id)}", "999999", path)
            for method in methods:
                asked = (method, re.sub(r"{\w+}", "nothing", nowhere))
                found[f"{path} {method}"] = {
                    name: client.request(*asked, json={}, headers={"Authorization": f"Bearer {secret}"}).status_code
                    for name, secret in secrets.items()
                }
    return lines(found)


PARTS: dict[str, Callable[[FastAPI], str]] = {
    "openapi.txt": openapi,
    "tools.txt": tools,
    "names.txt": names,
    "rights.txt": rights,
}


def surface(rag: RAGPipeline) -> dict[str, str]:
    app = create_app(rag)
    install(app)
    return {name: part(app) for name, part in PARTS.items()}


def test_nothing_of_it_changes_unseen(pipeline):
    for name, text in surface(pipeline).items():
        assert text == (FOLDER / name).read_text(encoding="utf-8"), f"{name}: run {Path(__file__).name} as a program"


def test_programs_can_name_the_shapes_by_their_titles(pipeline):
    titles = [shape["title"] for shape in create_app(pipeline).openapi()["components"]["schemas"].values()]
    assert sorted(set(titles)) == sorted(titles)


if __name__ == "__main__":
    with data_directory() as folder:
        config = RAGConfig.load(storage={"data_dir": folder}, embedding={"provider": "hashing"})
        with RAGPipeline(config) as made:
            for file, text in surface(made).items():
                (FOLDER / file).write_text(text, encoding="utf-8")
