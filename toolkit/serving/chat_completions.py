"""POST /v1/chat/completions: the next reply of a conversation, of which a request holds all messages."""

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from functools import cached_property
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from toolkit.chat.history import Exchange, History, Sent, reserved_tokens
from toolkit.data.conversations import check_conversation
from toolkit.data.objects import json_kind
from toolkit.decoding import ContinuationConfig
from toolkit.decoding.continuous import Request
from toolkit.display import counted
from toolkit.errors import ConfigError, DataError, LengthError
from toolkit.language_model import LanguageModel
from toolkit.serving.answers import Answer, computed, find_host, json_response, usage
from toolkit.serving.choices import Choice, Job, chat_logprobs, run_jobs
from toolkit.serving.connection import EventStream, json_object, while_connected
from toolkit.serving.errors import ApiError, Limits
from toolkit.serving.fields import Reader, choice, flag, read_fields, require, text, whole
from toolkit.serving.generation_fields import REFUSED, generation_of, generation_readers
from toolkit.serving.host import Host
from toolkit.text_model import check_length
from toolkit.tokenization.chat_template import Message, make_template
from toolkit.tokenization.normal_form import normal_form
from toolkit.tokenization.tokenizer import REPLACEMENT

_KIND, _CHUNK = "chat.completion", "chat.completion.chunk"
_MOST_MESSAGES = 1024
_LARGEST = 2**63 - 1

_NO_TOOLS = "the models write text, and call no tools"
_TEXT_ALONE = "the models read and write text alone"
_NOTHING_KEPT = "this server keeps nothing of a request"
_REFUSED: dict[str, tuple[Collection[Any], str]] = {
    **REFUSED,
    "tools": (([],), _NO_TOOLS),
    "tool_choice": (("none", "auto"), _NO_TOOLS),
    "parallel_tool_calls": ((True, False), _NO_TOOLS),
    "functions": (([],), _NO_TOOLS),
    "function_call": (("none", "auto"), _NO_TOOLS),
    "response_format": (({"type": "text"},), "nothing holds the models to a form but bad_words and stop"),
    "modalities": ((["text"],), _TEXT_ALONE),
    "audio": ((), _TEXT_ALONE),
    "prediction": ((), "nothing is gained by it here"),
    "store": ((False,), _NOTHING_KEPT),
    "metadata": (({},), _NOTHING_KEPT),
    "service_tier": (("auto", "default"), "there is one kind of service"),
    "reasoning_effort": (("none",), "the models answer at once"),
    "verbosity": ((), "say in the system message how long a reply is to be, or give max_tokens"),
    "web_search_options": ((), "this server asks nobody"),
    "past_context": (("stop",), "a conversation leaves out its oldest messages instead: set truncation to auto"),
}

# What clients send back with a reply that they were given.
_NOT_READ = "the models read role and content alone"
_MESSAGE_REFUSED: dict[str, tuple[Collection[Any], str]] = {
    "name": ((), "the models know no names of who speaks: put it into the content"),
    "refusal": ((), _NOT_READ),
    "annotations": (([],), _NOT_READ),
    "audio": ((), _TEXT_ALONE),
    "tool_calls": (([],), _NO_TOOLS),
    "tool_call_id": ((), _NO_TOOLS),
    "function_call": ((), _NO_TOOLS),
}


def _readers(limits: Limits) -> dict[str, Reader]:
    return {
        **generation_readers(limits),
        "messages": read_messages,
        "max_tokens": whole(1, _LARGEST),
        "max_completion_tokens": whole(1, _LARGEST),
        "logprobs": flag,
        "top_logprobs": whole(0, limits.logprobs),
        "truncation": choice("auto", "disabled"),
        "safety_identifier": text,
        "prompt_cache_key": text,
    }


def read_messages(value: Any, name: str) -> list[Message]:
    """Read messages.  Raises ApiError for what is no conversation."""
    if not isinstance(value, list):
        raise ApiError(400, f"{name} is {json_kind(value)}: it must be a list of messages", param=name)
    if len(value) > _MOST_MESSAGES:
        raise ApiError(400, f"{name} has {len(value)} items: this server takes at most {_MOST_MESSAGES}", param=name)
    roles = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
    readers, messages = {"role": choice(*roles), "content": _content}, []
    for number, message in enumerate(value):
        place = f"{name}[{number}]"
        if not isinstance(message, dict):
            form = '{"role": "user", "content": "…"}'
            raise ApiError(400, f"{place} is {json_kind(message)}: it must be an object, {form}", param=place)
        given = read_fields(message, readers, _MESSAGE_REFUSED, f"{place}.")
        role, content = (require(given, each, "a role and a content", f"{place}.") for each in readers)
        message = Message(roles[role], normal_form(content))
        if message.role == "assistant":
            message = Message("assistant", message.content.replace("\0", REPLACEMENT))  # as a session keeps it
            if not message.content.strip() and messages and messages[-1].role == "user":
                messages.pop()  # an exchange in which the model said nothing is not kept
                continue
        messages.append(message)
    try:
        check_conversation(messages, "the conversation")
    except DataError as error:
        raise ApiError(400, str(error), param=name) from None
    if messages[-1].role != "user":
        last = messages[-1].role
        raise ApiError(
            400, f"{name} ends with one of the {last}: a reply is written to a message of the user", param=name
        )
    return messages


