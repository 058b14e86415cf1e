"""How a conversation becomes ids: control symbols that no text can contain, or lines that begin with a role's name.

    control    <s> <|user|> Hello <|end|> <|assistant|> Hi! <|end|>
    plain      <s> User: Hello ⏎ Assistant: Hi! </s> ⏎

Every message is encoded by itself, in training as in a chat, so that a history of ids is what the model has read. A
content is written with a space in front, so that its first word has the tokens that it has everywhere else: a model
learns to repeat a name by copying its tokens.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, get_args

from toolkit.chat.escaping import NAMES, Unescaping, escape
from toolkit.chat.reading import Reading
from toolkit.data.messages import ROLES, Message, Role
from toolkit.errors import ConfigError, DataError
from toolkit.tokenization import Tokenizer
from toolkit.tokenization.normal_form import normal_form
from toolkit.tokenization.special import ASSISTANT, BOS, CONTROL_IDS, END, EOS, SYSTEM, USER

TemplateName = Literal["control", "plain"]


class Encoded(NamedTuple):
    """A conversation as ids, and which of them a model is taught to write: one flag for each id."""

    ids: list[int]
    supervised: list[bool]


class Template(ABC):
    """What is written around the contents of messages; subclasses say what.

    A reply is opened by `reply_opener`, and its content ends with the end marker, the id `end`, which is the first of
    `reply_closer`. Supervised is exactly what a model writes: the contents of replies, each with its end marker.
    """

    name: TemplateName
    end: int  # the id of the end marker
    stop_strings: tuple[str, ...] = ()  # what ends a reply of a model that does not know the end marker

    def __init__(self, tokenizer: Tokenizer, begin: bool):
        """begin: whether conversations begin with <s>."""
        self.tokenizer, self.begin = tokenizer, [BOS] if begin else []
        self._openers = {role: self._opener(role) for role in ROLES}
        self._closers = {role: self._closer(role) for role in ROLES}

    @property
    def marks(self) -> list[int]:
        """The special ids that it writes, the begin mark aside: a model must be able to read and write them."""
        parts = (*self._openers.values(), *self._closers.values())
        return sorted({token for part in parts for token in part if token in CONTROL_IDS})

    def message(self, message: Message) -> list[int]:
        """The ids of a whole message.  Raises DataError for a content that the tokenizer cannot read."""
        return self.around(message.role, self.content(message.content))

    def around(self, role: Role, content: Sequence[int]) -> list[int]:
        """The ids of a message whose content is there as ids."""
        return [*self._openers[role], *content, *self._closers[role]]

    def content(self, text: str) -> list[int]:
        """The ids of a content.  Raises DataError as `message`."""
        return self.tokenizer.encode(self.written(text))

    def reply_opener(self) -> list[int]:
        """The ids that make a model reply."""
        return list(self._openers["assistant"])

    def reply_closer(self) -> list[int]:
        """The ids after the content of a reply: its end marker, and what follows that."""
        return list(self._closers["assistant"])

    def encode(self, messages: Iterable[Message]) -> Encoded:
        """The ids of a conversation, which `check_conversation` finds to be one.  Raises DataError as `message`."""
        return self.encode_many([list(messages)])[0]

    def encode_many(self, conversations: Sequence[Sequence[Message]]) -> list[Encoded]:
        """As `encode` of each, in one call of the tokenizer."""
        texts = (self.written(message.content) for messages in conversations for message in messages)
        contents = iter(self.tokenizer.encode_batch(texts))
        return [self._encoded(messages, contents) for messages in conversations]

    def _encoded(self, messages: Sequence[Message], contents: Iterable[list[int]]) -> Encoded:
        ids = list(self.begin)
        supervised = [False] * len(ids)
        for message, content in zip(messages, contents, strict=False):
            opener, closer = self._openers[message.role], self._closers[message.role]
            is_reply = message.role == "assistant"
            ids += opener
            ids += content
            ids += closer
            supervised += [False] * len(opener) + [is_reply] * len(content)
            supervised += [is_reply and index == 0 for index in range(len(closer))]
        return Encoded(ids, supervised)

    @abstractmethod
    def _opener(self, role: Role) -> list[int]:
        """The ids in front of a content."""

    @abstractmethod
    def _closer(self, role: Role) -> list[int]:
        """The ids after a content; those of a reply begin with the end marker."""

    def written(self, text: str) -> str:
        """A content as it is written."""
        return f" {text}"

    def reading(self) -> Reading:
        """What makes a content of what a model writes."""
        return Reading()


class ControlTemplate(Template):
    """Each message between the control symbol of its role and <|end|>. No text that a user types yields one of them."""

    name, end = "control", END
    _symbols: dict[Role, int] = {"system": SYSTEM, "user": USER, "assistant": ASSISTANT}  # noqa: RUF012  (a constant)

    def _opener(self, role: Role) -> list[int]:
        return [self._symbols[role]]

    def _closer(self, role: Role) -> list[int]:
        return [END]


class PlainTemplate(Template):
    """Each message a paragraph that begins with its role; a reply ends with </s>, and every message with a line feed.

    Contents are escaped (see `escaping`): no line of them begins with a role.
    """

    name, end = "plain", EOS
    stop_strings = tuple(f"\n{name}:" for name in NAMES.values())

    def _opener(self, role: Role) -> list[int]:
        return self.tokenizer.encode(f"{NAMES[role]}:")

    def _closer(self, role: Role) -> list[int]:
        line_feed = self.tokenizer.encode("\n")
        return [EOS, *line_feed] if role == "assistant" else line_feed

    def written(self, text: str) -> str:
        return f" {escape(normal_form(text))}"

    def reading(self) -> Reading:
        return Reading(Unescaping())


_TEMPLATES = {"control": ControlTemplate, "plain": PlainTemplate}


def make_template(name: str, tokenizer: Tokenizer, begin: bool) -> Template:
    """The template with this name.  begin: whether conversations begin with <s>, as the model's texts do.

    Raises ConfigError for a name that does not exist, and where the tokenizer cannot read what a template writes.
    """
    if name not in _TEMPLATES:
        raise ConfigError(f"template is {name!r}: it must be one of {', '.join(get_args(TemplateName))}")
    try:
        tokenizer.encode(" ")
        return _TEMPLATES[name](tokenizer, begin)
    except DataError as error:
        raise ConfigError(f"the template {name} does not suit the model's tokenizer: {error}") from error
