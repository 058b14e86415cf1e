"""Acts of translation, from English to Nepali."""

from functools import cache
from random import Random

from data.chat import world
from data.chat.acts import slots, telling
from data.chat.dialogue import Core, Exchange, State
from data.chat.dialogue_deck import Deck, Pair, is_statement, read, sentences
from data.chat.names import nepali_name
from data.en_ne.surface import fold_hard

ASKS = (
    "Translate {q} to Nepali.", "Translate {q} into Nepali.", "Translate {q}", "How do you say {q} in Nepali?",
    "What is {q} in Nepali?", "{q} in Nepali, please.", "Please translate {q} to Nepali.", "Say {q} in Nepali.",
    "Can you translate {q} to Nepali?", "How do I say {q} in Nepali?", "What does one say for {q} in Nepali?",
    "Could you translate {q} into Nepali?", "Translate to Nepali: {s}", "In Nepali, please: {s}", "Translate: {s}",
    "What's {q} in Nepali?", "Please say {q} in Nepali.", "I want to say {q} in Nepali.", "{q} in Nepali?",
    "How would you say {q} in Nepali?", "What is the Nepali for {q}?", "Give me the Nepali for {q}.",
)  # fmt: skip
NEXT = (
    "And {q}?",
    "And {q}?",
    "And {q}",
    "What about {q}?",
    "Now {q}.",
    "And now {q}?",
    "And how do you say {q}?",
    "Next: {s}",
)
FOLLOW_UPS = (
    "And in Nepali?", "And in Nepali?", "How do you say that in Nepali?", "What is that in Nepali?",
    "In Nepali, please.",
    "Translate that to Nepali.", "Can you translate that?", "Please say that in Nepali.", "And how is that in Nepali?",
)  # fmt: skip
ASKS_NE = ("{q} लाई नेपालीमा के भनिन्छ?", "{q} नेपालीमा भन्नुहोस्।", "{q} लाई नेपालीमा अनुवाद गर्नुहोस्।", "नेपालीमा भन्नुहोस्: {s}")


ABOUT_ONESELF = {
    "name": ("My name is {v}.", "मेरो नाम {v} हो।", ()),
    "place": ("I live in {v}.", "म {v}मा बस्छु।", world.PLACES_NE),
    "like": ("I like {v}.", "मलाई {v} मन पर्छ।", world.LIKES_NE),
}


def quoted(english: str, rng: Random) -> str:
    """A sentence in quotes, as people type it: some leave out its full stop, some its capital."""
    text = english
    if text[-1] == "." and rng.random() < 0.4:
        text = text[:-1]
    if rng.random() < 0.15:
        text = text.lower()
    marks = rng.choice(('""', '""', "“”", "''"))
    return f'"{text}"' if marks == "''" and "'" in text else f"{marks[0]}{text}{marks[1]}"


def similar(nepali: str, rng: Random) -> tuple[Core, ...]:
    """Wrong translations: sentences of the training set that have many words in common with the right one."""
    words, found = set(nepali[:-1].split()), []
    for other in rng.sample(sentences("train"), 400):
        if other.nepali[:-1] != nepali[:-1] and other.nepali[-1] == nepali[-1]:
            found.append((len(words & set(other.nepali[:-1].split())), other.nepali))
    found.sort(reverse=True)
    return tuple(Core(text, text) for _, text in found[:3])


def exchange(state: State, pair: Pair, user: str) -> Exchange:
    tone = "ne answer" if state.replies_in_nepali else "translation"
    return Exchange(user, "translation", tone, Core(pair.nepali, pair.nepali), (), ())


def translate(state: State, deck: Deck | None = None) -> Exchange:
    """'Translate "I am happy." to Nepali.'"""
    pair, rng = (deck or state.deck).deal(), state.rng
    asks = NEXT if state.last_kind == "translation" and rng.random() < 0.45 else ASKS
    template = rng.choice(ASKS_NE if state.nepali else asks)
    user = template.format(q=quoted(pair.english, rng), s=pair.english)
    return exchange(state, pair, user)


def say(state: State, deck: Deck | None = None) -> Exchange | None:
    """The user just says something: "The water is cold." """
    if state.replies_in_nepali:
        return None
    pair = (deck or state.deck).deal(is_statement)
    state.sentence, state.sentence_at = pair, state.count
    return Exchange(pair.english, "say", "told", Core("I see.", "I see, that is good to know."))


def tell_translated(state: State) -> Exchange | None:
    """The user tells something of himself whose translation is known, so that "And in Nepali?" may follow."""
    free = [key for key in ABOUT_ONESELF if key not in state.values]
    if state.replies_in_nepali or not free:
        return None
    key = state.rng.choice(free)
    english, nepali, values = ABOUT_ONESELF[key]
    value, nepali_value = nepali_name(state.split, state.rng)[:2] if key == "name" else state.rng.choice(values)[::-1]
    pair = Pair(english.format(v=value), nepali.format(v=nepali_value))
    if fold_hard(pair.english) in held_out() or value in state.values.values():
        return None
    telling.learn(state, slots.SLOTS[key], value)
    state.last_slot, state.sentence, state.sentence_at = key, pair, state.count
    noted = Core(*(text.format(v=value) for text in slots.SLOTS[key].noted))
    return Exchange(pair.english, "tell", "told", noted)


@cache
def held_out() -> frozenset[str]:
    """The sentences that must not be taught."""
    return frozenset(fold_hard(pair.english) for split in ("valid", "test") for pair in read(split))


def follow_up(state: State) -> Exchange | None:
    """ "And in Nepali?" after a statement."""
    if state.sentence is None or state.sentence_at != state.count - 1:
        return None
    return exchange(state, state.sentence, state.rng.choice(FOLLOW_UPS))
