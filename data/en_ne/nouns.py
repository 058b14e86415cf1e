"""The nouns, by semantic class, and the noun phrases that are made of them.

A row: English | Nepali | tags. The tags say what one can sensibly do with the thing (verb_table.py asks for them), and
three of them are grammar: `mass` (no article, no plural), `bare` (names of languages, games and the like: never with
"a" or "the") and `many` (a mass word that English treats as several: clothes, shoes, vegetables; Nepali counts them as
one stuff: लुगा सफा छ).
"""

from dataclasses import dataclass
from functools import cache

from data.en_ne.english import a, plural

THINGS = """
apple | स्याउ | fruit edible buy pick count
mango | आँप | fruit edible buy pick count
banana | केरा | fruit edible buy count
orange | सुन्तला | fruit edible buy pick count
egg | अण्डा | edible buy cook count
potato | आलु | edible buy cook plant count vegetable
tomato | गोलभेँडा | edible buy plant count vegetable
vegetables | तरकारी | mass many edible buy cook cut
onion | प्याज | edible buy plant count cut vegetable
rice | भात | mass edible cook meal
food | खाना | mass edible cook meal buy
bread | रोटी | mass edible buy cook
meat | मासु | mass edible cook buy cut
fish | माछा | mass edible cook buy
yogurt | दही | mass edible buy
sugar | चिनी | mass buy grocery
salt | नुन | mass buy grocery
fruit | फलफूल | mass edible buy tasty
water | पानी | mass drink
tea | चिया | mass drink make hot
milk | दूध | mass drink buy hot
coffee | कफी | mass drink make hot
juice | जुस | mass drink buy
medicine | औषधि | mass buy bring
time | समय | mass bare
book | किताब | read write buy sell bring carry find lose send put own count study give
newspaper | पत्रिका | read buy sell bring give put own
letter | चिठी | read write send bring find give own count
story | कथा | read write tell understand hear count
poem | कविता | read write understand hear count
lesson | पाठ | read understand count start
message | सन्देश | read write send understand
song | गीत | sing hear write understand count
pen | कलम | buy sell bring find lose give use own put count
pencil | सिसाकलम | buy bring find lose give use own put count
bag | झोला | buy sell carry bring open find lose give own wash count container
phone | फोन | buy sell use repair find lose give own count
computer | कम्प्युटर | buy sell use repair own count
table | टेबल | buy sell make clean repair own furniture count carry
chair | कुर्सी | buy sell make clean repair own furniture count carry
bed | खाट | buy make clean own furniture
door | ढोका | open close clean repair part
window | झ्याल | open close clean part
house | घर | see buy sell clean make own building count
room | कोठा | clean open building own
car | गाडी | buy sell drive wash clean repair own vehicle see count
bicycle | साइकल | buy sell drive wash repair own vehicle count lose
motorcycle | मोटरसाइकल | buy sell drive wash repair own vehicle
bus | बस | drive see wash vehicle
key | साँचो | bring find lose give own count
ticket | टिकट | buy sell bring find lose give own count
money | पैसा | mass find lose give own bring send
watch | घडी | buy sell repair find lose give own
umbrella | छाता | buy sell bring find lose give own carry open use
shirt | कमिज | buy sell wear wash own give count cloth
hat | टोपी | buy sell wear wash own give find lose count cloth
shoes | जुत्ता | mass many wear wash buy sell own clean cloth
clothes | लुगा | mass many wear wash buy sell own cloth bring
cup | कप | buy wash clean bring give count dish
glass | गिलास | buy wash clean bring give count dish
plate | थाल | buy wash clean bring give count dish
spoon | चम्चा | buy wash bring give count dish use
knife | चक्कु | buy sell wash bring give use find
box | बाकस | open close carry make bring own container count
basket | डोको | carry make buy sell container
picture | तस्बिर | see make give own look put
photo | फोटो | look give send own find
map | नक्सा | look buy bring give use own
gift | उपहार | buy bring give send open own count
flower | फूल | buy sell bring give see plant pick count
tree | रुख | cut plant see count
ball | बल | buy bring find lose give own throw
blanket | कम्बल | buy sell wash bring give own
soap | साबुन | mass buy use bring give grocery
mirror | ऐना | buy clean look give own
lamp | बत्ती | buy bring repair own
question | प्रश्न | understand ask
answer | उत्तर | understand write
television | टिभी | screen buy sell repair own
movie | फिल्म | screen count
game | खेल | screen win start
news | समाचार | mass hear read screen
radio | रेडियो | hear buy sell repair own
music | सङ्गीत | mass bare hear learn
Nepali | नेपाली | mass bare language learn
English | अङ्ग्रेजी | mass bare language learn
Hindi | हिन्दी | mass bare language learn
science | विज्ञान | mass bare learn subject
mathematics | गणित | mass bare learn subject
history | इतिहास | mass bare learn subject
football | फुटबल | mass bare sport
cricket | क्रिकेट | mass bare sport
volleyball | भलिबल | mass bare sport
cards | तास | mass bare sport
work | काम | mass start
river | नदी | see land
mountain | हिमाल | see look land count
bridge | पुल | see building
road | बाटो | see land
temple | मन्दिर | see building look count
school | स्कूल | see building count
hospital | अस्पताल | see building
hotel | होटल | see building count
shop | पसल | see open close building own count
market | बजार | see building
village | गाउँ | see land
city | सहर | see land
garden | बगैँचा | see clean land own
bank | बैंक | building
library | पुस्तकालय | building
kitchen | भान्सा | clean see
moon | चन्द्रमा | mass see sky
stone | ढुङ्गा | carry throw find count
paper | कागज | mass cut bring buy
bottle | बोतल | bring open find wash container
name | नाम | mass remember forget write
"""

