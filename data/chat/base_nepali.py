"""Nepali prose of the base text: little portraits, the facts and the sums.

A woman's verb is feminine and of the middle level (बस्छिन्), a man's is plain (बस्छ), as in the other corpora.
"""

from functools import cache
from random import Random

from data.chat.acts import reckoning, slots_ne
from data.chat.acts.slots_ne import DIGITS
from data.chat.base_prose import paragraphs
from data.chat.dialogue import State
from data.chat.dialogue_deck import Deck
from data.chat.facts import SUMS, Sum
from data.chat.facts_ne import FACTS_NE
from data.chat.names import nepali_name
from data.chat.nepali_names import is_female, made_nepali_name
from data.chat.world import COLOURS_NE, LIKES_NE, PLACES_NE
from data.chat.writing import lines, write
from data.stories.words_ne import ANIMAL_NAMES

MADE = 0.7  # of the names
PETS = ("कुकुर", "बिरालो", "खरायो")

# topic: (what is said, what comes again)
PORTRAIT = {
    "place": ("""
        {N} {place}मा {lives}।
        {N}को घर {place}मा छ।
    """, """
        {N} कहाँ {lives}? {N} {place}मा {lives}।
        {N}को घर कहाँ छ? {N}को घर {place}मा छ।
        {place}मा को {lives}? {place}मा {N} {lives}।
    """),
    "like": ("""
        {N}लाई {like} मन पर्छ।
        {N}लाई {like} धेरै मन पर्छ।
    """, """
        {N}लाई के मन पर्छ? {N}लाई {like} मन पर्छ।
        {like} कसलाई मन पर्छ? {like} {N}लाई मन पर्छ।
    """),
    "friend": ("""
        {N}को साथीको नाम {F} हो।
        {N} र {F} साथी हुन्।
    """, """
        {N}को साथीको नाम के हो? {N}को साथीको नाम {F} हो।
        {N}को साथी को हो? {N}को साथी {F} हो।
    """),
    "pet": ("""
        {N}सँग एउटा {pet} छ। त्यो {pet}को नाम {P} हो।
    """, """
        {N}को {pet}को नाम के हो? {N}को {pet}को नाम {P} हो।
        {P} कसको {pet} हो? {P} {N}को {pet} हो।
    """),
    "colour": ("""
        {N}को मनपर्ने रङ {colour} हो।
    """, """
        {N}को मनपर्ने रङ कुन हो? {N}को मनपर्ने रङ {colour} हो।
    """),
    "age": ("""
        {N}को उमेर {age} वर्ष हो।
    """, """
        {N}को उमेर कति हो? {N}को उमेर {age} वर्ष हो।
    """),
}  # fmt: skip

LISTENERS = ("पाहुना", "छिमेकी", "पसले", "डाक्टर")
NOT_TOLD = 0.5  # of the texts about oneself end with a question for what was not told
SUM_WORDINGS = ("{full}", "{full}", "{asked} कति हुन्छ? {full}", "{signs} कति हुन्छ? {full}", "{signs} कति हुन्छ? {short}")


def name(rng: Random) -> str:
    return made_nepali_name("train", rng) if rng.random() < MADE else nepali_name("train", rng)[1]


def cast(rng: Random) -> dict[str, object]:
    """Who a text is about and what there is to say."""
    one = other = name(rng)
    while other == one:
        other = name(rng)
    return {
        "N": one, "F": other, "lives": "बस्छिन्" if is_female(one) else "बस्छ", "place": rng.choice(PLACES_NE)[0],
        "like": rng.choice(LIKES_NE)[0], "colour": rng.choice(COLOURS_NE)[0], "pet": rng.choice(PETS),
        "P": rng.choice(ANIMAL_NAMES), "age": str(rng.randint(5, 60)).translate(DIGITS),
    }  # fmt: skip


@cache
def no_deck() -> Deck:
    """A deck for texts in which nothing is translated."""
    return Deck("train", "nothing")


def portrait(rng: Random) -> str:
    """Some things about a person, then some of them again."""
    values = cast(rng)
    topics = rng.sample(list(PORTRAIT), rng.choice((2, 3, 4)))
    again = rng.sample(topics, rng.choice((1, 2)))
    said = [*(rng.choice(lines(PORTRAIT[topic][0])) for topic in topics),
            *(rng.choice(lines(PORTRAIT[topic][1])) for topic in again)]  # fmt: skip
    return " ".join(write(template, values, rng) for template in said)


def i_and_you(rng: Random) -> str:
    """Somebody tells about herself or himself, and a listener gives some of it back, and knows nothing else."""
    state = State("train", rng, no_deck(), nepali=True)
    first, *others = slots_ne.SLOTS.values()
    topics = [first, *rng.sample(others, rng.choice((1, 2, 3)))]
    values = {slot.key: slot.draw(state) for slot in topics}
    said = " ".join(rng.choice(slot.tells).format(v=values[slot.key]) for slot in topics)
    asked = rng.sample(topics, rng.choice((1, 2)))
    if rng.random() < 0.3:
        listener = rng.choice(LISTENERS)
        given = " ".join(slot.answer(values[slot.key]).full for slot in asked)
        return f'मैले {listener}लाई भनेँ, "{said}" {listener}ले भन्नुभयो, "{given}"'
    answers = [f"{rng.choice(slot.asks)} {slot.answer(values[slot.key]).full}" for slot in asked]
    if rng.random() < NOT_TOLD:
        other = rng.choice([slot for slot in others if slot not in (*topics, slots_ne.LIKE)])
        answers.insert(rng.randrange(len(answers) + 1), f"{rng.choice(other.asks)} {other.unknown.full}")
    return " ".join((said, *answers))


def facts(rng: Random) -> str:
    """Three facts, as answers or as statements."""
    chosen = rng.sample(FACTS_NE, 3)
    return " ".join(f"{fact.questions[0]} {fact.full}" if rng.random() < 0.5 else fact.full for fact in chosen)


def say_sum(one: Sum, rng: Random) -> str:
    core = reckoning.nepali_answer(one, one.result)
    asked, signs = core.full.rsplit(" ", 2)[0], one.signs.translate(DIGITS)
    return rng.choice(SUM_WORDINGS).format(full=core.full, short=core.short, asked=asked, signs=signs)


def mixed_sums(rng: Random) -> list[str]:
    """Every sum that is said in Nepali once, mixed, some to a paragraph."""
    chosen = [one for one in SUMS if one.op in reckoning.IN_NEPALI]
    return paragraphs([say_sum(one, rng) for one in rng.sample(chosen, len(chosen))], rng)
