"""Names of any make: sounds put together as no list of syllables foresees them (Kabavia, Vukip, Thrazrith).

Who learns only names that end as the others do, completes a name instead of copying it.
"""

import re
from functools import cache
from pathlib import Path
from random import Random

from data.chat.real_names import NOT_NAMES, words

SINGLE = words("b c d f g h j k l m n p q r s t v w x y z")
ONSETS = 5 * SINGLE + words(
    "bh bl br ch ch chr cl dh dr fl fr gh gl gr gy jh kh kl kr ks ny ph pl pr rh sch sh sh shr sk sl sm sn sp st str "
    "sv sw th th thr tr ts tw vl zh"
)
VOWELS = 8 * words("a a e e i i o u") + words("aa ae ai ai au ea ee ee ei eo ia ia ie io iu oa oo oo ou ua ue ui y y")
CODAS = 3 * words("d k l m n n r s s t") + words(
    "b ck f g h ld ll lf ls lt nd ng nk nn nt p rd rg rk rl rn rs rt sh ss st th tt tz v w x z"
)
SYLLABLES, SYLLABLE_WEIGHTS = (1, 2, 3, 4), (8, 52, 34, 6)
OPEN, CLOSED_AT_END = 0.75, 0.5  # begins with a consonant; the last syllable ends with one
CLOSED = 0.2  # so do the others
LENGTHS = 4, 10  # letters
OFFENSIVE = re.compile(
    "anal|anus|arse|ass|bitch|cock|coon|crap|cum|cunt|damn|dick|fag|fart|fuc|fuk|nazi|nig|penis|piss|poo|porn|pus|rape|"
    "sex|shit|slut|spic|tit|turd|twat|vagin|wank|whor"
)


@cache
def known() -> frozenset[str]:
    """Words, which are no names."""
    corpus = Path(__file__).parent.parent / "en_ne" / "train.en"
    return NOT_NAMES | frozenset(re.findall("[a-z]+", corpus.read_text(encoding="utf-8").lower()))


def free_name(rng: Random) -> str:
    """A name of any make; nobody's but by chance."""
    while True:
        name = "".join(syllables(rng))
        if LENGTHS[0] <= len(name) <= LENGTHS[1] and name not in known() and not OFFENSIVE.search(name):
            return name.capitalize()


def syllables(rng: Random, weights: tuple[int, ...] = SYLLABLE_WEIGHTS) -> list[str]:
    """The syllables of a name of any make; weights: how often it has one, two, three or four."""
    (count,) = rng.choices(SYLLABLES, weights)
    parts = []
    for number in range(count):
        onset = rng.choice(ONSETS) if number or rng.random() < OPEN else ""
        closed = CLOSED_AT_END if number == count - 1 else CLOSED
        parts.append(onset + rng.choice(VOWELS) + (rng.choice(CODAS) if rng.random() < closed else ""))
    return parts
