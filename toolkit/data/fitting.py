"""Conversations as ids, shortened where a model could not read all of one."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from toolkit.data.conversations import Conversation
from toolkit.data.messages import Message
from toolkit.errors import DataError
from toolkit.tokenization import Tokenizer

Encoded = tuple[Sequence[int], Sequence[bool]]  # ids, and of each whether it is learned: part of a reply, or its end


class Template(Protocol):
    """How conversations are written as ids: each message by itself, one after the other."""

    name: str
    tokenizer: Tokenizer

    def encode(self, messages: Sequence[Message]) -> Encoded: ...

    def encode_many(self, conversations: Sequence[Sequence[Message]]) -> Sequence[Encoded]: ...


class Fitted(NamedTuple):
    """A conversation up to its last id that is learned; `dropped`: how many exchanges are not in it."""

    ids: Sequence[int]
    supervised: Sequence[bool]
    dropped: int


def fitted(conversations: Sequence[Conversation], template: Template, most: int) -> list[Fitted | None]:
    """Conversations as ids, at most `most` of each.

    Of a longer conversation the oldest exchanges are dropped, as few of them as possible, and the system message is
    kept; None stands for one whose last exchange alone is too long.

    Raises DataError, naming the place, for what the tokenizer cannot read.
    """
    whole = [_trimmed(one) for one in _encode(conversations, template)]
    return [
        Fitted(*encoded, 0) if len(encoded[0]) <= most else _shortened(messages, template, most)
        for (messages, _), encoded in zip(conversations, whole, strict=True)
    ]


def _encode(conversations: Sequence[Conversation], template: Template) -> Sequence[Encoded]:
    try:
        return template.encode_many([messages for messages, _ in conversations])
    except DataError:  # one by one, to say which
        for messages, place in conversations:
            try:
                template.encode(messages)
            except DataError as error:
                raise DataError(f"{place}: {error}") from error
        raise


def _shortened(messages: Sequence[Message], template: Template, most: int) -> Fitted | None:
    system = int(messages[0].role == "system")
    exchanges = (len(messages) - system) // 2

    def without(dropped: int) -> Encoded:
        return _trimmed(template.encode([*messages[:system], *messages[system + 2 * dropped :]]))

    dropped = 1 + bisect_left(range(1, exchanges), True, key=lambda number: len(without(number)[0]) <= most)
    return Fitted(*without(dropped), dropped) if dropped < exchanges else None


def _trimmed(encoded: Encoded) -> Encoded:
    ids, supervised = encoded
    end = len(supervised) - supervised[::-1].index(True)
    return ids[:end], supervised[:end]
