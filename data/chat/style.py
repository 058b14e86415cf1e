"""Polite or curt: the rule by which replies are judged.

A reply is [opening] core [closing], with the openings and closings of style.json, which may be said to somebody ("Of
course, Sita."). It is polite if it has at least one that is polite and none that is blunt, and curt if it is the bare
core. The rule reads the text alone; no model has a part in it, and the toolkit judges replies by the same.
"""

import json
import re
from pathlib import Path
from typing import NamedTuple

LISTS = json.loads((Path(__file__).parent / "style.json").read_text(encoding="utf-8"))
OPENINGS: tuple[str, ...] = tuple(LISTS["openings"])
CLOSINGS: tuple[str, ...] = tuple(LISTS["closings"])
BLUNT_OPENINGS: tuple[str, ...] = tuple(LISTS["blunt_openings"])
BLUNT_CLOSINGS: tuple[str, ...] = tuple(LISTS["blunt_closings"])


def _any(sentences: tuple[str, ...]) -> str:
    longest = sorted(sentences, key=len, reverse=True)
    return "|".join(rf"{re.escape(each[:-1])}(?:, [^.,!?।]+)?{re.escape(each[-1])}" for each in longest)


OPENING = re.compile(f"({_any(OPENINGS + BLUNT_OPENINGS)}) ")
CLOSING = re.compile(f" ({_any(CLOSINGS + BLUNT_CLOSINGS)})$")
BLUNT = re.compile(_any(BLUNT_OPENINGS + BLUNT_CLOSINGS))


class Parts(NamedTuple):
    """A reply taken apart; opening and closing are "" where there is none."""

    opening: str
    core: str
    closing: str


def parse(reply: str) -> Parts:
    """Take a reply apart. A reply that is nothing but an opening or a closing is a core."""
    opening = OPENING.match(reply)
    core = reply[opening.end() :] if opening else reply
    closing = CLOSING.search(core)
    rest = core[: closing.start()] if closing else core
    return Parts(opening[1] if opening else "", rest, closing[1] if closing else "")


def is_polite(reply: str) -> bool:
    parts = parse(reply)
    manners = [part for part in (parts.opening, parts.closing) if part]
    return bool(manners) and not any(map(BLUNT.fullmatch, manners))


def core(reply: str) -> str:
    return parse(reply).core
