"""The OpenAPI document is one, so that generators of clients make every operation of it."""

from __future__ import annotations

from openapi_spec_validator import OpenAPIV31SpecValidator

from recollect.server.app import openapi_document


def test_it_is_valid_and_generators_can_read_it():
    document = openapi_document()
    assert document["openapi"].startswith("3.1.")
    assert [
        f"{list(error.absolute_path)}: {error.message}" for error in OpenAPIV31SpecValidator(document).iter_errors()
    ] == []
    # FastAPI tells schemas of one name apart by their modules; generators take the last part and drop one of them.
    assert [name for name in document["components"]["schemas"] if "__" in name] == []
    # What a stream holds stands where no validator takes it for a schema of the whole.
    streamed = document["paths"]["/v1/ask"]["post"]["responses"]["200"]["content"]["text/event-stream"]
    assert streamed["schema"] == {"type": "string"}
    assert "done" in streamed["x-item-schema"]["properties"]["event"]["enum"]
