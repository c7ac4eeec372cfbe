"""What the language of a question says of its meaning and its words: which of them a hybrid search goes by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.languages import shares_script
from recollect.retrieval.fusion import CROSSING_DENSE_WEIGHT, FOREIGN_DENSE_WEIGHT, STRANGE_DENSE_WEIGHT
from recollect.retrieval.model_languages import asked_language, foreign_language, languages_of

if TYPE_CHECKING:
    from recollect.model.collection import Collection
    from recollect.retrieval.candidates import Candidates

#: A question in a language that no text is in counts as one whose words say little, unless a candidate holds so much of
#: them, by their rarity: then they are names, or the language was taken for another one.
WORDS_THAT_TELL = 0.5


@dataclass(frozen=True, slots=True)
class MeaningShare:
    """What the language of a question says of its meaning and its words.

    Attributes:
        weight: The dense retriever's share, where options and settings say nothing.
        crossing: Whether no text is in that language, but the model knows it and those of the texts. Otherwise a model
            does not know it, and is not asked to rerank.
    """

    weight: float
    crossing: bool

    def counts(self, found: Candidates) -> bool:
        """Whether it is to be followed with these candidates."""
        if self.crossing:
            return max(found.coverage.values(), default=0.0) < WORDS_THAT_TELL
        return bool(found.lexical)


def meaning_share(query: str, collections: Sequence[Collection], known: Callable[[str], bool]) -> MeaningShare | None:
    """What the language of a question says of meaning and words; None: nothing, because texts and models know it.

    Args:
        query: The question.
        collections: That it is asked of.
        known: Whether every model that embeds them knows a language.
    """
    asked = asked_language(query, collections)
    if asked is not None:
        if known(asked):
            return None
        return MeaningShare(FOREIGN_DENSE_WEIGHT if shares_script(asked) else STRANGE_DENSE_WEIGHT, crossing=False)
    asked = foreign_language(query, collections)
    if asked is None or not known(asked) or not all(map(known, languages_of(collections))):
        return None
    return MeaningShare(CROSSING_DENSE_WEIGHT, crossing=True)
