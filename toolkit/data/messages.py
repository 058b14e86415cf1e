"""Conversations checked: which lists of messages are one, and messages as JSON."""

from collections.abc import Sequence
from typing import Any

from toolkit.errors import DataError
from toolkit.tokenization.chat_template import ROLES, Message, Role
from toolkit.tokenization.normal_form import normal_form


def check_conversation(messages: Sequence[Message], where: str) -> None:
    """A conversation: at most one system message, in front, then user and assistant in turns, beginning with the user.

    It may end with either of them, or have no more than its system message. where: its name, with which sentences
    begin, such as "chat.jsonl, line 3".

    Raises DataError for an order that is another one, for no messages, and for a message whose role is unknown or whose
    content is blank or no text.
    """
    if not messages:
        raise DataError(f"{where} has no messages: a conversation begins with one of role user")
    for number, message in enumerate(messages, 1):
        _check_message(message, f"{where}, message {number}")
    turns = messages[1:] if messages[0].role == "system" else messages
    first = len(messages) - len(turns) + 1  # the number of the first turn
    for index, message in enumerate(turns):
        place = f"{where}, message {first + index}"
        if message.role == "system":
            again = "is a second system message" if first == 2 else "is a system message, and not the first"
            raise DataError(f"{place} {again}: a conversation has at most one, in front of all others")
        if message.role != ("assistant" if index % 2 else "user"):
            raise DataError(f"{place} {_out_of_turn(message.role, index)}")


def _out_of_turn(role: Role, index: int) -> str:
    """What is wrong with the turn of a number, counted from 0, that has this role."""
    if index == 0:
        return "is of the assistant, and no user's comes before it: a conversation begins with the user"
    return (
        f"is the second of the {role} in a row: user and assistant take turns, so join the two or add what is missing"
    )


def _check_message(message: Message, place: str) -> None:
    if message.role not in ROLES:
        raise DataError(f"{place} has the role {message.role!r}: give {', '.join(ROLES[:-1])} or {ROLES[-1]}")
    check_content(message.content, place)


def check_content(content: str, place: str) -> None:
    """Raises DataError, beginning with `place`, for a text that is blank, or that no text file could hold."""
    if not content.strip():
        raise DataError(f"{place} is blank: write what is said, or leave it out")
    if "\0" in content:
        raise DataError(f"{place} has a NUL, which is not text: correct or delete it")
    try:
        content.encode()
    except UnicodeEncodeError:
        raise DataError(f"{place} has half of a surrogate pair, which is not text: correct or delete it") from None


def messages_to_json(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Messages as they are written to JSON: [{"role": …, "content": …}, …]."""
    return [{"role": message.role, "content": message.content} for message in messages]


def messages_from_json(value: Any, where: str) -> list[Message]:
    """The reverse of `messages_to_json`, for a conversation; see `parse_messages`.

    Raises DataError, beginning with `where`, if that is not a list of messages, or no conversation.
    """
    messages = parse_messages(value, where)
    check_conversation(messages, where)
    return messages


def parse_messages(value: Any, where: str, first: int = 1) -> list[Message]:
    """Messages in any order, contents in Unicode normal form C; other keys of a message are ignored.

    first: the number of the first one, for sentences. Raises DataError, beginning with `where`, if that is not a list
    of messages.
    """
    if not isinstance(value, list):
        raise DataError(f"{where} has {json_kind(value)} for its messages: give a list of them")
    return [_message_from_json(one, f"{where}, message {number}") for number, one in enumerate(value, first)]


def _message_from_json(value: Any, place: str) -> Message:
    if not isinstance(value, dict):
        raise DataError(f'{place} is {json_kind(value)}: give {{"role": "user", "content": "…"}}')
    for key in "role", "content":
        if key not in value:
            raise DataError(f"{place} has no {key}: a message has a role and a content")
        if not isinstance(value[key], str):
            raise DataError(f"{place} has {json_kind(value[key])} for its {key}: give text")
    return Message(value["role"], normal_form(value["content"]))


def json_kind(value: Any) -> str:
    """What a JSON value is, for a sentence."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    kinds = {dict: "an object", list: "a list", str: "text", int: "a number", float: "a number"}
    return kinds[type(value)]
