"""Languages: which one a text is in, and its function words."""

from recollect.languages.detection import (
    AUTO,
    DEFAULT_LANGUAGE,
    certain_language,
    language_of_part,
    language_of_text,
    shares_script,
)
from recollect.languages.stopwords import stopwords

__all__ = [
    "AUTO",
    "DEFAULT_LANGUAGE",
    "certain_language",
    "language_of_part",
    "language_of_text",
    "shares_script",
    "stopwords",
]
