"""What situating chunks takes is said before a model is asked, and without it nothing is asked."""

from __future__ import annotations

import pytest

from recollect.llm.scripted import ScriptedChatModel
from recollect.pipeline import contexts
from web_site import Page, web_site


def test_an_estimate_comes_first(recollect, monkeypatch: pytest.MonkeyPatch):
    model = ScriptedChatModel("Leave of the office in plain words.")
    monkeypatch.setattr(contexts, "_model", lambda assembly: model)
    (recollect.folder / "leave.md").write_text("# Leave\n\nThe office grants thirty days of leave, in plain words.\n")
    recollect.environment["RECOLLECT_INGEST__CONTEXTUALISE"] = "openai/some-model"
    told = recollect("ingest", "leave.md").err
    assert "1 chunks of 1 documents: about" in told
    assert "recollect contextualise" in told
    assert model.calls == []
    estimate = recollect("contextualise", "--estimate", "--json").json["estimate"]
    assert (estimate["chunks"], estimate["model"], estimate["cost"]) == (1, "openai/some-model", None)
    assert "1 chunks of 1 documents situated." in recollect("contextualise", "--yes").out
    assert len(model.calls) == 1
    assert "Every chunk is situated already." in recollect("contextualise", "--estimate").out
    (recollect.folder / "more.md").write_text("# More\n\nThe office has more leave, in other words.\n")
    recollect("ingest", "more.md", "--yes")
    assert len(model.calls) == 2
    assert "plain words" in recollect("query", "thirty days").out


def test_an_estimate_comes_after_pages_too(recollect, monkeypatch: pytest.MonkeyPatch):
    model = ScriptedChatModel("Leave of the office in plain words.")
    monkeypatch.setattr(contexts, "_model", lambda assembly: model)
    settings = {
        "RECOLLECT_INGEST__CONTEXTUALISE": "openai/some-model",
        "RECOLLECT_SOURCES__ALLOW_PRIVATE_ADDRESSES": "true",
    }
    recollect.environment.update(settings)
    with web_site({"/": Page("<main><p>The office grants thirty days of leave, in plain words.</p></main>")}) as site:
        told = recollect("ingest", site.url())
        assert "1 chunks of 1 documents: about" in told.err and "recollect contextualise" in told.err
        assert model.calls == []
        assert recollect("ingest", site.url(), "--yes", "--json").json["jobs"][0]["status"] == "succeeded"
    assert len(model.calls) == 1
