"""Feeds are read entry by entry, and what is hostile in them does nothing."""

from __future__ import annotations

from recollect.documents._html import is_feed, parse_feed
from recollect.documents.reader import parse

RSS = b"""<?xml version="1.0"?><rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel>
<title>River news</title><description>All about rivers</description>
<lastBuildDate>Sun, 22 Nov 2026 10:00:00 GMT</lastBuildDate>
<item><title>Flood</title><description>Short</description>
<content:encoded><![CDATA[<p>The river <b>rose</b> by 2 m.</p><ul><li>One</ul>]]>
</content:encoded></item>
<item><title>Drought &amp; heat</title><description>No rain fell.</description></item></channel></rss>"""
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><title>Notes</title><updated>2026-11-22T10:00:00Z</updated>
<entry><title>First</title>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>Plain words.</p></div></content></entry>
<entry><summary>Untitled words</summary></entry></feed>"""


def test_rss() -> None:
    parsed = parse_feed(RSS)
    assert parsed.content == (
        "# River news\n\nAll about rivers\n\n## Flood\n\nThe river rose by 2 m.\n\n- One\n\n"
        "## Drought & heat\n\nNo rain fell."
    )
    assert [(one.level, one.title) for one in parsed.headings] == [
        (1, "River news"),
        (2, "Flood"),
        (2, "Drought & heat"),
    ]
    assert parsed.title == "River news"
    assert parsed.event_time is not None


def test_atom() -> None:
    assert parse_feed(ATOM).content == "# Notes\n\n## First\n\nPlain words.\n\n## Entry 2\n\nUntitled words"


def test_a_feed_is_known_by_its_root() -> None:
    assert is_feed(RSS)
    assert is_feed(ATOM)
    assert is_feed(b'<rdf:RDF xmlns:rdf="x">')
    assert not is_feed(b"<root><rss></rss></root>")
    assert not is_feed(b"no xml")


def test_the_extension_says_so_too() -> None:
    parsed = parse(RSS, "news.rss")
    assert (parsed.mime_type, parsed.title) == ("application/rss+xml", "River news")


def test_entities_are_not_expanded_and_files_are_not_read() -> None:
    lol = b"".join(b'<!ENTITY l%d "%s">' % (n, b"&l%d;" % (n - 1) * 10 if n else b"lol") for n in range(10))
    bomb = (
        b"<!DOCTYPE rss [" + lol + b"]><rss><channel><title>a&l9;</title><item><title>b</title></item></channel></rss>"
    )
    assert len(parse_feed(bomb).content) < len(bomb)
    file = b'<!DOCTYPE rss [<!ENTITY f SYSTEM "file:///etc/passwd">]><rss><channel><title>x &f;</title></channel></rss>'
    assert "root:" not in parse_feed(file).content


def test_damage_costs_the_damaged_part() -> None:
    assert "First" in parse_feed(ATOM[:260]).content
    assert parse_feed(b"<rss").content == "<rss"