def _content(value: Any, name: str) -> str:
    """Read the content of a message: a text, or a list of parts, which are joined."""
    if not isinstance(value, list):
        return text(value, name)
    found = []
    for number, part in enumerate(value):
        place = f"{name}[{number}]"
        if not isinstance(part, dict):
            form = '{"type": "text", "text": "…"}'
            raise ApiError(400, f"{place} is {json_kind(part)}: it must be an object, {form}", param=place)
        if part.get("type") != "text":
            raise ApiError(400, f'{place}.type is not "text": {_TEXT_ALONE}', param=place)
        given = read_fields(part, {"type": text, "text": text}, within=f"{place}.")
        found.append(require(given, "text", "the text", f"{place}."))
    return "".join(found)


class Conversation:
    """Messages as a model reads them."""

    def __init__(self, reader: LanguageModel, messages: list[Message]):
        """Raises LengthError, before anything is encoded, for a message that no context could hold."""
        settings = reader.model.config
        self._context, self._messages = settings.max_length, messages
        self.template = make_template(settings.template, reader.tokenizer, settings.begin)
        self.length = sum(len(message.content) for message in messages)
        for number, message in enumerate(messages, 1):
            check_length(message.content, f"message {number} of the conversation", self._context)

    @cached_property
    def whole(self) -> list[int]:
        """The ids of all messages, BOS included, and what makes the model reply."""
        return self.template.prompt(self._messages)

    @property
    def replies(self) -> int:
        """The number of replies so far: the next one is drawn by another generator than these."""
        return sum(message.role == "assistant" for message in self._messages)

    def sent(self, config: ContinuationConfig, truncates: bool) -> Sent:
        """Choose what is sent: all messages, or, where it truncates, the latest exchanges that leave room for a reply.

        Raises LengthError where that is too much, DataError for a content that the tokenizer cannot read.
        """
        history, reserve = History(self.template, self._context), reserved_tokens(self._context, config)
        *turns, last = [history.turn(message) for message in self._messages]
        history.system = turns.pop(0) if turns and turns[0].message.role == "system" else None
        history.exchanges = [Exchange(*pair) for pair in zip(turns[::2], turns[1::2], strict=True)]
        sent = history.sent(last, reserve)
        if sent.dropped and not truncates:
            count = len(self.whole)
            raise LengthError(
                f"the conversation has {counted(count, 'token')}, and the model has room for "
                f"{self._context - reserve} beside its reply, of {self._context} in all: leave out the oldest "
                "messages, or set truncation to auto"
            )
        return sent


class Reply:
    """A request for a reply, n of them where several are drawn."""

    def __init__(self, host: Host, reader: LanguageModel, given: Mapping[str, Any], limits: Limits):
        """Raises ApiError for fields that contradict each other."""
        self.host, self.reader = host, reader
        self.conversation = Conversation(reader, require(given, "messages", "a list of messages"))
        given = {**given, **_most_tokens(given)}
        template = self.conversation.template
        try:
            self.generation = generation_of(given, reader, limits, sample=False, end=template.end)
        except ConfigError as error:
            raise ApiError(400, str(error)) from None
        config, context = self.generation.config, reader.model.config.max_length
        if config.shortest >= context:
            message = f"min_tokens is {config.min_new_tokens}, but this model reads {context} tokens in all"
            raise ApiError(400, message, param="min_tokens")
        self.logprobs, self.top = given.get("logprobs", False), given.get("top_logprobs", 0)
        if self.top and not self.logprobs:
            raise ApiError(400, "top_logprobs are told with logprobs: set logprobs to true", param="top_logprobs")
        if self.top and config.num_beams > 1:
            message = f"top_logprobs is {self.top}, and beam search keeps no other tokens than its own: leave it out"
            raise ApiError(400, message, param="top_logprobs")
        self.truncates = given.get("truncation") == "auto"
        self.dropped = self.prompt_tokens = 0
        self.jobs: list[Job] = []

    def encode(self) -> None:
        """Encode the conversation.  Raises as `Conversation.sent`."""
        template, config = self.conversation.template, self.generation.config
        sent = self.conversation.sent(config, self.truncates)
        ids = sent.ids
        self.prompt_tokens, self.dropped = len(ids), 2 * sent.dropped
        stops = (*self.generation.stops, *template.stop_strings)
        count = config.num_return_sequences
        choices = [Choice(self.reader.tokenizer, template.end, stops, template) for _ in range(count)]
        request = Request(
            0,
            ids[len(template.begin) :],  # the model reads its BOS by itself
            config,
            self.conversation.replies,
            bad_words=self.generation.bans,
            end=template.end,
            alternatives=self.top,
        )
        self.jobs = [Job(0, request, choices)]

    @property
    def choices(self) -> list[Choice]:
        """The replies; of beams, as many as there are."""
        return self.jobs[0].choices

    def logprobs_of(self, each: Choice, tokens: list[Any]) -> dict[str, Any] | None:
        """Give tokens as the field of a choice."""
        return {"content": chat_logprobs(each, tokens, self.top), "refusal": None} if self.logprobs else None


