"""A name of a document means one of the view's collections, in every method of a view and of a client."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

from recollect import Document, Principal
from recollect.client.groups import Groups as ClientGroups
from recollect.errors import NotFoundError
from recollect.pipeline.view import Groups
from served import Served, serving

SOURCE = "east-only.md"
NAMES = {"document", "documents", "document_id"}
#: Arguments of methods, by their names, beside the document.
OTHERS = {
    "version": 1,
    "ttl": "1d",
    "title": "Another title",
    "grants": "user:eve",
    "denials": "user:eve",
    "principal": Principal(user_id="eve"),
    "pattern": "words",
}
#: The log of who read which document is of the tenant; ``documents`` of `Sources.remove` says what becomes of them.
OTHER_MEANINGS = {("audit", "accesses"), ("sources", "remove")}
BY_ID_ALONE = "contents", "files"


@pytest.fixture(scope="module")
def served(clone: Callable, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that is configured with the collection ``west``, and a document of ``east``."""
    with clone() as dsn, serving(dsn, tmp_path_factory.mktemp("served"), worker=False, collection="west") as one:
        one.rag.ingest(Document(content="Some words of the west.", source="west.md"))
        one.rag.view(collections="east").ingest(Document(content="Some words of the east.", source=SOURCE))
        one.rag.view(collections="closed").ingest(Document(content="Nobody reads this.", source="closed.md"))
        one.rag.view(collections="closed").grants.set_collection(readers=())
        yield one


def methods(groups: type) -> list[tuple[str, str]]:
    """Every method of a group that takes a document, by the names of both."""
    found = []
    for group, value in vars(groups).items():
        if isinstance(value, property):
            assert value.fget is not None
            name = value.fget.__annotations__["return"]
            taken = getattr(import_module(value.fget.__module__), name)
            found += [(group, method) for method in vars(taken) if _takes_a_document(taken, method)]
    return sorted(set(found) - OTHER_MEANINGS)


def _takes_a_document(taken: type, method: str) -> bool:
    value = getattr(taken, method)
    return not method.startswith("_") and callable(value) and bool(NAMES & set(inspect.signature(value).parameters))


def call(view: Any, group: str, method: str, document: int | str) -> object:
    function = getattr(getattr(view, group), method)
    given: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in NAMES:
            given[name] = [document] if name == "documents" else document
        elif name in OTHERS and (parameter.default is parameter.empty or name == "title"):
            given[name] = OTHERS[name]
        else:
            assert parameter.default is not parameter.empty, f"{group}.{method}: add {name} to OTHERS"
    done = function(**given)
    return list(done) if isinstance(done, Iterator) else done


def east(served: Served) -> tuple[int, object]:
    view = served.rag.view(collections="east")
    (document_id,) = view.documents.resolve([SOURCE])
    return document_id, (view.documents.get(SOURCE), view.documents.history(SOURCE), view.grants.of_documents(SOURCE))


@pytest.mark.parametrize("collections", [None, "west", ("west", "north")], ids=str)
def test_a_view_names_documents_of_its_collections_alone(served: Served, collections):
    document_id, before = east(served)
    if collections == ("west", "north"):
        served.rag.view(collections="north").ingest(Document(content="Some words of the north.", source="north.md"))
    view = served.rag.view(collections=collections)
    for group, method in methods(Groups):
        for document in [document_id] if group in BY_ID_ALONE else [document_id, str(document_id), SOURCE]:
            told = refusal(view, group, method, document)
            assert re.search(r"in collection 'east', not in 'west'.*--collection east", told), (group, method, told)
    assert east(served) == (document_id, before)


def refusal(view: Any, group: str, method: str, document: int | str) -> str:
    """Why there is no such document for a method; empty where there is one."""
    try:
        call(view, group, method, document)
    except NotFoundError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("collections", [None, "west"], ids=str)
def test_a_client_names_documents_of_its_collections_alone(served: Served, collections):
    document_id, before = east(served)
    with served.client() as client:
        view = client if collections is None else client.view(collections=collections)
        # A client that names no collection asks for a number as HTTP does: wherever the document is.
        documents = [SOURCE] if collections is None else [document_id, SOURCE]
        for group, method in methods(ClientGroups):
            for document in [one for one in documents if group not in BY_ID_ALONE or isinstance(one, int)]:
                told = refusal(view, group, method, document)
                assert "in collection 'east', not in 'west'" in told, (group, method, told)
        elsewhere = client.view(collections="*")
        assert elsewhere.documents.resolve([SOURCE]) == [document_id]
        assert elsewhere.grants.of_documents(SOURCE)[0].document_id == document_id
    assert east(served) == (document_id, before)


def test_a_name_tells_nothing_of_what_the_caller_cannot_read(served: Served):
    view = served.rag.view(principal=Principal(user_id="eve"))
    (closed,) = served.rag.view(collections="closed").documents.resolve(["closed.md"])
    for group, method in methods(Groups):
        for document in [closed] if group in BY_ID_ALONE else [closed, "closed.md"]:
            with pytest.raises(NotFoundError) as refused:
                call(view, group, method, document)
            assert "'closed'" not in str(refused.value)


def test_a_session_names_none_of_the_collections(served: Served):
    document_id, before = east(served)
    served.rag.sessions.create("desk")
    served.rag.view(session="desk").ingest(Document(content="A note.", source="note.md"))
    for group, method in methods(Groups):
        with pytest.raises(NotFoundError):
            call(served.rag.view(session="desk"), group, method, document_id)
    assert east(served) == (document_id, before)


def test_every_collection_is_named_by_a_star(served: Served):
    document_id, _ = east(served)
    view = served.rag.view(collections="*")
    assert view.documents.get(SOURCE).document_id == view.documents.get(document_id).document_id == document_id
    assert served.rag.view(collections=("west", "east")).documents.resolve([SOURCE, "west.md"])[0] == document_id
