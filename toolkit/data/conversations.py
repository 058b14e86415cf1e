"""Conversations to learn from, and questions to be asked, in files of the usual formats.

A conversation is an object (see `read_objects`) in one of these forms; what else the object holds is ignored:

    {"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}, …]}
    {"conversations": [{"from": "human", "value": "…"}, {"from": "gpt", "value": "…"}, …]}
    {"prompt": "…" or messages, "completion": "…" or messages}

A prompt that is text is one message of the user, and is not looked into: "User: …" within it is what the user said.
Every reply of a conversation is there to be learned, one within a prompt too.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from toolkit.data.messages import Message, check_conversation, json_kind, messages_from_json, parse_messages
from toolkit.data.objects import Item, read_objects
from toolkit.errors import DataError
from toolkit.tokenization.normal_form import normal_form

_SHAREGPT_ROLES = {"human": "user", "gpt": "assistant"}  # others go by their usual names


class Conversation(NamedTuple):
    """A conversation that ends with a reply, and where it stands: "my.jsonl, line 3"."""

    messages: list[Message]
    place: str


class Question(NamedTuple):
    """What a model is asked, the last message being the user's; its kind; the replies that are right, in their core."""

    prompt: tuple[Message, ...]
    kind: str
    accept: tuple[str, ...]
    place: str


def read_conversations(path: Path) -> Iterator[Conversation]:
    """The conversations of a file, read from the disk as they are asked for; contents in Unicode normal form C.

    Raises DataError, naming file, line and message, for what `read_objects` and `check_conversation` refuse, for
    another form, for a conversation that does not end with a reply, and for replies that are marked as not to be
    learned from ("weight": 0, "train": false).
    """
    for item in read_objects(path):
        messages = _messages(item)
        if messages[-1].role != "assistant":
            raise DataError(
                f"{item.place} ends with a message of the {messages[-1].role}: "
                "only replies are learned, so add the reply, or delete the message"
            )
        yield Conversation(messages, item.place)


def read_tests(path: Path) -> Iterator[Question]:
    """The objects {"messages": [… of the user], "kind": "…", "accept": ["…", …]} of a file; contents in normal form C.

    Raises DataError, naming file and line, for what `read_objects` and `check_conversation` refuse, for a last message
    that is not the user's and for no right reply.
    """
    for fields, place in read_objects(path):
        prompt = parse_prompt(required(fields, "messages", place), place)
        accept = required(fields, "accept", place)
        if (
            not isinstance(accept, list)
            or not accept
            or not all(isinstance(one, str) and one.strip() for one in accept)
        ):
            raise DataError(f"{place}: accept is not a list of replies that count as right: give one or more texts")
        kind = text_field(fields, "kind", place)
        yield Question(tuple(prompt), kind, tuple(map(normal_form, accept)), place)


def _messages(item: Item) -> list[Message]:
    fields, place = item
    for name in "messages", "conversations":
        if name in fields:
            value = fields[name]
            if isinstance(value, list):
                value = [_usual_names(one) for one in value]
            _refuse_weights(value, place)
            return messages_from_json(value, place)
    if "prompt" in fields and "completion" in fields:
        prompt = parse_prompt(fields["prompt"], f"{place}, prompt")
        for name in "prompt", "completion":
            _refuse_weights(fields[name], f"{place}, {name}")
        messages = prompt + parse_reply(fields["completion"], place, len(prompt) + 1)
        check_conversation(messages, place)
        return messages
    raise DataError(
        f"{place} has no conversation, only {listed_fields(fields)}: give messages, or prompt and completion"
    )


def parse_prompt(value: Any, where: str) -> list[Message]:
    """A prompt in JSON: text, which is a message of the user, or a conversation that ends with one.

    Raises DataError, beginning with `where`.
    """
    messages = messages_from_json([_said("user", value)] if isinstance(value, str) else value, where)
    if messages[-1].role != "user":
        raise DataError(f"{where} ends with a message of the {messages[-1].role}: a prompt ends with one of the user")
    return messages


def parse_reply(value: Any, where: str, first: int) -> list[Message]:
    """What follows a prompt, in JSON: text, which is a reply, or messages, of which `first` is the number of the first.

    Raises DataError, beginning with `where`, for anything else; the order of the messages is not looked at.
    """
    return parse_messages([_said("assistant", value)] if isinstance(value, str) else value, where, first)


def required(fields: dict[str, Any], name: str, place: str) -> Any:
    """A field. Raises DataError where there is none."""
    if name not in fields:
        raise DataError(f"{place} has no {name}, only {listed_fields(fields)}: write it, or delete the object")
    return fields[name]


def text_field(fields: dict[str, Any], name: str, place: str) -> str:
    """A field that is text, empty where there is none. Raises DataError for another type."""
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise DataError(f"{place}: {name} is {json_kind(value)}: give text")
    return value


def listed_fields(fields: dict[str, Any]) -> str:
    """The names of fields, for a sentence."""
    return ", ".join(list(fields)[:8]) or "nothing"


def _said(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _usual_names(message: Any) -> Any:
    """A message of ShareGPT's form with the usual names; any other as it is."""
    if not isinstance(message, dict) or "from" not in message or "role" in message:
        return message
    role = message["from"]
    named = {"role": _SHAREGPT_ROLES.get(role, role) if isinstance(role, str) else role}
    return message | named | ({"content": message["value"]} if "value" in message else {})


def _refuse_weights(messages: Any, place: str) -> None:
    """Whoever marks a reply as not to be learned from would not like to see it learned all the same."""
    for number, message in enumerate(messages if isinstance(messages, list) else (), 1):
        if isinstance(message, dict) and message.get("role") == "assistant":
            for name in "weight", "train":
                if message.get(name) not in (None, 1):
                    raise DataError(
                        f"{place}, message {number} has {name} {message[name]}: every reply is learned alike, "
                        f"so leave out {name}, or end the conversation before"
                    )
