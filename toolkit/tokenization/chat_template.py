r"""Chat templates: the messages of a conversation as ids, between control symbols or in lines that begin with a role.

    control    <s> <|user|> Hello <|end|> <|assistant|> Hi! <|end|>
    plain      <s> User: Hello ⏎ Assistant: Hi! </s> ⏎

Every message is encoded by itself, in training as in a chat, so that a history of ids is what the model has read. A
content is written with a space in front, so that its first word has the tokens that it has everywhere else: a model
learns to repeat a name by copying its tokens.

In the plain form, no line of a content can be taken for the beginning of the next message: a line that begins with a
role's name and a colon gets a backslash in front, and one that begins so after backslashes gets one more, which makes
it reversible. A line is whatever a reader may see as one: it begins after any of the breaks that Unicode has.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from toolkit.display import short_repr
from toolkit.errors import ConfigError, DataError
from toolkit.tokenization.normal_form import normal_form
from toolkit.tokenization.special import ASSISTANT, BOS, CONTROL_IDS, END, EOS, SYSTEM, USER
from toolkit.tokenization.tokenizer import Tokenizer

Role = Literal["system", "user", "assistant"]
ROLES: tuple[Role, ...] = get_args(Role)
TemplateName = Literal["control", "plain"]

NAMES: dict[Role, str] = {"system": "System", "user": "User", "assistant": "Assistant"}
_MARKS = tuple(f"{name}:" for name in NAMES.values())

# Special tokens by their ids, and text, that stand before and after the contents of each role. What is after a reply
# begins with the id that ends it.
Parts = Sequence[int | str]
AROUND: dict[TemplateName, dict[Role, tuple[Parts, Parts]]] = {
    "control": {"system": ([SYSTEM], [END]), "user": ([USER], [END]), "assistant": ([ASSISTANT], [END])},
    "plain": {role: ([f"{name}:"], [EOS, "\n"] if role == "assistant" else ["\n"]) for role, name in NAMES.items()},
}

_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # those of str.splitlines
_BEGINS = rf"(?<![^{_BREAKS}])"  # of a line, the first one as well
_MARKED = rf"(?=\\*(?:{'|'.join(_MARKS)}))"
_TO_ESCAPE = re.compile(_BEGINS + _MARKED)
_ESCAPED = re.compile(rf"{_BEGINS}\\{_MARKED}")


@dataclass(frozen=True)
class Message:
    """One side's contribution to a conversation. A system message says how the assistant is to answer."""

    role: Role
    content: str

    __repr__ = short_repr


class Encoded(NamedTuple):
    """A conversation as ids, and which of them a model is taught to write: one flag for each id."""

    ids: list[int]
    supervised: list[bool]

    __repr__ = short_repr


