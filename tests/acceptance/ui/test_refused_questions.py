"""Every question without an answer is on the dashboard of those who administer the tenant, with the reason."""

from __future__ import annotations

import httpx2
import pytest

from recollect import Document
from served import fill, serving

NOWHERE = "Which parking lot is reserved for visitors from Portugal on Sundays?"
IDENTIFIER = "What does ERR-9999 mean?"


@pytest.mark.parametrize("policy", ["keep", "hash", "off"])
def test_unanswered_questions_are_listed_with_why_as_far_as_the_policy_keeps_them(dsn, tmp_path, policy):
    with serving(dsn, tmp_path, worker=False, pages=True, server={"audit": {"questions": policy}}) as served:
        fill(served.rag)
        served.rag.ingest(Document(content="ERR-4012 means that too many sessions are open.", source="errors.md"))
        with httpx2.Client(base_url=served.url, timeout=60) as ada:
            for question, more, outcome in (
                *[(NOWHERE, {}, "none")] * 2,
                (IDENTIFIER, {}, "passages"),
                ("annual leave", {"department": ["nowhere"]}, "none"),
                ("How many days of annual leave are there?", {}, "answer"),
            ):
                assert ada.post("/v1/ask", json={"question": question, **more}).json()["outcome"] == outcome, question
            page = ada.get("/dashboard?range=1h").text
        told = page.partition('id="questions-title"')[2].partition("</section>")[0]
        rows = told.split("<tr>")[2:]
        assert (NOWHERE in told) == (policy == "keep") and ("How many days" in told) is False
        if policy == "off":
            # Nothing tells them apart: one line for all of them, with every reason.
            (row,) = rows
            assert "(not kept)" in row and "the evidence does not suffice" in row and "nothing was found" in row
            return
        assert len(rows) == 3
        (helped,) = (row for row in rows if "passages only" in row)
        assert "no source holds an identifier" in helped
        assert all("no answer" in row for row in rows if row is not helped)
        # Two of the same question are one line.
        assert '<td class="numeric">2</td>' in rows[0] and "the evidence does not suffice" in rows[0]
        assert any("nothing was found" in row for row in rows)
        if policy == "hash":
            assert all("<code" in row for row in rows)
        reader = served.rag.keys.create("reader", scopes=("read",)).secret
        seen = httpx2.get(f"{served.url}/dashboard?range=1h", headers={"X-API-Key": reader}).text
        assert "questions-title" not in seen
