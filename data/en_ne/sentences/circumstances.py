"""With whom, without whom, until when, for whom, and where to: what a postposition adds to a clause."""

from data.en_ne import english
from data.en_ne.adverbs import HOURS
from data.en_ne.english import EnglishVerb
from data.en_ne.nouns import NOUNS, Phrase
from data.en_ne.people import I, Person, subjects
from data.en_ne.sentence import pair, words
from data.en_ne.sentences.clauses import person_for, phrase_for
from data.en_ne.verb_table import ACTIONS
from data.en_ne.verbs import Verb, inflect, takes_le

TENSES = ("present", "past", "past", "future", "continuous", "perfect", "want to", "can", "have to")


def with_and_without(rng):
    """With (सँग), without (बिना) and until (सम्म): "he works with me" ऊ मसँग काम गर्छ."""
    going = [
        ("go", "to " + word, ours)
        for word, ours in (("school", "स्कूल"), ("[the] market", "बजार"), ("Kathmandu", "काठमाडौँ"))
    ]
    doing = [*going, ("live", "in Kathmandu", "काठमाडौँमा"), ("come", "here", "यहाँ"), ("play",
             "football", "फुटबल"), ("eat", "food", "खाना"),
             ("drink", "tea", "चिया"), ("sing", "songs", "गीत"), ("work", "", ""), ("dance", "", ""),
             ("stay", "at home", "घरमा")]  # fmt: skip
    while True:
        subject, (key, text, ours) = subjects(rng), rng.choice(doing)
        action, tense, negative = ACTIONS[key], rng.choice(("present", "past", "future", "want to")), rng.random() < 0.2
        companion: Person = person_for(subject, rng)
        doer = subject.le if takes_le(tense, action.transitive) else subject.nepali
        parts = [(f"{tense} of a verb", subject.english, key), ("companion", key, companion.object)]
        draw = rng.random()
        if draw < 0.7:
            extra, ours_extra = f"with {companion.object}", companion.sanga
        elif key in ("work", "stay", "play", "dance"):
            hour = rng.choice(list(HOURS.items()))
            extra, ours_extra = f"until {hour[0]} o'clock", f"{hour[1]} बजेसम्म"
            parts[1] = ("until", key, hour[0])
        else:
            extra, ours_extra = f"without {companion.object}", f"{companion.lai.removesuffix('लाई')} बिना"
            if companion.object in ("her", "him", "me"):
                continue  # these stems change before बिना in ways that writers disagree on
            parts[1] = ("companion", f"{key} without", companion.object)
        statement = english.statement(subject.english, action.english, tense, subject.number, negative)
        yield pair(
            words(statement, text, extra),
            words(doer, ours_extra, ours, inflect(action.nepali, tense, subject.who, negative)),
            *parts,
        )


def _parts(thing: Phrase, parts: list) -> list:
    return [*parts, ("quality", thing.quality, thing.key)] if thing.quality else parts


def _spoken(subject: Person, verb: EnglishVerb, nepali_verb: Verb, tense: str, tail: str, middle: str, parts, rng):
    """Said, denied or asked; `tail` and `middle` are what stands after the English verb and before the Nepali one."""
    form = rng.choices(("statement", "negation", "question"), (60, 18, 22))[0]
    if form == "question" and subject is I:
        form = "statement"
    doer = subject.le if takes_le(tense, True) else subject.nepali
    nepali = words(doer, middle, inflect(nepali_verb, tense, subject.who, form == "negation"))
    if form == "question":
        return pair(
            words(english.question(subject.english, verb, tense, subject.number), tail), "के " + nepali, *parts, mark="?"
        )
    return pair(
        words(english.statement(subject.english, verb, tense, subject.number, form == "negation"), tail), nepali, *parts
    )


def for_someone(rng):
    """ "I bought the book for my mother" मैले आफ्नी आमाको लागि किताब किनेँ: लागि "for" follows the possessive
    (मेरो लागि, उसको लागि).
    """
    things = {"buy": ("book", "bag", "shirt", "gift", "flower", "medicine", "clothes", "phone",
              "fruit"), "make": ("tea", "coffee", "chair", "box"),
              "cook": ("rice", "food", "meat", "vegetables"), "bring": ("water", "gift", "book",
              "flower", "food", "tea"),
              "write": ("song", "story", "poem"), "sing": ("song",)}  # fmt: skip
    while True:
        subject, key, tense = subjects(rng), rng.choice(list(things)), rng.choice(TENSES)
        action, noun, other = ACTIONS[key], NOUNS[rng.choice(things[key])], person_for(subject, rng)
        thing = phrase_for(noun, subject, True, rng, countable=False)
        if noun.mass is False and thing.english.startswith(("a ", "an ")):
            continue
        parts = [
            ("object", key, noun.english),
            ("for", key, other.object),
            (f"{tense} of a verb", subject.english, key),
        ]
        tail, middle = f"{thing.english} for {other.object}", f"{other.of()} लागि {thing.nepali}"
        yield _spoken(subject, action.english, action.nepali, tense, tail, middle, _parts(thing, parts), rng)


SUPPORTS = {"book": ("table", "bag", "box", "bed"), "pen": ("table", "bag", "box"), "key": ("table",
            "bag", "box"), "money": ("bag", "box"),
            "bag": ("table", "chair", "bed", "car"), "clothes": ("bag", "box", "bed"),
            "cup": ("table",), "plate": ("table",), "glass": ("table",),
            "fruit": ("basket", "table"), "flower": ("table", "basket"), "phone": ("table", "bag"),
            "box": ("table", "car", "room"),
            "chair": ("room", "garden"), "letter": ("table", "box"), "blanket": ("bed",),
            "apple": ("basket", "bag"), "umbrella": ("bag", "car")}  # fmt: skip
FLAT = ("table", "chair", "bed")


def putting(rng):
    """ "put the book on the table" किताब टेबलमा राख्नुहोस्; "he put the money in the bag" उसले पैसा झोलामा राख्यो."""
    put, keep = EnglishVerb("put", "put", "put"), Verb("राख्नु")
    while True:
        subject, key = subjects(rng), rng.choice(list(SUPPORTS))
        noun, support = NOUNS[key], NOUNS[rng.choice(SUPPORTS[key])]
        thing = phrase_for(noun, subject, True, rng, countable=False)
        if thing.english.startswith(("a ", "an ")) or (noun.plural == thing.english and not noun.mass):
            continue
        place = f"{'on' if support.english in FLAT else 'in'} [the] {support.english}"
        parts = [("object", "put", key), ("put", key, support.english)]
        parts = _parts(thing, parts)
        tail, middle = f"{thing.english} {place}", f"{thing.nepali} {support.nepali}मा"
        if rng.random() < 0.35:
            please, negative = rng.random() < 0.4, rng.random() < 0.2
            if "आफ्" in middle or thing.english.split(" ")[0] in ("his", "her", "their", "my", "our", "your"):
                continue
            text = words("please" if please else "", "do not" if negative else "", "put", tail)
            yield pair(text, words("कृपया" if please else "", middle, keep.command("polite", negative)), *parts)
            continue
        tense = rng.choice(TENSES)
        if english.looks_present(put, tense, subject.number, False):
            continue
        yield _spoken(
            subject, put, keep, tense, tail, middle, [*parts, (f"{tense} of a verb", subject.english, "put")], rng
        )
