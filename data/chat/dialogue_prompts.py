"""Prompts with known answers: the test, and the preferences.

A prompt is a conversation of the program (dialogue_program.py) whose last exchange is of a wanted kind and still lacks
its reply.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

from data.chat.acts import knowing, reckoning, social, telling, translating
from data.chat.dialogue import BLUNT, BLUNT_NE, Core, Exchange, State, polite
from data.chat.dialogue_deck import Deck, sentence
from data.chat.dialogue_program import Act, Messages, add, begin, start, step, talk, tell_name
from data.chat.names import Split

# Kind of question -> how many are asked at once, and as many late in a long conversation.
TEST_SIZES = {
    "recall": 75, "unseen": 75, "several": 60, "place": 40, "work": 40, "correction": 50, "translation": 80, "fact": 50,
    "sum": 50, "beyond": 40, "unknown": 40, "outside": 100, "social": 25, "nepali": 20, "brief": 30, "name": 30,
    "in_nepali": 30,
}  # fmt: skip
LATE = ", late"
# What is the matter with the worse of two replies. To see that a polite one is wrong, a reward model has to remember
# and to translate as well as the model that it judges, so there are few of these.
WORSE = {"curt": 0.45, "blunt": 0.15, "curt and wrong": 0.25, "wrong": 0.15}
PREFERENCE_WEIGHTS = {
    "recall": 22, "several": 5, "translation": 22, "fact": 10, "sum": 8, "beyond": 3, "unknown": 10, "correction": 7,
    "social": 7, "nepali": 7, "brief": 5, "name": 6, "in_nepali": 4,
}  # fmt: skip
SOON, LONG = (0, 1), (7, 8, 9)  # exchanges before the last one, at once and late
LONGEST_HISTORY = 7  # of the preferences
FIRST = "I am a boy."  # is always in the test
FOLLOW = 0.15  # of the translations are asked for by "And in Nepali?"
REFUSALS = ("I do not know.", "I do not know that.", "I cannot do that.", "I have not learned to do that.")
TRIES = 60  # for two replies of which the wanted one is the longer
HERE = Path(__file__).parent


class Prompt(NamedTuple):
    messages: Messages  # the last one is the user's
    exchange: Exchange
    kind: str
    state: State


def social_act(state: State) -> Exchange:
    return state.rng.choice((social.greet, social.part, social.thank, social.small_talk))(state)


def unknown_act(state: State) -> Exchange | None:
    return state.rng.choice((telling.ask_untold, telling.ask_untold, knowing.unknowable_question))(state)


def any_act(state: State) -> Exchange | None:
    """Anything that may be asked, whatever the system message asks for, but translations: they are the same then."""
    acts = (telling.ask, telling.ask, knowing.fact, reckoning.calculate, social.small_talk, telling.ask_untold)
    return state.rng.choice(acts)(state)


def ask_told(state: State) -> Exchange | None:
    """A question for what was told first."""
    first = min(state.told_at.values(), default=0)
    return telling.ask_about(state, [key for key, at in state.told_at.items() if at == first])


def about(*keys: str) -> tuple[Act, Act]:
    return lambda state: telling.tell(state, keys), lambda state: telling.ask_about(state, keys)


# Kind -> what has to be said before, if anything, and the question.
ACTS: dict[str, tuple[Act | None, Act]] = {
    "recall": (telling.tell, telling.ask), "unseen": about(*telling.NAMES),
    "several": (telling.tell_several, ask_told), "place": about("place", "origin"), "work": about("job", "work"),
    "correction": (telling.tell, telling.ask_corrected),
    "fact": (None, knowing.fact), "sum": (None, reckoning.calculate), "beyond": (None, reckoning.beyond),
    "unknown": (None, unknown_act), "social": (None, social_act), "nepali": (telling.tell, any_act),
    "brief": (telling.tell, any_act), "name": (tell_name, any_act), "in_nepali": (telling.tell, any_act),
}  # fmt: skip
SYSTEM_KINDS = ("brief", "name", "in_nepali")
HELD_OUT = ("unseen", "place", "work", "unknown", "name")  # ask for names and words that are in no training text


def history(state: State, kind: str, length: int, style: Random) -> Messages:
    """What is said before the question. What a question of the kind needs is said first."""
    system = "nepali" if kind == "in_nepali" else kind if kind in SYSTEM_KINDS else state.rng.choice(("", None))
    messages = begin(state, system) if system is not None else []
    before = ACTS[kind][0] if kind in ACTS else None
    if before and not (kind == "name" and "name" in state.values):
        act_out(state, before, messages, style)
    if kind == "correction":
        act_out(state, telling.correct, messages, style)
    talk(state, messages, length, style, ends=False)
    return messages


def act_out(state: State, act: Act, messages: Messages, style: Random) -> None:
    exchange = step(state, act)
    if exchange is not None:
        add(messages, exchange, style, state)


def question(state: State, kind: str, messages: Messages, held_out: Deck, style: Random) -> Exchange | None:
    """The last exchange. What is translated there comes from a deck of its own."""
    if kind != "translation":
        return step(state, ACTS[kind][1])
    if state.rng.random() < FOLLOW:
        said = step(state, lambda now: translating.say(now, held_out))
        if said is None:
            return None
        add(messages, said, style, state)
        return step(state, translating.follow_up)
    return step(state, lambda now: translating.translate(now, held_out))


def prompt(kind: str, split: Split, decks: tuple[Deck, Deck], length: int, seed: str) -> Prompt | None:
    """One prompt, or none if this conversation does not allow the question."""
    taught, held_out = decks
    state = start(split, taught, seed, nepali=1.0 if kind == "nepali" else 0.0)
    style = Random(f"{seed} style")
    messages = history(state, kind, length, style)
    exchange = question(state, kind, messages, held_out, style)
    if exchange is None or (kind == "name" and "name" not in state.values):
        return None
    return Prompt([*messages, {"role": "user", "content": exchange.user}], exchange, kind, state)


def prompts(
    kinds: Callable[[], str], split_of: Callable[[str], Split], decks, lengths: Callable[[], int], seed: str
) -> Iterator[Prompt]:
    """Prompts without end; the kind of each is what `kinds` says, and the length of its history what `lengths` does."""
    number = 0
    while True:
        kind, length, found = kinds(), lengths(), None
        while found is None:
            found = prompt(kind, split_of(kind), decks, length, f"chat {seed} {number}")
            number += 1
        yield found


def tests(split: Split) -> Iterator[dict]:
    """The lines of test.jsonl, and of valid.questions.jsonl, by which settings are chosen. Names and words are of the
    training set, and of this split, new to the model, where the kind is one of HELD_OUT; so are sentences that are
    translated, and the questions from outside are those of other people.
    """
    decks = Deck("train", f"chat {split} questions history"), Deck(split, f"chat {split} questions")
    if split == "test":
        decks[1].left.append(sentence("test", FIRST))
    others, draw = iter(outside_questions(split)), Random(f"{split} questions lengths")
    for late in (False, True):
        wanted = iter([kind for kind, size in TEST_SIZES.items() for _ in range(size)])
        stream = prompts(
            lambda left=wanted: "fact" if (kind := next(left)) == "outside" else kind,
            lambda kind: split if kind in HELD_OUT else "train", decks,
            lambda lengths=LONG if late else SOON: draw.choice(lengths), f"{split} questions {late}",
        )  # fmt: skip
        for kind, size in TEST_SIZES.items():
            for found in islice(stream, size):
                record = {"messages": found.messages, "kind": kind + LATE * late, "accept": found.exchange.accept}
                if kind == "outside":
                    asked, answers = next(others)
                    said = [*found.messages[:-1], {"role": "user", "content": asked}]
                    record |= {"messages": said, "accept": answers}
                yield record | asked_of_the_reply(kind, found)


def asked_of_the_reply(kind: str, found: Prompt) -> dict[str, object]:
    """What a system message asks of the whole reply: to be no longer than the bare answer, or to say the name."""
    if kind == "brief":
        return {"most_letters": len(found.exchange.core.short)}
    return {"contains": [found.state.values["name"]]} if kind == "name" else {}


def outside_questions(split: str) -> list[tuple[str, list[str]]]:
    """The questions of others about what is not taught; right is the answer, if it has one, and to say no."""
    lines = (HERE / f"outside.{split}.tsv").read_text(encoding="utf-8").splitlines()
    pairs = [line.partition("\t")[::2] for line in lines]
    return [
        (asked, [*(each.strip() for each in answers.split("|") if each.strip()), *REFUSALS]) for asked, answers in pairs
    ]


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


def ranking(found: Prompt, style: Random, longer: bool) -> list[str] | None:
    """A right and polite reply, and a worse one: curt, blunt or wrong; the better one is the longer, or the shorter.
    None if no such two are found.
    """
    for _ in range(TRIES):
        better = best_reply(found, style)
        (kind,) = style.choices(list(WORSE), list(WORSE.values()))
        worse = worse_reply(found, kind, style)
        if len(better) != len(worse) and (len(better) > len(worse)) == longer and better not in (None, worse):
            return [better, worse]
    return None


def said(core: Core, style: Random) -> str:
    return core.full if style.random() < 0.5 else core.short


def best_reply(found: Prompt, style: Random) -> str:
    """What is asked for: right and polite, with the name or as short as can be where the system message says so."""
    exchange, asked = found.exchange, found.state.system
    if asked == "brief":
        return exchange.core.short
    name = found.state.values.get("name", "") if asked == "name" else ""
    return polite(said(exchange.core, style), exchange.tone, style, name)


def worse_reply(found: Prompt, kind: str, style: Random) -> str:
    """A right reply without manners, or a wrong one."""
    exchange, asked = found.exchange, found.state.system
    wrong = style.choice(exchange.wrong)
    if kind == "curt" and asked == "brief":
        return polite(said(exchange.core, style), exchange.tone, style)
    if kind == "curt" and asked == "name" and style.random() < 0.6:
        return polite(said(exchange.core, style), exchange.tone, style)
    if kind == "curt":
        return said(exchange.core, style)
    if kind == "blunt":
        return blunt(said(exchange.core, style), exchange.tone, style)
    if kind == "wrong":
        name = found.state.values.get("name", "") if asked == "name" else ""
        return polite(said(wrong, style), tone_of_wrong(exchange, wrong), style, name)
    return said(wrong, style) if style.random() < 0.6 else blunt(said(wrong, style), exchange.tone, style)


def blunt(core: str, tone: str, style: Random) -> str:
    """A core with a blunt opening, a blunt closing or both."""
    openings, closings = BLUNT_NE if tone.startswith("ne ") else BLUNT
    which = style.choice(("opening", "closing", "closing", "both"))
    opening = [style.choice(openings)] if which != "closing" else []
    return " ".join((*opening, core, *([style.choice(closings)] if which != "opening" else [])))


def preferences(split: Split) -> Iterator[dict]:
    """Lines of preferences.train.jsonl and of the two others without end: those have other names, and translate
    held-out sentences. The better reply is the longer in every other line, so that length says nothing.
    """
    decks = Deck("train", f"chat preferences {split} history"), Deck(split, f"chat preferences {split}")
    draw, style = Random(f"chat preferences {split} kinds"), Random(f"chat preferences {split} style")
    kinds, weights = list(PREFERENCE_WEIGHTS), list(PREFERENCE_WEIGHTS.values())
    stream = prompts(
        lambda: draw.choices(kinds, weights)[0], lambda kind: split, decks,
        lambda: draw.randrange(LONGEST_HISTORY + 1), f"preferences {split}",
    )  # fmt: skip
    longer = True
    for found in stream:
        exchange = found.exchange
        if split != "train" and len(found.messages) < 3:
            continue  # a lone "Hello." is the same in both
        if found.kind == "translation":
            exchange = exchange._replace(wrong=translating.similar(exchange.core.full, draw))
        if exchange.wrong and (two := ranking(found._replace(exchange=exchange), style, longer)):
            longer = not longer
            yield {"prompt": found.messages, "ranking": two, "kind": found.kind}
