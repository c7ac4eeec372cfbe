"""The sentence that refuses an answer, in the language of the question. Pure."""

from __future__ import annotations

from recollect.languages import AUTO, DEFAULT_LANGUAGE, certain_language, language_of_text
from recollect.languages.characters import simplified
from recollect.model.answer import REFUSAL

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


def refusal_of(question: str, language: str = "en") -> str:
    """The sentence that refuses to answer a question, in its language where that is certain; else in that of the texts.

    Args:
        question: As asked.
        language: ISO 639-1 code of the texts that it is asked of; ``auto``, or one without a sentence: English.
    """
    texts = None if language == AUTO else language
    asked = language_of_text(question, expected=texts)
    if asked != texts:
        asked = certain_language(question) or texts or DEFAULT_LANGUAGE
    if asked == "zh" and simplified(question) != question:
        asked = "zh-Hant"
    return REFUSALS.get(asked, REFUSAL)
