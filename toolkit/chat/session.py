"""A conversation with a language model, which remembers it only because it is sent all of it again."""

import os
import weakref
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from toolkit.chat.files import read_conversation, write_conversation
from toolkit.chat.history import Exchange, History, Sent, Turn
from toolkit.chat.prompt import Prompt, shown
from toolkit.chat.template import make_template
from toolkit.chat.writing import Writing
from toolkit.data.messages import Message, check_content
from toolkit.decoding import ContinuationConfig, PrefixCache
from toolkit.errors import ConfigError, DataError, ModelError
from toolkit.language_model import LanguageModel
from toolkit.text_model import check_length
from toolkit.tokenization import StopStrings
from toolkit.tokenization.normal_form import check_text, normal_form
from toolkit.tokenization.surface import REPLACEMENT

# Room that is kept for a reply: a part of the context, and no more than so many tokens.
_RESERVED_PART, _MOST_RESERVED = 4, 64


@dataclass(frozen=True)
class Reply:
    """What the model answered."""

    text: str
    finish_reason: Literal["stop", "length", "interrupted"]  # it ended by itself, at the limit, or was cut off
    dropped: int  # how many of the oldest exchanges it was not told, because the context is full
    prompt_tokens: int  # what it was told, begin mark and opened reply included
    cached_tokens: int  # how many of them it did not have to read again
    new_tokens: int  # what it wrote, without the end marker
    log_prob: float | None  # of what it wrote, end marker included; None where it was cut off, also by a stop string


