"""Originals on the command line: kept where that is configured, given out, read anew, erased."""

from __future__ import annotations

import pytest


@pytest.fixture
def stored(recollect) -> str:
    page = recollect.folder / "leave.html"
    page.write_bytes(b"<html><body><h1>Leave</h1><p>Thirty days a year.</p></body></html>")
    recollect.environment["RECOLLECT_INGEST__KEEP_ORIGINALS"] = "always"
    recollect("ingest", page)
    page.unlink()
    return recollect("documents", "list", "--json").json["items"][0]["source"]


def test_an_original_is_given_out_read_anew_and_erased(recollect, stored):
    done = recollect("documents", "original", stored, "-o", "copy.html", "--json").json
    assert (recollect.folder / "copy.html").read_bytes().startswith(b"<html><body>")
    assert (done["name"], done["mime_type"], done["byte_count"]) == ("leave.html", "text/html", 66)
    assert "exists already" in recollect("documents", "original", stored, "-o", "copy.html", status=None).err
    assert "66 bytes" in recollect("documents", "original", stored, "-o", "copy.html", "--overwrite").out
    assert "version 1, unchanged" in recollect("documents", "reread", stored).out
    anew = recollect("documents", "reread", stored, "--force", "--json").json
    assert [(one["version"], one["status"]) for one in anew["documents"]] == [(2, "updated")]
    assert recollect("documents", "erase", stored, "--yes", "--json").json["counts"]["originals"] == 1