ANIMALS = """
dog | कुकुर | pet
cat | बिरालो | pet
cow | गाई | farm
goat | बाख्रा | farm
horse | घोडा | farm
buffalo | भैँसी | farm
hen | कुखुरा | farm
bird | चरा | wild
elephant | हात्ती | wild
monkey | बाँदर | wild
tiger | बाघ | wild
"""

# English | Nepali | level: he, she or polite
PEOPLE = """
boy | केटा | he
girl | केटी | she
child | बच्चा | he
student | विद्यार्थी | he
friend | साथी | he
man | मान्छे | he
woman | महिला | she
farmer | किसान | he
driver | ड्राइभर | he
shopkeeper | पसले | he
teacher | शिक्षक | polite
doctor | डाक्टर | polite
guest | पाहुना | polite
neighbor | छिमेकी | he
son | छोरा | he
daughter | छोरी | she
brother | भाइ | he
sister | बहिनी | she
older brother | दाइ | polite
older sister | दिदी | polite
father | बुबा | polite
mother | आमा | polite
grandfather | हजुरबुबा | polite
grandmother | हजुरआमा | polite
uncle | काका | polite
aunt | काकी | polite
"""
FEMALE = ("girl", "woman", "daughter", "sister", "older sister", "mother", "grandmother", "aunt")


@dataclass(frozen=True)
class Noun:
    english: str
    nepali: str
    tags: tuple[str, ...]
    person: str = "he"

    @property
    def mass(self) -> bool:
        return "mass" in self.tags

    @property
    def number(self) -> str:
        """The number of the English noun as it stands in the table."""
        return "p" if "many" in self.tags else "s"

    @property
    def human(self) -> bool:
        return "human" in self.tags

    @property
    def female(self) -> bool:
        return self.english in FEMALE

    @property
    def plural(self) -> str:
        return self.english if self.mass else plural(self.english)

    def forms(self, many: bool) -> tuple[str, str]:
        """The noun in both languages, one or several: ("book", "किताब"), ("books", "किताबहरू")."""
        return (self.plural, self.several + "हरू") if many else (self.english, self.nepali)

    @property
    def several(self) -> str:
        """The stem in the plural and after a number: -ओ becomes -आ (बिरालाहरू, दुईवटा साँचा), but not in foreign words."""
        return self.nepali[:-1] + "ा" if self.nepali in ("साँचो", "डोको", "बाटो", "बिरालो") else self.nepali


def _rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


NOUNS = {}
for _english, _nepali, _tags in _rows(THINGS):
    NOUNS[_english] = Noun(_english, _nepali, tuple(_tags.split()))
