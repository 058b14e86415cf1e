"""Requests that are decoded together give what they give alone: ids, ends, log-probabilities.

    python -m tests.serving.sameness --requests 200

Random requests of a language model and of a translator join a continuous batch at random steps, and some others leave
it; then as many go through HTTP all at once. Where one writes other ids than alone, the border is shown that its first
other choice lay beside: within rounding of it either token is right, which is counted; farther away it is a fault.
"""

import argparse
import asyncio
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import toolkit
from tests.serving.borders import decoded_alone, explained
from tests.serving.mix import STORIES, conversation, sentence
from tests.serving.through_http import compared
from toolkit.decoding import ContinuationConfig, GenerationConfig
from toolkit.decoding.continuous import ContinuousBatch, Progress, Request
from toolkit.decoding.sampling import log_sum_exp
from toolkit.models.gpt import GPT
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import BOS, SPECIAL_TOKENS

TOLERANCE = 1e-4  # of log-probabilities


class Outcome(NamedTuple):
    """How requests compare with themselves alone."""

    faults: list[str]
    rounded: list[str]  # those within rounding of a border
    farthest: float  # difference of two log-probabilities of one token


def draw(model: Any, rng: np.random.Generator, key: int) -> Request:
    """Draw a request of any kind for a model with its tokenizer."""
    size = model.model.config.vocab_size
    ids = rng.integers(len(SPECIAL_TOKENS), size, int(rng.integers(1, 12))).tolist()
    if isinstance(model.model, GPT):
        return _draw_prompt(model, rng, key, ids)
    if rng.random() < 0.8:
        ids = model.tokenizer.encode(" ".join(sentence(rng) for _ in range(int(rng.integers(1, 3)))))
    settings = _settings(rng)
    request = Request(key, ids, GenerationConfig(**settings), number=int(rng.integers(3)))
    if rng.random() < 0.2:
        request = replace(request, prefix=ids[:2])
    return replace(request, bad_words=[ids[-1:]]) if rng.random() < 0.2 else request


def _draw_prompt(model: Any, rng: np.random.Generator, key: int, ids: list[int]) -> Request:
    """Draw a request of a language model; many prompts begin as others do."""
    if rng.random() < 0.8:
        said = [each["content"] for each in conversation(rng)]
        text = " ".join(said) if rng.random() < 0.5 else f"{STORIES[int(rng.integers(4))]} {said[-1]}"
        ids = model.tokenizer.encode(text)
    settings = _settings(rng)
    if settings.get("num_beams", 1) == 1 and rng.random() < 0.1:
        settings |= {"past_context": "slide", "max_new_tokens": model.model.config.max_length + 20}
        settings.pop("num_return_sequences", None)
    most = model.model.config.max_length - 40
    return Request(
        key,
        ids[:most],
        ContinuationConfig(**{"do_sample": False, **settings}),
        number=int(rng.integers(3)),
        bad_words=[ids[-1:]] if rng.random() < 0.2 else (),
        alternatives=3 if settings.get("num_beams", 1) == 1 and rng.random() < 0.3 else 0,
        score_prompt=rng.random() < 0.2,
    )


def _settings(rng: np.random.Generator) -> dict[str, Any]:
    """Draw settings: a third greedy, a third samples, a third beams."""
    settings: dict[str, Any] = {"max_new_tokens": int(rng.integers(4, 32))}
    match int(rng.integers(3)):
        case 0:
            settings |= [{}, {"repetition_penalty": 1.3}, {"no_repeat_ngram_size": 2}][int(rng.integers(3))]
        case 1:
            settings |= {
                "do_sample": True,
                "seed": int(rng.integers(1 << 31)),
                "temperature": float(rng.uniform(0.5, 1.5)),
            }
            settings |= {"num_return_sequences": int(rng.integers(1, 5))}
            settings |= [{}, {"top_p": 0.9, "min_p": 0.0}, {"top_k": 5}, {"top_k": 0, "min_p": 0.02}][
                int(rng.integers(4))
            ]
        case _:
            width = int(rng.integers(2, 5))
            settings |= {"num_beams": width, "num_return_sequences": int(rng.integers(1, width + 1))}
            settings |= [{}, {"length_penalty": 0.5}, {"early_stopping": True}][int(rng.integers(3))]
    if rng.random() < 0.2:
        settings["min_new_tokens"] = 2
    return settings


