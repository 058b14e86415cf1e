"""A conversation with a language model, which remembers it only because it is sent all of it again."""

import os
import weakref
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from toolkit.chat.history import (
    Exchange,
    History,
    Prompt,
    Sent,
    Turn,
    read_conversation,
    reserved_tokens,
    write_conversation,
)
from toolkit.data.conversations import check_content
from toolkit.decoding import ContinuationConfig, Hypothesis, PrefixCache
from toolkit.display import counted
from toolkit.errors import ConfigError, DataError, ModelError
from toolkit.text_model import check_length
from toolkit.tokenization import Detokenizer, StopStrings
from toolkit.tokenization.chat_template import ChatTemplate, Message, make_template
from toolkit.tokenization.normal_form import check_text, normal_form
from toolkit.tokenization.tokenizer import REPLACEMENT

if TYPE_CHECKING:
    from toolkit.language_model import LanguageModel

FinishReason = Literal["stop", "length", "interrupted"]


@dataclass(frozen=True)
class Reply:
    """A reply of the model, with the figures of how it came about."""

    text: str
    finish_reason: FinishReason  # it ended by itself, at the limit, or was cut off
    dropped: int  # how many of the oldest exchanges were not sent, because the context is full
    prompt_tokens: int  # what was sent, BOS and generation prompt included
    cached_tokens: int  # how many of them were not read again
    new_tokens: int  # what was written, without the end of turn
    log_prob: float | None  # of what was written, end of turn included; None where the reply was cut off


class ReplyStream:
    """The content of a reply, part by part, whole letters, up to the first stop string.

    Whenever the reading of it stops, `text` is what has been given of it.
    """

    def __init__(self, ids: Generator[int, None, Hypothesis], template: ChatTemplate, stops: Sequence[str]):
        self.ids: list[int] = []  # all that was written, without the end of turn
        self.text = ""
        self._written = ""  # the text before the template has read it
        self._source, self._template = ids, template
        self._detokenizer, self._reader = Detokenizer(template.tokenizer, stops), template.reader()
        self._hypothesis: Hypothesis | None = None

    def parts(self) -> Iterator[str]:
        """Yield the text, whenever there is more of it."""
        while not self._detokenizer.stopped:
            try:
                token = next(self._source)
            except StopIteration as last:
                self._hypothesis = last.value
                break
            self.ids.append(token)
            if part := self._read(self._detokenizer.push(token)):
                yield part
        self._source.close()
        if part := self._read(self._detokenizer.flush(), at_end=True):
            yield part

    def _read(self, written: str, at_end: bool = False) -> str:
        self._written += written
        part = self._reader.push(written) + (self._reader.flush() if at_end else "")
        self.text += part
        return part

    @property
    def ended_by_itself(self) -> bool:
        """True where the model, or a stop string, ended it."""
        return self._detokenizer.stopped or (self._hypothesis is not None and self._hypothesis.finished)

    @property
    def log_prob(self) -> float | None:
        """The model's log-probability of all ids and the end of turn; None where the model was not let go on."""
        return self._hypothesis and self._hypothesis.log_prob

    @property
    def content(self) -> list[int]:
        """The ids of the text: those that were written, where they are this text and no more."""
        if self._template.tokenizer.decode(self.ids) == self._written:
            return self.ids
        return self._template.content(self.text)


