"""POST /v1/completions: texts that go on as a language model has them go on, and how probable it finds each token."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from toolkit.decoding.continuous import Request, Token
from toolkit.display import counted
from toolkit.errors import LengthError
from toolkit.language_model import LanguageModel
from toolkit.serving.answers import Answer, computed, find_host, json_response, usage
from toolkit.serving.choices import Choice, Job, completion_logprobs, run_jobs
from toolkit.serving.connection import EventStream, json_object, while_connected
from toolkit.serving.errors import ApiError, Limits
from toolkit.serving.fields import Reader, check_unicode, choice, flag, is_ids, read_fields, whole, wrong
from toolkit.serving.generation_fields import REFUSED, generation_of, generation_readers
from toolkit.serving.host import Host
from toolkit.tokenization.special import BOS, EOS

KINDS = ("language-model", "chat")  # that continue texts
_KIND = "text_completion"
_REFUSED = {**REFUSED, "suffix": (("",), "the models write from left to right, and know nothing of what follows")}

Prompt = str | list[int]


def _readers(limits: Limits) -> dict[str, Reader]:
    return {
        **generation_readers(limits),
        "prompt": _prompts(limits.prompts),
        "echo": flag,
        "logprobs": whole(0, limits.logprobs),
        "best_of": whole(1, limits.n),
        "past_context": choice("stop", "slide"),
    }


def _prompts(most: int) -> Reader:
    """Make a reader of what can be continued: a text or ids, or a list of these."""

    def read(value: Any, name: str) -> list[Prompt]:
        prompts = [value] if isinstance(value, str) or (value and is_ids(value)) else value
        if not isinstance(prompts, list) or not prompts:
            raise wrong(value, name, "text, a list of ids, or a list of these")
        if len(prompts) > most:
            raise ApiError(400, f"{name} has {len(prompts)} items: this server takes at most {most}", param=name)
        for number, each in enumerate(prompts):
            if not isinstance(each, str) and not is_ids(each):
                raise wrong(each, f"{name}[{number}]", "text, or a list of ids, which are whole numbers from 0 on")
        check_unicode([each for each in prompts if isinstance(each, str)], name)
        return prompts

    return read


class Continued:
    """A choice as it is given: with its prompt in front, where that is echoed."""

    def __init__(self, index: int, choice: Choice, prompt: Choice | None, logprobs: int | None):
        self._index, self.choice, self._prompt, self._logprobs = index, choice, prompt, logprobs
        self._end = 0  # of the text that was given

    def part(self) -> dict[str, Any] | None:
        """Give what has come since the last part, if anything has."""
        text, tokens = self.choice.take()
        begin, reason = self._end, self.choice.finish_reason
        if self._prompt is not None:
            text, tokens = self._prompt.text + text, [*self._prompt.tokens, *tokens]
            self._prompt = None
        elif not text and not tokens and reason is None:
            return None
        found = None
        if self._logprobs is not None:
            found = completion_logprobs(self.choice, tokens, begin, self._logprobs)
        self._end += sum(len(each.text) for each in tokens)
        return {"index": self._index, "text": text, "logprobs": found, "finish_reason": reason}


class Work:
    """The prompts of a request, and what it wants of them."""

    def __init__(self, host: Host, reader: LanguageModel, given: Mapping[str, Any], limits: Limits):
        """Raises ApiError for fields that contradict each other."""
        self.host, self.reader, self.prompts = host, reader, given.get("prompt", [""])
        self.echo, self.logprobs, best_of = given.get("echo", False), given.get("logprobs"), given.get("best_of", 0)
        self.generation = generation_of(given, reader, limits, sample=True, drawn=best_of)
        self.nothing = given.get("max_tokens") == 0  # is written
        self.beams = self.generation.config.num_beams > 1
        self._check(best_of)
        self.jobs: list[Job] = []
        self.prompt_tokens = 0
        self._given: dict[tuple[int, int], Continued] = {}

    def _check(self, best_of: int) -> None:
        count = self.generation.count
        if 0 < best_of < count:
            raise ApiError(400, f"best_of is {best_of}, and n is {count}: best_of must be at least n", param="best_of")
        if best_of > count and self.generation.streams:
            message = f"best_of is {best_of}, and the best are known at the end only: do not stream them"
            raise ApiError(400, message, param="best_of")
        if self.beams and self.generation.stops:
            raise ApiError(400, "stop: beam search knows no stop strings: leave out stop or num_beams", param="stop")
        if self.beams and self.logprobs:
            message = f"logprobs is {self.logprobs}, and beam search keeps no other tokens than its own: 0 gives theirs"
            raise ApiError(400, message, param="logprobs")

    def encode(self) -> None:
        """Encode the prompts.  Raises ToolkitError or ApiError for one that cannot be read."""
        config, several = self.generation.config, len(self.prompts) > 1
        for number, prompt in enumerate(self.prompts):
            name = f"prompt[{number}]" if several else "the prompt"
            if isinstance(prompt, str):
                [ids] = self.reader.encode([prompt], config, lambda _, name=name: name)
            else:
                ids = self._checked(prompt, name)
            self._check_scored(ids, name)
            self.prompt_tokens += len(ids) + self.reader.model.config.begin
            drawn = config.num_return_sequences
            choices = [Choice(self.reader.tokenizer, EOS, self.generation.stops) for _ in range(drawn)]
            request = Request(
                0,
                ids,
                None if self.nothing else config,
                number,
                bad_words=self.generation.bans,
                alternatives=self.logprobs or 0,
                score_prompt=self.echo and self.logprobs is not None,
            )
            self.jobs.append(Job(number, request, choices))

    def _checked(self, ids: list[int], name: str) -> list[int]:
        """Check ids -> those that the engine is given: without the BOS that the model reads by itself."""
        settings, config = self.reader.model.config, self.generation.config
        if ids and max(ids) >= settings.vocab_size:
            raise ApiError(
                400, f"{name} has the id {max(ids)}, and the model has {settings.vocab_size} ids", param="prompt"
            )
        ids = ids[1:] if settings.begin and ids[:1] == [BOS] else ids
        if not ids and not settings.begin:
            raise ApiError(400, f"{name} is empty, and this model cannot begin: give it an id", param="prompt")
        room = settings.max_length - settings.begin - max(config.shortest, 1)
        if config.past_context == "stop" and len(ids) > room:
            raise LengthError(
                f"{name} has {counted(len(ids), 'token')}, and the model has room for {max(room, 0)} before what it "
                "writes: shorten it, or let past_context be slide"
            )
        return ids

    def _check_scored(self, ids: list[int], name: str) -> None:
        """Raise LengthError for a prompt that is only scored, and is more than is read at once."""
        most = self.reader.model.config.max_length
        if self.nothing and len(ids) > most:
            raise LengthError(f"{name} has {counted(len(ids), 'token')}, and at most {most} can be scored: shorten it")

    def parts(self, job: Job) -> list[dict[str, Any]]:
        """Give what has come of a prompt since the last call."""
        count, found = self.generation.count, []
        choices = job.choices
        if len(choices) > count:  # the best of them
            power = self.generation.config.length_penalty
            choices = sorted(choices, key=lambda choice: -choice.score(power))[:count]
        for place, each in enumerate(choices):
            given = self._given.get((job.number, place))
            if given is None:
                prompt = self._echoed(job) if self.echo else None
                given = Continued(job.number * count + place, each, prompt, self.logprobs)
                self._given[job.number, place] = given
            if part := given.part():
                found.append(part)
        return found

    def _echoed(self, job: Job) -> Choice:
        """Give the prompt as a text with its tokens; a BOS among given ids is the first, and nothing precedes it."""
        prompt, ids = Choice(self.reader.tokenizer, -1), job.request.ids
        original = self.prompts[job.number]
        if not isinstance(original, str) and len(original) > len(ids):
            prompt.push(Token(BOS, None, []))
        for token in job.prompt or [Token(each, None, []) for each in ids]:
            prompt.push(token)
        prompt.end("length")
        return prompt


async def _whole(work: Work) -> list[dict[str, Any]]:
    """Have all written -> the choices."""
    async with aclosing(run_jobs(work.jobs, work.host, work.reader, work.generation.wait)) as changed:
        async for _ in changed:
            pass
    return [part for job in work.jobs for part in work.parts(job)]


async def _events(work: Work, answer: Answer) -> AsyncGenerator[dict[str, Any]]:
    """Have all written, and yield the events of a stream."""
    more = {"usage": None} if work.generation.with_usage else {}
    ended = set()
    try:
        async with aclosing(run_jobs(work.jobs, work.host, work.reader, work.generation.wait)) as changed:
            async for job in changed:
                for part in work.parts(job):
                    if part["index"] not in ended:
                        yield answer(_KIND, [part], **more)
                    if part["finish_reason"]:
                        ended.add(part["index"])
        if work.generation.with_usage:
            yield answer(_KIND, [], usage=usage(work.jobs, work.prompt_tokens))
    finally:
        answer.note(work.jobs, work.prompt_tokens)


async def _completions(request: HttpRequest) -> Response:
    limits = request.app.state.limits
    given = read_fields(await json_object(request), _readers(limits), _REFUSED)
    host = find_host(request, given.get("model"), KINDS, "/v1/completions")
    work = Work(host, host.reader, given, limits)
    length = sum(map(len, work.prompts))
    await while_connected(request, computed(length, work.encode))
    answer = Answer(request, host, "cmpl", **work.generation.seed)
    if work.generation.streams:
        return await EventStream.of(request, _events(work, answer))
    try:
        choices = await while_connected(request, _whole(work))
    finally:
        answer.note(work.jobs, work.prompt_tokens)
    return json_response(answer(_KIND, choices, usage=usage(work.jobs, work.prompt_tokens)))


def routes() -> list[Route]:
    """List the routes of this chapter."""
    return [Route("/v1/completions", _completions, methods=["POST"])]