def _most_tokens(given: Mapping[str, Any]) -> dict[str, int]:
    """Give max_tokens, which has two names."""
    found = {given[name] for name in ("max_tokens", "max_completion_tokens") if name in given}
    if len(found) > 1:
        message = "max_tokens and max_completion_tokens are two names of one thing, and differ: give one"
        raise ApiError(400, message, param="max_completion_tokens")
    return {"max_tokens": found.pop()} if found else {}


async def _whole(reply: Reply) -> list[dict[str, Any]]:
    """Have the replies written -> the choices."""
    async with aclosing(run_jobs(reply.jobs, reply.host, reply.reader, reply.generation.wait)) as changed:
        async for _ in changed:
            pass
    found = []
    for index, each in enumerate(reply.choices):
        content, tokens = each.take()
        message = {"role": "assistant", "content": content, "refusal": None}
        probable = reply.logprobs_of(each, tokens)
        found.append({"index": index, "message": message, "logprobs": probable, "finish_reason": each.finish_reason})
    return found


async def _events(reply: Reply, answer: Answer) -> AsyncGenerator[dict[str, Any]]:
    """Have the replies written, and yield the events of a stream."""
    more = {"usage": None} if reply.generation.with_usage else {}

    def event(index: int, delta: dict[str, Any], reason: str | None = None, probable: Any = None) -> dict[str, Any]:
        part = {"index": index, "delta": delta, "logprobs": probable, "finish_reason": reason}
        return answer(_CHUNK, [part], **more)

    begun, ended = False, set()
    try:
        async with aclosing(run_jobs(reply.jobs, reply.host, reply.reader, reply.generation.wait)) as changed:
            async for _ in changed:
                for index in range(0 if begun else len(reply.choices)):
                    yield event(index, {"role": "assistant", "content": ""})
                begun = True
                for index, each in enumerate(reply.choices):
                    # Read at one moment: while an event is sent, more may be written.
                    (content, tokens), reason = each.take(), each.finish_reason
                    if content or (tokens and reply.logprobs):
                        yield event(index, {"content": content}, probable=reply.logprobs_of(each, tokens))
                    if reason and index not in ended:
                        ended.add(index)
                        yield event(index, {}, reason)
        if reply.generation.with_usage:
            yield answer(_CHUNK, [], usage=usage(reply.jobs, reply.prompt_tokens))
    finally:
        answer.note(reply.jobs, reply.prompt_tokens)


async def _chat_completions(request: HttpRequest) -> Response:
    limits = request.app.state.limits
    given = read_fields(await json_object(request), _readers(limits), _REFUSED)
    host = find_host(request, given.get("model"), ("chat",), "/v1/chat/completions")
    reply = Reply(host, host.reader, given, limits)
    await while_connected(request, computed(reply.conversation.length, reply.encode))
    dropped = {"dropped_messages": reply.dropped} if reply.truncates else {}
    answer = Answer(request, host, "chatcmpl", **reply.generation.seed, **dropped)
    if reply.generation.streams:
        return await EventStream.of(request, _events(reply, answer))
    try:
        choices = await while_connected(request, _whole(reply))
    finally:
        answer.note(reply.jobs, reply.prompt_tokens)
    return json_response(answer(_KIND, choices, usage=usage(reply.jobs, reply.prompt_tokens)))


def routes() -> list[Route]:
    """List the routes of this chapter."""
    return [Route("/v1/chat/completions", _chat_completions, methods=["POST"])]
