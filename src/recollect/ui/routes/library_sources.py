"""Where documents come from: folders, buckets, mailboxes, repositories and sites, added, refreshed and removed."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from fastapi import Form, Query
from starlette.responses import Response

from recollect.errors import UsageError
from recollect.model.source import SourceRecord
from recollect.operations.values import Name, Text
from recollect.pipeline import View
from recollect.pipeline.refreshing import reader_of, settings_declared_by
from recollect.server.caller import require_machine
from recollect.sources.declared import connector_names, read_declared
from recollect.ui.languages import _
from recollect.ui.visit import LIBRARY, Administering, Visit, page_router

router = page_router()

# What settings of connectors are called where a form asks for them; those of other packages have their own names.


SETTING_LABELS = {
    "access_key": _("Access key"),
    "anonymous": _("The bucket is everybody's"),
    "at_once": _("Requests at the same time"),
    "attachments": _("Read what is attached"),
    "below": _("Only paths that begin with"),
    "branch": _("Branch"),
    "ca_file": _("File with certificates of authorities"),
    "customer_key": _("Key that objects are encrypted with"),
    "delay_seconds": _("Seconds between two requests"),
    "depth": _("Links followed, one after the other"),
    "endpoint_url": _("Address of the server, if not Amazon's"),
    "exclude": _("Leave out"),
    "fetch_seconds": _("Seconds that fetching may take"),
    "folders": _("Folders of the mailbox"),
    "grants_file": _("File there that says who may read what"),
    "grants_tag": _("Tag of objects that says who may read them"),
    "include": _("Read only"),
    "instance_credentials": _("Use what this machine's role allows"),
    "max_pages": _("Pages at most"),
    "max_removed_share": _("Ask before more than this share is closed"),
    "max_repository_bytes": _("Bytes of the repository at most"),
    "obey_robots": _("Leave out what robots.txt excludes"),
    "owner": _("Who may read what no rule names"),
    "password": _("Password"),
    "path": _("Only below this folder"),
    "path_style": _("The bucket stands in the path"),
    "profile": _("Profile of the credentials file"),
    "region": _("Region"),
    "secret_key": _("Secret key"),
    "session_token": _("Session token"),
    "sitemaps": _("Visit the pages that the site lists"),
    "ssh_key": _("File with the SSH key"),
    "subdomains": _("Follow links to hosts below"),
    "token": _("Access token"),
    "unencrypted": _("Read without encryption"),
    "user": _("User"),
    "watch": _("Watch the folder: changes are seen at once"),
}


_PATH = "/library/sources"
#: What the fields of a connector's settings are called in a form, before the setting's own name.
_FIELD = "set-"


@router.get(_PATH)
async def sources(
    visit: Administering,
    collection: Annotated[str, Query(max_length=500)] = "",
    location: Annotated[Text, Query(max_length=10_000)] = "",
    connector: Annotated[str, Query(max_length=100)] = "",
) -> Response:
    """The sources of a collection, or of all; they are the owner's. A form adds one, with its connector's settings."""
    found, names = await visit.run(_found, visit.administration, collection)
    return visit.page(
        "library/sources.html",
        LIBRARY,
        sources=found,
        names=names,
        chosen=collection,
        connectors=["directory", "web", *connector_names()],
        configured=visit.view.config.collection,
        location=location,
        **await visit.run(_form, location, connector),
    )


@router.get("/library/sources/settings")
async def settings_of(
    visit: Administering,
    location: Annotated[Text, Query(max_length=10_000)] = "",
    connector: Annotated[str, Query(max_length=100)] = "",
) -> Response:
    """The fields for the settings of the connector that is chosen, or that reads what is typed."""
    return visit.fragment("library/source_settings.html", **await visit.run(_form, location, connector))


def _form(location: str, connector: str) -> dict[str, Any]:
    """What is asked for of a connector's settings; None: it is not known yet which connector that is."""
    reader = _reader(location, connector)
    declared = () if reader is None else settings_declared_by(reader)
    own = [one for one in declared if not one.common]
    common = [one for one in declared if one.common]
    return {"connector": connector, "reader": reader, "own": own, "common": common, "labels": SETTING_LABELS}


