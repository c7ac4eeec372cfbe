"""A quote's section and page are its own, not those of the passage that it was read from."""

from __future__ import annotations

import json
import re
import zipfile
from datetime import UTC, datetime
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pypdf
import pytest

from recollect import Document, RAGPipeline, RetrievalOptions, SessionRAG
from recollect.answer._units import quotable_units
from recollect.documents.reader import read_bytes, read_file
from recollect.llm.scripted import ScriptedChatModel
from recollect.model.record import json_of
from unit.documents.made_files import pdf

HANDBOOK = Path(__file__).parents[2] / "examples/handbook"
WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def letters(text):
    """What every reader of a format agrees on."""
    return "".join(filter(str.isalnum, text.casefold()))


def sections(marks):
    """Section path → its letters, from (level or None, text) in reading order."""
    path, found = [], {}
    for level, text in marks:
        if level is not None:
            path = [*(one for one in path if one[0] < level), (level, " ".join(text.split()))]
        found.setdefault(" > ".join(title for _, title in path) or None, []).append(letters(text))
    return {section: "".join(parts) for section, parts in found.items()}


def of_markdown(path):
    fenced = False
    for line in path.read_text(encoding="utf-8").splitlines():
        fenced ^= line.startswith("```")
        match = None if fenced else re.match(r"(#{1,6}) (.*)", line)
        yield (len(match[1]), match[2]) if match else (None, line)


class _Html(HTMLParser):
    def __init__(self):
        super().__init__()
        self.level, self.marks = None, []

    def handle_starttag(self, tag, attrs):
        if re.fullmatch("h[1-6]", tag):
            self.level = int(tag[1])

    def handle_data(self, data):
        self.marks.append((self.level, data))
        self.level = None


def of_html(path):
    parser = _Html()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser.marks


def of_word(path):
    with zipfile.ZipFile(path) as archive:
        body = ElementTree.fromstring(archive.read("word/document.xml"))
    for paragraph in body.iter(f"{WORD}p"):
        style = paragraph.find(f"{WORD}pPr/{WORD}pStyle")
        name = "" if style is None else style.get(f"{WORD}val").replace("Title", "Heading1")
        heading = re.fullmatch(r"Heading(\d)", name)
        text = "".join(piece.text or "" for piece in paragraph.iter(f"{WORD}t"))
        yield int(heading[1]) if heading else None, text


ORACLES = {".md": of_markdown, ".html": of_html, ".docx": of_word}


@cache
def sections_of(path):
    return sections(ORACLES[path.suffix](path)) if path.suffix in ORACLES else {}


@cache
def pages_of(path):
    if path.suffix != ".pdf":
        return []
    return [letters(page.extract_text()) for page in pypdf.PdfReader(path).pages]


@pytest.fixture
def handbook(pipeline):
    pipeline.ingest(HANDBOOK)
    return pipeline


def everything(rag):
    """Every passage of the collection, as found."""
    options = RetrievalOptions(mode="dense", top_k=1000, collapse_duplicates=False, outline=True)
    return rag.retrieve("policy", options)


def test_every_quote_of_the_handbook_names_its_own_section_and_page(handbook):
    checked = dict.fromkeys((".md", ".html", ".docx", ".pdf"), 0)
    moved = 0
    for passage in everything(handbook):
        path = HANDBOOK / passage.source
        if path.suffix not in checked:
            continue
        own, pages = sections_of(path), pages_of(path)
        for unit in quotable_units(passage.content):
            quote = letters(passage.content[unit.start : unit.end])
            first = passage.part_at(passage.start_offset + unit.start)
            last = passage.part_at(passage.start_offset + unit.end - 1)
            if len(quote) > 20 and sum(quote in text for text in own.values()) == 1:
                assert quote in own[first.section], (passage.source, first.section, quote)
                checked[path.suffix] += 1
                moved += first.section != passage.section
            if len(quote) > 20 and sum(quote in text for text in pages) == 1:
                assert first.page == last.page
                assert quote in pages[first.page - 1], (passage.source, first.page, quote)
                checked[path.suffix] += 1
                moved += first.page != passage.page
    assert min(checked.values()) > 30, checked
    assert moved > 20  # what would be wrong by the label of the passage, which keeps within a section


# Headings twice, line ends of another system, a comment in code that looks like a heading, what stands before it all.
MANUAL = """---
owner: Nadia
---
# Press manual

The press weighs 900 kilograms.

## Safety

Wear goggles near the press.

```
# Cleaning
wipe --all
```

Keep the floor dry around it.

## Care

### Oil

Change the oil in March.

## Safety

Call the guard before night work.
"""
PLACES = {
    "The press weighs 900 kilograms.": "Press manual",
    "Wear goggles near the press.": "Press manual > Safety",
    "Keep the floor dry around it.": "Press manual > Safety",
    "Change the oil in March.": "Press manual > Care > Oil",
    "Call the guard before night work.": "Press manual > Safety",
}


def cited(answer):
    return {citation.quote: citation.section for citation in answer.citations}


