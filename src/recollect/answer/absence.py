"""Sentences that say that the sources hold no answer: the one that recollect writes, and those of models. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files

from recollect.languages import AUTO, DEFAULT_LANGUAGE, certain_language, language_of_text
from recollect.languages.detection import simplified
from recollect.model.answer import REFUSAL, Answer, Nearest, ShownPassage, UnsupportedSentence

_DATA = tomllib.loads(files("recollect.answer").joinpath("absence.toml").read_text("utf-8"))
#: The sentence in place of an answer, by language; ``REFUSAL`` in all others.
REFUSALS: dict[str, str] = {"en": REFUSAL} | _DATA["refusals"]
#: What introduces passages that may help, by language; English in all others.
OFFERS: dict[str, str] = _DATA["offers"]
_PATTERNS = _DATA["patterns"]
_ABSENT = re.compile(
    "|".join(_PATTERNS["absent"]).replace("{shown}", _PATTERNS["shown"]).replace("{tells}", _PATTERNS["tells"]),
    re.IGNORECASE,
)
_PLEASANTRY = re.compile(_PATTERNS["pleasantry"], re.IGNORECASE)


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
        text=sentence_of(OFFERS if passages else REFUSALS, question, language),
        outcome="passages" if passages else "none",
        citations=(),
        passages=tuple(passages),
        nearest=nearest,
        unsupported=tuple(replace(one, start_offset=None, end_offset=None) for one in unsupported),
    )


def sentence_of(sentences: Mapping[str, str], question: str, language: str = DEFAULT_LANGUAGE) -> str:
    """The sentence in the language of a question, where that is certain; else in that of the texts.

    Args:
        sentences: By language.
        question: As asked.
        language: ISO 639-1 code of the texts that it is asked of; ``auto``, or one without a sentence: English.
    """
    texts = None if language == AUTO else language
    asked = language_of_text(question, expected=texts)
    if asked != texts:
        asked = certain_language(question) or texts or DEFAULT_LANGUAGE
    if asked == "zh" and simplified(question) != question:
        asked = "zh-Hant"
    return sentences.get(asked, sentences[DEFAULT_LANGUAGE])


def is_refusal(text: str) -> bool:
    """Whether a model's text is the refusal sentence in one of its languages, or begins with it; or offers passages.

    Typographic apostrophes, quotation marks, emphasis, case and line breaks make no difference. The sentence behind
    a partial answer does not make that answer a refusal.
    """
    return _bare(text).startswith(_BARE_REFUSALS)


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


def _bare(text: str) -> str:
    text = re.sub(r"[’‘`´]", "'", text.casefold())
    return " ".join(re.sub(r"[\"“”„«»*_.。।]", "", text).split()).lstrip("'> ")


_BARE_REFUSALS = tuple(map(_bare, (*REFUSALS.values(), *OFFERS.values())))
