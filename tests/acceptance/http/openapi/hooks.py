"""What Schemathesis must leave alone: the tenant that it works in, which it would erase or suspend."""

from __future__ import annotations

import schemathesis

#: Tenants by name and number: whoever's credential is used, and the store's first.
OWN = {"fuzzed", "default", "1", "2"}


@schemathesis.hook
def before_load_schema(context: schemathesis.HookContext, raw_schema: dict[str, object]) -> None:
    """Has events checked: Schemathesis looks for what one holds where, in 3.1, the whole stream's type stands."""
    for path in raw_schema["paths"].values():
        for operation in path.values():
            for response in operation["responses"].values():
                for streamed in response.get("content", {}).values():
                    if "x-item-schema" in streamed:
                        streamed["schema"] = streamed.pop("x-item-schema")


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case, kwargs: dict[str, object]) -> None:
    """Has what would change one of these tenants meant for one that is not there."""
    changes = case.path == "/v1/tenants/{tenant}" and case.method in {"PATCH", "DELETE"}
    if changes and str(case.path_parameters.get("tenant")) in OWN:
        case.path_parameters["tenant"] = "somebody-else"


@schemathesis.serializer("application/jsonl")
def as_it_is(context: schemathesis.SerializationContext, value: object) -> bytes:
    """JSON Lines are a text for the document: whatever stands in it is sent."""
    return value if isinstance(value, bytes) else str(value).encode(errors="surrogatepass")
