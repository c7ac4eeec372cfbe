"""The connector that the documentation shows works, and reads into a store."""

from __future__ import annotations

import mailbox
import re
from pathlib import Path

import pytest

from recollect import RAGPipeline
from recollect.sources import declared

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "connectors.md"


@pytest.fixture
def maildir(monkeypatch: pytest.MonkeyPatch):
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {"__name__": "company_connectors"}
    exec(compile(code, str(PAGE), "exec"), names)  # noqa: S102 - the documentation's own
    # First where it is used: imported now, that would keep the other's replacement for good.
    monkeypatch.setattr("recollect.pipeline.refreshing.connector_class", lambda name: names["MaildirConnector"])
    monkeypatch.setattr(declared, "connector_class", lambda name: names["MaildirConnector"])


def test_the_connector_of_the_documentation_reads_a_mailbox(pipeline: RAGPipeline, maildir, tmp_path):
    box = mailbox.Maildir(tmp_path / "inbox")
    first = box.add("From: ann@example.org\nSubject: Parking\n\nThe garage opens at seven.\n")
    box.add("From: bob@example.org\nSubject: Leave\n\nAnnual leave is 30 days.\n")
    settings = {"readers": ["role:staff"]}
    name = pipeline.sources.add(str(tmp_path / "inbox"), connector="maildir", settings=settings).name
    assert pipeline.sources.refresh(name).added == 2
    assert "seven" in pipeline.retrieve("When does the garage open?")[0].content
    box.remove(first)
    report = pipeline.sources.refresh(name)
    assert (report.removed, report.unchanged) == (1, 1)
