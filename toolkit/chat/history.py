"""The history of a conversation: which of it is sent (the latest exchanges that fit), shown id by id, and its files.

A file is a line of JSON, {"messages": [{"role": …, "content": …}, …]}, as fine-tuning reads it.
"""

import codecs
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from toolkit.data.conversations import check_conversation, messages_from_json, messages_to_json
from toolkit.decoding.config import ContinuationConfig
from toolkit.decoding.state import common_prefix
from toolkit.display import counted, short_repr
from toolkit.errors import DataError, LengthError
from toolkit.files import atomic_writer
from toolkit.tokenization import Tokenizer
from toolkit.tokenization.chat_template import ChatTemplate, Message, Role
from toolkit.tokenization.special import CONTROL_IDS
from toolkit.untrusted import VOCABULARY_BYTES, UnfitError, parse_json, read_bytes

# Room that is kept for a reply: a part of the context, and at most this number of tokens.
_RESERVED_PART, _MOST_RESERVED = 4, 64


class Turn(NamedTuple):
    """A message, and the ids that it was encoded as, or written as: it is never encoded again."""

    message: Message
    ids: list[int]  # of the whole message, with what the template puts around its content


class Exchange(NamedTuple):
    """A message of the user, and the reply."""

    user: Turn
    reply: Turn


@dataclass(frozen=True)
class Prompt:
    """The ids that are sent to a model before it replies, one by one, for a person to look at."""

    ids: list[int]  # BOS included
    pieces: list[str]  # how each id is shown
    roles: list[Role | None]  # whose message each belongs to; None for BOS
    text: str  # all of it, with control symbols as they are shown
    dropped: int  # how many of the oldest exchanges are left out
    cached: int  # how many of the first ids the model has read already

    __repr__ = short_repr


class Sent(NamedTuple):
    """The ids that are sent to a model before it replies, by turns."""

    begin: list[int]  # BOS, where the model knows it
    turns: list[Turn]  # the last one a user's
    generation_prompt: list[int]
    dropped: int  # how many of the oldest exchanges are left out

    @property
    def parts(self) -> Iterator[tuple[Role | None, list[int]]]:
        """All ids in order, by whose message they belong to; BOS is nobody's."""
        yield None, self.begin
        for turn in self.turns:
            yield turn.message.role, turn.ids
        yield "assistant", self.generation_prompt

    @property
    def ids(self) -> list[int]:
        """All ids, BOS included."""
        return [token for _, part in self.parts for token in part]

    def shown(self, tokenizer: Tokenizer, read: Sequence[int]) -> Prompt:
        """Show the ids to a person. read: the ids that the model has read last."""
        ids, roles = self.ids, [role for role, part in self.parts for _ in part]
        pieces = [tokenizer.piece(token) for token in ids]
        text = "".join(  # with control symbols: <|user|>Hello<|end|>
            "".join(map(tokenizer.piece, group)) if is_control else tokenizer.decode(list(group))
            for is_control, group in groupby(ids, CONTROL_IDS.__contains__)
        )
        return Prompt(ids, pieces, roles, text, self.dropped, common_prefix(read, ids[:-1]))


class History:
    """A system message, or none, and exchanges.

    context: how many ids the model reads at once, its reply among them.
    """

    def __init__(self, template: ChatTemplate, context: int):
        self._template, self._context = template, context
        self.system: Turn | None = None
        self.exchanges: list[Exchange] = []

    def __repr__(self) -> str:
        return f"<History: {counted(len(self.exchanges), 'exchange')}>"

    @property
    def messages(self) -> list[Message]:
        """All messages, sent or not."""
        spoken = [turn for exchange in self.exchanges for turn in exchange]
        return [turn.message for turn in ([self.system] if self.system else []) + spoken]

    def turn(self, message: Message) -> Turn:
        """Encode a message. Raises DataError where the tokenizer cannot read it."""
        try:
            return Turn(message, self._template.message(message))
        except DataError as error:
            name = "the system message" if message.role == "system" else "the message"
            raise DataError(f"{name} cannot be read: {error}") from error

    def sent(self, user: Turn, reserve: int, exchanges: Sequence[Exchange] | None = None) -> Sent:
        """Send a new message of the user with the latest exchanges that leave `reserve` ids for the reply.

        exchanges: those that came before; None for all.

        Raises LengthError where the message does not fit, even alone with the system message.
        """
        begin, generation_prompt = self._template.begin, self._template.generation_prompt
        first = [self.system] if self.system else []
        needed = len(begin) + sum(len(turn.ids) for turn in first) + len(generation_prompt) + reserve
        room = self._context - needed - len(user.ids)
        if room < 0:
            beside = max(room + len(user.ids), 0)
            if self.system and not beside:
                raise self._no_room(self.system)
            raise LengthError(
                f"the message has {len(user.ids)} tokens, and the model has room for {beside} beside its reply: "
                "shorten it"
            )
        exchanges = self.exchanges if exchanges is None else exchanges
        dropped = len(exchanges)
        while dropped and (room := room - sum(len(turn.ids) for turn in exchanges[dropped - 1])) >= 0:
            dropped -= 1
        kept = [turn for exchange in exchanges[dropped:] for turn in exchange]
        return Sent(begin, [*first, *kept, user], generation_prompt, dropped)

    def check_system(self, system: Turn | None, reserve: int) -> None:
        """Check that a system message leaves room for a message of one id, and a reply. Raises LengthError if not."""
        around = (*self._template.begin, *self._template.around("user", [0]), *self._template.generation_prompt)
        if system and len(around) + len(system.ids) + reserve > self._context:
            raise self._no_room(system)

    def _no_room(self, system: Turn) -> LengthError:
        return LengthError(
            f"the system message has {len(system.ids)} tokens, which leaves no room for a conversation in the "
            f"{self._context} that the model reads: shorten it"
        )


def reserved_tokens(context: int, config: ContinuationConfig) -> int:
    """Count the tokens that a prompt leaves for the reply, of a context of so many."""
    part = max(min(context // _RESERVED_PART, _MOST_RESERVED), 1)
    asked = config.max_new_tokens
    return max(part if asked is None else min(part, asked), config.shortest)


def write_conversation(path: str | os.PathLike[str], messages: Sequence[Message]) -> None:
    """Write a conversation, whole or not at all. Raises DataError where that fails, and for one without messages."""
    check_conversation(messages, "the conversation")
    line = json.dumps({"messages": messages_to_json(messages)}, ensure_ascii=False)
    with atomic_writer(path) as file:
        file.write(f"{line}\n".encode())


def read_conversation(path: str | os.PathLike[str]) -> list[Message]:
    """Read the conversation of a file. Raises DataError for a file that is missing or holds something else."""
    try:
        value = parse_json(read_bytes(path, VOCABULARY_BYTES).removeprefix(codecs.BOM_UTF8))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except UnfitError as error:
        raise DataError(
            f"{path} is damaged, or is not the JSON of one conversation: give a file that was saved"
        ) from error
    if not isinstance(value, dict) or "messages" not in value:
        raise DataError(f'{path} is no conversation: it must hold {{"messages": […]}}')
    return messages_from_json(value["messages"], str(path))
