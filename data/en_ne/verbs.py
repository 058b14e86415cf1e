"""The Nepali verb, by rule: every tense, person, honorific level and polarity from one infinitive.

A Nepali verb is a root and endings. Three facts decide its forms:

1. *How the root ends.* गर्- (a consonant) takes its endings directly: गर्छु, गरेँ. खा- (a vowel) puts न् before छ and
   nasalises before द: खान्छु, खाँदै. आउ- (उ) only nasalises and drops उ in the past: आउँछु, आएँ. बिर्स- (two
   consonants) behaves like a vowel in the present and like a consonant in the past: बिर्सन्छु, बिर्सेँ.
2. *Who the subject is.* The ending names the person, and in the third person also the level: ऊ गर्छ (plain), उनी
   गर्छिन् (middle, a woman), उनीहरू गर्छन्. The polite level (तपाईं, उहाँ, parents, teachers) says "doing happens":
   गर्नु + हुन्छ.
3. *Negation* is an ending as well: गर्छु, गर्दिनँ.
"""

from dataclasses import dataclass

PERSONS = ("i", "we", "low", "familiar", "polite", "he", "she", "they")
HALANT, EYELASH = "्", "र्\u200dय"  # र before य is written as an eyelash, with a joiner: गर्‍यो

# The endings, in the order of PERSONS; "polite" is built from the infinitive, so its place holds what follows गर्नु.
PRESENT = dict(zip(PERSONS, ("छु", "छौँ", "छस्", "छौ", "हुन्छ", "छ", "छिन्", "छन्"), strict=True))
PRESENT_NOT = dict(zip(PERSONS, ("दिनँ", "दैनौँ", "दैनस्", "दैनौ", "हुन्न", "दैन", "दिनन्", "दैनन्"), strict=True))
HABIT = dict(zip(PERSONS, ("थेँ", "थ्यौँ", "थिस्", "थ्यौ", "हुन्थ्यो", "थ्यो", "थिन्", "थे"), strict=True))
HABIT_NOT = dict(zip(PERSONS, ("दिनथेँ", "दैनथ्यौँ", "दैनथिस्", "दैनथ्यौ", "हुन्नथ्यो", "दैनथ्यो", "दिनथिन्", "दैनथे"), strict=True))
PAST = dict(zip(PERSONS, ("एँ", "यौँ", "इस्", "यौ", "भयो", "यो", "इन्", "ए"), strict=True))
PAST_NOT = dict(zip(PERSONS, ("इनँ", "एनौँ", "इनस्", "एनौ", "भएन", "एन", "इनन्", "एनन्"), strict=True))

# छ "is (somewhere, somehow)", and its past थियो; both also close the continuous and the perfect tenses.
IS = dict(zip(PERSONS, ("छु", "छौँ", "छस्", "छौ", "हुनुहुन्छ", "छ", "छिन्", "छन्"), strict=True))
IS_NOT = dict(zip(PERSONS, ("छैनँ", "छैनौँ", "छैनस्", "छैनौ", "हुनुहुन्न", "छैन", "छैनन्", "छैनन्"), strict=True))
WAS = dict(zip(PERSONS, ("थिएँ", "थियौँ", "थिइस्", "थियौ", "हुनुहुन्थ्यो", "थियो", "थिइन्", "थिए"), strict=True))
WAS_NOT = dict(zip(PERSONS, ("थिइनँ", "थिएनौँ", "थिइनस्", "थिएनौ", "हुनुहुन्नथ्यो", "थिएन", "थिइनन्", "थिएनन्"), strict=True))
# हो "is (something)": identity. Its past is the same थियो.
EQUALS = dict(zip(PERSONS, ("हुँ", "हौँ", "होस्", "हौ", "हुनुहुन्छ", "हो", "हुन्", "हुन्"), strict=True))
EQUALS_NOT = dict(zip(PERSONS, ("होइनँ", "होइनौँ", "होइनस्", "होइनौ", "हुनुहुन्न", "होइन", "होइनन्", "होइनन्"), strict=True))

