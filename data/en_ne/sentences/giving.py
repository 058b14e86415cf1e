"""To give, send, bring, show, tell, buy and teach someone something: whoever receives takes लाई.

To tell someone a story is सुनाउनु, "to let hear" (without a hearer it is भन्नु); to buy someone something is one verb,
किनिदिनु.
"""

from data.en_ne.adjectives import described
from data.en_ne.complements import person_for
from data.en_ne.english import EnglishVerb, question, statement
from data.en_ne.nouns import NOUNS, Phrase, bare, definite, indefinite, mass_amount
from data.en_ne.people import HE, SHE, THEY, WE, I, Person, my, subjects
from data.en_ne.sentence import Parts, form_for, pair, put, words
from data.en_ne.verbs import Verb, inflect, takes_le

GIVEN = (
    "book", "pen", "pencil", "newspaper", "letter", "bag", "phone", "key", "ticket", "money", "umbrella", "cup",
    "glass", "plate", "spoon", "knife", "map", "photo", "gift", "flower", "ball", "blanket", "water", "tea", "milk",
    "food", "coffee", "juice", "rice", "apple", "banana", "orange", "medicine", "salt", "sugar", "paper", "shirt",
    "bread", "fruit", "soap", "egg", "mango",
)  # fmt: skip
# English base, past, participle | Nepali | what is given.
TRANSFERS = {
    "give": ("give", "gave", "given", "दिनु", GIVEN),
    "send": ("send", "sent", "sent", "पठाउनु", ("letter", "message", "money", "gift", "photo", "book", "map")),
    "bring": ("bring", "brought", "brought", "ल्याउनु", GIVEN),
    "show": ("show", "showed", "shown", "देखाउनु", ("book", "photo", "picture", "map", "house", "room", "letter",
             "ticket", "garden", "phone", "bag")),
    "tell": ("tell", "told", "told", "सुनाउनु", ("story", "news", "poem")),
    "buy": ("buy", "bought", "bought", "किनिदिनु", ("book", "pen", "bag", "shirt", "ticket", "gift", "phone", "bicycle",
            "hat", "shoes", "clothes")),
    "teach": ("teach", "taught", "taught", "सिकाउनु", ("Nepali", "English", "Hindi", "music", "mathematics", "science",
              "song")),
}  # fmt: skip


def given_thing(noun_key: str, negative: bool, rng) -> Phrase:
    """a book, the book, a red book, water. In a negation it is the book, which was not given."""
    noun = NOUNS[noun_key]
    phrase = described(noun, negative, rng) if rng.random() < 0.12 else None
    if phrase and not negative:
        return phrase
    if "bare" in noun.tags or (noun.mass and noun_key != "news" and rng.random() < 0.7):
        return bare(noun) if negative else mass_amount(noun, rng)
    return definite(noun) if noun.mass or negative or rng.random() < 0.35 else indefinite(noun)


RECEIVERS = (I, I, I, WE, HE, SHE, THEY, *(my(I, kin) for kin in ("mother", "brother", "friend", "sister")))
TENSES = ("past", "past", "present", "future", "perfect", "can", "want to", "continuous", "have to")


def transfer(rng) -> str:
    return rng.choice(("give", "give", "give", "send", "bring", "show", "tell", "buy", "teach"))


def given_parts(key: str, thing: Phrase, receiver: Person) -> Parts:
    quality = (("quality", thing.quality, thing.key),) if thing.quality else ()
    return (("gift", key, thing.key), ("receiver", key, receiver.object), *quality)


def asking_for(rng):
    """ "give me a book" मलाई एउटा किताब दिनुहोस्, "please show us the map" कृपया हामीलाई नक्सा देखाउनुहोस्."""
    while True:
        key, receiver, negative = transfer(rng), rng.choice(RECEIVERS), rng.random() < 0.15
        base, _, _, infinitive, things = TRANSFERS[key]
        thing = given_thing(rng.choice(things), negative, rng)
        text = words("do not" if negative else "", base, receiver.object, thing.english)
        nepali = words(receiver.lai, thing.nepali, Verb(infinitive).command("polite", negative))
        please = "" if negative else rng.choice(("", "", "before", "after"))
        if please:
            text, nepali = (f"please {text}" if please == "before" else f"{text}, please"), f"कृपया {nepali}"
        yield pair(text, nepali, *given_parts(key, thing, receiver))


def giving(rng):
    """ "he gave his sister a gift" उसले आफ्नी बहिनीलाई एउटा उपहार दियो."""
    while True:
        key, subject, tense = transfer(rng), subjects(rng), rng.choice(TENSES)
        base, past, participle, infinitive, things = TRANSFERS[key]
        verb, form, number = EnglishVerb(base, past, participle), form_for(subject, rng), subject.number
        negative, receiver = form == "negation", person_for(subject, rng)
        thing = given_thing(rng.choice(things), negative, rng)
        doer = subject.le if takes_le(tense, True) else subject.nepali
        nepali = words(doer, receiver.lai, thing.nepali, inflect(Verb(infinitive), tense, subject.who, negative))
        parts = (*given_parts(key, thing, receiver), (f"{tense} of a verb", subject.english, key))
        tail = f"{receiver.object} {thing.english}"
        asked = words(question(subject.english, verb, tense, number), tail)
        yield put(form, asked, words(statement(subject.english, verb, tense, number, negative), tail), nepali, *parts)
