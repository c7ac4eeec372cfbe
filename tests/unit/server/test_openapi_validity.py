"""The OpenAPI document is one, so that generators of clients make every operation of it."""

from __future__ import annotations

from openapi_spec_validator import OpenAPIV31SpecValidator

from recollect.server.app import openapi_document


def test_it_is_valid():
    document = openapi_document()
    assert document["openapi"].startswith("3.1.")
    assert [
        f"{list(error.absolute_path)}: {error.message}" for error in OpenAPIV31SpecValidator(document).iter_errors()
    ] == []


def test_no_two_schemas_share_a_name():
    """FastAPI tells them apart by their modules; generators take the last part, and drop what needs the other."""
    assert [name for name in openapi_document()["components"]["schemas"] if "__" in name] == []


def test_streams_say_what_an_event_holds():
    streamed = openapi_document()["paths"]["/v1/ask"]["post"]["responses"]["200"]["content"]["text/event-stream"]
    assert streamed["schema"] == {"type": "string"}
    assert "done" in streamed["x-item-schema"]["properties"]["event"]["enum"]
