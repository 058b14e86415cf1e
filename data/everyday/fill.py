"""Filling a pattern: the subject, the words and their forms in both languages.

English, in braces:

    a, s, pl            the noun: a knife, knife, knives
    S, obj, own, pron   the subject: Father, him, his, he (S taken up again)
    S eat past [not]    subject and verb, "he did not eat"; Q eat past: "did he eat"; `vp`: the tables' verb phrase
    S be, S was, S be not, be S, was S
    vp base, ing, past, part; event: `subj` its subject, `vp3` its verb for "it"
    adj, er, est, of    the adjective, compared, and what it is said of;  adv

Nepali, in braces:

    n, N                the noun, one or several
    S, le, lai, ko, sanga   the subject; `s past` has ले if the verb phrase asks for it in that tense
    vp past [not], खानु past [not]      conjugated for the subject; `x past` for "it", `3` forms below
    छ, थियो, हो [not]     agreeing with the subject
    vp da, pachhi, era ...              the other forms: see FORMS
    adj, adjs (of several), of, adv
"""

import re
from dataclasses import dataclass
from functools import cache

from data.en_ne import english as en
from data.en_ne import people
from data.en_ne.people import HE, NAMED, SHE, SPEAKERS, THEY, WE, YOU, I, Person
from data.en_ne.verbs import Verb, be, equals, inflect, takes_le
from data.everyday.words import Deed, Noun, Quality, known_verbs

CHOICE = re.compile(r"\[([^\]]*)\]")
SLOT = re.compile(r"\{([^}]*)\}")
TENSES = {
    "present": "present", "past": "past", "future": "future", "cont": "continuous", "pcont": "past continuous",
    "perf": "perfect", "pperf": "past perfect", "used": "used to", "can": "can", "could": "could", "want": "want to",
    "wanted": "wanted to", "must": "must", "haveto": "have to", "hadto": "had to",
}  # fmt: skip
KIN = (*(people.my(I, name) for name in people.KIN), people.my(WE, "teacher"), people.my(YOU, "brother"))
OTHERS = tuple(
    p for p in (people.the(name) for name in ("teacher", "doctor", "farmer", "student", "boy", "girl", "woman"))
)
THIRD = (HE, SHE, THEY, HE, SHE, THEY)


@dataclass(frozen=True)
class Pattern:
    kind: str
    group: str
    english: str
    nepali: str

    def choices(self) -> int:
        """How many sentences it can make, subjects aside."""
        return max([len(part.split("/")) for part in CHOICE.findall(self.english)] or [1])


@dataclass(frozen=True)
class Filling:
    """What goes into one pattern."""

    subject: Person
    noun: Noun | None = None
    deed: Deed | None = None
    quality: Quality | None = None
    adverb: tuple[str, str] = ("", "")


def third(rng) -> Person:
    """He, she, they, a name, kin, somebody by his work."""
    draw = rng.random()
    return rng.choice(THIRD if draw < 0.5 else NAMED if draw < 0.68 else KIN if draw < 0.9 else OTHERS)


def subject_for(group: str, rng) -> Person:
    """The subjects that a pattern goes with."""
    if group == "any":
        draw = rng.random()
        return I if draw < 0.3 else WE if draw < 0.45 else YOU if draw < 0.55 else third(rng)
    if group == "q":  # one asks others about themselves or about third persons
        return YOU if rng.random() < 0.6 else third(rng)
    if group == "3":
        return third(rng)
    if group == "1":
        return I if rng.random() < 0.6 else WE
    if group == "13":
        return I if rng.random() < 0.35 else WE if rng.random() < 0.2 else third(rng)
    single = {"I": I, "we": WE, "you": YOU, "he": HE, "she": SHE, "they": THEY, "-": I}
    if group in single:
        return single[group]
    return {"name": lambda: rng.choice(NAMED), "kin": lambda: rng.choice(KIN), "hs": lambda: rng.choice((HE, SHE))}[
        group
    ]()


def choose(text: str, ours: str, rng) -> tuple[str, str]:
    """Take one of the alternatives of each bracket, the same in both languages."""
    picks = [rng.randrange(len(part.split("/"))) for part in CHOICE.findall(text)]
    sides = []
    for side in (text, ours):
        left = iter(picks)
        sides.append(CHOICE.sub(lambda found, left=left: found.group(1).split("/")[next(left)], side))
    return sides[0], sides[1]


