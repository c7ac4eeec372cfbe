"""The twelve languages of XQuAD from a document to an answer: told, analysed, found, and the right sentence quoted."""

from __future__ import annotations

import unicodedata

import psycopg
import pytest

from recollect import Document, RAGPipeline, RetrievalOptions
from recollect.answer import ExtractionOptions, RefusalRule, extract_answer
from recollect.embedding.hashing import HashingEmbedder

# The rule's threshold belongs to models that know what words mean.
NEVER_REFUSED = ExtractionOptions(rule=RefusalRule(threshold=0.0))

#: A text of three sentences or more, a question whose answer is the second one, the same typed in a hurry or with other
#: digits, and that sentence. What Arabic, Hindi, Thai and Chinese texts count, they count in their own digits.
TEXTS = {
    "ar": (
        "تقع المدينة على ضفاف نهر كبير في شمال البلاد. "
        "تأسست الجامعة سنة ١٩٥٢ على يد د. أحمد حسين. ويدرس فيها اليوم كثير من الطلاب.",
        "متى تأسست الجامعة؟",
        "متي تاسست الجامعه في 1952",
        "تأسست الجامعة سنة ١٩٥٢ على يد د. أحمد حسين.",
    ),
    "de": (
        "Die Stadt liegt an einem großen Fluss im Norden. Die Universität wurde am 3. Mai 1952 von Dr. Groß gegründet. "
        "Heute lernen dort viele Studenten.",
        "Wann wurde die Universität gegründet?",
        "wann wurde die universitat gegrundet",
        "Die Universität wurde am 3. Mai 1952 von Dr. Groß gegründet.",
    ),
    "el": (
        "Η πόλη βρίσκεται δίπλα σε μεγάλο ποταμό. Το πανεπιστήμιο ιδρύθηκε το 1952 από τον κ. Παπαδόπουλο. "
        "Γιατί έρχονται τόσοι φοιτητές; Επειδή η ζωή είναι φτηνή.",
        "Πότε ιδρύθηκε το πανεπιστήμιο;",
        "ΠΟΤΕ ΙΔΡΥΘΗΚΕ ΤΟ ΠΑΝΕΠΙΣΤΗΜΙΟ",
        "Το πανεπιστήμιο ιδρύθηκε το 1952 από τον κ. Παπαδόπουλο.",
    ),
    "en": (
        "The town lies beside a wide river in the north. The university was founded in 1952 by Dr. Brown. "
        "Many students learn there today.",
        "When was the university founded?",
        "WHEN WAS THE UNIVERSITY FOUNDED",
        "The university was founded in 1952 by Dr. Brown.",
    ),
    "es": (
        "La ciudad está junto a un río grande del norte. La institución fue fundada en 1952 por el Sr. Núñez. "
        "¿Por qué vienen tantos alumnos? Porque la vida es barata.",
        "¿Cuándo fue fundada la institución?",
        "cuando fue fundada la institucion",
        "La institución fue fundada en 1952 por el Sr. Núñez.",
    ),
    "hi": (
        "शहर उत्तर में एक बड़ी नदी के किनारे बसा है। "
        "विश्वविद्यालय की स्थापना १९५२ में डॉ. सिंह ने की थी। आज वहाँ बहुत से विद्यार्थी पढ़ते हैं।",
        "विश्वविद्यालय की स्थापना कब हुई?",
        "विश्वविद्यालय की स्थापना 1952",
        "विश्वविद्यालय की स्थापना १९५२ में डॉ. सिंह ने की थी।",
    ),
    "ro": (
        "Orașul se află lângă un râu mare din nord. Învățământul superior a început în 1952 cu dl. Ștefănescu. "
        "Astăzi vin foarte mulți studenți.",
        "Când a început învățământul superior?",
        "cand a inceput invatamantul superior",
        "Învățământul superior a început în 1952 cu dl. Ștefănescu.",
    ),
    "ru": (
        "Город стоит на берегу большой реки. Учёный совет основан в 1952 г. проф. Воробьёвым вместе с ректором. "
        "Сегодня там много студентов.",
        "Когда основан учёный совет?",
        "когда основан ученый совет",
        "Учёный совет основан в 1952 г. проф. Воробьёвым вместе с ректором.",
    ),
    "th": (
        "เมืองนี้ตั้งอยู่ริมแม่น้ำสายใหญ่ทางภาคเหนือของประเทศ "
        "มหาวิทยาลัยก่อตั้งขึ้นในปี พ.ศ. ๒๔๙๕ โดย ดร. สมชาย ใจดี ปัจจุบันนักศึกษาจำนวนมากเดินทางเข้าเมือง",
        "มหาวิทยาลัยก่อตั้งขึ้นเมื่อไร",
        "มหาวิทยาลัยก่อตั้งขึ้นในปี 2495",
        "มหาวิทยาลัยก่อตั้งขึ้นในปี พ.ศ. ๒๔๙๕ โดย ดร. สมชาย ใจดี",
    ),
    "tr": (
        "Şehir kuzeyde büyük bir nehrin kıyısındadır. "
        "Üniversite 20. yüzyılda, 1952 yılında Prof. Dr. Işık tarafından kuruldu. "
        "Bugün orada çok öğrenci okuyor.",
        "Üniversite ne zaman kuruldu?",
        "universite ne zaman kuruldu",
        "Üniversite 20. yüzyılda, 1952 yılında Prof. Dr. Işık tarafından kuruldu.",
    ),
    "vi": (
        "Thành phố nằm bên một con sông lớn ở miền bắc. Trường đại học được thành lập năm 1952 bởi PGS. Nguyễn Văn An. "
        "Ngày nay nhiều sinh viên đến học.",
        "Trường đại học được thành lập khi nào?",
        "truong dai hoc duoc thanh lap khi nao",
        "Trường đại học được thành lập năm 1952 bởi PGS. Nguyễn Văn An.",
    ),
    "zh": (
        "这座城市位于北方的一条大河旁边。大学成立于一九五二年，创办人是王教授。如今有许多学生在那里学习。",
        "大学成立于哪一年？",
        "大学成立于1952年",
        "大学成立于一九五二年，创办人是王教授。",
    ),
}  # fmt: skip


