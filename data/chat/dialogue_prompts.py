"""Prompts with known answers: the test, and the preferences.

A prompt is a conversation of the program (dialogue_program.py) whose last exchange is of a wanted kind and still lacks
its reply.
"""

from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

from data.chat.acts import knowing, social, telling, translating
from data.chat.dialogue import Core, Exchange, State, polite
from data.chat.dialogue_deck import Deck, sentence
from data.chat.dialogue_program import Act, Messages, add, begin, next_act, start, step, talk
from data.chat.names import Split

TEST_SIZES = {
    "recall": 250, "recall_unseen": 250, "translation": 250, "fact": 100, "sum": 60, "unknown": 50, "correction": 50,
    "social": 50, "nepali": 40,
}  # fmt: skip
# What is the matter with the worse of two replies. To see that a polite one is wrong, a reward model has to remember
# and to translate as well as the model that it judges, so there are few of these.
WORSE = {"curt": 0.6, "curt and wrong": 0.3, "wrong": 0.1}
PREFERENCE_WEIGHTS = {
    "recall": 28, "translation": 28, "fact": 12, "sum": 8, "unknown": 8, "correction": 6, "social": 7, "nepali": 3,
}  # fmt: skip
LONGEST_HISTORY = {"test": 9, "preferences": 4}  # exchanges before the last one
FIRST = "I am a boy."  # is always in the test
FOLLOW = 0.15  # of the translations are asked for by "And in Nepali?"


class Prompt(NamedTuple):
    messages: Messages  # the last one is the user's
    exchange: Exchange
    kind: str


def social_act(state: State) -> Exchange:
    return state.rng.choice((social.greet, social.part, social.thank, social.small_talk))(state)


def unknown_act(state: State) -> Exchange | None:
    return state.rng.choice((telling.ask_untold, telling.ask_untold, knowing.unknowable_question))(state)


def nepali_act(state: State) -> Exchange | None:
    """Anything that may be asked in a Nepali conversation."""
    acts = (telling.ask, telling.ask, knowing.fact, social.small_talk, telling.ask_untold, social.thank)
    return state.rng.choice(acts)(state)


ACTS: dict[str, Act] = {
    "recall": telling.ask, "recall_unseen": telling.ask_name, "fact": knowing.fact, "sum": knowing.calculate,
    "unknown": unknown_act, "correction": telling.ask_corrected, "social": social_act, "nepali": nepali_act,
}  # fmt: skip


def history(state: State, kind: str, length: int, style: Random) -> Messages:
    """What is said before the question. What a question of the kind needs is said, if it was not."""
    messages = begin(state)
    talk(state, messages, max(0, length - 3) if kind == "correction" else length, style, ends=False)
    if kind == "correction" and not state.old:
        for act in (telling.tell, telling.correct, next_act(state, last=False)):
            exchange = step(state, act)
            if exchange is not None:
                add(messages, exchange, style)
    return messages


def question(state: State, kind: str, messages: Messages, held_out: Deck, style: Random) -> Exchange | None:
    """The last exchange. What is translated there comes from a deck of its own."""
    if kind != "translation":
        return step(state, ACTS[kind])
    if state.rng.random() < FOLLOW:
        said = step(state, lambda now: translating.say(now, held_out))
        if said is None:
            return None
        add(messages, said, style)
        return step(state, translating.follow_up)
    return step(state, lambda now: translating.translate(now, held_out))


def prompt(kind: str, split: Split, decks: tuple[Deck, Deck], longest: int, seed: str) -> Prompt | None:
    """One prompt, or none if this conversation does not allow the question."""
    taught, held_out = decks
    state = start(split, taught, seed, nepali=1.0 if kind == "nepali" else 0.0)
    style = Random(f"{seed} style")
    messages = history(state, kind, state.rng.randrange(longest + 1), style)
    exchange = question(state, kind, messages, held_out, style)
    if exchange is None:
        return None
    return Prompt([*messages, {"role": "user", "content": exchange.user}], exchange, kind)


def prompts(
    kinds: Callable[[], str], split_of: Callable[[str], Split], decks, longest: int, seed: str
) -> Iterator[Prompt]:
    """Prompts without end; the kind of each is what `kinds` says."""
    number = 0
    while True:
        kind, found = kinds(), None
        while found is None:
            found = prompt(kind, split_of(kind), decks, longest, f"chat {seed} {number}")
            number += 1
        yield found


def tests(split: Split) -> Iterator[dict]:
    """The lines of test.jsonl, and of valid.questions.jsonl, by which settings are chosen. Names are of the training
    set, and of this split, new to the model, where the kind is recall_unseen; so are sentences that are translated.
    """
    decks = Deck("train", f"chat {split} questions history"), Deck(split, f"chat {split} questions")
    if split == "test":
        decks[1].left.append(sentence("test", FIRST))
    wanted = iter([kind for kind, size in TEST_SIZES.items() for _ in range(size)])

    def split_of(kind: str) -> Split:
        return split if kind in ("recall_unseen", "unknown") else "train"

    stream = prompts(lambda: next(wanted), split_of, decks, LONGEST_HISTORY["test"], f"{split} questions")
    for _ in range(sum(TEST_SIZES.values())):
        found = next(stream)
        yield {"messages": found.messages, "kind": found.kind, "accept": found.exchange.accept}


def tone_of_wrong(exchange: Exchange, wrong: Core) -> str:
    """The manners that go with a wrong answer, so that they do not give it away: somebody who says that he does not
    know is sorry, and somebody who invents an answer is not.
    """
    nepali = exchange.tone.startswith("ne ")
    if wrong.short in ("I do not know.", "मलाई थाहा छैन।"):
        return "ne unknown" if nepali else "untold"
    if exchange.kind == "unknown":
        return "ne answer" if nepali else "answer"
    return exchange.tone


def ranking(exchange: Exchange, style: Random) -> list[str]:
    """A right and polite reply, and a worse one: curt, wrong, or curt and wrong."""
    wrong = style.choice(exchange.wrong)
    tone = tone_of_wrong(exchange, wrong)
    worse = {
        "curt": exchange.core.short, "curt and wrong": wrong.short, "wrong": polite(wrong.full, tone, style),
    }  # fmt: skip
    (kind,) = style.choices(list(WORSE), list(WORSE.values()))
    return [polite(exchange.core.full, exchange.tone, style), worse[kind]]


def preferences(split: Split) -> Iterator[dict]:
    """Lines of preferences.train.jsonl and preferences.test.jsonl without end: those of the test have other names, and
    translate held-out sentences.
    """
    decks = Deck("train", f"chat preferences {split} history"), Deck(split, f"chat preferences {split}")
    draw, style = Random(f"chat preferences {split} kinds"), Random(f"chat preferences {split} style")
    kinds, weights = list(PREFERENCE_WEIGHTS), list(PREFERENCE_WEIGHTS.values())
    stream = prompts(
        lambda: draw.choices(kinds, weights)[0], lambda kind: split, decks, LONGEST_HISTORY["preferences"],
        f"preferences {split}",
    )  # fmt: skip
    for found in stream:
        exchange = found.exchange
        if split == "test" and len(found.messages) < 3:
            continue  # a lone "Hello." is the same in both
        if found.kind == "translation":
            exchange = exchange._replace(wrong=translating.similar(exchange.core.full, draw))
        if exchange.wrong:
            yield {"prompt": found.messages, "ranking": ranking(exchange, style), "kind": found.kind}
