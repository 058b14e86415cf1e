"""Who a sentence is about: pronouns, names, kin and other people, with their cases and their level of respect.

The English default decides the level. "you" is तपाईं; "he" is the plain ऊ; "she" is the middle उनी with feminine
endings; parents, grandparents, elder brothers and sisters, teachers, doctors and guests get the polite verb. Younger
kin, friends and children get the plain level if male (छ, गर्छ) and the middle one if female (छिन्, गर्छिन्).
"""

from dataclasses import dataclass
from functools import cache

from data.en_ne.nouns import NOUNS, Noun, Phrase

# pronoun: (with ले, stem of लाई and सँग, possessive). म, तँ, ऊ and उनी change before a postposition; possessives in -रो
# are irregular.
PRONOUNS = {
    "म": ("मैले", "म", "मेरो"), "हामी": ("हामीले", "हामी", "हाम्रो"), "तँ": ("तैँले", "तँ", "तेरो"),
    "तिमी": ("तिमीले", "तिमी", "तिम्रो"), "तपाईं": ("तपाईंले", "तपाईं", "तपाईंको"), "ऊ": ("उसले", "उस", "उसको"),
    "उनी": ("उनले", "उन", "उनको"), "उनीहरू": ("उनीहरूले", "उनीहरू", "उनीहरूको"),
}  # fmt: skip


@dataclass(frozen=True)
class Person:
    """A possible subject. `who` is its person and level in Nepali (verbs.PERSONS), `number` its number in English (i,
    s, p).
    """

    english: str
    nepali: str
    who: str
    number: str
    female: bool = False
    object_english: str = ""
    own: str = ""

    @property
    def le(self) -> str:
        """The doer in the past of a transitive verb: मैले, उसले, आमाले."""
        return PRONOUNS[self.nepali][0] if self.nepali in PRONOUNS else self.nepali + "ले"

    @property
    def stem(self) -> str:
        return PRONOUNS[self.nepali][1] if self.nepali in PRONOUNS else self.nepali

    @property
    def lai(self) -> str:
        """The person as object or as the one who feels: मलाई, उसलाई."""
        return self.stem + "लाई"

    @property
    def sanga(self) -> str:
        """Being with someone, or having a thing: मसँग, ऊसँग."""
        return ("ऊ" if self.stem == "उस" else "उनी" if self.stem == "उन" else self.stem) + "सँग"

    def of(self, female: bool = False, many: bool = False) -> str:
        """The possessive, which agrees with what is owned: मेरो घर, मेरी बहिनी, मेरा भाइहरू."""
        form = PRONOUNS[self.nepali][2] if self.nepali in PRONOUNS else self.nepali + "को"
        return form[:-1] + ("ा" if many else "ी" if female else "ो")

    @property
    def object(self) -> str:
        """The English object form: me, him, my mother."""
        return self.object_english or self.english

    @property
    def whose(self) -> str:
        """The English possessive: my, his, my mother's."""
        return self.own if self.object_english else self.english + "'s"

    @property
    def many(self) -> bool:
        """Several to the adjective: हामी अग्ला छौँ, पाहुनाहरू अग्ला हुनुहुन्छ; but तपाईं is one person."""
        return self.who in ("we", "they") or (self.number == "p" and self.nepali not in PRONOUNS)


I = Person("I", "म", "i", "i", False, "me", "my")  # noqa: E741  (the word itself)
WE = Person("we", "हामी", "we", "p", False, "us", "our")
YOU = Person("you", "तपाईं", "polite", "p", False, "you", "your")
HE = Person("he", "ऊ", "he", "s", False, "him", "his")
SHE = Person("she", "उनी", "she", "s", True, "her", "her")
THEY = Person("they", "उनीहरू", "they", "p", False, "them", "their")
SPEAKERS = (I, WE, YOU, HE, SHE, THEY)
FAMILIAR = Person("you", "तिमी", "familiar", "p", own="your")  # after a vocative: "my friend, ..."
LOW = Person("you", "तँ", "low", "p", own="your")  # to an animal: "kitty, ..."