def test_each_language_is_told_found_and_answered_among_all_others(pipeline: RAGPipeline, dsn: str):
    pipeline.ingest(Document(content=text, source=language) for language, (text, *_) in TEXTS.items())
    with psycopg.connect(dsn) as connection:
        analysed = dict(connection.execute("SELECT uri, analysed_as FROM recollect.document_versions").fetchall())
    assert analysed == {language: [language] for language in TEXTS}
    for language, (_, asked, typed, sentence) in TEXTS.items():
        for question in (asked, typed):
            for mode in ("lexical", "hybrid"):
                found = pipeline.retrieve(question, RetrievalOptions(mode=mode))
                assert found[0].source == language, (mode, question)
        answer = extract_answer(
            asked, pipeline.retrieve(asked), embedder=HashingEmbedder(), language="auto", options=NEVER_REFUSED
        )
        assert [one.quote for one in answer.citations][:1] == [sentence], asked


@pytest.mark.parametrize("language", ["ar", "el", "hi", "ru", "th", "vi"])
def test_a_text_whose_marks_stand_apart_is_the_same_text(pipeline: RAGPipeline, language: str):
    text, question, *_ = TEXTS[language]
    pipeline.ingest(Document(content=unicodedata.normalize("NFD", text), source=language))
    assert [one.source for one in pipeline.retrieve(question, RetrievalOptions(mode="lexical"))] == [language]


def test_what_is_not_found_is_said_in_the_language_of_the_question(pipeline: RAGPipeline):
    pipeline.ingest(Document(content=TEXTS["el"][0], source="el"))
    assert pipeline.ask("Сколько стоит парковка у вокзала?").text.startswith("В утверждённой базе знаний")
    assert pipeline.ask("Πόσο κοστίζει το εισιτήριο του τρένου;").text.startswith("Δεν βρέθηκε ακριβής απάντηση")
