"""Nepali prose of the base text: little portraits, and the facts.

A woman's verb is feminine and of the middle level (बस्छिन्), a man's is plain (बस्छ), as in the other corpora.
"""

from random import Random

from data.chat.facts_ne import FACTS_NE
from data.chat.names import nepali_name
from data.chat.nepali_names import is_female, made_nepali_name
from data.chat.world import COLOURS_NE, LIKES_NE, PLACES_NE
from data.chat.writing import lines, write
from data.stories.words_ne import ANIMAL_NAMES

MADE = 0.7  # of the names
PETS = ("कुकुर", "बिरालो", "खरायो")
DIGITS = str.maketrans("0123456789", "०१२३४५६७८९")

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

# topic: (in the first person, in the second person, the question and its answer)
MINE = {
    "name": ("मेरो नाम {N} हो।", "तपाईंको नाम {N} हो।", "मेरो नाम के हो? तपाईंको नाम {N} हो।"),
    "place": ("म {place}मा बस्छु।", "तपाईं {place}मा बस्नुहुन्छ।", "म कहाँ बस्छु? तपाईं {place}मा बस्नुहुन्छ।"),
    "like": ("मलाई {like} मन पर्छ।", "तपाईंलाई {like} मन पर्छ।", "मलाई के मन पर्छ? तपाईंलाई {like} मन पर्छ।"),
    "friend": ("मेरो साथीको नाम {F} हो।", "तपाईंको साथीको नाम {F} हो।",
               "मेरो साथीको नाम के हो? तपाईंको साथीको नाम {F} हो।"),
    "pet": ("मेरो {pet}को नाम {P} हो।", "तपाईंको {pet}को नाम {P} हो।",
            "मेरो {pet}को नाम के हो? तपाईंको {pet}को नाम {P} हो।"),
    "colour": ("मेरो मनपर्ने रङ {colour} हो।", "तपाईंको मनपर्ने रङ {colour} हो।",
               "मेरो मनपर्ने रङ कुन हो? तपाईंको मनपर्ने रङ {colour} हो।"),
}  # fmt: skip
LISTENERS = ("पाहुना", "छिमेकी", "पसले", "डाक्टर")


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


def portrait(rng: Random) -> str:
    """Some things about a person, then some of them again."""
    values = cast(rng)
    topics = rng.sample(list(PORTRAIT), rng.choice((2, 3, 4)))
    again = rng.sample(topics, rng.choice((1, 2)))
    said = [*(rng.choice(lines(PORTRAIT[topic][0])) for topic in topics),
            *(rng.choice(lines(PORTRAIT[topic][1])) for topic in again)]  # fmt: skip
    return " ".join(write(template, values, rng) for template in said)


def i_and_you(rng: Random) -> str:
    """Somebody tells about herself or himself, and a listener gives some of it back."""
    values = cast(rng)
    topics = ["name", *rng.sample(list(MINE)[1:], rng.choice((1, 2, 3)))]
    said = " ".join(MINE[topic][0] for topic in topics)
    asked = rng.sample(topics, rng.choice((1, 2)))
    if rng.random() < 0.5:
        text = " ".join((said, *(MINE[topic][2] for topic in asked)))
    else:
        listener = rng.choice(LISTENERS)
        given = " ".join(MINE[topic][1] for topic in asked)
        text = f'मैले {listener}लाई भनेँ, "{said}" {listener}ले भन्नुभयो, "{given}"'
    return write(text, values, rng)


def facts(rng: Random) -> str:
    """Three facts, as answers or as statements."""
    chosen = rng.sample(FACTS_NE, 3)
    return " ".join(f"{fact.questions[0]} {fact.full}" if rng.random() < 0.5 else fact.full for fact in chosen)