NAMES = (
    ("Ram", "राम", False), ("Hari", "हरि", False), ("Bikash", "विकास", False), ("Suresh", "सुरेश", False),
    ("Sita", "सीता", True), ("Gita", "गीता", True), ("Maya", "माया", True), ("Anita", "अनिता", True),
)  # fmt: skip
NAMED = tuple(Person(e, n, "she" if f else "he", "s", f, "", "her" if f else "his") for e, n, f in NAMES)


def person_of(noun: Noun, english: str, nepali: str, many: bool = False) -> Person:
    """A noun phrase as a subject. Several people are उनीहरू to the verb, unless they are to be respected."""
    if many:
        who = "polite" if noun.person == "polite" else "they"
        return Person(english, nepali, who, "p", noun.female, "", "their")
    return Person(english, nepali, noun.person, "s", noun.female, "", "her" if noun.female else "his")


KIN = (
    "father", "mother", "brother", "sister", "son", "daughter", "friend", "grandfather", "grandmother",
    "older brother", "older sister", "uncle", "aunt",
)  # fmt: skip
OTHERS = (
    "boy", "girl", "child", "student", "farmer", "driver", "shopkeeper", "teacher", "doctor", "guest", "man", "woman",
)  # fmt: skip
OTHERS_MANY = ("boy", "girl", "child", "student", "farmer", "teacher", "guest")
KIN_MANY = ("brother", "sister", "friend", "son", "daughter")


@cache
def my(owner: Person, name: str, many: bool = False) -> Person:
    """ "my brother" मेरो भाइ, "our daughters" हाम्रा छोरीहरू, "Sita's father" सीताको बुबा."""
    noun = NOUNS[name]
    english, nepali = noun.forms(many)
    return person_of(noun, f"{owner.whose} {english}", f"{owner.of(noun.female, many)} {nepali}", many)


def the(name: str, many: bool = False) -> Person:
    """ "the boy", careless "boy"; but "the boys" keep their article, for "boys" alone are boys in general."""
    noun = NOUNS[name]
    english, nepali = noun.forms(many)
    return person_of(noun, f"the {english}" if many else f"[the] {english}", nepali, many)


MY_KIN = tuple(my(I, name) for name in KIN) + tuple(my(I, name, many=True) for name in KIN_MANY)
PARENTS = Person("my parents", "मेरा आमाबुबा", "polite", "p", False, "", "their")
THE_PEOPLE = tuple(the(name) for name in OTHERS) + tuple(the(name, many=True) for name in OTHERS_MANY)
EVERYONE = SPEAKERS + NAMED + MY_KIN + (PARENTS,) + THE_PEOPLE


@cache
def kin_of_others() -> tuple[Person, ...]:
    """ "your mother", "his brother", "our teacher": the owners that are not the speaker."""
    names = ("father", "mother", "brother", "sister", "friend", "son", "daughter", "teacher")
    return tuple(my(owner, name) for owner in (YOU, WE, HE, SHE, THEY) for name in names)


def subjects(rng) -> Person:
    """A subject as often as speech has it: mostly pronouns, then kin, names and others."""
    draw = rng.random()
    if draw < 0.58:
        return rng.choice(SPEAKERS)
    if draw < 0.66:
        return rng.choice(NAMED)
    if draw < 0.80:
        return rng.choice((*MY_KIN, PARENTS))
    return rng.choice(kin_of_others()) if draw < 0.87 else rng.choice(THE_PEOPLE)


def possessed(owner: Person, noun: Noun, subject: Person | None = None, many: bool = False) -> Phrase:
    """ "my book" मेरो किताब. What belongs to the subject of the sentence itself is आफ्नो: "he lost his key" उसले आफ्नो
    साँचो हरायो.
    """
    if subject is not None and owner.own == subject.own:
        nepali_owner = "आफ्" + ("ना" if many else "नी" if noun.female and noun.human else "नो")
    else:
        nepali_owner = owner.of(noun.female and noun.human, many)
    english, nepali = noun.forms(many)
    return Phrase(f"{owner.own} {english}", f"{nepali_owner} {nepali}", noun.english, many)
