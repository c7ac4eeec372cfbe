"""The settings of a connector are asked for as it declares them, each by its kind, and secrets are never typed."""

from __future__ import annotations

from typing import Annotated, Literal

import httpx2
import pytest
from pydantic import Field

from browser import picture, require_usable_by_all
from recollect.pipeline.refreshing import settings_declared_by
from recollect.sources import declared
from recollect.sources.base import ConnectorSettings, SecretReference
from recollect.sources.declared import declared_settings


class _Opened:
    """What a connector does when it is opened and closed."""

    def __init__(self, settings, surroundings):
        self.settings, self.surroundings = settings, surroundings

    def close(self):
        pass


class Shelf(_Opened):
    """A connector of another package."""

    class Settings(ConnectorSettings):
        shelf: str = Field(description="Which one.")
        order: Literal["old", "new"] = "old"
        pin: SecretReference | None = None
        rows: Annotated[int, Field(ge=1)] | None = None
        rooms: tuple[str, ...] = ("a", "b")
        lit: bool | None = None


class Bare(_Opened):
    """One that declares nothing of its own."""

    Settings = ConnectorSettings


@pytest.fixture
def shelves(monkeypatch):
    known = {"shelf": Shelf, "bare": Bare}
    own_class, own_names = declared.connector_class, declared.connector_names

    def class_of(name: str):
        return known.get(name) or own_class(name)

    for module in ("recollect.sources.declared", "recollect.pipeline.refreshing"):
        monkeypatch.setattr(f"{module}.connector_class", class_of)
    monkeypatch.setattr(
        "recollect.ui.routes.library_sources.connector_names", lambda: [*own_names(), *known], raising=True
    )


def test_every_connector_declares_what_it_takes(shelves):
    kinds = {one.name: (one.kind, one.required) for one in declared_settings("shelf") if not one.common}
    assert kinds == {
        "shelf": ("text", True),
        "order": ("choice", False),
        "pin": ("secret", False),
        "rows": ("whole", False),
        "rooms": ("lines", False),
        "lit": ("switch", False),
    }
    s3 = {one.name: one for one in declared_settings("s3")}
    assert {name for name, one in s3.items() if one.kind == "secret"} == {
        "access_key",
        "secret_key",
        "session_token",
        "customer_key",
    }
    assert (s3["path_style"].kind, s3["path_style"].default, s3["anonymous"].default) == ("switch", None, False)
    imap = {one.name: one for one in declared_settings("imap")}
    assert (imap["folders"].kind, imap["folders"].default) == ("lines", ("INBOX",))
    git = {one.name: one.kind for one in declared_settings("git")}
    assert (git["ssh_key"], git["max_repository_bytes"], git["fetch_seconds"]) == ("text", "whole", "number")
    assert [one.name for one in settings_declared_by("directory")] == ["watch"]
    assert {one.name: one.kind for one in settings_declared_by("web")}["obey_robots"] == "switch"
    assert declared_settings("bare") == declared_settings("nobody's") == ()


def test_the_fields_follow_what_reads_the_place_and_a_refusal_keeps_what_was_typed(served, ada, shelves, tmp_path):
    ada.expected.add(400)
    page = ada.open("/library/sources")
    assert page.get_by_text("Its settings are asked for here").is_visible()
    page.get_by_label("Where it is").fill("s3://bucket/prefix")
    page.get_by_label("Where it is").press("Tab")
    page.get_by_label("Secret key").wait_for()
    assert page.get_by_label("Secret key").get_attribute("placeholder") == "env:AWS_SECRET_ACCESS_KEY"
    require_usable_by_all(page)
    picture(page, "library-source-s3", full=True)
    # A secret that is typed all the same is not sent.
    page.get_by_label("Secret key").fill("AKIA-not-a-name")
    page.get_by_role("button", name="Add and read").click()
    assert page.get_by_label("Secret key").evaluate("one => one.validity.patternMismatch")
    assert all(one.connector is None for one in served.rag.sources.list())
    page.get_by_label("Read by").select_option("bare")
    page.get_by_label("Settings of the connector").wait_for()
    page.get_by_label("Read by").select_option("shelf")
    page.get_by_label("shelf (required)").wait_for()
    page.get_by_label("shelf (required)").fill("<b>top</b>")
    page.get_by_label("rows").fill("0")
    page.get_by_role("button", name="Add and read").click()
    page.locator("#messages .note.bad").wait_for()
    assert page.get_by_label("shelf (required)").input_value() == "<b>top</b>"
    page.get_by_label("rows").fill("3")
    page.get_by_label("rooms").fill("one\n\ntwo ")
    page.get_by_label("order").select_option("new")
    page.get_by_label("lit").select_option("false")
    page.get_by_label("pin").fill("env:PIN")
    page.get_by_role("button", name="Add and read").click()
    page.wait_for_url("**/library/jobs/*")
    (added,) = (one for one in served.rag.sources.list() if one.connector == "shelf")
    assert dict(added.settings) == {
        "shelf": "<b>top</b>",
        "order": "new",
        "pin": "env:PIN",
        "rows": 3,
        "rooms": ["one", "two"],
        "lit": False,
    }


def test_what_is_no_setting_is_refused_in_words_that_do_not_repeat_it(served, shelves):
    with httpx2.Client(base_url=served.url, timeout=60) as somebody:
        place = {"location": "s3://bucket", "collection": "default"}
        for given, word in (
            ({**place, "set-secret_key": "hunter2-secret"}, "env:NAME"),
            ({**place, "set-anonymous": "hunter2-secret"}, "true or false"),
            ({**place, "set-max_removed_share": "hunter2-secret"}, "is a number"),
            ({**place, "connector": "shelf"}, "shelf is missing"),
            ({**place, "connector": "bare", "settings": "hunter2-secret=1"}, "not valid"),
        ):
            refused = somebody.post("/library/sources", data=given)
            assert refused.status_code == 400 and word in refused.text, given
            if "settings" not in given:
                assert "hunter2" not in refused.text
        # What no field asks for does not come to the settings.
        shown = somebody.get("/library/sources?location=s3://bucket&connector=")
        assert 'name="set-secret_key"' in shown.text
        hostile = somebody.get(
            "/library/sources", params={"location": '"><script>alert(1)</script>', "connector": "<b>"}
        )
        assert hostile.status_code == 200 and "<script>alert(1)" not in hostile.text and "<b>" not in hostile.text
        reader = served.rag.keys.create("reader", scopes=("read", "write")).secret
        headers = {"X-API-Key": reader}
        assert somebody.get("/library/sources/settings?connector=s3", headers=headers).status_code == 403
