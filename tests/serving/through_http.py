"""What requests give through HTTP all at once, beside what they give alone there, and what the library gives."""

import asyncio
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

import toolkit
from tests.serving.answers import difference, joined
from tests.serving.client import Connection
from tests.serving.load import MODELS, alone
from tests.serving.mix import Case, mixed
from tests.serving.served import Served
from toolkit import LanguageModel, Translator
from toolkit.chat.history import write_conversation
from toolkit.decoding import ContinuationConfig, generate
from toolkit.outputs import continuation
from toolkit.tokenization.chat_template import Message, make_template

# Fields with the names and meanings of the library's settings.
_SETTINGS = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "seed",
    "num_beams",
    "repetition_penalty",
    "no_repeat_ngram_size",
)


async def compared(count: int, seed: int, without: Sequence[str] = ()) -> tuple[list[str], list[str], float]:
    """Ask for answers alone and then for all at once -> faults, requests beside a border, largest difference."""
    cases = mixed(count, seed, without)
    with Served(*MODELS, "--max-queue", str(count)) as served:
        await served.ready()
        expected = await alone(served.url, cases)
        rng = np.random.default_rng(seed)
        gathered = await asyncio.gather(*(_late(served.url, each, float(rng.random())) for each in cases))
        code, left = served.end()
    faults = [f"the server ended with {code} and left {left}"] if code or left else []
    gaps = [0.0]
    library = Library()
    for case, one, many in zip(cases, expected, gathered, strict=True):
        one = {name: value for name, value in one.items() if name in many} if isinstance(many, dict) else one
        if found := difference(one, many):
            faults.append(f"{case}: alone and together differ at {found}")
        if (right := library.texts(case)) is not None and (given := _texts(case, many)) != right:
            faults.append(f"{case}: together {given}, in the library {right}")
        gaps += [abs(a - b) for a, b in zip(_log_probs(one), _log_probs(many), strict=False)]
    return faults, [], max(gaps)


async def _late(url: str, case: Case, seconds: float) -> Any:
    await asyncio.sleep(seconds)
    async with Connection(url) as connection:
        answer = await connection.ask(*case[1:])
    if answer.status != 200:
        return {"status": answer.status, "body": answer.body}
    return joined([each for _, each in answer.events()]) if answer.streamed else answer.json


def _log_probs(answer: Any) -> list[float]:
    """List all numbers with a fraction in an answer, in order."""
    if isinstance(answer, dict):
        return [each for name in sorted(answer) if name != "top_logprobs" for each in _log_probs(answer[name])]
    if isinstance(answer, list):
        return [each for item in answer for each in _log_probs(item)]
    return [answer] if isinstance(answer, float) else []


def _texts(case: Case, answer: Any) -> list[Any]:
    """List what an answer says: texts and how they end, in the order of the library."""
    if case.path == "/translate":
        found = answer.get("translatedText")
        return [found] if isinstance(found, str) else found
    choices = answer.get("choices", [])
    return sorted((each.get("text") or each["message"]["content"], each["finish_reason"]) for each in choices)


class Library:
    """The shipped models as the library has them, asked for what a request asks for."""

    def __init__(self) -> None:
        self._models: dict[str, Any] = {name: toolkit.load(name) for name in MODELS}

    def texts(self, case: Case) -> list[Any] | None:
        """List what `_texts` finds in the right answer; None for what is no work of a model, or not of a kind here."""
        fields = case.fields or {}
        if case.path == "/translate":
            return self._translations(self._models["en-ne-small"], fields)
        if case.path == "/v1/chat/completions":
            return sorted(self._replies(self._models["chat"], fields))
        if case.path == "/v1/completions" and not fields.get("echo"):
            return sorted(self._continuations(self._models["stories"], fields))
        return None

    def _translations(self, model: Translator, fields: dict[str, Any]) -> list[str]:
        texts = fields["q"] if isinstance(fields["q"], list) else [fields["q"]]
        return model.translate(texts, num_beams=fields.get("num_beams", 1))

    def _continuations(self, model: LanguageModel, fields: dict[str, Any]) -> list[tuple[str, str]]:
        prompts = fields["prompt"] if isinstance(fields["prompt"], list) else [fields["prompt"]]
        stops = [fields["stop"]] if isinstance(fields.get("stop"), str) else fields.get("stop", [])
        settings = _settings(fields)
        beams = settings.get("num_beams", 1) > 1
        found = model.generate_n(prompts, num_return_sequences=fields.get("n", 1), stop_strings=stops, **settings)
        return [(each.text, each.finish_reason) for group in found for each in group[: 1 if beams else None]]

    def _replies(self, model: LanguageModel, fields: dict[str, Any]) -> list[tuple[str, str]]:
        stops: Sequence[str] = fields.get("stop", [])
        settings = {"do_sample": False, **_settings(fields)}
        if fields.get("n", 1) == 1:
            return [_reply(model, fields["messages"], stops, settings)]
        template = make_template("control", model.tokenizer, model.model.config.begin)
        ids = template.prompt([Message(each["role"], each["content"]) for each in fields["messages"]])
        config = ContinuationConfig(num_return_sequences=fields["n"], **settings)
        number = sum(each["role"] == "assistant" for each in fields["messages"])
        with model.arithmetic():
            [found] = generate(model.model, [ids[len(template.begin) :]], config, numbers=[number], end=template.end)
        said = [continuation("", each, model.tokenizer, ()) for each in found]
        return [(template.reader().whole(each.text), each.finish_reason) for each in said]


def _reply(model: LanguageModel, messages: list[dict], stops: Sequence[str], settings: dict) -> tuple[str, str]:
    *earlier, last = [Message(each["role"], each["content"]) for each in messages]
    system = earlier[0].content if earlier and earlier[0].role == "system" else ""
    session = model.chat(system, stop_strings=stops, **settings)
    if any(each.role == "assistant" for each in earlier):
        with tempfile.TemporaryDirectory() as directory:
            write_conversation(f"{directory}/conversation.json", earlier)
            session.load(f"{directory}/conversation.json")
    reply = session.send(last.content)
    return reply.text, reply.finish_reason


def _settings(fields: dict[str, Any]) -> dict[str, Any]:
    found = {name: fields[name] for name in _SETTINGS if name in fields}
    if found.get("temperature") == 0 or found.get("num_beams", 1) > 1:
        found["do_sample"] = False
        found.pop("temperature", None)
    elif "temperature" in found:
        found["do_sample"] = True
    return {**found, "max_new_tokens": fields["max_tokens"]}
