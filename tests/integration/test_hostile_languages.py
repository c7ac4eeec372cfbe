"""Texts that no language foresees: empty, ten thousand marks on one letter, characters that hide or deceive, a language
that is declared wrongly, two of them in one document, one line without a space."""

from __future__ import annotations

import pytest

from recollect import Document, RAGPipeline, RetrievalOptions
from recollect.errors import UsageError

TEXTS = {
    "bomb": "Zürich liegt am See. e" + "\u0301" * 10_000 + " Ende.",
    "direction": "الشركة Recollect GmbH تأسست في Berlin عام ١٩٩٨. \u202eThe\u202c director is Dr. Haddad.",
    "hidden": "pay\u2060ment in\u200dvoice re\u00adturn",
    "twins": "\u0420\u0430yment of \u0410m\u0430zon",
    "two": "Die Kündigungsfrist beträgt drei Monate.\n\n" * 3
    + "Срок расторжения договора составляет три месяца.\n\n" * 3,
    "emoji": "😀🎉👩‍👩‍👧",
    "word": "Kubernetes",
    "thai": "ประเทศไทยมีภูเขา" * 2_000,
    "chinese": "北京是中国的首都" * 4_000,
}
ASKED = [
    ("Ende", "bomb"),
    ("zurich", "bomb"),
    ("تأسست الشركة في برلين", "direction"),
    ("Dr. Haddad", "direction"),
    ("founded 1998", "direction"),
    ("payment invoice", "hidden"),
    ("Amazon", "twins"),
    ("Kündigungsfrist", "two"),
    ("срок расторжения", "two"),
    ("kubernetes", "word"),
    ("ภูเขา", "thai"),
    ("北京首都", "chinese"),
]


def test_each_is_found_by_what_it_says_and_nothing_hangs(pipeline: RAGPipeline):
    pipeline.ingest(Document(content=text, source=source) for source, text in TEXTS.items())
    for question, source in ASKED:
        found = pipeline.retrieve(question, RetrievalOptions(mode="lexical", top_k=3))
        assert found, question
        assert found[0].source == source, question
        assert pipeline.retrieve(question, RetrievalOptions(mode="hybrid", top_k=3))


@pytest.mark.parametrize("content", ["", " \n\t"])
def test_a_document_without_text_is_refused(pipeline: RAGPipeline, content: str):
    with pytest.raises(UsageError, match="holds no text"):
        pipeline.ingest([Document(content=content, source="empty")])


def test_a_language_that_is_declared_wrongly_costs_no_text_in_another_script(pipeline: RAGPipeline):
    pipeline.ingest(
        [
            Document(content="Пароль должен содержать не менее 14 знаков.", source="ru", language="en"),
            Document(content="The password must hold at least 14 characters.", source="en", language="th"),
        ]
    )
    for question, source in (("сколько знаков в пароле", "ru"), ("how many characters has a password", "en")):
        assert pipeline.retrieve(question, RetrievalOptions(mode="lexical"))[0].source == source


def test_what_is_no_language_is_refused(pipeline: RAGPipeline):
    for language in ["klingon", "english", "1", "🙂", "../de", "e" * 300]:
        with pytest.raises(UsageError, match="ISO 639"):
            pipeline.collections.create("nonsense", language=language)


def test_a_question_that_says_nothing_is_no_error(pipeline: RAGPipeline):
    for question in ["\u0301" * 10_000, "e" + "\u0301" * 10_000, "\u202e", "😀", "\u200b?"]:
        pipeline.ingest([Document(content=TEXTS["two"], source="two")])
        assert pipeline.ask(question).refused
        assert pipeline.retrieve(question, RetrievalOptions(mode="lexical")) in ([], ())