class ChatSession:
    """A conversation: messages go to the model with everything that was said before.

    Where that is more than the model reads at once, the oldest exchanges are left out; the system message and the
    newest message of the user are always sent. What the model has read of the conversation is not read again.

    An exchange in which the model said nothing at all is not kept.
    """

    def __init__(
        self,
        model: "LanguageModel",
        *,
        system: str = "",
        template: str | None = None,
        config: ContinuationConfig | None = None,
        stop_strings: Sequence[str] = (),
        bad_words: Sequence[str] = (),
    ):
        """Begin a conversation.

        system: says how the assistant is to answer; empty for none. template: "control", "plain", or None for the one
        that the model was taught. config: None for greedy search; where it samples without a seed, the conversation has
        a fresh one, which its `config` shows. stop_strings: a reply ends in front of the first of them. bad_words: not
        written.

        Raises ModelError where the model was taught no template and none is given, ConfigError for a setting that does
        not fit, DataError for a system message that is no text, has characters that the model does not know, or is too
        long.
        """
        settings = model.model.config
        if model.by_ids:
            raise ModelError("this model is used by ids, and converses in none: toolkit generate --ids continues them")
        if template is None and settings.template == "none":
            raise ModelError(
                "this model was not taught to converse: give one that was (toolkit chat), or a template (plain)"
            )
        self.model, self.config = model, (config or ContinuationConfig(do_sample=False)).seeded()
        if self.config.past_context == "slide":
            raise ConfigError(
                "past_context is slide, but a conversation drops its oldest exchanges instead: leave it out"
            )
        if (count := self.config.num_return_sequences) > 1:
            raise ConfigError(f"num_return_sequences is {count}: a conversation has one reply each")
        if self.config.shortest >= (context := settings.max_length):
            least = self.config.min_new_tokens
            raise ConfigError(f"min_new_tokens is {least}, but this model reads {context} tokens in all")
        StopStrings(stop_strings)  # raises for those that are none
        self.template = make_template(template or settings.template, model.tokenizer, settings.begin)
        self._stops = (*stop_strings, *self.template.stop_strings)
        self._bad_words = tuple(bad_words)
        self._history = History(self.template, settings.max_length)
        self._prefix_cache = PrefixCache(model.model) if self.config.num_beams == 1 else None
        self._replies = 0  # so far: each is sampled by another generator
        self._stream: weakref.ref[Generator[str]] | None = None
        self.last: Reply | None = None  # the latest reply
        self._sent: Sent | None = None  # the prompt of it
        self.system = system

    def __repr__(self) -> str:
        return f"<ChatSession: {counted(len(self.messages), 'message')}, {self.model!r}>"

    def __getstate__(self) -> dict[str, Any]:
        """End the reply that is being written, and give pickle and copy the conversation."""
        self.stop()
        return vars(self)

    @property
    def messages(self) -> list[Message]:
        """All messages, also those that are no longer sent."""
        return self._history.messages

    @property
    def system(self) -> str:
        """The system message; empty where there is none. It can be changed: the next prompt begins with the new one.

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
        """The number of the oldest exchanges that were not sent for the latest reply."""
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
        """Say something, and yield the reply as it is written, whole letters only; `last` is then all of it.

        What is wrong is raised here as by `send`, not by the iterator. Nothing is said until the first part is asked
        for. Where the iterator is closed or forgotten before its end, or a Ctrl-C interrupts it, the reply is what it
        has given, and the conversation can go on; `stop` makes sure of that.
        """
        self.stop()
        user = self._turn("user", text)
        sent = self._history.sent(user, self._reserved)
        prompt = sent.ids[len(self.template.begin) :]  # the model reads its BOS by itself
        settings = self.config, self._bad_words, self._replies, self.template.end, self._prefix_cache
        ids = self.model.stream_ids(prompt, *settings)
        stream = self._exchange(user, sent, ReplyStream(ids, self.template, self._stops))
        self._stream = weakref.ref(stream)
        return stream

    def stop(self) -> None:
        """End the reply that is being written, if there is one: what it has given so far is kept."""
        stream = self._stream and self._stream()
        if stream is not None:
            stream.close()
        self._stream = None

    def undo(self) -> str | None:
        """Take back the last exchange; return what the user had said in it, or None where there is none."""
        self.stop()
        self.last = None
        return self._history.exchanges.pop().user.message.content if self._history.exchanges else None

    def reset(self) -> None:
        """Begin anew, with the same system message."""
        self.stop()
        self._history.exchanges, self._replies, self.last = [], 0, None

    def prompt(self, text: str = "") -> Prompt:
        """Show the prompt that this text would make, id by id; without a text, that of the last reply.

        Before anything was said, it is the system message alone. Raises DataError as `send`.
        """
        self.stop()
        history = self._history
        if self.last and not text:
            return self._sent.shown(self.model.tokenizer, self._sent.ids[: self.last.cached_tokens])
        if text:
            sent = history.sent(self._turn("user", text), self._reserved)
        elif history.exchanges:
            *earlier, last = history.exchanges
            sent = history.sent(last.user, self._reserved, earlier)
        else:
            sent = Sent(self.template.begin, [history.system] if history.system else [], [], 0)
        return sent.shown(self.model.tokenizer, self._prefix_cache.ids if self._prefix_cache else [])

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
        """The number of tokens that a prompt leaves for the reply."""
        return reserved_tokens(self.model.model.config.max_length, self.config)

    def _exchange(self, user: Turn, sent: Sent, reply: ReplyStream) -> Generator[str]:
        self._replies += 1
        try:
            yield from reply.parts()
        except (GeneratorExit, KeyboardInterrupt):
            self._keep(user, sent, reply, "interrupted")
            raise
        self._keep(user, sent, reply, "stop" if reply.ended_by_itself else "length")

    def _keep(self, user: Turn, sent: Sent, reply: ReplyStream, reason: FinishReason) -> None:
        reused = self._prefix_cache.reused if self._prefix_cache else 0
        self.last = Reply(reply.text, reason, sent.dropped, len(sent.ids), reused, len(reply.ids), reply.log_prob)
        self._sent = sent
        if reply.text.strip():
            content = normal_form(reply.text).replace("\0", REPLACEMENT)  # no text file has a NUL in it
            message = Message("assistant", content)
            answer = Turn(message, self.template.around("assistant", reply.content))
            self._history.exchanges.append(Exchange(user, answer))
