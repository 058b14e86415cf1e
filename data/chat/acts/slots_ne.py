"""What a user can tell about himself in Nepali. The user is called तपाईं, the assistant says म."""

from collections.abc import Callable
from dataclasses import dataclass

from data.chat import world
from data.chat.acts.slots import Slot
from data.chat.dialogue import Core, State
from data.chat.nepali_names import is_female

DIGITS = str.maketrans("0123456789", "०१२३४५६७८९")
JOBS = (
    "शिक्षक", "डाक्टर", "किसान", "विद्यार्थी", "नर्स", "लेखक", "गायक", "चित्रकार", "इन्जिनियर", "पसले", "दर्जी",
    "वकिल", "पत्रकार", "गाइड",
)  # fmt: skip
PET_NAMES = ("काले", "मोती", "टिकु", "भोटे", "लाली", "चिकु", "पुन्टु", "सेती", "बाघे", "फुर्के")


@dataclass(frozen=True)
class NepaliSlot(Slot):
    """A slot with Nepali sentences; `what` fits "मलाई {} थाहा छैन"."""

    @property
    def mark(self) -> str:
        return "।"

    @property
    def unknown(self) -> Core:
        return Core("मलाई थाहा छैन।", f"मलाई {self.what} थाहा छैन।")

    def understood(self, value: str) -> Core:
        return Core(f"ए, {self.answer(value).short}", f"अब मैले बुझेँ, {self.yours.format(v=value)}।")


def remembering(yours: str) -> Core:
    return Core("मैले बुझेँ।", f"मैले बुझेँ, {yours}।")


NAME = NepaliSlot(
    "name", State.nepali_person, 3.0, "मेरो नाम {v} हो", "तपाईंको नाम {v} हो", "प्रयोगकर्ताको नाम {v} हो",
    (
        "मेरो नाम {v} हो।", "म {v} हुँ।", "नमस्ते, मेरो नाम {v} हो।", "नमस्ते, म {v} हुँ।", "मलाई {v} भन्नुहोस्।",
        "नमस्कार, मेरो नाम {v} हो।", "सबैले मलाई {v} भन्छन्।",
    ),
    (
        "मेरो नाम के हो?", "म को हुँ?", "के तपाईंलाई मेरो नाम थाहा छ?", "के तपाईंलाई मेरो नाम याद छ?",
        "मेरो नाम भन्नुहोस्।", "मैले आफ्नो नाम के भनेँ?", "मलाई मेरो नाम भन्नुहोस्।", "कृपया मेरो नाम भन्नुहोस्।",
    ),
    ("होइन, मेरो नाम {v} हो।", "माफ गर्नुहोस्, मेरो नाम {v} हो।", "मेरो नाम {old} होइन, {v} हो।"),
    Core("नमस्ते, {v}।", "तपाईंलाई भेटेर खुसी लाग्यो, {v}।"), "{v}।", "तपाईंको नाम", ("तपाईं {v} हुनुहुन्छ।",),
)  # fmt: skip

PLACE = NepaliSlot(
    "place", lambda state: state.rng.choice(world.PLACES_NE)[0], 1.2, "म {v}मा बस्छु", "तपाईं {v}मा बस्नुहुन्छ",
    "प्रयोगकर्ता {v}मा बस्नुहुन्छ",
    ("म {v}मा बस्छु।", "मेरो घर {v}मा छ।", "हामी {v}मा बस्छौँ।", "म अहिले {v}मा बस्छु।"),
    ("म कहाँ बस्छु?", "मेरो घर कहाँ छ?", "के तपाईंलाई थाहा छ म कहाँ बस्छु?", "मैले कहाँ बस्छु भनेँ?"),
    ("होइन, म {v}मा बस्छु।", "माफ गर्नुहोस्, म {v}मा बस्छु।", "म {old}मा होइन, {v}मा बस्छु।"),
    remembering("तपाईं {v}मा बस्नुहुन्छ"), "{v}मा।", "तपाईं कहाँ बस्नुहुन्छ", ("{v}।",),
)  # fmt: skip

LIKE = NepaliSlot(
    "like", lambda state: state.rng.choice(world.LIKES_NE)[0], 1.2, "मलाई {v} मन पर्छ", "तपाईंलाई {v} मन पर्छ",
    "प्रयोगकर्तालाई {v} मन पर्छ",
    ("मलाई {v} मन पर्छ।", "मलाई {v} धेरै मन पर्छ।", "मलाई {v} साह्रै मन पर्छ।"),
    ("मलाई के मन पर्छ?", "मैले के मन पर्छ भनेँ?", "के तपाईंलाई थाहा छ मलाई के मन पर्छ?", "मलाई के मन पर्छ, भन्नुहोस्।"),
    ("होइन, मलाई {v} मन पर्छ।", "माफ गर्नुहोस्, मलाई {v} मन पर्छ।", "मलाई {old} होइन, {v} मन पर्छ।"),
    remembering("तपाईंलाई {v} मन पर्छ"), "{v}।", "तपाईंलाई के मन पर्छ",
)  # fmt: skip

