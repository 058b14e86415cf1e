"""What was said, and what of it is sent: all of it as long as it fits, then without the oldest exchanges."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from toolkit.chat.template import Template
from toolkit.data.messages import Message, Role
from toolkit.errors import DataError


class Turn(NamedTuple):
    """A message, and the ids that it was encoded as, or written as: it is never encoded again."""

    message: Message
    ids: list[int]  # of the whole message, with what is written around its content


class Exchange(NamedTuple):
    """What a user says, and the reply."""

    user: Turn
    reply: Turn


class Sent(NamedTuple):
    """What a model is told before it replies."""

    begin: list[int]  # the begin mark, where the model knows one
    turns: list[Turn]  # the last one a user's
    opener: list[int]  # what makes the model reply
    dropped: int  # how many of the oldest exchanges are left out

    @property
    def parts(self) -> Iterator[tuple[Role | None, list[int]]]:
        """All ids in order, by whose message they belong to; the begin mark is nobody's."""
        yield None, self.begin
        for turn in self.turns:
            yield turn.message.role, turn.ids
        yield "assistant", self.opener

    @property
    def ids(self) -> list[int]:
        """All ids, the begin mark included."""
        return [token for _, part in self.parts for token in part]


class History:
    """A system message, or none, and exchanges.

    context: how many ids the model reads at once, its reply among them.
    """

    def __init__(self, template: Template, context: int):
        self._template, self._context = template, context
        self.system: Turn | None = None
        self.exchanges: list[Exchange] = []

    @property
    def messages(self) -> list[Message]:
        """All messages, sent or not."""
        spoken = [turn for exchange in self.exchanges for turn in exchange]
        return [turn.message for turn in ([self.system] if self.system else []) + spoken]

    def turn(self, message: Message) -> Turn:
        """A message with its ids.  Raises DataError where the tokenizer cannot read it."""
        try:
            return Turn(message, self._template.message(message))
        except DataError as error:
            name = "the system message" if message.role == "system" else "the message"
            raise DataError(f"{name} cannot be read: {error}") from error

    def sent(self, user: Turn, reserve: int, exchanges: Sequence[Exchange] | None = None) -> Sent:
        """What is sent with a new message of the user: the latest exchanges that leave `reserve` ids for the reply.

        exchanges: those that came before; None for all.

        Raises DataError where the message does not fit, even alone with the system message.
        """
        begin, opener = self._template.begin, self._template.reply_opener()
        first = [self.system] if self.system else []
        needed = len(begin) + sum(len(turn.ids) for turn in first) + len(opener) + reserve
        room = self._context - needed - len(user.ids)
        if room < 0:
            raise self._too_long(user, room + len(user.ids))
        exchanges = self.exchanges if exchanges is None else exchanges
        kept: list[Turn] = []
        dropped = len(exchanges)
        for exchange in reversed(exchanges):
            room -= len(exchange.user.ids) + len(exchange.reply.ids)
            if room < 0:
                break
            kept[:0] = exchange
            dropped -= 1
        return Sent(begin, [*first, *kept, user], opener, dropped)

    def check_system(self, system: Turn | None, reserve: int) -> None:
        """Raises DataError for a system message that leaves no room for a message of one id, and a reply."""
        around = (*self._template.begin, *self._template.around("user", [0]), *self._template.reply_opener())
        if system and len(around) + len(system.ids) + reserve > self._context:
            raise self._no_room(system)

    def _too_long(self, user: Turn, room: int) -> DataError:
        if room <= 0 and self.system:
            return self._no_room(self.system)
        return DataError(
            f"the message has {len(user.ids)} tokens, and the model has room for {max(room, 0)} beside its reply: "
            "shorten it"
        )

    def _no_room(self, system: Turn) -> DataError:
        return DataError(
            f"the system message has {len(system.ids)} tokens, which leaves no room for a conversation in the "
            f"{self._context} that the model reads: shorten it"
        )