def decode_together(
    model: Any, requests: Sequence[Request], rng: np.random.Generator, places: int, piece: int
) -> dict[int, list[Progress]]:
    """Let requests join a batch at random steps, beside some others that leave it -> the news of each, by its key."""
    batch, news = ContinuousBatch(model, places, piece), defaultdict(list)
    waiting, leaving, others = list(requests), [], len(requests)
    while waiting or leaving or not batch.idle:
        for _ in range(int(rng.integers(4))):
            if waiting:
                batch.add(waiting.pop(0))
        if waiting and rng.random() < 0.2:
            others += 1
            batch.add(replace(waiting[0], key=others))
            leaving.append(others)
        if leaving and rng.random() < 0.3:
            batch.cancel(leaving.pop(0))
        for each in batch.step() if not batch.idle else ():
            news[each.key].append(each)
    return news


def compare(model: Any, requests: Iterable[Request], news: dict[int, list[Progress]]) -> Outcome:
    """Compare the news of requests with what the library gives for each alone."""
    faults, rounded, farthest = [], [], 0.0
    for request in requests:
        alone, *earlier, last = decoded_alone(model, request), *news[request.key]
        told = [pair for each in (*earlier, last) for pair in each.written]
        together = last.hypotheses
        if last.error is not None or together is None or any(each.hypotheses is not None for each in earlier):
            faults.append(f"{request}: ends with {last}")
            continue
        if [(each.ids, each.finished) for each in together] != [(each.ids, each.finished) for each in alone]:
            found, is_near = explained(model, request, together)
            (rounded if is_near else faults).append(f"{request}: {found}")
            continue
        pairs = zip(alone, together, strict=True)
        gaps = [abs(a - b) for one, two in pairs for a, b in zip(one.token_log_probs, two.token_log_probs, strict=True)]
        if request.score_prompt:
            gaps += _prompt_gaps(model, request, news[request.key])
        farthest = max(farthest, *gaps, 0.0)
        if max(gaps, default=0) > TOLERANCE:
            faults.append(f"{request}: log-probabilities differ by {max(gaps):.1e}")
        if request.config.num_beams == 1 and (fault := _told_wrongly(request, told, together)):
            faults.append(f"{request}: {fault}")
    return Outcome(faults, rounded, farthest)


def _told_wrongly(request: Request, told: list[tuple[int, Any]], together: Sequence[Any]) -> str:
    """Say where the tokens that were told one by one are not those of the end."""
    samples = range(request.config.sequences_each)
    texts = sorted(
        [token.id for sample, token in told if sample == each and token.id != request.end] for each in samples
    )
    if texts != sorted(each.ids for each in together):
        return f"told {texts}, and at the end {together}"
    wrong = [token for _, token in told if len(token.best) != request.alternatives]
    wrong += [token for _, token in told for each, value in token.best if each == token.id and value != token.log_prob]
    return f"the most probable tokens: {wrong[0]}" if wrong else ""


def _prompt_gaps(model: Any, request: Request, news: Sequence[Progress]) -> list[float]:
    """Compare the log-probabilities of a prompt's tokens with those that one reading of the whole gives."""
    [told] = [each.prompt for each in news if each.prompt is not None]
    ids = np.array([*([BOS] if model.config.begin else []), *request.ids])
    tape = Tape()
    logits = model.output.logits(model.read(ids, Rows(np.array([len(ids)])), tape), tape)[:-1]
    right = logits[np.arange(len(ids) - 1), ids[1:]] - log_sum_exp(logits)
    assert [each.id for each in told] == list(request.ids)
    found = [each.log_prob for each in told if each.log_prob is not None]
    assert len(found) == len(right)
    return np.abs(right - found).tolist()


def in_a_batch(name: str, count: int, seed: int, places: int = 16, piece: int = 8) -> Outcome:
    """Draw requests for a model, and compare."""
    model, rng = toolkit.load(name), np.random.default_rng(seed)
    requests = [draw(model, rng, key) for key in range(count)]
    with model.arithmetic():
        news = decode_together(model.model, requests, rng, places, piece)
        return compare(model.model, requests, news)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=200, help="for each model, and through HTTP")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--models", nargs="*", default=["stories", "chat", "en-ne-small"])
    parser.add_argument("--without", nargs="*", default=[], help="parts of paths that are not asked")
    parser.add_argument("--no-http", action="store_true")
    arguments = parser.parse_args()
    outcomes = {name: in_a_batch(name, arguments.requests, arguments.seed) for name in arguments.models}
    if not arguments.no_http:
        outcomes["through HTTP"] = Outcome(
            *asyncio.run(compared(arguments.requests, arguments.seed, arguments.without))
        )
    for name, found in outcomes.items():
        print(
            f"{name}: {arguments.requests} requests, {len(found.faults)} faults, {len(found.rounded)} within rounding "
            f"of a border, log-probabilities differ by at most {found.farthest:.1e}"
        )
        for kind, each in [*(("FAULT", each) for each in found.faults), *(("BORDER", each) for each in found.rounded)]:
            print(f"    {kind} {each}")
    return int(any(found.faults for found in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
