"""Documents in several languages in one collection."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import psycopg
import pytest

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.embedding.hashing import HashingEmbedder
from recollect.languages import AUTO

GERMAN = "Die Rechnungen werden innerhalb von vierzehn Tagen bezahlt, wenn sie von der Buchhaltung geprüft wurden."
TURKISH = "Faturalar muhasebe tarafından kontrol edildikten sonra on dört gün içinde ödenir ve bu kural herkes için."
ARABIC = "تدفع الفواتير خلال أربعة عشر يوما بعد أن يراجعها قسم المحاسبة في الشركة."
RUSSIAN = "Счета оплачиваются в течение четырнадцати дней после того, как их проверила бухгалтерия."
ENGLISH = "Travellers are reimbursed for their hotels when they have kept the receipts of the stay."
CHINESE = "差旅费用在提交收据后两周内报销。"

WORDS = RetrievalOptions(mode="lexical", rerank="none")


def sources(view, question: str, options: RetrievalOptions = WORDS) -> list[str]:
    return [passage.source for passage in view.retrieve(question, options)]


def filled(pipeline: RAGPipeline) -> RAGPipeline:
    pipeline.ingest(
        Document(content=text, source=name)
        for name, text in {
            "de": GERMAN, "tr": TURKISH, "ar": ARABIC, "ru": RUSSIAN, "en": ENGLISH, "zh": CHINESE,
        }.items()
    )  # fmt: skip
    return pipeline


def analysed(dsn: str) -> dict[str, list[str] | None]:
    with psycopg.connect(dsn) as connection:
        found = connection.execute(
            "SELECT uri, analysed_as FROM recollect.document_versions WHERE known_to = 'infinity'"
        ).fetchall()
    return dict(found)


def test_collections_are_analysed_by_document_unless_they_are_told_a_language(pipeline: RAGPipeline, dsn: str):
    assert filled(pipeline).collections.get("default").language == AUTO
    assert analysed(dsn) == {code: [code] for code in ("de", "tr", "ar", "ru", "en", "zh")}
    assert pipeline.collections.get("default").languages == ("ar", "de", "en", "ru", "tr", "zh")
    pipeline.collections.create("german", language="de-AT")
    german = pipeline.view(collections="german")
    german.ingest(Document(content=ENGLISH, source="other"))
    assert (pipeline.collections.get("german").language, pipeline.collections.get("german").languages) == ("de", ())
    assert analysed(dsn)["other"] is None
    assert sources(german, "hotels") == ["other"]


def test_a_question_meets_other_forms_of_its_words_in_each_language(pipeline: RAGPipeline):
    filled(pipeline)
    for question, source in (
        ("Wann wird eine Rechnung bezahlt?", "de"),
        ("Fatura ne zaman ödenir?", "tr"),
        ("متى تدفع الفاتورة في الشركات؟", "ar"),
        ("Когда оплачивается счёт?", "ru"),
        ("Which hotel is reimbursed to a traveller?", "en"),
        ("差旅费用什么时候报销", "zh"),
    ):
        assert sources(pipeline, question)[0] == source


def test_function_words_of_the_question_find_no_titles_in_other_languages(pipeline: RAGPipeline):
    pipeline.ingest(Document(content=GERMAN + " The Who spielten nicht.", source="band"))
    pipeline.ingest(Document(content=ENGLISH, source="hotels"))
    assert sources(pipeline, "What are the hotels that they have in the list?") == ["hotels"]


def test_the_share_of_words_covered_is_that_of_the_language_that_fits(pipeline: RAGPipeline):
    filled(pipeline)
    best = pipeline.search("Rechnungen bezahlt Buchhaltung", replace(WORDS, explain=True)).results[0]
    assert best.source == "de"
    assert best.explain is not None
    assert best.explain.coverage == pytest.approx(1.0)


def test_an_update_is_analysed_in_its_own_language(pipeline: RAGPipeline, dsn: str):
    pipeline.ingest(Document(content=GERMAN, source="text"))
    pipeline.ingest(Document(content=RUSSIAN, source="text"))
    assert analysed(dsn) == {"text": ["ru"]}
    assert sources(pipeline, "оплата счетов") == ["text"]
    assert sources(pipeline, "Rechnung") == []
    document_id = pipeline.documents.get("text").document_id
    pipeline.documents.restore(document_id, 1)
    assert analysed(dsn) == {"text": ["de"]}
    assert sources(pipeline, "Rechnung") == ["text"]


def test_a_stated_language_is_believed_and_what_is_none_is_not(pipeline: RAGPipeline, dsn: str):
    pipeline.ingest(Document(content="Gift", source="stated", language="de-CH"))
    pipeline.ingest(Document(content=GERMAN, source="nonsense", language="Deutsch, glaube ich"))
    assert analysed(dsn) == {"stated": ["de"], "nonsense": ["de"]}


def test_the_same_text_in_two_languages_of_its_owners_choice(pipeline: RAGPipeline, dsn: str):
    """Texts are stored once a tenant; their analysis belongs to each version."""
    for language in ("de", "en"):
        pipeline.ingest(Document(content=GERMAN, source=language, language=language))
    # What is clearly in another language is analysed in that beside the stated one.
    assert analysed(dsn) == {"de": ["de"], "en": ["en", "de"]}
    for language in ("de", "en"):
        assert sources(pipeline, "Buchhaltung", replace(WORDS, filters={"source": language})) == [language]


def test_parts_in_another_language_are_analysed_in_it(pipeline: RAGPipeline, dsn: str):
    text = "\n\n".join([ENGLISH * 12, (GERMAN + " Das ist so, und die Regel gilt für alle. ") * 12])
    pipeline.ingest(Document(content=text, source="both"))
    assert set(analysed(dsn)["both"] or ()) == {"en", "de"}
    assert "Rechnungen" in pipeline.retrieve("Wie wird die Rechnung bezahlt?", WORDS)[0].content
    assert "reimbursed" in pipeline.retrieve("reimbursing a traveller", WORDS)[0].content


def test_tiny_texts_are_found(pipeline: RAGPipeline):
    for content in ["a", "😀😀😀", "4012", "שלום world 4012", "\u200f(مرحبا) [ok]"]:
        pipeline.ingest(Document(content=content, source="tiny"))
        if any(character.isalnum() for character in content) and content != "a":
            assert sources(pipeline, content) == ["tiny"]
        assert pipeline.documents.get("tiny").content == content


def test_a_filter_knows_the_language_that_was_found(pipeline: RAGPipeline):
    filled(pipeline)
    german = RetrievalOptions(mode="dense", rerank="none", filters={"language": "de"})
    assert sources(pipeline, "anything", german) == ["de"]


def test_export_and_import_keep_what_is_found(pipeline: RAGPipeline, tmp_path: Path):
    filled(pipeline)
    exported = tmp_path / "all.jsonl"
    exported.write_text("\n".join(pipeline.collections.export_lines()), encoding="utf-8")
    again = pipeline.view(collections="again")
    again.collections.import_file(exported)
    assert pipeline.collections.get("again").languages == pipeline.collections.get("default").languages
    assert sources(again, "Wann wird eine Rechnung bezahlt?")[0] == "de"


def test_nothing_is_wrong_with_it_and_lost_states_are_counted_anew(pipeline: RAGPipeline, dsn: str):
    filled(pipeline)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE recollect.chunk_lexical SET lexemes = '{1}', weights = '{1:1}/1000000000'")
    broken = pipeline.maintenance.verify(deep=True)
    assert not broken.clean
    assert pipeline.maintenance.verify(deep=True, repair=True)
    assert pipeline.maintenance.verify(deep=True).clean
    assert sources(pipeline, "Когда оплачивается счёт?")[0] == "ru"


def test_a_collection_of_before_keeps_its_analysis(pipeline: RAGPipeline, dsn: str):
    pipeline.collections.create("before", language="en")
    before = pipeline.view(collections="before")
    before.ingest(Document(content=GERMAN, source="german"))
    assert analysed(dsn) == {"german": None}
    assert sources(before, "Rechnungen") == ["german"]
    assert sources(before, "Rechnung") == []


@pytest.mark.parametrize(
    ("options", "first"),
    [
        (RetrievalOptions(), "words"),
        (RetrievalOptions(dense_weight=1.0, rerank="none"), "meaning"),
    ],
)
def test_what_a_model_finds_alike_in_a_language_unknown_to_it_does_not_drown_the_words(
    dsn: str, tmp_path: Path, options: RetrievalOptions, first: str
):
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn}, embedding={"provider": "hashing"})
    with RAGPipeline(config, embedder=Misled()) as rag:
        rag.ingest([Document(content=GERMAN, source="words"), Document(content=MISLEADING, source="meaning")])
        assert sources(rag, "Wann wird die Rechnung von der Buchhaltung bezahlt?", options)[0] == first


MISLEADING = "Der Hund ist mit der Katze im Garten und sie sind nicht allein, weil die Rechnung auch da ist."


class Misled(HashingEmbedder):
    """Finds one German text near every German question."""

    model_name = "misled"

    def embed_documents(self, texts):
        vectors = super().embed_documents(texts)
        for row, text in enumerate(texts):
            if MISLEADING in text:
                vectors[row] = self.embed_query("")
        return vectors

    def embed_query(self, text):
        vector = np.zeros(self.dimension, dtype=np.float32)
        vector[0] = 1.0
        return vector


class Multilingual(HashingEmbedder):
    """Knows that a German question asks for the English text on invoices; has the name of a model that knows both."""

    model_name = "intfloat/multilingual-e5-small:int8"
    dimension = 384

    def __init__(self) -> None:
        super().__init__(dimension=384)

    def embed_documents(self, texts):
        vectors = super().embed_documents(texts)
        for row, text in enumerate(texts):
            if "invoices" in text:
                vectors[row] = self.embed_query("")
        return vectors

    def embed_query(self, text):
        vector = np.zeros(self.dimension, dtype=np.float32)
        vector[0] = 1.0
        return vector


INVOICES = "Accounting pays all invoices within two weeks, and they are kept for ten years in the archive."
WORDS_ALONE = "Die hard wann is a film in the series that was made in the nineties, and it has many friends."


@pytest.fixture
def multilingual(dsn: str, tmp_path: Path):
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn}, embedding={"provider": "hashing"})
    with RAGPipeline(config, embedder=Multilingual()) as rag:
        yield rag


@pytest.mark.parametrize(
    ("question", "options", "first"),
    [
        ("Wann wird denn die Rechnung bezahlt?", RetrievalOptions(rerank="none"), "meaning"),
        # What somebody sets counts.
        ("Wann wird denn die Rechnung bezahlt?", RetrievalOptions(rerank="none", dense_weight=0.2), "words"),
    ],
)
def test_a_question_in_another_language_than_the_texts_goes_by_meaning(
    multilingual: RAGPipeline, question: str, options: RetrievalOptions, first: str
):
    multilingual.ingest([Document(content=INVOICES, source="meaning"), Document(content=WORDS_ALONE, source="words")])
    assert sources(multilingual, question, options)[0] == first


def test_mixed_languages_in_a_question_find_what_either_names(multilingual: RAGPipeline):
    filled(multilingual)
    words = replace(WORDS, mode="hybrid", dense_weight=0.3)
    assert sources(multilingual, "receipts für Travellers und Hotels", words)[0] == "en"
    assert sources(multilingual, "Rechnungen Buchhaltung 😀", words)[0] == "de"
    assert sources(multilingual, "\u200fتدفع الفواتير\u200f", words)[0] == "ar"


def test_passages_that_a_multilingual_model_finds_alike_do_not_speak_for_one_another(multilingual: RAGPipeline):
    filled(multilingual)
    assert multilingual.search("Rechnung").reranked is None
    assert multilingual.search("Rechnung", RetrievalOptions(rerank="consensus")).reranked
