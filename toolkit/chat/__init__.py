"""Chat: the history of a conversation and its prompts, and a session with a model that keeps what was read."""

from toolkit.chat.history import Prompt
from toolkit.chat.session import ChatSession, Reply
from toolkit.data.conversations import check_conversation
from toolkit.tokenization.chat_template import ChatTemplate, Encoded, Message, make_template

__all__ = [
    "ChatSession",
    "ChatTemplate",
    "Encoded",
    "Message",
    "Prompt",
    "Reply",
    "check_conversation",
    "make_template",
]
