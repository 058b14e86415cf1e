"""Choices: the outputs of one prompt as they are written, in text and in tokens with their log-probabilities."""

import asyncio
import codecs
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from toolkit.decoding.continuous import Progress, Request, Token
from toolkit.decoding.hypothesis import hypothesis_of
from toolkit.language_model import LanguageModel
from toolkit.serving.host import Host
from toolkit.tokenization import Detokenizer, Tokenizer
from toolkit.tokenization.chat_template import ChatTemplate
from toolkit.tokenization.tokenizer import replace_invalid

# Prompts of one request that are with the engine at a time: the others wait here, and fill no queue.
_TOGETHER = 8


class Written(NamedTuple):
    """A token, and what it adds to the text: joined, these are the text.

    A character whose bytes are in several tokens is in the last of them, and an end mark adds nothing.
    """

    text: str
    token: Token


class Choice:
    """One output: `text` grows by whole letters, up to the first stop string, and `tokens` by those of that text."""

    def __init__(self, tokenizer: Tokenizer, end: int, stops: Sequence[str] = (), template: ChatTemplate | None = None):
        """Begin a text. end: the id that ends it. template: of a reply, which it reads."""
        self.tokenizer, self._end = tokenizer, end
        self._detokenizer = Detokenizer(tokenizer, stops)
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        # Of a reply that may be escaped, a token is certain when the next one is there.
        self._waits = template is not None and template.name == "plain"
        self._readers = (template.reader(), template.reader()) if template else None  # of the text, and of the tokens
        self.text, self.tokens = "", []
        self._reach = [0]  # where each token of `tokens` begins in the text, and the last ends
        self._given, self._told = 0, 0  # how much of both has been taken
        self.written: list[Token] = []
        self.finish_reason: Literal["stop", "length"] | None = None

    def push(self, token: Token) -> None:
        """Take the next token; after the end it changes nothing."""
        if self.finish_reason is not None:
            return
        self.written.append(token)
        if token.id == self._end:
            self.end("stop")
            return
        self._read(self._detokenizer.push(token.id))
        text = replace_invalid(self._decoder.decode(self.tokenizer.surface(token.id)))
        self._add(self._readers[1].push(text) if self._readers else text, token)
        if self._detokenizer.stopped:
            self.end("stop")

    def end(self, reason: Literal["stop", "length"]) -> None:
        """End the text; where it is a stop string that ends it, that is the reason."""
        if self.finish_reason is not None:
            return
        self._read(self._detokenizer.flush(), at_end=True)
        rest = replace_invalid(self._decoder.decode(b"", final=True))
        if self._readers:
            rest = self._readers[1].push(rest) + self._readers[1].flush()
        if rest and self.tokens:
            text, token = self.tokens.pop()
            self._reach.pop()
            self._add(text + rest, token)
        stopped = self._detokenizer.stopped
        self.finish_reason = "stop" if stopped else reason
        if stopped:
            self._cut(len(self.text))
        elif self.written and self.written[-1].id == self._end:
            self._add("", self.written[-1])

    def take(self) -> tuple[str, list[Written]]:
        """Give the text that has come since the last call, and the tokens of which all text has been given."""
        text, self._given = self.text[self._given :], len(self.text)
        first, last = self._told, len(self.tokens)
        if self.finish_reason is None:
            uncertain = self._waits or self._decoder.getstate()[0]
            last -= bool(uncertain and self.tokens)
            while last > first and self._reach[last] > self._given:
                last -= 1
        self._told = last
        return text, self.tokens[first:last]

    def score(self, length_penalty: float) -> float:
        """Compute by what the best of several are chosen, as the library sorts them."""
        return (
            hypothesis_of([], [each.log_prob for each in self.written], 1.0, True).score if self.written else -math.inf
        )

    def _read(self, part: str, at_end: bool = False) -> None:
        if self._readers:
            part = self._readers[0].push(part) + (self._readers[0].flush() if at_end else "")
        self.text += part

    def _add(self, text: str, token: Token) -> None:
        self.tokens.append(Written(text, token))
        self._reach.append(self._reach[-1] + len(text))

    def _cut(self, length: int) -> None:
        """Drop the tokens behind so much text, and of the last one what is too much."""
        while self.tokens and self._reach[-2] >= length:
            self.tokens.pop()
            self._reach.pop()
        if self.tokens:
            text, token = self.tokens[-1]
            self.tokens[-1] = Written(text[: length - self._reach[-2]], token)