for _english, _nepali, _tags in _rows(ANIMALS):
    NOUNS[_english] = Noun(_english, _nepali, (*_tags.split(), "animal", "see", "count"))
for _english, _nepali, _level in _rows(PEOPLE):
    NOUNS[_english] = Noun(_english, _nepali, ("human",), _level)


@cache
def tagged(*tags: str) -> tuple[Noun, ...]:
    """All nouns with one of the tags (a noun's own name is a tag as well), in the order of the tables."""
    return tuple(noun for noun in NOUNS.values() if any(tag in noun.tags or tag == noun.english for tag in tags))


@dataclass(frozen=True)
class Phrase:
    """A noun phrase in both languages. `key` is its noun, by which combinations are held out."""

    english: str
    nepali: str
    key: str
    plural: bool = False
    quality: str = ""  # the adjective before the noun, if any


def bare(noun: Noun) -> Phrase:
    """Things in general: "apples", "rice". Nepali leaves out हरू here (मलाई स्याउ मन पर्छ)."""
    return Phrase(noun.plural, noun.nepali, noun.english, not noun.mass)


def indefinite(noun: Noun, negative: bool = False) -> Phrase:
    """ "a book", "a friend": Nepali counts, एउटा for things and एक जना for persons, but not in a negation."""
    number = "" if negative else "एक जना " if noun.human else "एउटा "
    return Phrase(a(noun.english), number + noun.nepali, noun.english)


def definite(noun: Noun, many: bool = False) -> Phrase:
    """ "the book": Nepali has no article. It stays even in careless English: "book" alone could be "a book"."""
    english, nepali = noun.forms(many)
    return Phrase(f"the {english}", nepali, noun.english, many)


DEMONSTRATIVES = {"this": "यो", "that": "त्यो", "these": "यी", "those": "ती"}
OBLIQUE = {"this": "यस", "that": "त्यस"}  # before a noun with a postposition: यस घरमा


def demonstrative(noun: Noun, word: str) -> Phrase:
    """ "this book" यो किताब, "these books" यी किताबहरू."""
    many = word in ("these", "those")
    english, nepali = noun.forms(many)
    return Phrase(f"{word} {english}", f"{DEMONSTRATIVES[word]} {nepali}", noun.english, many)


NUMBERS = {
    "one": "एक", "two": "दुई", "three": "तीन", "four": "चार", "five": "पाँच", "six": "छ", "seven": "सात", "eight": "आठ",
    "nine": "नौ", "ten": "दस", "eleven": "एघार", "twelve": "बाह्र", "fifteen": "पन्ध्र", "twenty": "बीस",
    "thirty": "तीस", "fifty": "पचास",
}  # fmt: skip


def count(word: str, noun: Noun) -> str:
    """The number with its classifier: जना for persons (दुई जना), वटा for all else (दुईवटा); one thing is एउटा."""
    if noun.human:
        return f"{NUMBERS[word]} जना"
    return "एउटा" if word == "one" else f"{NUMBERS[word]}वटा"


def counted(noun: Noun, word: str) -> Phrase:
    """ "two books" दुईवटा किताब: after a number हरू is not needed."""
    english, nepali = (noun.english, noun.nepali) if word == "one" else (noun.plural, noun.several)
    return Phrase(f"{word} {english}", f"{count(word, noun)} {nepali}", noun.english, word != "one")


QUANTITIES = {"some": "केही", "many": "धेरै", "a lot of": "धेरै", "all the": "सबै"}


def some(noun: Noun, word: str) -> Phrase:
    return Phrase(f"{word} {noun.plural}", f"{QUANTITIES[word]} {noun.several}", noun.english, not noun.mass)


def mass_amount(noun: Noun, rng, chance: float = 0.25) -> Phrase:
    """ "water" पानी, or of what one eats and drinks "some water" अलिकति पानी."""
    measured = {"edible", "drink", "grocery"} & set(noun.tags) and "many" not in noun.tags
    if not measured or rng.random() >= chance:
        return bare(noun)
    return Phrase(f"some {noun.english}", f"अलिकति {noun.nepali}", noun.english)
