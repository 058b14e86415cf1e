"""Names of people and pets: more than a model can learn by heart, so that it has to learn to copy them.

Most names are made of syllables (Tolavir, Besumo); some are real, some of any make (Vukip). A hash of the name alone
decides whether it belongs to train, valid or test, so a test name never stands in a training text, whichever program
wrote that text.
"""

from functools import cache
from hashlib import blake2b
from itertools import product
from random import Random
from typing import Literal

from data.chat.free_names import free_name
from data.chat.real_names import FAMILIAR, MEN, NEPALI, NOT_NAMES, PETS, WOMEN, words

Split = Literal["train", "valid", "test"]

STARTS = words(
    "a al am an ar ba be ben bi bo bra cha da de di do dra e el em en er fa fe fi flo ga ge gi go gra ha he hen "
    "hu i il im in ja jan jo ju ka kal ke ki ko kle la le li lo lu ma mar me mi mo na ne ni no o ol or os pa pe "
    "pi po pra ra re ri ro sa san se sha shi si so ste su ta te tha ti to tra u ul va ve vi vo wa we wi ya ye yo "
    "yu za ze zo"
)
MIDDLES = words(
    "ba bi da de den di do du fa fi ga gi ha ja jo ka ki la le li lo lu ma me mi mo na ne ni no pi ra re ri ro sa "
    "se si sta ta te ti to tra va vi vo za zi"
)
ENDS = words(
    "ba bel bert bin da dan del den dik fin ka kas ko kul la lan las len lin lis lo lum ma mar min mir mo na nas "
    "nel nik nin no pa ra ram ran rek ril rin ro san sel sha sin so ta tan tel tor tus va van vik vin vir ya zan "
    "zel"
)
PET_ENDS = words("bo by bu chi do dy fo fy ko ku ky lo lu ly mo my no nu ny po pu py ro ru ry so su sy to tu ty zu zy")
REAL = 0.2  # of the names that are drawn
SEEN = 600  # names of the smaller list
SHORT = 0.15  # of the made names have two syllables
FREE = 0.25  # of the names that are no real ones are of any make


def split_of(name: str) -> Split:
    """Where a name belongs: of 24 names two are for the test and one for validation. The names that the other corpora
    tell of are known to every model that has read those, so they are never tested.
    """
    if name in FAMILIAR:
        return "train"
    number = int.from_bytes(blake2b(name.lower().encode(), digest_size=8, key=b"chat-names-10").digest(), "big") % 24
    return "test" if number < 2 else "valid" if number == 2 else "train"


def is_test_name(name: str) -> bool:
    return split_of(name) == "test"


def made(*parts: str) -> str:
    """The name that these syllables make; "" if it is a word, or too long or too short for a name."""
    name = "".join(parts)
    return name.capitalize() if 4 <= len(name) <= 9 and name not in NOT_NAMES else ""


@cache
def all_made() -> tuple[str, ...]:
    """Every name of people that can be made of syllables, each once, in order."""
    names = [made(*parts) for parts in (*product(STARTS, ENDS), *product(STARTS, MIDDLES, ENDS))]
    return tuple(dict.fromkeys(name for name in names if name and name not in pet_set()))


@cache
def all_pets() -> tuple[str, ...]:
    """Every name of pets but those of any make, each once, in order."""
    people = {*WOMEN, *MEN, *(roman for roman, *_ in NEPALI)}
    names = [made(start, end) for start, end in product(STARTS, PET_ENDS)]
    return tuple(dict.fromkeys(name for name in (*PETS, *names) if name and name not in people))


@cache
def pet_set() -> frozenset[str]:
    return frozenset(all_pets())


@cache
def real(split: Split) -> tuple[str, ...]:
    """The real names of a split, Nepali and others."""
    names = dict.fromkeys((*(roman for roman, *_ in NEPALI), *WOMEN, *MEN))
    return tuple(name for name in names if split_of(name) == split)


@cache
def pets(split: Split) -> tuple[str, ...]:
    return tuple(name for name in all_pets() if split_of(name) == split)


def made_name(split: Split, rng: Random) -> str:
    """A name that is made of syllables or of any sounds."""
    free = rng.random() < FREE
    while True:
        middle = () if rng.random() < SHORT else (rng.choice(MIDDLES),)
        name = free_name(rng) if free else made(rng.choice(STARTS), *middle, rng.choice(ENDS))
        if name and name not in pet_set() and split_of(name) == split:
            return name


def name(split: Split, rng: Random) -> str:
    """A name of a person, real or made."""
    return rng.choice(real(split)) if rng.random() < REAL else made_name(split, rng)


def pet_name(split: Split, rng: Random) -> str:
    """A name of a pet; no person has one of these but by chance."""
    if rng.random() >= FREE:
        return rng.choice(pets(split))
    while split_of(name := free_name(rng)) != split:
        pass
    return name


@cache
def seen_names() -> tuple[str, ...]:
    """A small list of training names: all the real ones, and made ones."""
    rng = Random("seen names")
    names = dict.fromkeys(real("train"))
    while len(names) < SEEN:
        names[made_name("train", rng)] = None
    return tuple(names)


def seen_name(rng: Random) -> str:
    """A training name that comes again and again."""
    return rng.choice(seen_names())


@cache
def nepali(split: Split) -> tuple[tuple[str, str, bool], ...]:
    return tuple(entry for entry in NEPALI if split_of(entry[0]) == split)


def nepali_name(split: Split, rng: Random) -> tuple[str, str]:
    """A real Nepali name in Roman and in Devanagari letters: ("Sita", "सीता")."""
    return rng.choice(nepali(split))[:2]


@cache
def genders() -> dict[str, bool]:
    """Name, in either alphabet -> whether it is a woman's, for the real names."""
    table = dict.fromkeys(WOMEN, True) | dict.fromkeys(MEN, False)
    return table | {name: female for roman, devanagari, female in NEPALI for name in (roman, devanagari)}


def is_female(name: str, rng: Random | None = None) -> bool:
    """Whether a real name is a woman's; a made name may be anybody's: the generator decides."""
    return genders()[name] if rng is None or name in genders() else rng.random() < 0.5