VOWEL_SIGNS = {"ए": "े", "इ": "ि", "औ": "ौ"}
PAST_ROOTS = {"जा": "ग", "हु": "भ", "धु": "धो", "रु": "रो", "छु": "छो", "लैजा": "लग्"}  # go, become, wash, cry, touch, take
LASTING = ("सुत्",)  # to sleep: one is not falling asleep, one lies sleeping
LOW_COMMANDS = {"आउ": "आइज", "दि": "दे", "लि": "ले", "धु": "धो", "रु": "रो", "पिउ": "पी"}
FAMILIAR_COMMANDS = {"दि": "देऊ", "लि": "लेऊ", "धु": "धोऊ", "रु": "रोऊ", "छु": "छोऊ"}


@dataclass(frozen=True)
class Verb:
    """A verb by its infinitive: Verb("खानु"), or with a noun or an adverb in front: Verb("काम गर्नु")."""

    infinitive: str

    @property
    def front(self) -> str:
        """What stands before the verb proper ("काम "); it never changes."""
        return self.infinitive[: self.infinitive.rfind(" ") + 1]

    @property
    def root(self) -> str:
        return self.infinitive[len(self.front) :].removesuffix("नु")

    @property
    def past_root(self) -> str:
        """The root before past endings: खा, गर्, आ (उ falls away), बिर्स् (its vowel falls away), and the irregular
        ones.
        """
        root = self.root
        if root in PAST_ROOTS:
            return PAST_ROOTS[root]
        if root.endswith("उ"):
            return root[:-1]
        ends_in_consonant_letter = "क" <= root[-1] <= "ह"
        return root + HALANT if ends_in_consonant_letter else root

    def before_ch(self) -> str:
        """The stem before छ and थ: गर्-, खान्-, आउँ-, बिर्सन्-."""
        if self.root.endswith(HALANT):
            return self.root
        return self.root + ("ँ" if self.root.endswith("उ") else "न्")

    def before_d(self) -> str:
        """The stem before द: गर्-, खाँ-, आउँ-, बिर्सँ-."""
        return self.root if self.root.endswith(HALANT) else self.root + "ँ"

    def before_vowel(self, ending: str) -> str:
        """Join a past ending: गर् + एँ = गरेँ, खा + एँ = खाएँ, पढ् + यो = पढ्यो, गर् + यो = गर्‍यो."""
        root = self.past_root
        if not root.endswith(HALANT):
            return root + ending
        if ending[0] == "य":
            return root[:-2] + EYELASH + ending[1:] if root.endswith("र्") else root + ending
        return root[:-1] + VOWEL_SIGNS[ending[0]] + ending[1:]

    # Tenses. Each takes a person of PERSONS and returns the whole verb, front part included.

    def present(self, who: str, negative: bool = False) -> str:
        ending = (PRESENT_NOT if negative else PRESENT)[who]
        if who == "polite":
            return self.infinitive + ending
        return self.front + (self.before_d() if negative else self.before_ch()) + ending

    def habit(self, who: str, negative: bool = False) -> str:
        """The past habit: गर्थेँ, "I used to do"."""
        ending = (HABIT_NOT if negative else HABIT)[who]
        if who == "polite":
            return self.infinitive + ending
        return self.front + (self.before_d() if negative else self.before_ch()) + ending

    def past(self, who: str, negative: bool = False) -> str:
        ending = (PAST_NOT if negative else PAST)[who]
        return self.infinitive + ending if who == "polite" else self.front + self.before_vowel(ending)

    def future(self, who: str, negative: bool = False) -> str:
        if who == "polite":
            return self.infinitive + ("हुनेछैन" if negative else "हुनेछ")
        return self.front + self.root + "ने" + (IS_NOT if negative else IS)[who]

    def continuous(self, who: str, negative: bool = False, past: bool = False) -> str:
        """गर्दै छु, "I am doing"; गर्दै थिएँ, "I was doing". A state that lasts has -इरहेको: सुतिरहेको छु, "I am sleeping"."""
        if self.root in LASTING:
            return Verb(f"{self.front}{self.before_vowel('इ')}रहनु").perfect(who, negative, past)
        return f"{self.front}{self.before_d()}दै {be(who, negative, past)}"

    def perfect(self, who: str, negative: bool = False, past: bool = False) -> str:
        """गरेको छु, "I have done"; गरेको थिएँ, "I had done". The participle agrees like an adjective: गरेकी छिन्, गरेका छन्."""
        if who == "polite":
            return f"{self.infinitive}भएको {be('he', negative, past)}"
        ending = {"she": "एकी", "we": "एका", "they": "एका", "familiar": "एका"}.get(who, "एको")
        return f"{self.front}{self.before_vowel(ending)} {be(who, negative, past)}"

    def to(self) -> str:
        """The infinitive before another verb: गर्न सक्छु, "I can do"."""
        return self.infinitive.removesuffix("ु")

    def must(self, form: str) -> str:
        """गर्नुपर्छ, "doing falls to one": impersonal, so its form never depends on the subject."""
        return self.infinitive + form

    def let_us(self, negative: bool = False) -> str:
        """गरौँ, जाऔँ, खाऔँ."""
        verb = self.root + "औँ" if self.root in ("जा", "लैजा") else self.before_vowel("औँ")
        return self.front + ("न" if negative else "") + verb

    def command(self, who: str, negative: bool = False) -> str:
        """गर् (तँ), गर (तिमी), गर्नुहोस् (तपाईं); न- in front says do not."""
        last = self.infinitive[len(self.front) :]
        low = LOW_COMMANDS.get(self.root, self._low())
        verb = {"polite": last + "होस्", "familiar": self._familiar(), "low": low}[who]
        return self.front + ("न" if negative else "") + verb

    def _familiar(self) -> str:
        root = self.root
        if root in FAMILIAR_COMMANDS:
            return FAMILIAR_COMMANDS[root]
        if root.endswith("उ"):
            return root[:-1] + "ऊ"
        return root[:-1] if root.endswith(HALANT) else root if "क" <= root[-1] <= "ह" else root + "ऊ"

    def _low(self) -> str:
        return self.root[:-1] if self.root.endswith("उ") else self.root


