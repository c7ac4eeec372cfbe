"""Chat models: a protocol, a provider behind it, and a scripted one for tests."""

from recollect.llm.base import ChatMessage, ChatModel, ChatUsage
from recollect.llm.registry import make_chat_model
from recollect.llm.scripted import ScriptedChatModel

__all__ = ["ChatMessage", "ChatModel", "ChatUsage", "ScriptedChatModel", "make_chat_model"]