AGE = NepaliSlot(
    "age", lambda state: str(state.rng.choice(world.AGES)).translate(DIGITS), 1.0, "मेरो उमेर {v} वर्ष हो",
    "तपाईंको उमेर {v} वर्ष हो", "प्रयोगकर्ताको उमेर {v} वर्ष हो",
    ("मेरो उमेर {v} वर्ष हो।", "म {v} वर्षको भएँ।", "म अहिले {v} वर्षको भएँ।"),
    ("मेरो उमेर कति हो?", "म कति वर्षको भएँ?", "के तपाईंलाई मेरो उमेर थाहा छ?", "मेरो उमेर भन्नुहोस्।"),
    ("होइन, मेरो उमेर {v} वर्ष हो।", "माफ गर्नुहोस्, मेरो उमेर {v} वर्ष हो।"),
    remembering("तपाईंको उमेर {v} वर्ष हो"), "{v} वर्ष।", "तपाईंको उमेर", ("{v}।",),
)  # fmt: skip

JOB = NepaliSlot(
    "job", lambda state: state.rng.choice(JOBS), 1.0, "म {v} हुँ", "तपाईं {v} हुनुहुन्छ", "प्रयोगकर्ता {v} हुनुहुन्छ",
    ("म {v} हुँ।", "म पेसाले {v} हुँ।"),
    ("मेरो पेसा के हो?", "मेरो काम के हो?", "म के काम गर्छु?", "के तपाईंलाई मेरो पेसा थाहा छ?"),
    ("होइन, म {v} हुँ।", "माफ गर्नुहोस्, म {v} हुँ।", "म {old} होइन, {v} हुँ।"),
    remembering("तपाईं {v} हुनुहुन्छ"), "{v}।", "तपाईंको पेसा",
)  # fmt: skip

COLOUR = NepaliSlot(
    "favourite colour", lambda state: state.rng.choice(world.COLOURS_NE)[0], 0.8, "मेरो मनपर्ने रङ {v} हो",
    "तपाईंको मनपर्ने रङ {v} हो", "प्रयोगकर्ताको मनपर्ने रङ {v} हो",
    ("मेरो मनपर्ने रङ {v} हो।", "मलाई {v} रङ मन पर्छ।", "मलाई मन पर्ने रङ {v} हो।"),
    ("मेरो मनपर्ने रङ के हो?", "मलाई कुन रङ मन पर्छ?", "मेरो मनपर्ने रङ कुन हो?", "के तपाईंलाई मेरो मनपर्ने रङ थाहा छ?"),
    ("होइन, मेरो मनपर्ने रङ {v} हो।", "माफ गर्नुहोस्, मेरो मनपर्ने रङ {v} हो।"),
    remembering("तपाईंको मनपर्ने रङ {v} हो"), "{v}।", "तपाईंको मनपर्ने रङ",
)  # fmt: skip


def named(thing: str, female: bool, draw: Callable[[State], str], weight: float) -> NepaliSlot:
    """The name of somebody who belongs to the user: "मेरी बहिनीको नाम माया हो।" """
    whose, yours, theirs, own = (word + ("ी" if female else "ो") for word in ("मेर", "तपाईंक", "प्रयोगकर्ताक", "आफ्न"))
    return NepaliSlot(
        thing, draw, weight, f"{whose} {thing}को नाम {{v}} हो", f"{yours} {thing}को नाम {{v}} हो",
        f"{theirs} {thing}को नाम {{v}} हो",
        (f"{whose} {thing}को नाम {{v}} हो।", f"{{v}} {whose} {thing}को नाम हो।"),
        (
            f"{whose} {thing}को नाम के हो?", f"के तपाईंलाई {whose} {thing}को नाम थाहा छ?",
            f"{whose} {thing}को नाम भन्नुहोस्।",
            f"मैले {own} {thing}को नाम के भनेँ?",
        ),
        (
            f"होइन, {whose} {thing}को नाम {{v}} हो।", f"माफ गर्नुहोस्, {whose} {thing}को नाम {{v}} हो।",
            f"{whose} {thing}को नाम {{old}} होइन, {{v}} हो।",
        ),
        remembering(f"{yours} {thing}को नाम {{v}} हो"), "{v}।", f"{yours} {thing}को नाम",
    )  # fmt: skip


def relative(person: str, female: bool) -> NepaliSlot:
    return named(person, female, lambda state: state.nepali_person(lambda name: is_female(name) == female), 0.35)


def pet(animal: str) -> NepaliSlot:
    return named(animal, False, lambda state: state.fresh(lambda: state.rng.choice(PET_NAMES)), 0.4)


RELATIVES = (
    relative("भाइ", False), relative("बहिनी", True), relative("दाइ", False), relative("दिदी", True),
    relative("छोरा", False), relative("छोरी", True), relative("साथी", False), relative("आमा", True),
)  # fmt: skip
SLOTS = {slot.key: slot for slot in (NAME, PLACE, LIKE, AGE, JOB, COLOUR, *RELATIVES, pet("कुकुर"), pet("बिरालो"))}
