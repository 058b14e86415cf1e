"""Which combinations are kept for the test: chosen by a keyed hash of the combination, before any sentence is written.

Every sentence that contains a held-out combination leaves the training set, however it is said: if (object, drink,
milk) is held out, then "I drink milk", "he wants to drink milk" and "do not drink milk" all are. A learner meets
"drink" and "milk" in other company and has to put them together. The choice depends on nothing but the combination
itself, so adding words or sentences to the grammar never moves an old combination from one side to the other.
"""

from hashlib import blake2b

from data.en_ne.sentence import Sentence

Part = tuple[str, str, str]

RATE = 45  # of 1,000 combinations
TESTED = (("predicate", "I", "boy"),)  # always in the test: the README's own sentence
TAUGHT = (  # never held out: what stands beside it, and what everybody types first
    ("predicate", "I", "girl"), ("predicate", "he", "boy"), ("predicate", "you", "boy"), ("predicate", "I", "student"),
    ("predicate", "she", "girl"), ("predicate", "we", "boy"), ("predicate", "they", "boy"),
    ("object", "drink", "tea"), ("object", "drink", "water"), ("object", "eat", "rice"), ("object", "speak", "Nepali"),
    ("place", "my mother", "home"), ("place", "I", "home"), ("question", "where is", "market"),
)  # fmt: skip


def number(part: Part) -> int:
    """A number below 1,000 that only depends on the combination."""
    return int.from_bytes(blake2b("|".join(part).encode(), digest_size=8, key=b"english-nepali").digest(), "big") % 1000


def held_out(part: Part) -> str:
    """ "test", "valid" or "" (taught) for one combination."""
    if part in TESTED:
        return "test"
    if part in TAUGHT or number(part) >= RATE:
        return ""
    return "valid" if number(part) % 3 == 0 else "test"


def side(sentence: Sentence) -> str:
    """Where a sentence belongs: to the test if any of its combinations does, then to the validation set, else to the
    training set.
    """
    sides = {held_out(part) for part in sentence.parts}
    return "test" if "test" in sides else "valid" if "valid" in sides else "train"