class ChatSession:
    """A conversation: messages go to the model with everything that was said before.

    Where that is more than the model reads at once, the oldest exchanges are left out; the system message and the
    newest message of the user are always sent. What the model has read of the conversation is not read again.

    An exchange in which the model said nothing at all is not kept.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        system: str = "",
        template: str | None = None,
        config: ContinuationConfig | None = None,
        stop_strings: Sequence[str] = (),
        bad_words: Sequence[str] = (),
    ):
        """system: says how the assistant is to answer; empty for none. template: "control", "plain", or None for the
        one that the model was taught. config: None for greedy search. stop_strings: a reply ends in front of the first
        of them. bad_words: not written.

        Raises ModelError where the model was taught no template and none is given, ConfigError for a setting that does
        not fit, DataError for a system message that is no text, has characters that the model does not know, or is too
        long.
        """
        settings = model.model.config
        if template is None and settings.template == "none":
            raise ModelError(
                "this model was not taught to converse: give one that was (toolkit chat), or a template (plain)"
            )
        self.model, self.config = model, config or ContinuationConfig(do_sample=False)
        _check(self.config, settings.max_length)
        StopStrings(stop_strings)
        self.template = make_template(template or settings.template, model.tokenizer, settings.begin)
        self._stops = (*stop_strings, *self.template.stop_strings)
        self._bad_words = tuple(bad_words)
        self._history = History(self.template, settings.max_length)
        self._prefix_cache = PrefixCache(model.model) if self.config.num_beams == 1 else None
        self._replies = 0  # so far: each is sampled by another generator
        self._stream: weakref.ref[Generator[str]] | None = None
        self.last: Reply | None = None  # the latest reply
        self._sent: Sent | None = None  # what it was told
        self.system = system

    def __getstate__(self) -> dict[str, Any]:
        """End the reply that is being written, and give pickle and copy the conversation."""
        self.stop()
        return vars(self)

    @property
    def messages(self) -> list[Message]:
        """All that was said, also what is no longer sent."""
        return self._history.messages

    @property
    def system(self) -> str:
        """The system message; empty where there is none. It can be changed, and the next reply is told the new one.

        Raises DataError, and changes nothing, for a text that is no text, or leaves no room for a conversation.
        """
        return self._history.system.message.content if self._history.system else ""

    @system.setter
    def system(self, text: str) -> None:
        self.stop()
        turn = self._turn("system", text) if text else None
        self._history.check_system(turn, self._reserved)
        self._history.system = turn

    @property
    def dropped(self) -> int:
        """How many of the oldest exchanges the latest reply was not told."""
        return self.last.dropped if self.last else 0

    def send(self, text: str) -> Reply:
        """Say something, and wait for the reply.

        Raises DataError for a text that is blank, is not Unicode, has characters that the model does not know, or is
        longer than it reads.
        """
        for _ in self.stream(text):
            pass
        return self.last

    def stream(self, text: str) -> Iterator[str]:
        """Say something: the reply, part by part as it is written, whole letters only; `last` is then all of it.

        What is wrong is raised here as by `send`, not by the iterator. Nothing is said until the first part is asked
        for. Where the iterator is closed or forgotten before its end, or a Ctrl-C interrupts it, the reply is what it
        has given, and the conversation can go on; `stop` makes sure of that.
        """
        self.stop()
        user = self._turn("user", text)
        sent = self._history.sent(user, self._reserved)
        without_mark = sent.ids[len(self.template.begin) :]
        ids = self.model.stream_ids(
            without_mark, self.config, self._bad_words, self._replies, self.template.end, self._prefix_cache
        )
        stream = self._exchange(user, sent, Writing(ids, self.template, self._stops))
        self._stream = weakref.ref(stream)
        return stream

    def stop(self) -> None:
        """End the reply that is being written, if there is one: what it has given so far is kept."""
        stream = self._stream and self._stream()
        if stream is not None:
            stream.close()
        self._stream = None

    def undo(self) -> str | None:
        """Take back the last exchange; gives what the user had said in it, or None where there is none."""
        self.stop()
        self.last = None
        return self._history.exchanges.pop().user.message.content if self._history.exchanges else None

    def reset(self) -> None:
        """Begin anew, with the same system message."""
        self.stop()
        self._history.exchanges, self._replies, self.last = [], 0, None

    def prompt(self, text: str = "") -> Prompt:
        """What would be sent to the model with this text, id by id; without a text, what was sent for the last reply.

        Before anything was said, that is the system message alone.  Raises DataError as `send`.
        """
        self.stop()
        history = self._history
        if self.last and not text:
            return shown(self._sent, self.model.tokenizer, self._sent.ids[: self.last.cached_tokens])
        if text:
            sent = history.sent(self._turn("user", text), self._reserved)
        elif history.exchanges:
            *earlier, last = history.exchanges
            sent = history.sent(last.user, self._reserved, earlier)
        else:
            sent = Sent(self.template.begin, [history.system] if history.system else [], [], 0)
        return shown(sent, self.model.tokenizer, self._prefix_cache.ids if self._prefix_cache else [])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the conversation to a file that `load` reads, and fine-tuning.

        Raises DataError where nothing was said yet, or the file cannot be written.
        """
        self.stop()
        write_conversation(path, self.messages)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on with the conversation of a file, its system message included, in place of this one.

        Raises DataError, and changes nothing, for a file that is missing or damaged, or a conversation that does not
        end with a reply or that this model cannot read.
        """
        self.stop()
        messages = read_conversation(path)
        if messages[-1].role == "user":
            raise DataError(f"{path} ends with a message of the user: a conversation goes on after a reply")
        history = History(self.template, self.model.model.config.max_length)
        try:
            turns = [history.turn(message) for message in messages]
            history.system = turns.pop(0) if messages[0].role == "system" else None
            history.check_system(history.system, self._reserved)
        except DataError as error:
            raise DataError(f"{path} is no conversation for this model: {error}") from error
        history.exchanges = [Exchange(*pair) for pair in zip(turns[::2], turns[1::2], strict=True)]
        self._history, self._replies, self.last = history, len(history.exchanges), None

    def _turn(self, role: Literal["system", "user"], text: str) -> Turn:
        name = "the system message" if role == "system" else "the message"
        check_text(text, name)
        check_length(text, name, self.model.model.config.max_length)
        content = normal_form(text)
        check_content(content, name)
        return self._history.turn(Message(role, content))

    @property
    def _reserved(self) -> int:
        """Tokens that a prompt leaves for the reply."""
        part = max(min(self.model.model.config.max_length // _RESERVED_PART, _MOST_RESERVED), 1)
        asked = self.config.max_new_tokens
        return max(part if asked is None else min(part, asked), self.config.shortest)

    def _exchange(self, user: Turn, sent: Sent, writing: Writing) -> Generator[str]:
        self._replies += 1
        try:
            yield from writing.parts()
        except (GeneratorExit, KeyboardInterrupt):
            self._keep(user, sent, writing, "interrupted")
            raise
        self._keep(user, sent, writing, "stop" if writing.ended_by_itself else "length")

    def _keep(self, user: Turn, sent: Sent, writing: Writing, reason: Literal["stop", "length", "interrupted"]) -> None:
        reused = self._prefix_cache.reused if self._prefix_cache else 0
        self.last = Reply(writing.text, reason, sent.dropped, len(sent.ids), reused, len(writing.ids), writing.log_prob)
        self._sent = sent
        if writing.text.strip():
            content = normal_form(writing.text).replace("\0", REPLACEMENT)  # no text file has a NUL in it
            message = Message("assistant", content)
            reply = Turn(message, self.template.around("assistant", writing.content))
            self._history.exchanges.append(Exchange(user, reply))


def _check(config: ContinuationConfig, context: int) -> None:
    """Raises ConfigError for settings that are none of a conversation with a model that reads `context` tokens."""
    if config.past_context == "slide":
        raise ConfigError("past_context is slide, but a conversation drops its oldest exchanges instead: leave it out")
    if config.num_return_sequences > 1:
        raise ConfigError(f"num_return_sequences is {config.num_return_sequences}: a conversation has one reply each")
    if config.shortest >= context:
        raise ConfigError(f"min_new_tokens is {config.min_new_tokens}, but this model reads {context} tokens in all")
