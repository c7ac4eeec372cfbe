"""Keys, tokens and passwords in texts that others wrote, masked."""

from __future__ import annotations

import re

from recollect.model.key import SECRET_PATTERN

_LABELS = r"(?i)\b(password|passwd|secret|(?:x-)?api[ _-]?key(?: provided)?|access[_-]?token|secret[_-]?access[_-]?key)"
_SECRETS = (
    (re.compile(SECRET_PATTERN, re.ASCII), "rk_…"),
    (re.compile(r"(?<=://)[^\s/@:]*:[^\s/@]+(?=@)"), "…"),
    (re.compile(_LABELS + r"(\s*=\s*)('[^']*'|\"[^\"]*\"|[^\s&,;]+)"), r"\1\2…"),
    # In prose a word may follow a colon: only a value with a digit is a key.
    (re.compile(_LABELS + r"(['\"]?\s*:\s*)(['\"]?(?=\S{0,100}\d)[^\s&,;'\"]{6,})"), r"\1\2…"),
    (re.compile(r"(?i)\bbearer\s+[A-Za-z0-9._~+/=-]{8,}"), "Bearer …"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"), "…"),
    # The forms of known providers, also those that a provider has masked in part.
    (
        re.compile(
            r"\b(?:(?:sk|pk|pa|xai|gsk|nvapi|r8|hf|ghp|glpat)[-_](?=[\w.-]{0,100}[\dA-Z*])|AIza|A[KS]IA)[\w*.-]{6,}[\w*]",
            re.ASCII,
        ),
        "…",
    ),
    # A name of that length has hyphens, a hash one case.
    (re.compile(r"\b(?=[^\W_]*[a-z])(?=[^\W_]*[A-Z])(?=[^\W_]*\d)[^\W_]{32,}\b", re.ASCII), "…"),
)


def without_secrets(text: str) -> str:
    """Mask what looks like an API key, a token, a password in an address or a labelled secret.

    Example:
        >>> without_secrets("Incorrect API key provided: sk-proj-****************3fA9.")
        'Incorrect API key provided: ….'
    """
    for pattern, left in _SECRETS:
        text = pattern.sub(left, text)
    return text
