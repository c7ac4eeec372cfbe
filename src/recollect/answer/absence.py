"""Sentences that say that the sources hold no answer: the one that recollect writes, and those of models. Pure."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from recollect.languages import AUTO, DEFAULT_LANGUAGE, certain_language, language_of_text
from recollect.languages.detection import simplified
from recollect.model.answer import REFUSAL, Answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from recollect.model.answer import Nearest, ShownPassage, UnsupportedSentence

# The sentences that stand in place of an answer, in the language of the question. Pure.


#: By language; ``REFUSAL`` in all others.
REFUSALS = {
    "ar": "لا تتوفر لدي معلومات عن ذلك في قاعدة المعرفة المعتمدة.",
    "da": "Det har jeg ingen oplysninger om i den godkendte vidensbase.",
    "de": "Dazu habe ich in der freigegebenen Wissensbasis keine Informationen.",
    "el": "Δεν έχω πληροφορίες για αυτό στην εγκεκριμένη βάση γνώσεων.",
    "en": REFUSAL,
    "es": "No tengo información sobre eso en la base de conocimientos aprobada.",
    "fr": "Je n'ai pas d'informations à ce sujet dans la base de connaissances approuvée.",
    "hi": "स्वीकृत ज्ञानकोष में इस बारे में मेरे पास कोई जानकारी नहीं है।",
    "it": "Non ho informazioni al riguardo nella base di conoscenza approvata.",
    "ja": "承認済みのナレッジベースには、それに関する情報がありません。",
    "ko": "승인된 지식 베이스에는 이에 대한 정보가 없습니다.",
    "nl": "Ik heb daarover geen informatie in de goedgekeurde kennisbank.",
    "no": "Jeg har ingen informasjon om det i den godkjente kunnskapsbasen.",
    "pl": "Nie mam informacji na ten temat w zatwierdzonej bazie wiedzy.",
    "pt": "Não tenho informações sobre isso na base de conhecimento aprovada.",
    "ro": "Nu am informații despre acest lucru în baza de cunoștințe aprobată.",
    "ru": "В утверждённой базе знаний у меня нет информации об этом.",
    "sv": "Jag har ingen information om det i den godkända kunskapsbasen.",
    "th": "ฉันไม่มีข้อมูลเกี่ยวกับเรื่องนี้ในฐานความรู้ที่ได้รับอนุมัติ",
    "tr": "Onaylı bilgi tabanında bu konuda bilgim yok.",
    "uk": "У затвердженій базі знань у мене немає інформації про це.",
    "vi": "Tôi không có thông tin về điều đó trong cơ sở tri thức đã được phê duyệt.",
    "zh": "在已批准的知识库中，我没有关于这方面的信息。",
    "zh-Hant": "在已核准的知識庫中，我沒有關於這方面的資訊。",
}
#: What introduces passages that may help, by language; English in all others.
OFFERS = {
    "ar": "لم يُعثر على إجابة دقيقة. قد تساعدك هذه المقاطع:",
    "da": "Der blev ikke fundet et præcist svar. Disse tekststeder kan måske hjælpe:",
    "de": "Keine genaue Antwort gefunden. Diese Textstellen helfen vielleicht weiter:",
    "el": "Δεν βρέθηκε ακριβής απάντηση. Αυτά τα αποσπάσματα ίσως βοηθήσουν:",
    "en": "No exact answer found. These passages may help:",
    "es": "No se ha encontrado una respuesta exacta. Estos pasajes pueden ayudar:",
    "fr": "Aucune réponse exacte n'a été trouvée. Ces passages peuvent aider :",
    "hi": "कोई सटीक उत्तर नहीं मिला। ये अंश मदद कर सकते हैं:",
    "it": "Nessuna risposta esatta trovata. Questi passaggi possono aiutare:",
    "ja": "正確な答えは見つかりませんでした。次の箇所が参考になるかもしれません:",
    "ko": "정확한 답을 찾지 못했습니다. 다음 구절이 도움이 될 수 있습니다:",
    "nl": "Geen exact antwoord gevonden. Deze passages kunnen helpen:",
    "no": "Fant ikke noe nøyaktig svar. Disse tekststedene kan kanskje hjelpe:",
    "pl": "Nie znaleziono dokładnej odpowiedzi. Te fragmenty mogą pomóc:",
    "pt": "Nenhuma resposta exata encontrada. Estas passagens podem ajudar:",
    "ro": "Nu s-a găsit un răspuns exact. Aceste pasaje pot fi de ajutor:",
    "ru": "Точный ответ не найден. Эти отрывки могут помочь:",
    "sv": "Inget exakt svar hittades. De här textställena kan hjälpa:",
    "th": "ไม่พบคำตอบที่ตรงกับคำถาม ข้อความเหล่านี้อาจช่วยได้:",
    "tr": "Kesin bir yanıt bulunamadı. Şu bölümler yardımcı olabilir:",
    "uk": "Точної відповіді не знайдено. Ці уривки можуть допомогти:",
    "vi": "Không tìm thấy câu trả lời chính xác. Các đoạn sau có thể hữu ích:",
    "zh": "未找到确切答案。以下段落可能有帮助：",
    "zh-Hant": "未找到確切答案。以下段落可能有幫助：",
}


def without_answer(
    question: str,
    passages: Sequence[ShownPassage],
    *,
    language: str,
    nearest: Nearest | None = None,
    unsupported: Iterable[UnsupportedSentence] = (),
) -> Answer:
    """What is replied where there is no answer: the passages that may help, or that nothing was found.

    Args:
        question: As asked.
        passages: That may help; none: nothing relevant was found.
        language: ISO 639-1 code of the texts that it is asked of.
        nearest: The evidence that fell short.
        unsupported: Sentences of a language model that were not shown.
    """
    return Answer(
        question=question,
        text=sentence_of(OFFERS, question, language) if passages else refusal_of(question, language),
        outcome="passages" if passages else "none",
        citations=(),
        passages=tuple(passages),
        nearest=nearest,
        unsupported=tuple(unsupported),
    )


def refusal_of(question: str, language: str = "en") -> str:
    """The sentence that refuses to answer a question, in its language where that is certain; else in that of the texts.

    Args:
        question: As asked.
        language: ISO 639-1 code of the texts that it is asked of; ``auto``, or one without a sentence: English.
    """
    return sentence_of(REFUSALS, question, language)


def sentence_of(sentences: Mapping[str, str], question: str, language: str) -> str:
    """The sentence in the language of the question, where that is certain; else in that of the texts, or in English."""
    texts = None if language == AUTO else language
    asked = language_of_text(question, expected=texts)
    if asked != texts:
        asked = certain_language(question) or texts or DEFAULT_LANGUAGE
    if asked == "zh" and simplified(question) != question:
        asked = "zh-Hant"
    return sentences.get(asked, sentences[DEFAULT_LANGUAGE])


# What a model calls that which it was shown. A "policy" or a "contract" is something that it tells about.
_SHOWN = (
    r"(?:context|knowledge base|excerpts?|passages?|snippets?|search results|"
    r"(?:provided|given|available|supplied|approved|above|retrieved|shown|cited)\s+(?:\w+\s+)?"
    r"(?:information|text|material|documents?|sources?|data|content|policies)|sources?|documents?|"
    r"(?:information|documents?|text|material|sources?)\s+(?:that (?:is|was|are|were) )?(?:provided|given|available|supplied))"
)
_TELLS = (
    r"(?:mention|contain|say|state|specif|provide|include|address|cover|answer|indicate|discuss|describe|give|have|hold|"
    r"list|detail|disclose|reveal|offer|refer|explain|show|tell|clarif|define|support)"
)
_PATTERNS = [
    # English
    rf"\b{_SHOWN}\b[^.!?]{{0,40}}\b(?:do(?:es)?|did|is|are|was|were|has|have|can)(?:\s*not|n['’]t)\b[^.!?]{{0,30}}\b{_TELLS}",
    rf"\b(?:not|n['’]t|never|nowhere)\b[^.!?]{{0,60}}\b(?:in|by|from|within)\b[^.!?]{{0,30}}\b{_SHOWN}\b",
    rf"\b(?:no|nothing|none|neither)\b[^.!?]{{0,80}}\b{_SHOWN}\b",
    rf"\b{_SHOWN}\b[^.!?]{{0,40}}\b(?:contains?|has|have|holds?|provides?|includes?|makes?|gives?|offers?|lacks?)\s+(?:no\b|nothing|any)",
    r"\bthere (?:is|are|was) (?:no|not any|insufficient|not enough)\s+(?:\w+\s+){0,2}"
    r"(?:information|mention|details?|data|indication|reference|answer|evidence)\b",
    r"\bi(?:\s+am|['’]m)?\s+(?:\w+\s+)?(?:do(?:n['’]t| not)|can(?:not|['’]t)|could(?:n['’]t| not)|unable|was unable|not able|have no|did(?:n['’]t| not)|am afraid)"
    r"[^.!?]{0,40}\b(?:know|information|find|found|answer|determine|tell|provide|say|help|locate|details?|enough|access|sure)\b",
    r"\b(?:information|answer|detail|figure|data|this|that|it)\b[^.!?]{0,30}\b(?:is|are|was)(?: not|n['’]t)\s+"
    r"(?:available|provided|mentioned|specified|stated|included|given|covered|found|known|disclosed|addressed)\b",
    r"\b(?:no|insufficient|not enough)\s+(?:\w+\s+)?information\b",
    r"\bcannot be (?:answered|determined|found)\b[^.!?]*\b(?:context|sources?|documents?|information)\b|\bunable to (?:find|answer|determine)\b",
    # German
    r"\b(?:kontext|quellen?|dokumente?n?|wissens(?:basis|datenbank)|auszügen?|unterlagen|textstellen?|informationen)\b"
    r"[^.!?]{0,60}\b(?:kein\w*|nicht\w*)\b",
    r"\b(?:kein\w*|nicht\w*)\b[^.!?]{0,60}\b(?:kontext|quellen?|dokumenten?|wissens(?:basis|datenbank)|auszügen?|unterlagen|informationen|angaben)\b",
    r"\bich (?:habe|finde|kann|weiß)\b[^.!?]{0,60}\b(?:keine?|nicht)\b",
    r"\b(?:dazu|darüber|hierzu)\b[^.!?]{0,30}\b(?:keine|nichts)\b",
    # French
    r"\b(?:contexte|sources?|documents?|extraits?|base de connaissances|informations?)\b[^.!?]{0,40}\bn(?:e|['’])\s*\w+[^.!?]{0,20}\b(?:pas|aucune?|rien)\b",
    r"\bje (?:ne|n['’])\s*\w+[^.!?]{0,20}\b(?:pas|aucune?)\b|\baucune? (?:information|mention|donnée|précision)\b",
    r"\bil n['’]y a (?:pas|aucune?)\b[^.!?]{0,20}\b(?:information|mention|précision|indication)",
    # Spanish and Portuguese
    r"\b(?:contexto|fuentes?|documentos?|fontes?|base de conoc\w+|base de conhec\w+|extractos?|informaci[oó]n|informação)\b[^.!?]{0,40}\b(?:no|não|nao|ningun\w*|nenhum\w*)\b",
    r"^\W*(?:lo siento,? |desculpe,? )?(?:no|não) (?:tengo|dispongo|hay|encuentro|encontré|puedo|sé|he encontrado|tenho|há|encontrei|posso|sei)\b[^.!?]{0,40}"
    r"(?:informaci|informaç|respon|datos|dados|nada)",
    r"\bno se (?:menciona|especifica|indica|proporciona|dice)\b",
    # Italian
    r"\b(?:contesto|fonti|documenti|informazioni)\b[^.!?]{0,40}\bnon\b",
    r"^\W*(?:mi dispiace,? )?non (?:ho|dispongo|ci sono|trovo|posso|so)\b[^.!?]{0,40}(?:informazion|rispond|dati)",
    # Dutch, Polish, Turkish, Swedish
    r"\b(?:context|bronnen|documenten|kennisbank|informatie)\b[^.!?]{0,40}\b(?:niet|geen)\b|\bik (?:heb|kan|weet|vind)\b[^.!?]{0,40}\b(?:geen|niet)\b",
    r"\b(?:kontek\w*|źród\w*|dokument\w*)\b[^.!?]{0,40}\bnie\b|\bnie (?:mam|ma|znalazłem|mogę|wiem)\b[^.!?]{0,40}(?:informacj|odpowied)",
    r"\b(?:bağlam\w*|kaynak\w*|belge\w*)\b[^.!?]{0,80}(?:yok|bulunm\w*|belirtilm\w*|bahsedilm\w*|içermi\w*|yer alm\w*)|\bbilgi\w*\b[^.!?]{0,20}(?:yok|bulunm)",
    r"\b(?:kontexten|källorna|dokumenten)\b[^.!?]{0,40}\b(?:inte|ingen|inga)\b|\bjag (?:har|kan|vet|hittar)\b[^.!?]{0,30}\b(?:inte|ingen)\b",
    # Russian, Arabic, Chinese, Japanese, Korean
    r"(?:контекст|источник|документ|информаци)\w*[^.!?]{0,60}\b(?:не|нет|отсутству\w*)\b|у меня нет|(?:не|нет)\b[^.!?]{0,60}(?:контекст|источник|информаци)\w*",
    r"(?:السياق|المصادر|الوثائق|المستندات|معلومات)[^.!؟]{0,60}(?:لا|لم|ليس|غير)|(?:لا|ليس|لم)[^.!؟]{0,60}(?:السياق|المصادر|معلومات)",
    r"(?:上下文|资料|資料|文档|文件|来源|知识库|信息|内容)[^。！？]{0,30}(?:没有|沒有|未|不包含|无法|不足)|(?:没有|未找到|无法|不知道)[^。！？]{0,20}(?:信息|资料|回答|答案)",
    r"(?:コンテキスト|文脈|資料|情報|文書|ソース|ナレッジ)[^。！？]{0,40}(?:ありません|ません|ない|見つかりません)|わかりません|お答えできません",
    r"(?:문맥|문서|자료|정보)[^.!?]{0,40}(?:없|않)",
]  # fmt: skip
_ABSENT = re.compile("|".join(f"(?:{pattern})" for pattern in _PATTERNS), re.IGNORECASE)
_PLEASANTRY = re.compile(
    r"\W*(?:(?:i['’]m |i am )?sorry\b|unfortunately|leider|es tut mir leid|désolé|malheureusement|lo siento|mi dispiace|"
    r"(?:if|please|let me know|feel free|you (?:may|might|could)|i (?:recommend|suggest)|for more|wenn sie|bitte|veuillez|por favor)\b)",
    re.IGNORECASE,
)


def is_refusal(text: str) -> bool:
    """Whether a model's text is the refusal sentence in one of its languages, or begins with it; or offers passages.

    Typographic apostrophes, quotation marks, emphasis, case and line breaks make no difference. The sentence behind
    a partial answer does not make that answer a refusal.
    """
    return _bare(text).startswith(_bare_refusals())


def says_nothing_is_known(sentence: str) -> bool:
    """Whether a sentence says that what was shown holds no answer, in any of a dozen languages.

    Args:
        sentence: Without markers of citations. What names a thing of the documents' own world ("the policy does not
            cover glasses") is a statement, and not meant.
    """
    return is_refusal(sentence) or bool(_ABSENT.search(sentence))


def is_pleasantry(sentence: str) -> bool:
    """Whether a sentence only apologises or says where else to ask."""
    return bool(_PLEASANTRY.match(sentence))


@cache
def _bare_refusals() -> tuple[str, ...]:
    return tuple(map(_bare, (*REFUSALS.values(), *OFFERS.values())))


def _bare(text: str) -> str:
    text = re.sub(r"[’‘`´]", "'", text.casefold())
    return " ".join(re.sub(r"[\"“”„«»*_.。।]", "", text).split()).lstrip("'> ")
