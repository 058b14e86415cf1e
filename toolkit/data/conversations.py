"""Conversations to learn from, and questions to be asked, in files of the usual formats.

A conversation is an object (see `read_objects`) in one of these forms; what else the object holds is ignored:

    {"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}, …]}
    {"conversations": [{"from": "human", "value": "…"}, {"from": "gpt", "value": "…"}, …]}
    {"prompt": "…" or messages, "completion": "…" or messages}

A prompt that is text is one message of the user, and is not looked into: "User: …" within it is what the user said.
Every reply of a conversation is there to be learned, one within a prompt too.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from toolkit.data.objects import Item, json_kind, read_objects
from toolkit.errors import DataError
from toolkit.tokenization.chat_template import ROLES, Message
from toolkit.tokenization.normal_form import normal_form

_SHAREGPT_ROLES = {"human": "user", "gpt": "assistant"}  # others go by their usual names


class Conversation(NamedTuple):
    """A conversation that ends with a reply, and where it stands: "my.jsonl, line 3"."""

    messages: list[Message]
    place: str


class Question(NamedTuple):
    """A question to a model, the last message being the user's; its kind; the replies that are right, in their core."""

    prompt: tuple[Message, ...]
    kind: str
    accept: tuple[str, ...]
    place: str
    contains: tuple[str, ...] = ()  # what the whole reply has to have in it besides
    most_letters: int | None = None  # of the whole reply


def read_conversations(path: Path) -> Iterator[Conversation]:
    """Read the conversations of a file, from the disk as they are asked for; contents in Unicode normal form C.

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
    """Read the objects {"messages": [… of the user], "kind": "…", "accept": ["…", …]} of a file; in normal form C.

    Two more fields are for what was asked of every reply: "contains" has texts that must be in it, such as a name,
    "most_letters" is the length that it may have.

    Raises DataError, naming file and line, for what `read_objects` and `check_conversation` refuse, for a last message
    that is not the user's and for no right reply.
    """
    for fields, place in read_objects(path):
        prompt = parse_prompt(required(fields, "messages", place), place)
        accept = required(fields, "accept", place)
        if not accept or not _are_texts(accept):
            raise DataError(f"{place}: accept is not a list of replies that count as right: give one or more texts")
        contains, most = fields.get("contains", []), fields.get("most_letters")
        if not _are_texts(contains):
            raise DataError(f"{place}: contains is not a list of texts that the reply has in it")
        if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
            raise DataError(f"{place}: most_letters is {most!r:.40}: give a whole number of letters, or leave it out")
        kind, texts = text_field(fields, "kind", place), (tuple(map(normal_form, each)) for each in (accept, contains))
        yield Question(tuple(prompt), kind, next(texts), place, next(texts), most)


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(one, str) and one.strip() for one in values)


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
    """Read a prompt from JSON: text, which is a message of the user, or a conversation that ends with one.

    Raises DataError, beginning with `where`.
    """
    messages = messages_from_json([{"role": "user", "content": value}] if isinstance(value, str) else value, where)
    if messages[-1].role != "user":
        raise DataError(f"{where} ends with a message of the {messages[-1].role}: a prompt ends with one of the user")
    return messages


def parse_reply(value: Any, where: str, first: int) -> list[Message]:
    """Read what follows a prompt from JSON: text, which is a reply, or messages; `first`: the number of the first one.

    Raises DataError, beginning with `where`, for anything else; the order of the messages is not looked at.
    """
    return parse_messages([{"role": "assistant", "content": value}] if isinstance(value, str) else value, where, first)


def required(fields: dict[str, Any], name: str, place: str) -> Any:
    """Return a field. Raises DataError where there is none."""
    if name not in fields:
        raise DataError(f"{place} has no {name}, only {listed_fields(fields)}: write it, or delete the object")
    return fields[name]


def text_field(fields: dict[str, Any], name: str, place: str) -> str:
    """Return a field that is text, empty where there is none. Raises DataError for another type."""
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise DataError(f"{place}: {name} is {json_kind(value)}: give text")
    return value


def listed_fields(fields: dict[str, Any]) -> str:
    """List the names of fields, for a sentence."""
    return ", ".join(list(fields)[:8]) or "nothing"


def _usual_names(message: Any) -> Any:
    """Give a message of ShareGPT's form the usual names; any other stays as it is."""
    if not isinstance(message, dict) or "from" not in message or "role" in message:
        return message
    role = message["from"]
    named = {"role": _SHAREGPT_ROLES.get(role, role) if isinstance(role, str) else role}
    return message | named | ({"content": message["value"]} if "value" in message else {})


