"""The description of the API where people and programs look for it: ``/openapi.json`` and ``/docs``."""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse

from recollect.installation import version

router = APIRouter(include_in_schema=False)


@router.get("/openapi.json")
def openapi(request: Request) -> dict[str, Any]:
    """What ``GET /v1/openapi.json`` replies."""
    document: dict[str, Any] = request.app.openapi()
    return document


@router.get("/docs")
def docs(request: Request) -> HTMLResponse:
    """Every operation in a list. Nothing is loaded from elsewhere, so there is no form to try them out."""
    by_tag: dict[str, list[str]] = {}
    for path, operations in request.app.openapi()["paths"].items():
        for method, operation in operations.items():
            row = f"<tr><td>{method.upper()}<td><code>{escape(path)}</code><td>{escape(operation.get('summary', ''))}"
            by_tag.setdefault(operation.get("tags", ["other"])[0], []).append(row)
    tables = "".join(f"<h2>{escape(tag)}</h2><table>{''.join(rows)}</table>" for tag, rows in by_tag.items())
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>recollect API</title>'
        f"<h1>recollect {version()}</h1>"
        f'<p>The whole description: <a href="openapi.json">OpenAPI 3.1</a>.</p>{tables}</html>'
    )
    return HTMLResponse(page, headers={"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"})