@pytest.fixture(params=["\n", "\r\n"], ids=["unix", "windows"])
def manual(request, tmp_path):
    path = tmp_path / "press.md"
    path.write_bytes(MANUAL.replace("\n", request.param).encode())
    return path


def with_model(rag, *sentences):
    """Answers say these sentences, each with the first passage for its source."""
    answer = " ".join(f"{sentence[:-1]} [1]." for sentence in sentences)
    return RAGPipeline(rag.config, embedder=rag.embedder, chat_model=ScriptedChatModel(answer))


@pytest.fixture
def uncut(pipeline, manual):
    """A store that has the manual in one chunk, whatever its sections."""
    chunking = pipeline.config.chunking.model_copy(update={"strategy": "fixed_size", "size": 2_000, "overlap": 0})
    with RAGPipeline(pipeline.config.model_copy(update={"chunking": chunking}), embedder=pipeline.embedder) as rag:
        rag.ingest(manual)
        yield rag


def test_a_model_is_cited_with_the_section_of_what_it_says(uncut):
    for sentence, section in PLACES.items():
        with with_model(uncut, sentence) as rag:
            assert cited(rag.ask("What about the press?")) == {sentence: section}


def test_sentences_of_two_sections_are_not_quoted_as_one(uncut):
    with with_model(uncut, "Change the oil in March.", "Call the guard before night work.") as rag:
        (quote,) = cited(rag.ask("What about the press?"))
    assert quote in PLACES


@pytest.mark.parametrize("shape", [{}, {"neighbours": 2}, {"merge_adjacent": True, "neighbours": 1}])
def test_widened_and_merged_passages_know_their_parts(pipeline, manual, shape):
    cut = pipeline.config.model_copy(
        update={
            "chunking": pipeline.config.chunking.model_copy(update={"strategy": "recursive", "size": 60, "overlap": 0})
        }
    )
    with RAGPipeline(cut, embedder=pipeline.embedder) as rag:
        rag.ingest(manual)
        found = rag.retrieve("press", RetrievalOptions(outline=True, **shape))
        for passage in found:
            parts = passage.parts
            assert [parts[0].start_offset, parts[-1].end_offset] == [passage.start_offset, passage.end_offset]
            assert all(one.end_offset == other.start_offset for one, other in pairwise(parts))
            for sentence, section in PLACES.items():
                if sentence in passage.content:
                    at = passage.start_offset + passage.content.index(sentence)
                    assert passage.part_at(at).section == section
        assert found


def test_the_past_has_its_own_sections(pipeline, manual):
    pipeline.ingest(manual)
    then = datetime.now(UTC)
    manual.write_text(MANUAL.replace("## Safety", "## Danger"), encoding="utf-8")
    pipeline.ingest(manual)
    with with_model(pipeline, "Wear goggles near the press.") as rag:
        assert cited(rag.view(as_of=then).ask("goggles")) == {"Wear goggles near the press.": "Press manual > Safety"}
        assert cited(rag.ask("goggles")) == {"Wear goggles near the press.": "Press manual > Danger"}


def test_a_text_without_headings_has_no_sections(pipeline):
    pipeline.ingest(Document(content="السلام عليكم. الإجازة ثلاثون يوما. " * 3, source="ar.txt", language="ar"))
    (passage,) = pipeline.retrieve("الإجازة", RetrievalOptions(outline=True))
    assert [(part.section, part.page) for part in passage.parts] == [(None, None)]


def test_documents_of_a_session_are_cited_in_the_same_way(pipeline, manual):
    with with_model(pipeline, "Call the guard before night work.") as rag:
        sessions = SessionRAG(rag)
        sessions.create_session("s")
        sessions.ingest_to_session("s", read_file(manual, source="press.md"))
        answer = sessions.session("s").ask("guard")
    assert cited(answer) == {"Call the guard before night work.": "Press manual > Safety"}


def test_a_quote_of_a_pdf_is_cited_with_the_boxes_of_its_lines(pipeline: RAGPipeline):
    lines = [
        "Travel rules",
        "Whoever flies longer than eight hours may book",
        "the business class of a train.",
        "Annex",
    ]
    written = pipeline.ingest(read_bytes(pdf([["Preface"], lines]), name="travel.pdf"))
    (citation,) = pipeline.ask("Who may book the business class?").citations
    assert citation.quote == "Whoever flies longer than eight hours may book the business class of a train."
    # Lines of 11 points on a page of 595 by 842: baselines at 784, 768 and 752.
    first, second = citation.boxes
    assert {first.page, second.page} == {2} == {citation.page}
    for box, baseline in ((first, 768), (second, 752)):
        assert box.top < 1 - (baseline + 4) / 842 < box.bottom
        assert box.left == pytest.approx(60 / 595, abs=0.01)
        assert 0.3 < box.right < 0.6
    exported = [json.loads(line) for line in pipeline.collections.export_lines()]
    packed = exported[0]["pages"][1][3]
    assert len(packed) < 100
    (told,) = json_of(pipeline.ask("Who may book the business class?"))["citations"]
    assert [box["page"] for box in told["boxes"]] == [2, 2]
    assert written.document_id == told["document_id"]
