"""Answers: quoted without a language model, written with one, every citation at exact characters of a source."""

from recollect.answer.extractive import ExtractionOptions, extract_answer
from recollect.answer.refusal import RefusalRule
from recollect.answer.service import AnswerOptions, answer, stream_answer, stream_answer_sync
from recollect.answer.writing import verify

__all__ = [
    "AnswerOptions",
    "ExtractionOptions",
    "RefusalRule",
    "answer",
    "extract_answer",
    "stream_answer",
    "stream_answer_sync",
    "verify",
]
