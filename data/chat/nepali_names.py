"""Made names in Devanagari: तोविना, सेमुरन. Real Nepali names are few, and a model would rather learn them by heart.

A made name ends in a way that no postposition or case does (never को, ले, मा), and as many names do: with ा or ी it is
a woman's, with a consonant a man's.
"""

from functools import cache
from itertools import product
from random import Random

from data.chat.names import Split, genders, split_of
from data.chat.names import is_female as is_real_female
from data.chat.real_names import words

STARTS = words(
    "का कि कु गो गे जो जि टे तो ति दे दि ना नि नो पा पु पे बा बि बे बो मि मु मे या यु रे रो ला लि लो वि वे सा सु से सो हि हे"
)
MIDDLES = words("का कि गु जे ता ति दु ना नि पे बा बि मि मु मे या रि रु रे ला लि लो वि वे सि सु से")
ENDS = words("क ज त न नद म मन र रन ल लन श ना नी ता ती रा री ला ली शा जा वा")
NOT_NAMES = frozenset(words("बिरुवा हेरेन हेरेर"))


@cache
def all_made() -> tuple[str, ...]:
    """Every made name, each once, in order."""
    names = ("".join(parts) for parts in product(STARTS, MIDDLES, ENDS))
    return tuple(name for name in dict.fromkeys(names) if name not in NOT_NAMES and name not in genders())


@cache
def made(split: Split) -> tuple[str, ...]:
    return tuple(name for name in all_made() if split_of(name) == split)


def made_nepali_name(split: Split, rng: Random) -> str:
    """A made name of a split, in Devanagari."""
    return rng.choice(made(split))


def is_female(name: str) -> bool:
    """Whether a name in Devanagari, real or made, is a woman's."""
    return is_real_female(name) if name in genders() else name[-1] in "ाी"
