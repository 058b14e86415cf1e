"""Fields that say how a text is written, of OpenAI's requests and our own, and the settings made of them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from toolkit.decoding import ContinuationConfig
from toolkit.errors import ConfigError, ToolkitError
from toolkit.language_model import LanguageModel
from toolkit.serving.errors import ApiError, Limits
from toolkit.serving.fields import Reader, choice, flag, number, read_fields, shown, text, texts, whole, wrong
from toolkit.tokenization.special import EOS

_LONGEST_STOP = 256  # characters
_LARGEST = 2**63 - 1

# Fields by which a request samples, where it does not say so.
_OF_SAMPLING = ("temperature", "top_p", "top_k", "min_p")
# What the library calls settings that have another name here.
_NAMES = {"max_new_tokens": "max_tokens", "min_new_tokens": "min_tokens"}

# What OpenAI's interface has and no model here can do: the values that ask for nothing, and what to say of others.
_TOKENS_MENTIONED = "repetition_penalty (1 is off) and no_repeat_ngram_size are what this server has"
REFUSED: dict[str, tuple[Collection[Any], str]] = {
    "presence_penalty": ((0, 0.0), _TOKENS_MENTIONED),
    "frequency_penalty": ((0, 0.0), _TOKENS_MENTIONED),
}


def generation_readers(limits: Limits) -> dict[str, Reader]:
    """Make the readers of the fields that completions and conversations share."""
    return {
        "model": text,
        "max_tokens": whole(0, _LARGEST),
        "temperature": number(0),
        "top_p": number(0, 1.0),
        "n": whole(1, limits.n),
        "stop": texts(limits.stops, _LONGEST_STOP),
        "seed": whole(0, _LARGEST),
        "stream": flag,
        "stream_options": _stream_options,
        "logit_bias": _bans,
        "user": text,
        "top_k": whole(0, _LARGEST),
        "min_p": number(0, 1.0),
        "repetition_penalty": number(0),
        "no_repeat_ngram_size": whole(0, _LARGEST),
        "num_beams": whole(1, limits.beams),
        "length_penalty": number(-100.0, 100.0),
        "early_stopping": choice(True, False, "never", "settled"),
        "min_tokens": whole(0, _LARGEST),
        "bad_words": texts(limits.stops, _LONGEST_STOP, alone=False),
        "do_sample": flag,
        "max_wait": number(0, limits.wait),
    }


def _stream_options(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise wrong(value, name, "an object")
    refused = {"include_obfuscation": ((False,), "this server adds nothing to hide the lengths of tokens")}
    return read_fields(value, {"include_usage": flag}, refused, f"{name}.")


def _bans(value: Any, name: str) -> list[list[int]]:
    """Read logit_bias -> sequences of one id each that are not written."""
    if not isinstance(value, dict):
        raise wrong(value, name, 'an object of ids: {"17": -100}')
    bans = []
    for key, bias in value.items():
        if not (key.isascii() and key.isdigit() and len(key) < 10):
            raise ApiError(400, f"{name} has the name {shown(key)}: it must be the id of a token", param=name)
        if isinstance(bias, bool) or bias not in (0, -100):
            raise ApiError(
                400,
                f"{name} of {key} is {shown(bias)}: a token can be banned (-100) or left alone (0)",
                param=name,
            )
        if bias:
            bans.append([int(key)])
    return bans


@dataclass(frozen=True)
class Generation:
    """Settings by which the texts of a request are written.

    config: seeded. count: the outputs that are given of each prompt; stops: where they end; bans: ids that are not
    written.
    """

    config: ContinuationConfig
    count: int
    stops: list[str]
    bans: list[list[int]]
    wait: float
    streams: bool
    with_usage: bool

    @property
    def seed(self) -> dict[str, int]:
        """The seed that was drawn by, as a field of the answer: given again, it writes the same."""
        return {"seed": self.config.seed} if self.config.samples else {}


def generation_of(
    given: Mapping[str, Any], reader: LanguageModel, limits: Limits, *, sample: bool, end: int = EOS, drawn: int = 0
) -> Generation:
    """Make the settings of fields that were read.

    sample: whether tokens are drawn where the request says nothing of it. end: the id that ends a text. drawn: how many
    outputs are written where those of which more are given, of `best_of`.

    Raises ApiError for settings that contradict each other.
    """
    if "stream_options" in given and not given.get("stream"):
        raise ApiError(
            400, "stream_options are of a stream: set stream to true, or leave them out", param="stream_options"
        )
    count = given.get("n", 1)
    config = _config(given, count, drawn, reader.model.config.max_length, limits, sample)
    bans = given.get("logit_bias", [])
    size = reader.model.config.vocab_size
    for (token,) in bans:
        if token >= size or token == end:
            why = f"the model has {size} ids" if token >= size else "it ends a text, and min_tokens is what delays that"
            raise ApiError(400, f"logit_bias names the id {token}: {why}", param="logit_bias")
    try:
        bans = bans + reader.bad_ids(given.get("bad_words", ()))
    except ToolkitError as error:
        raise ApiError(400, str(error), param="bad_words") from None
    wait, streams = given.get("max_wait", limits.wait), given.get("stream", False)
    with_usage = given.get("stream_options", {}).get("include_usage", False)
    return Generation(config, count, given.get("stop", []), bans, wait, streams, with_usage)


def _config(
    given: Mapping[str, Any], count: int, drawn: int, context: int, limits: Limits, sample: bool
) -> ContinuationConfig:
    """Make the settings of decoding.  Raises ApiError, with the names that the fields have here."""
    names = ("top_k", "min_p", "top_p", "temperature", "repetition_penalty", "no_repeat_ngram_size", "num_beams")
    names += ("length_penalty", "early_stopping", "past_context", "seed")
    settings = {name: given[name] for name in names if name in given}
    asked = any(name in given for name in _OF_SAMPLING)
    sample = given.get("do_sample", asked or (sample and given.get("num_beams", 1) == 1))
    if sample and given.get("temperature") == 0:
        # The most probable token, which the others would keep whatever they are: many clients send all of them.
        sample = False
        settings = {name: value for name, value in settings.items() if name not in _OF_SAMPLING}
    what, count = ("best_of", drawn) if drawn > count else ("n", count)
    if count > 1 and not sample and given.get("num_beams", 1) == 1:
        message = f"{what} is {count}, but nothing is drawn, and there is one most probable text: "
        raise ApiError(400, f"{message}ask for one, or raise temperature or num_beams", param=what)
    settings |= {"do_sample": sample, "num_return_sequences": count, "min_new_tokens": given.get("min_tokens", 0)}
    most = given.get("max_tokens")
    if most is not None or limits.tokens < context or given.get("past_context") == "slide":
        # What is beyond the limit of the server, or the context, is not written: finish_reason says so.
        settings["max_new_tokens"] = max(min(limits.tokens if most is None else most, limits.tokens), 1)
    try:
        return ContinuationConfig(**settings).seeded()
    except ConfigError as error:
        message = str(error)
        for inner, name in {**_NAMES, "num_return_sequences": what}.items():
            message = message.replace(inner, name)
        param = message.split(" ", 1)[0]
        raise ApiError(400, message, param=param if param in given else None) from None
