"""With whom, without whom, until when, for whom, and where to: what a postposition adds to a clause."""

from data.en_ne.adverbs import HOURS
from data.en_ne.complements import person_for, phrase_for
from data.en_ne.english import EnglishVerb, looks_present, question, statement
from data.en_ne.nouns import NOUNS, Phrase
from data.en_ne.people import Person, subjects
from data.en_ne.sentence import Sentence, form_for, pair, put, words
from data.en_ne.verb_table import ACTIONS
from data.en_ne.verbs import Verb, inflect, takes_le

TENSES = ("present", "past", "past", "future", "continuous", "perfect", "want to", "can", "have to")
# Verb | the rest of the clause in both languages.
TOGETHER = (
    ("go", "to school", "स्कूल"), ("go", "to [the] market", "बजार"), ("go", "to Kathmandu", "काठमाडौँ"),
    ("live", "in Kathmandu", "काठमाडौँमा"), ("come", "here", "यहाँ"), ("play", "football", "फुटबल"),
    ("eat", "food", "खाना"), ("drink", "tea", "चिया"), ("sing", "songs", "गीत"), ("work", "", ""), ("dance", "", ""),
    ("stay", "at home", "घरमा"),
)  # fmt: skip


def with_and_without(rng):
    """With (सँग), without (बिना) and until (सम्म): "he works with me" ऊ मसँग काम गर्छ."""
    while True:
        subject, (key, text, ours) = subjects(rng), rng.choice(TOGETHER)
        action, tense, negative = ACTIONS[key], rng.choice(("present", "past", "future", "want to")), rng.random() < 0.2
        companion, draw = person_for(subject, rng), rng.random()
        if draw < 0.7:
            extra, ours_extra = f"with {companion.object}", companion.sanga
            part = ("companion", key, companion.object)
        elif key in ("work", "stay", "play", "dance"):
            hour, ours_hour = rng.choice(list(HOURS.items()))
            extra, ours_extra, part = f"until {hour} o'clock", f"{ours_hour} बजेसम्म", ("until", key, hour)
        elif companion.object not in ("her", "him", "me"):  # writers disagree on these stems before बिना
            extra, ours_extra = f"without {companion.object}", f"{companion.stem}बिना"
            part = ("companion", f"{key} without", companion.object)
        else:
            continue
        doer = subject.le if takes_le(tense, action.transitive) else subject.nepali
        said = statement(subject.english, action.english, tense, subject.number, negative)
        nepali = words(doer, ours_extra, ours, inflect(action.nepali, tense, subject.who, negative))
        yield pair(words(said, text, extra), nepali, (f"{tense} of a verb", subject.english, key), part)


def _with_thing(
    subject: Person, verb: EnglishVerb, ours: Verb, tense: str, form: str, tail: str, middle: str, parts
) -> Sentence:
    doer, negative = subject.le if takes_le(tense, True) else subject.nepali, form == "negation"
    asked = words(question(subject.english, verb, tense, subject.number), tail)
    said = words(statement(subject.english, verb, tense, subject.number, negative), tail)
    return put(form, asked, said, words(doer, middle, inflect(ours, tense, subject.who, negative)), *parts)


def _parts(thing: Phrase, *parts: tuple[str, str, str]) -> list:
    return [*parts, ("quality", thing.quality, thing.key)] if thing.quality else [*parts]


DONE_FOR = {
    "buy": ("book", "bag", "shirt", "gift", "flower", "medicine", "clothes", "phone", "fruit"),
    "make": ("tea", "coffee", "chair", "box"), "cook": ("rice", "food", "meat", "vegetables"),
    "bring": ("water", "gift", "book", "flower", "food", "tea"), "write": ("song", "story", "poem"), "sing": ("song",),
}  # fmt: skip


def for_someone(rng):
    """ "I bought a book for my mother" मैले आफ्नी आमाको लागि एउटा किताब किनेँ: लागि follows the possessive (मेरो लागि)."""
    while True:
        subject, key, tense = subjects(rng), rng.choice(list(DONE_FOR)), rng.choice(TENSES)
        action, noun, other = ACTIONS[key], NOUNS[rng.choice(DONE_FOR[key])], person_for(subject, rng)
        form = form_for(subject, rng, (60, 18, 22))
        thing = phrase_for(noun, subject, form == "negation", rng, key)
        parts = _parts(thing, ("object", key, noun.english), ("for", key, other.object))
        parts.append((f"{tense} of a verb", subject.english, key))
        tail, middle = f"{thing.english} for {other.object}", f"{other.of()} लागि {thing.nepali}"
        yield _with_thing(subject, action.english, action.nepali, tense, form, tail, middle, parts)


SUPPORTS = {
    "book": ("table", "bag", "box", "bed"), "pen": ("table", "bag", "box"), "key": ("table", "bag", "box"),
    "money": ("bag", "box"), "bag": ("table", "chair", "bed", "car"), "clothes": ("bag", "box", "bed"),
    "cup": ("table",), "plate": ("table",), "glass": ("table",), "fruit": ("basket", "table"),
    "flower": ("table", "basket"), "phone": ("table", "bag"), "box": ("table", "car", "room"),
    "chair": ("room", "garden"), "letter": ("table", "box"), "blanket": ("bed",), "apple": ("basket", "bag"),
    "umbrella": ("bag", "car"),
}  # fmt: skip
FLAT = ("table", "chair", "bed")


def putting(rng):
    """ "put the book on the table" किताब टेबलमा राख्नुहोस्; "he put the money in the bag" उसले पैसा झोलामा राख्यो."""
    put_, keep = EnglishVerb("put", "put", "put"), Verb("राख्नु")
    while True:
        subject, key = subjects(rng), rng.choice(list(SUPPORTS))
        noun, support = NOUNS[key], NOUNS[rng.choice(SUPPORTS[key])]
        form, tense = form_for(subject, rng, (60, 18, 22)), rng.choice(TENSES)
        thing = phrase_for(noun, subject, form == "negation", rng, "put")
        parts = _parts(thing, ("object", "put", key), ("put", key, support.english))
        place = f"{'on' if support.english in FLAT else 'in'} [the] {support.english}"
        tail, middle = f"{thing.english} {place}", f"{thing.nepali} {support.nepali}मा"
        if rng.random() < 0.35 and thing.english.split(" ")[0] in ("the", "this", "that", noun.english):
            please, negative = rng.random() < 0.4, rng.random() < 0.2
            text = words("please" if please else "", "do not" if negative else "", "put", tail)
            yield pair(text, words("कृपया" if please else "", middle, keep.command("polite", negative)), *parts)
        elif not looks_present(put_, tense, subject.number, form == "negation") or form == "question":
            parts.append((f"{tense} of a verb", subject.english, "put"))
            yield _with_thing(subject, put_, keep, tense, form, tail, middle, parts)
