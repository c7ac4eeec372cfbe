"""XML from strangers: nothing that it names is loaded, nothing in it is expanded."""

from __future__ import annotations

from typing import Any


def parse_tree(data: bytes) -> Any:  # noqa: ANN401 - an element of lxml, which has no types
    """The root element; None where there is none. Damage is passed over as far as it can be."""
    return _parsed(data, recover=True)


def parse_whole(data: bytes) -> Any:  # noqa: ANN401 - as above
    """The root element of XML that is to be written again; None where something of it would be lost on the way."""
    root = _parsed(data, recover=False)
    return None if root is None or root.getroottree().docinfo.doctype else root


def _parsed(data: bytes, *, recover: bool) -> Any:  # noqa: ANN401 - as above
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        dtd_validation=False,
        huge_tree=False,
        recover=recover,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        return etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