class ChatTemplate:
    """The ids around the contents of messages.

    The generation prompt makes a model reply, and the first id after the content of its reply, `end`, ends its turn.
    Supervised is exactly what a model writes: the contents of replies, each with its `end`.

    Control symbols stand where no text that a user types can yield one. In the plain form each message is a paragraph
    that begins with its role, and contents are escaped: no line of them begins with a role.
    """

    __repr__ = short_repr

    def __init__(self, name: TemplateName, tokenizer: Tokenizer, begin: bool):
        """Encode what stands around contents. begin: whether conversations begin with BOS."""
        self.name, self.tokenizer, self.begin = name, tokenizer, [BOS] if begin else []
        self._before = {role: self._ids(before) for role, (before, _) in AROUND[name].items()}
        self._after = {role: self._ids(after) for role, (_, after) in AROUND[name].items()}
        self.generation_prompt = self._before["assistant"]  # makes a model reply
        self.end = self._after["assistant"][0]  # ends its turn
        # What ends a reply of a model that does not know `end`:
        self.stop_strings = tuple(f"\n{mark}" for mark in _MARKS) if name == "plain" else ()

    def _ids(self, parts: Parts) -> list[int]:
        return [token for each in parts for token in ([each] if isinstance(each, int) else self.tokenizer.encode(each))]

    @property
    def special_ids(self) -> list[int]:
        """The special ids of the template, BOS aside: a model must be able to read and write them."""
        parts = (*self._before.values(), *self._after.values())
        return sorted({token for part in parts for token in part if token in CONTROL_IDS})

    def message(self, message: Message) -> list[int]:
        """Encode a whole message. Raises DataError for a content that the tokenizer cannot read."""
        return self.around(message.role, self.content(message.content))

    def around(self, role: Role, content: Sequence[int]) -> list[int]:
        """Put the ids of a message around a content that is encoded already."""
        return [*self._before[role], *content, *self._after[role]]

    def content(self, text: str) -> list[int]:
        """Encode a content. Raises DataError as `message`."""
        return self.tokenizer.encode(self.written(text))

    def encode(self, messages: Iterable[Message]) -> Encoded:
        """Encode a conversation, which `check_conversation` finds to be one. Raises DataError as `message`."""
        return self.encode_many([list(messages)])[0]

    def encode_many(self, conversations: Sequence[Sequence[Message]]) -> list[Encoded]:
        """Encode several conversations in one call of the tokenizer."""
        texts = (self.written(message.content) for messages in conversations for message in messages)
        contents = iter(self.tokenizer.encode_batch(texts))
        return [self._encoded(messages, contents) for messages in conversations]

    def _encoded(self, messages: Sequence[Message], contents: Iterable[list[int]]) -> Encoded:
        ids = list(self.begin)
        supervised = [False] * len(ids)
        for message, content in zip(messages, contents, strict=False):
            before, after = self._before[message.role], self._after[message.role]
            ids += [*before, *content, *after]
            written = len(content) + 1 if message.role == "assistant" else 0  # by the model: the content and `end`
            supervised += [False] * len(before) + [True] * written
            supervised += [False] * (len(ids) - len(supervised))
        return Encoded(ids, supervised)

    def prompt(self, conversation: Sequence[Message]) -> list[int]:
        """Encode a conversation and the generation prompt. Raises DataError where no user speaks last."""
        if not conversation or conversation[-1].role != "user":
            raise DataError("a reply is wanted to a conversation that does not end with the user")
        return self.encode(conversation).ids + self.generation_prompt

    def written(self, text: str) -> str:
        """Write a content as it is encoded."""
        return f" {escape(normal_form(text))}" if self.name == "plain" else f" {text}"

    def reader(self) -> "ReplyReader":
        """Make a reader of one reply."""
        return ReplyReader(escaped=self.name == "plain")


def make_template(name: str, tokenizer: Tokenizer, begin: bool) -> ChatTemplate:
    """Make the template with this name. begin: whether conversations begin with BOS, as the model's texts do.

    Raises ConfigError for a name that does not exist, and where the tokenizer cannot read what a template writes.
    """
    if name not in AROUND:
        raise ConfigError(f"template is {name!r}: it must be one of {', '.join(get_args(TemplateName))}")
    try:
        tokenizer.encode(" ")
        return ChatTemplate(name, tokenizer, begin)
    except DataError as error:
        raise ConfigError(f"the template {name} does not suit the model's tokenizer: {error}") from error


class ReplyReader:
    """Takes away the space in front of a reply, and what `escape` has put into it.

    All that `push` gives of what a model writes, and then `flush`, is the content of its reply.
    """

    def __init__(self, escaped: bool):
        self._escaped, self._begun = escaped, False
        self._held = ""  # the beginning of a line that may turn out to be escaped
        self._before = "\n"  # stands for what is in front of it: a break, or anything else

    def push(self, part: str) -> str:
        """Take the next part; return what is certain now."""
        if part and not self._begun:
            part, self._begun = part.removeprefix(" "), True
        if not self._escaped:
            return part
        text = self._held + part
        begin = max(map((self._before + text).rfind, _BREAKS))  # of the last line
        if begin < 0 or not _may_be_escaped(text[begin:]):
            begin = len(text)
        return self._release(text[:begin], text[begin:])

    def flush(self) -> str:
        """End the reply: return the rest."""
        return self._release(self._held, "")

    def whole(self, text: str) -> str:
        """Read a reply that is there already."""
        return self.push(text) + self.flush()

    def _release(self, text: str, held: str) -> str:
        released = unescape(self._before + text)[1:]
        if text:
            self._before = "\n" if text[-1] in _BREAKS else " "
        self._held = held
        return released


def escape(text: str) -> str:
    r"""Put one more backslash into every line that begins with backslashes, if any, and a role: \User: …"""
    return _TO_ESCAPE.sub(r"\\", text)


def unescape(text: str) -> str:
    """Return the text that `escape` was given."""
    return _ESCAPED.sub("", text)


def _may_be_escaped(line: str) -> bool:
    """Recognise the beginning of a line that is escaped, up to a part of its mark."""
    rest = line.lstrip("\\")
    return line.startswith("\\") and any(mark != rest and mark.startswith(rest) for mark in _MARKS)
