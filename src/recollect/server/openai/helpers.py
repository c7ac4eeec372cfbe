"""Prompts that chat programs send by themselves about a conversation: for its title, its tags, questions that follow.

They ask for nothing that documents say, so a language model answers them without a search. Open WebUI, LibreChat and
others word them differently; what they have in common is that they order something to be made of a conversation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from recollect.answer.synchronous import iterate
from recollect.llm.base import ChatMessage, ChatUsage
from recollect.model import Answer, SearchReply, TokenUsage

if TYPE_CHECKING:
    from recollect.llm.base import ChatModel
    from recollect.pipeline.answering import AskEvent

# Where a prompt begins to quote a conversation: a heading, a tag, or the first line of a speaker.
_QUOTED = re.compile(
    r"^[ \t#*>]*(?:conversation|chat history|chat|messages|transcript)[ \t*]*:[ \t*]*$"
    r"|<(?:chat_history|conversation|chat|messages|transcript)>"
    r"|^[ \t#*>-]*(?:user|human)[ \t*]*:",
    re.IGNORECASE | re.MULTILINE,
)
_ORDER = re.compile(
    r"^\s*(?:#+ *task\b|(?:please |you are |based on |given )?.{0,200}?"
    r"\b(?:generate|create|suggest|provide|analy[sz]e|summari[sz]e|write|give|determine|categori[sz]e|name|return)\b)",
    re.IGNORECASE | re.DOTALL,
)
_WANTED = re.compile(
    r"\b(?:titles?|tags?|follow[- ]?ups?|summary|summari[sz]\w+|topics?|emojis?|search quer(?:y|ies)|autocompletion)\b",
    re.IGNORECASE,
)
# The same where the conversation stands before it in messages of its own.
_OF_THIS = re.compile(
    r"\b(?:title|name|tags?|summary|follow[- ]?up questions?)\b[^.?!\n]{0,80}\b(?:this|our|the above) "
    r"(?:conversation|chat|dialogue)\b\s*(?:[.,;:!]|$)",
    re.IGNORECASE | re.MULTILINE,
)
_SAID = re.compile(r"^[ \t#*>-]*(?:user|human)[ \t*]*:[ \t*]*(.+)$", re.IGNORECASE | re.MULTILINE)
_EXAMPLE = re.compile(r"\{[^{}]{1,1000}\}")
_TITLE_WORDS = 6
# A document that somebody pastes is no prompt of a program.
_MOST_ORDER_CHARACTERS = 6_000


def is_helper_prompt(text: str) -> bool:
    """Whether a message orders something to be made of a conversation, in place of asking the documents."""
    quoted = _QUOTED.search(text)
    order = text[: quoted.start()] if quoted else text
    if len(order) > _MOST_ORDER_CHARACTERS or not _ORDER.match(order):
        return False
    return bool(_WANTED.search(order)) if quoted else bool(_OF_THIS.search(order))


def helped(
    messages: Sequence[ChatMessage], model: ChatModel | None, *, collection: str, max_tokens: int | None
) -> Iterator[AskEvent]:
    """The answer to a helper prompt, in the events of any answer; it cites nothing.

    Args:
        messages: The conversation; the last one is the prompt.
        model: Writes it; None: it is made of the prompt's own words.
        collection: Which the search would have looked into.
        max_tokens: Of the answer, at most; None: as the model has it.

    Raises:
        ProviderError: The model failed.
    """
    prompt = messages[-1].content
    yield SearchReply(query=prompt, collection=collection, mode="hybrid", results=(), timings_ms={})
    if model is None:
        said = _without_model(messages)
        yield said
        yield Answer(question=prompt, text=said, refused=False, citations=())
        return
    text, usage = "", None
    for item in iterate(model.stream(messages, max_tokens=max_tokens)):
        if isinstance(item, ChatUsage):
            usage = TokenUsage(
                input_tokens=item.input_tokens, output_tokens=item.output_tokens, estimated=item.estimated
            )
        else:
            text += item
            yield item
    yield Answer(question=prompt, text=text, refused=False, citations=(), model=model.model_name, usage=usage)


def _without_model(messages: Sequence[ChatMessage]) -> str:
    """A title of the conversation's first words; in the form of the prompt's example, whose lists stay empty."""
    prompt = messages[-1].content
    said = _SAID.search(prompt)
    first = said[1] if said else next((one.content for one in messages[:-1] if one.role == "user"), "")
    title = " ".join(first.split()[:_TITLE_WORDS]).rstrip(".,;:?!")
    quoted = _QUOTED.search(prompt)
    order = prompt[: quoted.start()] if quoted else prompt
    for example in _EXAMPLE.findall(order):
        try:
            form = json.loads(example)
        except ValueError:
            continue
        return json.dumps({name: title if isinstance(value, str) else [] for name, value in form.items()})
    wants_title = re.search(r"\b(?:title|name|summar\w+|topic)", order, re.IGNORECASE)
    return title if wants_title else ""
