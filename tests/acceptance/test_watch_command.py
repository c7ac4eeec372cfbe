"""``recollect watch`` as it is typed."""

from __future__ import annotations

import json
import signal

from program import Recollect


def test_watching_tells_each_pass_and_ends_in_order_when_it_is_interrupted(recollect: Recollect):
    folder = recollect.folder / "docs"
    folder.mkdir()
    (folder / "leave.md").write_text("# Leave\n\nAnnual leave is 30 days.\n", encoding="utf-8")
    watching = recollect.start("watch", folder, "--json")
    first = json.loads(watching.stdout.readline())
    assert first["whole"] and first["added"] == 1
    (folder / "leave.md").write_text("# Leave\n\nAnnual leave is 31 days.\n", encoding="utf-8")
    assert json.loads(watching.stdout.readline())["updated"] == 1
    watching.send_signal(signal.SIGINT)
    out, err = watching.communicate(timeout=60)
    assert (watching.returncode, out, err) == (0, "", "")
    assert recollect("query", "annual leave", "--json").json["results"][0]["content"].endswith("31 days.")


def test_only_a_folder_can_be_watched(recollect: Recollect):
    (recollect.folder / "leave.md").write_text("Leave", encoding="utf-8")
    for name in ("leave.md", "nowhere"):
        assert f"{name!r} is no folder" in recollect("watch", name, status=2).err
