"""Chat models: the protocol, and a scripted one for tests; providers' models are made by `recollect.providers`."""

from recollect.llm.base import ChatMessage, ChatModel, ChatPicture, ChatUsage
from recollect.llm.scripted import ScriptedChatModel

__all__ = ["ChatMessage", "ChatModel", "ChatPicture", "ChatUsage", "ScriptedChatModel"]
