"""Requests of all kinds, drawn from a seed: what programs ask a server of en-ne-small, stories and chat."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

WHO = ("I", "The boy", "My sister", "The old woman", "Our teacher", "A farmer", "His father", "The girl")
DOES = ("drink water", "eat rice", "go to school", "read a book", "sing a song", "work in the field", "live in Nepal")
WHEN = ("", " today", " every day", " in the morning", " with my friend", " at home")
NEPALI = ("म केटा हुँ।", "उनी भात खान्छिन्।", "ऊ पानी पिउँछ।", "यो मेरो घर हो।", "तपाईं कहाँ जानुहुन्छ?")
STORIES = ("Once upon a time", "One day, a boy", "There was a little girl named Radha.", "The farmer had a cow", "")
SYSTEMS = ("", "You are a friendly assistant.", "Answer in short sentences.")
NAMES = ("Sita", "Ram", "Zanubia", "Kamala", "Hari", "Bishnu")
PLACES = ("Pokhara", "Kathmandu", "Lalitpur", "Dharan")
QUESTIONS = (
    "How many legs does a dog have?",
    "What is the capital of Nepal?",
    'How do you say "I am a boy" in Nepali?',
    "What is my name?",
    "Where do I live?",
    "Who are you?",
    "What is the opposite of hot?",
    "Who will win the match tomorrow?",
)


class Case(NamedTuple):
    """A request, and what kind it is for the tables."""

    kind: str
    method: str
    path: str
    fields: Any = None

    @property
    def plain(self) -> "Case":
        """The same request, whose answer comes as a whole."""
        if not self.fields or not self.fields.get("stream"):
            return self
        left_out = ("stream", "stream_options")
        fields = {name: value for name, value in self.fields.items() if name not in left_out}
        return self._replace(fields=fields)


def mixed(count: int, seed: int, without: Sequence[str] = ()) -> list[Case]:
    """Draw requests, of all kinds in turn: some kinds are asked for more often than others.

    without: parts of paths; such requests are left out, and there are as many less.
    """
    rng = np.random.default_rng(seed)
    kinds: list[Callable[[np.random.Generator], Case]] = [
        *(_chat, _chat, _chat, _completion, _completion, _translation, _translation, _translations),
        *(_beams, _samples, _scored, _chat_samples, _rare),
    ]
    drawn = [kinds[number % len(kinds)](rng) for number in range(count)]
    return [each for each in drawn if not any(word in each.path for word in without)]


def sentence(rng: np.random.Generator) -> str:
    """Draw an English sentence."""
    return f"{_one(rng, WHO)} {_one(rng, DOES)}{_one(rng, WHEN)}."


def conversation(rng: np.random.Generator) -> list[dict[str, str]]:
    """Draw messages of one to three turns; many of them begin as others do."""
    system, name, place = _one(rng, SYSTEMS), _one(rng, NAMES), _one(rng, PLACES)
    messages = [{"role": "system", "content": system}] if system else []
    for turn in range(int(rng.integers(3))):
        said = f"My name is {name}." if turn == 0 else f"I live in {place}."
        messages += [{"role": "user", "content": said}, {"role": "assistant", "content": "Thank you for telling me."}]
    return [*messages, {"role": "user", "content": _one(rng, QUESTIONS)}]


def _one(rng: np.random.Generator, several: tuple[str, ...]) -> str:
    return several[int(rng.integers(len(several)))]


def _streamed(rng: np.random.Generator, kind: str, path: str, fields: dict[str, Any]) -> Case:
    """Ask for a stream in half of the cases, and in half of these for the usage, too."""
    if rng.random() < 0.5:
        fields = {**fields, "stream": True, "stream_options": {"include_usage": True}}
        return Case(f"{kind}, streamed", "POST", path, fields)
    return Case(kind, "POST", path, fields)


def _drawn(rng: np.random.Generator) -> dict[str, Any]:
    """Choose settings of sampling, or none of it."""
    seed = int(rng.integers(1 << 31))
    return [
        {"temperature": 0},
        {"temperature": 0.8, "seed": seed},
        {"temperature": 1.0, "top_p": 0.9, "seed": seed},
        {"temperature": 0.7, "top_k": 10, "min_p": 0.05, "seed": seed},
        {"temperature": 0, "repetition_penalty": 1.3},
        {"temperature": 0, "no_repeat_ngram_size": 3},
    ][int(rng.integers(6))]


def _chat(rng: np.random.Generator) -> Case:
    fields = {"model": "chat", "messages": conversation(rng), "max_tokens": int(rng.integers(8, 48)), **_drawn(rng)}
    if rng.random() < 0.3:
        fields |= {"logprobs": True, "top_logprobs": 3}
    if rng.random() < 0.2:
        fields["stop"] = ["you", "."]
    return _streamed(rng, "chat", "/v1/chat/completions", fields)


def _chat_samples(rng: np.random.Generator) -> Case:
    fields = {"model": "chat", "messages": conversation(rng), "max_tokens": 24, "n": int(rng.integers(2, 5))}
    fields |= {"temperature": 0.9, "seed": int(rng.integers(1000))}
    return _streamed(rng, "chat, n", "/v1/chat/completions", fields)


def _completion(rng: np.random.Generator) -> Case:
    fields = {"model": "stories", "prompt": _one(rng, STORIES), "max_tokens": int(rng.integers(8, 64)), **_drawn(rng)}
    if rng.random() < 0.3:
        fields["stop"] = " and"
    if rng.random() < 0.3:
        fields["logprobs"] = 2
    return _streamed(rng, "completion", "/v1/completions", fields)


def _samples(rng: np.random.Generator) -> Case:
    fields = {"model": "stories", "prompt": [_one(rng, STORIES), "The"], "max_tokens": 24, "n": 3}
    fields |= {"temperature": 1.0, "seed": int(rng.integers(1000))}
    return _streamed(rng, "completion, n", "/v1/completions", fields)


def _scored(rng: np.random.Generator) -> Case:
    prompts = [f"{_one(rng, STORIES)} {sentence(rng)}" for _ in range(2)]
    fields = {"model": "stories", "prompt": prompts, "echo": True, "max_tokens": 1, "logprobs": 1, "temperature": 0}
    return Case("echo, logprobs", "POST", "/v1/completions", fields)


def _beams(rng: np.random.Generator) -> Case:
    if rng.random() < 0.5:
        fields = {"model": "stories", "prompt": _one(rng, STORIES), "max_tokens": 16, "num_beams": 4, "temperature": 0}
        return Case("completion, beams", "POST", "/v1/completions", fields)
    fields = {"q": sentence(rng), "source": "en", "target": "ne", "num_beams": 4, "alternatives": 2}
    return Case("translation, beams", "POST", "/translate", fields)


def _translation(rng: np.random.Generator) -> Case:
    fields: dict[str, Any] = {"q": sentence(rng), "source": "en", "target": "ne"}
    if rng.random() < 0.3:
        fields["details"] = True
    return Case("translation", "POST", "/translate", fields)


def _translations(rng: np.random.Generator) -> Case:
    texts = [" ".join(sentence(rng) for _ in range(int(rng.integers(1, 3)))) for _ in range(int(rng.integers(2, 6)))]
    return Case("translation of a list", "POST", "/translate", {"q": texts, "source": "auto", "target": "ne"})


def _rare(rng: np.random.Generator) -> Case:
    text = f"{sentence(rng)} {_one(rng, NEPALI)}"
    return [
        Case("detect", "POST", "/detect", {"q": text}),
        Case("tokenize", "POST", "/tokenize", {"model": "chat", "prompt": text}),
        Case("languages", "GET", "/languages"),
        Case("models", "GET", "/v1/models"),
    ][int(rng.integers(4))]
