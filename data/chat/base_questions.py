"""Questions and answers of the base text: what is asked stands on the first line, with what must be known for it, and
the answer on the second. They are cut from conversations of the program, without its turns and mostly without manners.
"""

from collections.abc import Iterator
from itertools import count, islice
from random import Random

from data.chat.dialogue import Exchange, polite
from data.chat.dialogue_deck import Deck
from data.chat.dialogue_program import start, talk

NEPALI = 0.16  # of them
EXCHANGES = (1, 2, 3, 4, 5, 6)
LONGEST = 400  # characters of the first line
ALONE = frozenset(("translation", "fact", "sum"))  # can be answered without what was said before
HISTORY = 0.15  # of these come after it all the same
MANNERS = frozenset(("tell", "say", "correct", "social"))  # what is answered to these is learned later
POLITE = 0.3  # of the answers have manners: what is answered has to be found after an opening too
FULL = 0.5  # of the others are whole sentences


def questions(seed: str, number: int) -> list[str]:
    """So many questions with their answers; only with names and sentences of the training set."""
    return list(islice(_documents(seed), number))


def _documents(seed: str) -> Iterator[str]:
    deck = Deck("train", f"{seed} deck")
    for each in count():
        state, rng = start("train", deck, f"{seed} {each}", NEPALI), Random(f"{seed} form {each}")
        exchanges = talk(state, [], rng.choice(EXCHANGES), rng)
        for place, exchange in enumerate(exchanges):
            asked = _first_line(exchanges[: place + 1], rng)
            if exchange.kind not in MANNERS and len(asked) <= LONGEST:
                yield f"{asked}\n{_answer(exchange, rng)}"


def _answer(exchange: Exchange, rng: Random) -> str:
    if rng.random() < POLITE:
        return polite(exchange.core.full, exchange.tone, rng)
    return exchange.core.full if rng.random() < FULL else exchange.core.short


def _first_line(exchanges: list[Exchange], rng: Random) -> str:
    """What the user has said that the last answer depends on."""
    *before, last = exchanges
    if last.kind in ALONE and rng.random() >= HISTORY:
        follows = last.kind == "translation" and before and before[-1].kind in ("say", "tell")  # "And in Nepali?"
        before = before[-1:] if follows else []
    return " ".join(each.user for each in (*before, last))