def fill(pattern: Pattern, filling: Filling, rng) -> tuple[str, str]:
    """Make the sentence."""
    english, nepali = choose(pattern.english, pattern.nepali, rng)
    english = SLOT.sub(lambda found: english_slot(found.group(1), filling), english)
    nepali = SLOT.sub(lambda found: nepali_slot(found.group(1), filling), nepali)
    english = " ".join(english.split()).replace(" ,", ",").replace(" .", ".").replace(" ?", "?")
    start = re.search(r"[A-Za-z]", english).start()
    return english[:start] + english[start].upper() + english[start + 1 :], " ".join(nepali.split()).replace(
        " ।", "।"
    ).replace(" ?", "?").replace(" ,", ",")


@cache
def verbs():
    return known_verbs()


def pronoun(person: Person) -> str:
    if person in SPEAKERS:
        return person.english
    return "they" if person.number == "p" else "she" if person.female else "he"


def plain(person: Person) -> str:
    return person.english.replace("[", "").replace("]", "")


def plain_whose(person: Person) -> str:
    return person.own if person in SPEAKERS else plain(person) + "'s"


def english_slot(slot: str, filling: Filling) -> str:
    """One slot of the English side."""
    subject, deed, quality = filling.subject, filling.deed, filling.quality
    if filling.noun and slot in filling.noun.forms:
        return filling.noun.forms[slot]
    tag = f"{en.BE[subject.number][0]}n't {pronoun(subject)}"
    simple = {
        "S": plain(subject),
        "own": subject.own,
        "adv": filling.adverb[0],
        "whose": plain_whose(subject),
        "tag": tag,
    }
    if slot in simple:
        return simple[slot]
    if slot in ("obj", "pron"):
        return pronoun(subject) if slot == "pron" else subject.object.replace("[", "").replace("]", "")
    if slot in ("adj", "er", "est", "of"):
        return {"adj": quality.english, "er": quality.comparative, "est": quality.superlative, "of": quality.of}[slot]
    if slot == "adj a":
        return en.a(quality.english)
    if slot == "subj":
        return deed.subject
    first, *more = slot.split()
    if first == "vp":
        verb = deed.verb
        forms = {"base": verb.base, "ing": verb.ing, "past": verb.past, "part": verb.participle, "third": verb.third}
        return phrase(deed, forms[more[0]], "my" if "my" in more else subject.own)
    return clause(first, more, filling)


def phrase(deed: Deed, form: str, own: str) -> str:
    return f"{deed.verb.after(form)} {deed.rest.replace('OWN', own)}".strip()


def clause(first: str, more: list[str], filling: Filling) -> str:
    """Subject and verb: "S eat past not", "S should have vp", "S be tired", "P was", "Q vp perf", an event's "E vp"."""
    subject, deed, negative = filling.subject, filling.deed, "not" in more
    name, number = plain(subject), subject.number
    if first == "P":
        name = pronoun(subject)
    if first == "E":
        name, number = deed.subject, "s"
    if first in ("be", "was"):
        return en.be_question(name, number, past=first == "was")
    if more[0] in ("be", "was") and "perf" not in more:
        said = en.be_statement(name, number, past=more[0] == "was", negative=negative)
        return " ".join([said, *(word for word in more[1:] if word != "not")])
    if more[0] in ("should", "may", "must", "could", "would"):
        helper = " ".join([more[0], *(["not"] if negative else []), *(["have"] if "have" in more else [])])
        return (
            f"{name} {helper} {phrase(deed, deed.verb.participle if 'have' in more else deed.verb.base, subject.own)}"
        )
    verb = deed.verb if more[0] == "vp" else verbs()[more[0]]
    rest = deed.rest.replace("OWN", subject.own) if more[0] == "vp" else ""
    if more[1] == "been":
        return f"{name} {'has' if number == 's' else 'have'} been {verb.after(verb.ing)} {rest}".strip()
    adverb = next((word[1:] for word in more if word[0] == "+"), "")
    say = en.question if first == "Q" else lambda *args: en.statement(*args[:4], negative, args[4])
    return f"{say(name, verb, TENSES[more[1]], number, adverb)} {rest}".strip()


def join(verb: Verb, ending: str, negative: bool = False) -> str:
    """A form without a person: गरेर, गरे, नगरी."""
    root = verb.past_root
    if ending[0] == "ई":
        tail = root[:-1] + "ी" + ending[1:] if root.endswith("्") else root + ending
    else:
        tail = verb.before_vowel(ending)
    return verb.front + ("न" if negative else "") + tail


def longer(verb: Verb, helper: str) -> Verb:
    """The verb with a helper: गरिसक्नु, गरिरहनु, गरिदिनु, and the passive गरिनु."""
    return Verb(f"{join(verb, 'इ')}{helper}")


