"""Conversations: messages, how they are written as ids, what is sent of them, and a session with a model."""

from toolkit.chat.prompt import Prompt
from toolkit.chat.session import ChatSession, Reply
from toolkit.chat.template import Encoded, Template, make_template
from toolkit.data.messages import Message, check_conversation

__all__ = [
    "ChatSession",
    "Encoded",
    "Message",
    "Prompt",
    "Reply",
    "Template",
    "check_conversation",
    "make_template",
]
