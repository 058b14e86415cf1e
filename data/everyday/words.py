"""The words of the everyday grammar: the tables of `lexicon/` and what they say about a word.

Every table is tab-separated, with `# ` comments:

    nouns.tsv       kind, English, Nepali, irregular plural ("-": none, what is not counted)
    verbs.tsv       kind, English base (past and participle if irregular, particle in brackets), Nepali, complements
    adjectives.tsv  kind, English (with its comparative, if it is compared), Nepali, what it is said of
    adverbs.tsv     kind, English, Nepali, verb phrases that it goes with

A complement is "the screw=पेच": the English phrase and what stands before the verb in Nepali. The kind decides which
patterns (patterns_*.tsv) the word goes into. Inflection is that of data/en_ne: `english.py` and `verbs.py`.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from data.en_ne import english
from data.en_ne.english import EnglishVerb
from data.en_ne.verb_table import EVERY_ACTION

LEXICON = Path(__file__).parent / "lexicon"
IRREGULAR_ING = (
    "begin",
    "dig",
    "shut",
    "set",
    "hit",
    "let",
    "spin",
    "spit",
    "split",
    "upset",
    "quit",
    "bet",
    "sit",
    "get",
)


def rows(name: str) -> list[list[str]]:
    """Read a table; cells are stripped, comments and empty lines left out."""
    lines = (LEXICON / name).read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.split("\t")] for line in lines if line.strip() and not line.startswith("#")]


class RegularVerb(EnglishVerb):
    """An English verb whose -ing follows its past: planned, planning; died, dying."""

    @property
    def ing(self) -> str:
        base = self.base
        if base in IRREGULAR_ING or self.past == base + base[-1] + "ed":
            return base + base[-1] + "ing"
        if base.endswith("ie"):
            return base[:-2] + "ying"
        return base + "ing" if base.endswith(("oe", "ye")) else english.ing_form(base)

    @property
    def third(self) -> str:
        return self.base + "es" if self.base.endswith("o") else english.third_person(self.base)


def english_verb(text: str) -> EnglishVerb:
    """Read "turn [off]", "tear tore torn", "stop stopped stopped"."""
    particle = text[text.find("[") + 1 : -1] if text.endswith("]") else ""
    forms = text.split(" [")[0].split()
    base = forms[0]
    past, participle = forms[1:] if len(forms) == 3 else (english.past_form(base),) * 2
    return RegularVerb(base, past, participle, particle)


@dataclass(frozen=True)
class Noun:
    """A noun; `plural` equals `english` if it is not counted."""

    kind: str
    english: str
    nepali: str
    plural: str

    @cached_property
    def forms(self) -> dict[str, str]:
        """What an English pattern may ask for: a knife, knife, knives, and what agrees with the noun."""
        mass = self.plural == self.english and self.kind != "animal"
        several = mass and self.english.endswith("s") and self.kind != "illness"
        one, all_of = ("are", "are") if several else ("is", "is" if mass else "are")
        return {
            "s": self.english,
            "the": self.english if mass else f"the {self.english}",
            "an": article(self.english),
            "pl": self.plural,
            "a": self.english if mass else article(self.english),
            "is": one,
            "was": "were" if several else "was",
            "are": all_of,
            "were": "was" if all_of == "is" else "were",
            "it": "them" if several else "it",
            "have": "have" if several else "has",
            "hurts": "hurt" if several else "hurts",
        }

    @cached_property
    def nepali_forms(self) -> dict[str, str]:
        """The Nepali noun, how one counts it, and the stem before हरू (-ओ becomes -आ)."""
        mass = self.plural == self.english and self.kind != "animal"
        native = self.nepali.endswith("ो") and self.english not in LOANS
        return {
            "n": self.nepali,
            "N": (self.nepali[:-1] + "ा" if native else self.nepali) + "हरू",
            "one": "" if mass else "एउटा",
            "one p": "एक जना",
        }


LOANS = ("photo", "video", "radio", "zoo")


@dataclass(frozen=True)
class Deed:
    """A verb phrase in both languages: tighten the screw, पेच कस्नु."""

    kind: str
    verb: EnglishVerb
    rest: str
    front: str
    infinitive: str
    transitive: bool
    subject: str = ""  # of what happens by itself: "the milk" and दूध in `front`

    @property
    def nepali(self) -> str:
        return f"{self.front} {self.infinitive}".strip()


@dataclass(frozen=True)
class Quality:
    """An adjective said of a thing: `of` and `ours` are the thing in both languages."""

    kind: str
    english: str
    comparative: str
    superlative: str
    nepali: str
    of: str = ""
    ours: str = ""

    def agree(self, female: bool = False, many: bool = False) -> str:
        if not self.nepali.endswith("ो"):
            return self.nepali
        return self.nepali[:-1] + ("ा" if many else "ी" if female else "ो")


def article(noun: str) -> str:
    """a European, an X-ray, an umbrella."""
    if noun.lower().startswith(("eu", "ewe")):
        return "a " + noun
    return "an " + noun if noun.startswith(("X", "heir")) else english.a(noun)


def nouns() -> list[Noun]:
    found = []
    for kind, word, nepali, *more in rows("nouns.tsv"):
        many = more[0] if more and more[0] else english.plural(word)
        found.append(Noun(kind, word, nepali, word if many == "-" else many))
    return found


def halves(cell: str) -> list[tuple[str, str]]:
    """Read "the screw=पेच; the rope=डोरी"; "-" is an empty complement."""
    return [tuple(part.strip() for part in item.partition("=")[::2]) for item in cell.split(";")]


def deeds() -> list[list[Deed]]:
    """The verb phrases, those of one row together; a kind ends in t where the subject takes ले."""
    found = []
    for kind, word, infinitive, *more in rows("verbs.tsv"):
        verb, transitive, base = english_verb(word), kind.endswith("-t"), kind.removesuffix("-t")
        group = []
        for rest, front in halves(more[0]) if more and more[0] else [("", "")]:
            if base == "event":
                group.append(Deed(base, verb, "", front, infinitive, False, rest))
            else:
                group.append(Deed(base, verb, rest, front, infinitive, transitive))
        found.append(group)
    return found


def compared(word: str, comparative: str) -> tuple[str, str]:
    """Give comparative and superlative: heavier, heaviest; more careful, most careful."""
    if comparative == "more":
        return f"more {word}", f"most {word}"
    return (comparative, comparative[:-1] + "st") if comparative else ("", "")


def qualities() -> list[list[Quality]]:
    found = []
    for kind, words, nepali, *more in rows("adjectives.tsv"):
        word, _, comparative = words.partition(" > ")
        forms = compared(word, comparative)
        things = halves(more[0]) if more and more[0] else [("", "")]
        found.append([Quality(kind, word, *forms, nepali, of, ours) for of, ours in things])
    return found


def known_verbs() -> dict[str, EnglishVerb]:
    """All English verbs that a pattern may name, by their base and particle joined by hyphens."""
    table = {key.replace(" ", "-"): action.english for key, action in EVERY_ACTION.items()}
    for group in deeds():
        verb = group[0].verb
        table.setdefault(verb.after(verb.base).replace(" ", "-"), verb)
    for text in (
        "have had had",
        "get got got",
        "feel felt felt",
        "want",
        "need",
        "like",
        "try",
        "give gave given",
        "show showed shown",
        "become became become",
        "leave left left",
        "break broke broken",
        "keep kept kept",
        "hear heard heard",
        "live",
        "pay paid paid",
        "put put put",
        "visit",
        "say said said",
        "tell told told",
        "pass",
        "hope",
        "hold held held",
        "be was been",
        "stand stood stood",
        "start",
        "teach taught taught",
        "sit sat sat",
        "let let let",
        "arrive",
        "eat ate eaten",
        "know knew known",
        "wear wore worn",
        "borrow",
        "hurt hurt hurt",
        "sleep slept slept",
    ):
        verb = english_verb(text)
        table[verb.base] = verb
    return table


def adverbs() -> list[tuple[str, str, str, list[Deed]]]:
    """The adverbs with the verb phrases that they go with, each of COMMON below."""
    common = {
        key: Deed("", english_verb(text), rest, front, infinitive, transitive)
        for key, text, rest, front, infinitive, transitive in COMMON
    }
    found = []
    for kind, word, nepali, *more in rows("adverbs.tsv"):
        keys = more[0].split() if more and more[0] else ["work"]
        found.append((kind, word, nepali, [common[key] for key in keys]))
    return found


COMMON = (
    ("speak", "speak spoke spoken", "", "", "बोल्नु", True),
    ("drive", "drive drove driven", "the car", "गाडी", "चलाउनु", True),
    ("walk", "walk", "", "", "हिँड्नु", False),
    ("work", "work", "", "", "काम गर्नु", True),
    ("eat", "eat ate eaten", "", "", "खाना खानु", True),
    ("listen", "listen", "to me", "मेरो कुरा", "सुन्नु", True),
    ("write", "write wrote written", "the letter", "चिठी", "लेख्नु", True),
    ("read", "read read read", "the book", "किताब", "पढ्नु", True),
    ("answer", "answer", "the question", "प्रश्नको", "जवाफ दिनु", True),
    ("sleep", "sleep slept slept", "", "", "सुत्नु", False),
    ("laugh", "laugh", "", "", "हाँस्नु", False),
    ("sing", "sing sang sung", "", "", "गीत गाउनु", True),
    ("study", "study studied studied", "", "", "पढ्नु", True),
    ("wait", "wait", "", "", "पर्खनु", True),
    ("come", "come came come", "", "", "आउनु", False),
    ("go", "go went gone", "to the market", "बजार", "जानु", False),
    ("talk", "talk", "", "", "कुरा गर्नु", True),
    ("open", "open", "the door", "ढोका", "खोल्नु", True),
    ("clean", "clean", "the room", "कोठा", "सफा गर्नु", True),
    ("cook", "cook", "", "", "खाना पकाउनु", True),
    ("dance", "dance", "", "", "नाच्नु", False),
    ("play", "play", "", "", "खेल्नु", True),
    ("meet", "meet met met", "friends", "साथीहरू", "भेट्नु", True),
    ("call", "call", "home", "घरमा", "फोन गर्नु", True),
    ("exercise", "exercise", "", "", "व्यायाम गर्नु", True),
    ("live", "live", "here", "यहाँ", "बस्नु", False),
    ("run", "run ran run", "", "", "दौडनु", False),
    ("cry", "cry", "", "", "रुनु", False),
    ("return", "return", "home", "घर", "फर्कनु", False),
    ("help", "help", "us", "हामीलाई", "मद्दत गर्नु", True),
    ("smile", "smile", "", "", "मुस्कुराउनु", False),
)