def _refuse_weights(messages: Any, place: str) -> None:
    """Raise DataError for a reply that is marked as not to be learned from: it would be learned all the same."""
    for number, message in enumerate(messages if isinstance(messages, list) else (), 1):
        if isinstance(message, dict) and message.get("role") == "assistant":
            for name in "weight", "train":
                if message.get(name) not in (None, 1):
                    raise DataError(
                        f"{place}, message {number} has {name} {message[name]}: every reply is learned alike, "
                        f"so leave out {name}, or end the conversation before"
                    )


# Messages


def check_conversation(messages: Sequence[Message], where: str) -> None:
    """Check a conversation: at most one system message, in front, then user and assistant in turns, the user first.

    It may end with either of them, or have no more than its system message. where: its name, with which sentences
    begin, such as "chat.jsonl, line 3".

    Raises DataError for an order that is another one, for no messages, and for a message whose role is unknown or whose
    content is blank or no text.
    """
    if not messages:
        raise DataError(f"{where} has no messages: a conversation begins with one of role user")
    for number, message in enumerate(messages, 1):
        place = f"{where}, message {number}"
        if message.role not in ROLES:
            raise DataError(f"{place} has the role {message.role!r}: give {', '.join(ROLES[:-1])} or {ROLES[-1]}")
        check_content(message.content, place)
    system = int(messages[0].role == "system")
    for index, message in enumerate(messages[system:]):
        place, role = f"{where}, message {system + index + 1}", message.role
        if role == "system":
            again = "is a second system message" if system else "is a system message, and not the first"
            raise DataError(f"{place} {again}: a conversation has at most one, in front of all others")
        if role == ("user" if index % 2 else "assistant"):
            raise DataError(
                f"{place} is the second of the {role} in a row: user and assistant take turns, so join the two or add "
                "what is missing"
                if index
                else f"{place} is of the assistant, and no user's comes before it: a conversation begins with the user"
            )


def check_content(content: str, place: str) -> None:
    """Raise DataError, beginning with `place`, for a text that is blank, or that no text file could hold."""
    if not content.strip():
        raise DataError(f"{place} is blank: write what is said, or leave it out")
    if "\0" in content:
        raise DataError(f"{place} has a NUL, which is not text: correct or delete it")
    try:
        content.encode()
    except UnicodeEncodeError:
        raise DataError(f"{place} has half of a surrogate pair, which is not text: correct or delete it") from None


def messages_to_json(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Write messages as JSON: [{"role": …, "content": …}, …]."""
    return [{"role": message.role, "content": message.content} for message in messages]


def messages_from_json(value: Any, where: str) -> list[Message]:
    """Read a conversation from what `messages_to_json` gives; see `parse_messages`.

    Raises DataError, beginning with `where`, if that is not a list of messages, or no conversation.
    """
    messages = parse_messages(value, where)
    check_conversation(messages, where)
    return messages


def parse_messages(value: Any, where: str, first: int = 1) -> list[Message]:
    """Read messages in any order, contents in Unicode normal form C; other keys of a message are ignored.

    first: the number of the first one, for sentences. Raises DataError, beginning with `where`, if that is not a list
    of messages.
    """
    if not isinstance(value, list):
        raise DataError(f"{where} has {json_kind(value)} for its messages: give a list of them")
    for number, message in enumerate(value, first):
        place = f"{where}, message {number}"
        if not isinstance(message, dict):
            raise DataError(f'{place} is {json_kind(message)}: give {{"role": "user", "content": "…"}}')
        for key in "role", "content":
            if key not in message:
                raise DataError(f"{place} has no {key}: a message has a role and a content")
            if not isinstance(message[key], str):
                raise DataError(f"{place} has {json_kind(message[key])} for its {key}: give text")
    return [Message(message["role"], normal_form(message["content"])) for message in value]