def be(who: str, negative: bool = False, past: bool = False) -> str:
    """छ and थियो: where or how something is, and the last word of the compound tenses."""
    return ((WAS_NOT if negative else WAS) if past else (IS_NOT if negative else IS))[who]


def equals(who: str, negative: bool = False, past: bool = False) -> str:
    """हो and थियो: what something is."""
    return be(who, negative, past=True) if past else (EQUALS_NOT if negative else EQUALS)[who]


def inflect(verb: Verb, tense: str, who: str, negative: bool = False) -> str:
    """The verb in one of the tenses of english.TENSES, modal ones included."""
    simple = {"present": verb.present, "past": verb.past, "future": verb.future, "used to": verb.habit}
    if tense in simple:
        return simple[tense](who, negative)
    if tense in ("continuous", "past continuous"):
        return verb.continuous(who, negative, past=tense.startswith("past"))
    if tense in ("perfect", "past perfect"):
        return verb.perfect(who, negative, past=tense.startswith("past"))
    if tense in MUST:
        return verb.must(MUST[tense][negative])
    helper, how = MODALS[tense]
    return f"{verb.to()} {getattr(helper, how)(who, negative)}"


MODALS = {
    "can": (Verb("सक्नु"), "present"), "could": (Verb("सक्नु"), "past"), "want to": (Verb("चाहनु"), "present"),
    "wanted to": (Verb("चाहनु"), "habit"),
}  # fmt: skip
MUST = {"must": ("पर्छ", "पर्दैन"), "have to": ("पर्छ", "पर्दैन"), "had to": ("पर्‍यो", "परेन")}


def takes_le(tense: str, transitive: bool) -> bool:
    """Whether the subject takes ले.

    The past and the perfect of a transitive verb look at the deed from its result, so the doer is marked: मैले भात
    खाएँ. गर्नुपर्छ marks every doer: the duty falls to him. Everything else leaves the subject bare: म भात खान्छु, म
    गएँ.
    """
    return tense in MUST or (transitive and tense in ("past", "perfect", "past perfect", "could"))