class Job:
    """A prompt that is with the engine, and its choices."""

    def __init__(self, number: int, request: Request, choices: list[Choice]):
        self.number, self.request, self.choices = number, request, choices
        self.prompt: list[Token] | None = None  # where it is scored
        self.cached = 0  # tokens of the prompt that were not read again
        self.queued = self.first = None  # seconds until a process took it, and until its first token

    async def run(self, host: Host, reader: LanguageModel, wait: float | None) -> AsyncIterator[None]:
        """Have it written, and come back after all news.  Leaving it cancels the request.  Raises as `Host.submit`."""
        async with host.submit(self.request, wait, reader) as stream:
            async for news in stream:
                self._take(news)
                if stream.sent is not None:
                    self.queued = stream.sent - stream.submitted
                self.first = stream.first and stream.first - stream.submitted
                yield
                if self.done:
                    break

    @property
    def done(self) -> bool:
        """True where all choices have ended."""
        return all(choice.finish_reason for choice in self.choices)

    @property
    def new_tokens(self) -> int:
        """The number of tokens that were written, end marks included, whether they are told or not."""
        return sum(len(choice.written) for choice in self.choices)

    def _take(self, news: Progress) -> None:
        self.cached = max(self.cached, news.cached)
        self.prompt = news.prompt or self.prompt
        for sample, token in news.written:
            self.choices[sample].push(token)
        if news.hypotheses is None:
            return
        if self.request.config and self.request.config.num_beams > 1:
            del self.choices[len(news.hypotheses) :]
            for choice, found in zip(self.choices, news.hypotheses, strict=True):
                ids = [*found.ids, self.request.end][: len(found.token_log_probs)]
                for token, log_prob in zip(ids, found.token_log_probs, strict=True):
                    choice.push(Token(token, log_prob, []))
                choice.end("stop" if found.finished else "length")
        for choice in self.choices:
            choice.end("length")


async def run_jobs(jobs: Sequence[Job], host: Host, reader: LanguageModel, wait: float | None) -> AsyncIterator[Job]:
    """Have several prompts written, and yield each that there is news of.  Where one fails, or it is left, all end."""
    changed: asyncio.Queue[tuple[Job, Exception | None]] = asyncio.Queue()
    room, dirty = asyncio.Semaphore(_TOGETHER), set()

    async def run(job: Job) -> None:
        error = None
        try:
            async with room:
                async for _ in job.run(host, reader, wait):
                    if job.number not in dirty:
                        dirty.add(job.number)
                        changed.put_nowait((job, None))
        except Exception as found:
            error = found
        changed.put_nowait((job, error or StopAsyncIteration()))

    tasks, left = [asyncio.create_task(run(job)) for job in jobs], len(jobs)
    try:
        while left:
            job, error = await changed.get()
            if isinstance(error, StopAsyncIteration):
                left -= 1
            elif error is not None:
                raise error
            else:
                dirty.discard(job.number)
                yield job
    finally:
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)


def token_bytes(tokenizer: Tokenizer, text: str, token_id: int) -> list[int]:
    """List the bytes that a token adds to the text; of those of a part of a character, its own."""
    surface = tokenizer.surface(token_id)
    try:
        surface.decode()
    except UnicodeDecodeError:
        return list(surface)
    return list(text.encode()) if surface else []


def alternative_text(tokenizer: Tokenizer, token_id: int) -> str:
    """Write a token that was not chosen: the text that it would add, or, where it is none, as people are shown it."""
    try:
        return tokenizer.surface(token_id).decode() or tokenizer.piece(token_id)
    except UnicodeDecodeError:
        return tokenizer.piece(token_id)


def completion_logprobs(choice: Choice, tokens: Sequence[Written], begin: int, alternatives: int) -> dict[str, Any]:
    """Give the tokens as POST /v1/completions does. begin: where the first of them begins in the text.

    The best tokens of each place are told with the chosen one, in an object by their texts: two with one text are told
    apart by how people are shown them.
    """
    found = {"tokens": [], "token_logprobs": [], "top_logprobs": [] if alternatives else None, "text_offset": []}
    for text, token in tokens:
        found["tokens"].append(text)
        found["token_logprobs"].append(token.log_prob)
        found["text_offset"].append(begin)
        begin += len(text)
        if alternatives:
            found["top_logprobs"].append(_named(choice.tokenizer, text, token, alternatives))
    return found


def _named(tokenizer: Tokenizer, text: str, token: Token, count: int) -> dict[str, float] | None:
    if token.log_prob is None:
        return None
    chosen = text or tokenizer.piece(token.id)
    named = {}
    for each, log_prob in token.best[:count]:
        name = chosen if each == token.id else alternative_text(tokenizer, each)
        if each != token.id and (name in named or name == chosen):
            name = tokenizer.piece(each)
        named[name] = log_prob
    return named | {chosen: token.log_prob}


def chat_logprobs(choice: Choice, tokens: Sequence[Written], alternatives: int) -> list[dict[str, Any]]:
    """Give the tokens as POST /v1/chat/completions does."""

    def entry(text: str, token_id: int, log_prob: float | None) -> dict[str, Any]:
        return {"token": text, "logprob": log_prob, "bytes": token_bytes(choice.tokenizer, text, token_id)}

    found = []
    for text, token in tokens:
        best = [
            entry(text if each == token.id and text else alternative_text(choice.tokenizer, each), each, log_prob)
            for each, log_prob in token.best[:alternatives]
        ]
        found.append(entry(text, token.id, token.log_prob) | {"top_logprobs": best})
    return found