def other_form(verb: Verb, form: str, who: str, negative: bool) -> str:
    """The forms that join clauses, and those made with a helper."""
    no, polite = "न" if negative else "", who == "polite"
    last = verb.infinitive[len(verb.front) :]
    if form == "da":
        return f"{verb.infinitive}हुँदा" if polite else f"{verb.front}{no}{verb.before_d()}दा"
    if form in ("pachhi", "e", "eko", "samma"):
        end = {"pachhi": "एपछि", "e": "ए", "eko": "एको", "samma": "एसम्म"}[form]
        return f"{verb.front}{no}{last}भ{end}" if polite else join(verb, end, negative)
    if form in ("na", "nu", "ne", "nebittikai"):
        end = {"na": "न", "nu": "नु", "ne": "ने", "nebittikai": "नेबित्तिकै"}[form]
        return f"{verb.front}{no}{last.removesuffix('नु')}{end}"
    if form in ("era", "nai", "ma"):
        return join(verb, {"era": "एर", "nai": "ई", "ma": "एमा"}[form], negative or form == "nai")
    if form == "let":
        return verb.let_us(negative)
    if form == "nuhola":
        return f"{verb.front}न{last}होला"
    if form in ("cmd", "cmdf", "cmdl"):
        return verb.command({"cmd": "polite", "cmdf": "familiar", "cmdl": "low"}[form], negative)
    if form == "should":
        return f"{verb.infinitive}{'हुँदैन' if negative else 'पर्छ'}"
    if form == "shouldhave":
        return f"{verb.infinitive} हुँदैनथ्यो" if negative else f"{verb.infinitive}पर्थ्यो"
    helpers = {
        "already": ("सक्नु", "past"),
        "had": ("सक्नु", "pperf"),
        "been": ("रहनु", "perf"),
        "wasbeen": ("रहनु", "pperf"),
        "giveit": ("दिनु", "past"),
        "ppast": ("नु", "past"),
        "ppresent": ("नु", "present"),
        "pperf!": ("नु", "perf"),
        "pfuture": ("नु", "future"),
        "pcont": ("नु", "cont"),
        "pwill": ("नु", "future"),
    }
    helper, tense = helpers[form]
    return inflect(longer(verb, helper), TENSES[tense], who, negative)


def conjugate(infinitive: str, form: str, who: str, negative: bool) -> str:
    verb = Verb(infinitive)
    if form in TENSES:
        return inflect(verb, TENSES[form], who, negative)
    return other_form(verb, form, who, negative)


def stem(person: Person) -> str:
    return {"उस": "ऊ", "उन": "उनी"}.get(person.stem, person.stem)


def again(person: Person) -> Person:
    """The subject taken up again: ऊ, उनी, उनीहरू, and उहाँ for elders."""
    if person in SPEAKERS:
        return person
    if person.who == "polite":
        return Person(pronoun(person), "उहाँ", "polite", person.number)
    return {"he": HE, "she": SHE}.get(person.who, THEY)


def doer(person: Person, form: str, transitive: bool) -> str:
    """The subject of a verb phrase, with ले where the form and the verb ask for it."""
    marked = form in ("should", "shouldhave") or (transitive and form == "already")
    return person.le if marked or (form in TENSES and takes_le(TENSES[form], transitive)) else person.nepali


def nepali_slot(slot: str, filling: Filling) -> str:
    """One slot of the Nepali side."""
    subject, deed, quality = filling.subject, filling.deed, filling.quality
    if filling.noun and slot in filling.noun.nepali_forms:
        return filling.noun.nepali_forms[slot]
    simple = {
        "S": subject.nepali, "le": subject.le, "lai": subject.lai, "ko": subject.of(), "kii": subject.of(female=True),
        "sanga": subject.sanga, "stem": stem(subject), "adv": filling.adverb[1],
    }  # fmt: skip
    if slot in simple:
        return simple[slot]
    if slot in ("adj", "adjS", "of"):
        return {"adj": quality.nepali, "adjS": quality.agree(subject.female, subject.many), "of": quality.ours}[slot]
    if slot == "subj":
        return deed.front
    *name, form = slot.removesuffix(" not").split()
    negative, name = slot.endswith(" not"), " ".join(name)
    if not name:
        plain_be = {"छ": False, "थियो": True}
        return equals(subject.who, negative) if form == "हो" else be(subject.who, negative, plain_be[form])
    if name in ("s", "p", "i", "y"):
        return doer({"s": subject, "p": again(subject), "i": I, "y": YOU}[name], form, deed.transitive)
    who, _, form = form.rpartition(":")
    who = {"": "he" if deed and deed.subject else subject.who, "x": "he"}.get(who, who)
    infinitive = name if name != "vp" else deed.infinitive if deed.subject else deed.nepali
    return conjugate(infinitive, form, who, negative)