def _reader(location: str, connector: str) -> str | None:
    named, place = connector.strip() or None, location.strip()
    return reader_of(place, connector=named) if place or named else None


def _found(view: View, collection: str) -> tuple[list[SourceRecord], list[str]]:
    names = [one.name for one in view.collections.each()]
    known = view.view(collections=collection or "*").sources.each()
    # One that was removed, and left nothing, is not read any more.
    return [one for one in known if one.connector is not None or one.documents], names


@router.post(_PATH)
async def add(
    visit: Administering,
    location: Annotated[Text, Form(min_length=1, max_length=10_000)],
    collection: Annotated[Name, Form()],
    connector: Annotated[str, Form(max_length=100)] = "",
    name: Annotated[Text, Form(max_length=500)] = "",
    every: Annotated[str, Form(max_length=50)] = "",
    tags: Annotated[Text, Form(max_length=2_000)] = "",
    grants: Annotated[Text, Form(max_length=20_000)] = "",
    settings: Annotated[Text, Form(max_length=20_000)] = "",
) -> Response:
    """Have a place outside read from now on, and read for the first time; leads to the job."""
    reader = _reader(location, connector)
    declared = () if reader is None else await visit.run(settings_declared_by, reader)
    given = read_declared(declared, await _typed(visit)) if declared else _settings(settings)
    if words := [word.strip() for word in tags.split(",") if word.strip()]:
        given["tags"] = words
    if rules := [line.strip() for line in grants.splitlines() if line.strip()]:
        given["grants"] = rules
    require_machine(visit.caller, location.strip(), connector=connector.strip() or None, settings=given)
    options = {"connector": connector.strip() or None, "name": name.strip() or None, "every": every.strip() or None}
    job_id = await visit.run(_add, visit.administration.view(collections=collection), location.strip(), given, options)
    return visit.go_to(f"/library/jobs/{job_id}")


async def _typed(visit: Visit) -> dict[str, str]:
    """The settings as they stand in the fields of the form."""
    form = await visit.request.form()
    return {
        name.removeprefix(_FIELD): value
        for name, value in form.multi_items()
        if name.startswith(_FIELD) and isinstance(value, str)
    }


def _add(view: View, location: str, settings: dict[str, Any], options: dict[str, Any]) -> int:
    record = view.sources.add(location, settings=settings, **options)
    return view.jobs.refresh(record.name).job_id


def _settings(text: str) -> dict[str, Any]:
    """Lines of KEY=VALUE; a value is JSON where it is JSON."""
    settings: dict[str, Any] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        key, separator, value = line.partition("=")
        if not separator or not key.strip():
            # The rest is not repeated: it may be a secret.
            raise UsageError(f"Settings are lines of KEY=VALUE, not {key[:50]!r} alone.")
        settings[key.strip()] = _value(value.strip())
    return settings


def _value(text: str) -> object:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, bool | int | float | list) else text


@router.post("/library/sources/refresh")
async def refresh(
    visit: Administering,
    collection: Annotated[Name, Form()],
    source: Annotated[Name, Form()],
    anew: Annotated[bool, Form()] = False,
    confirm_removals: Annotated[bool, Form()] = False,
) -> Response:
    """Ask for a source to be read now; leads to the job."""
    view = visit.administration.view(collections=collection)
    job = await visit.run(view.jobs.refresh, source, anew=anew, confirm_removals=confirm_removals)
    return visit.go_to(f"/library/jobs/{job.job_id}")


@router.post("/library/sources/remove")
async def remove(
    visit: Administering,
    collection: Annotated[Name, Form()],
    source: Annotated[Name, Form()],
    documents: Annotated[Literal["close", "keep", "erase"], Form()] = "close",
) -> Response:
    """Have a source read no longer."""
    await visit.run(_remove, visit, collection, source, documents)
    return visit.go_to(_PATH)


def _remove(visit: Visit, collection: str, source: str, documents: Literal["close", "keep", "erase"]) -> None:
    visit.administration.view(collections=collection).sources.remove(source, documents=documents)
