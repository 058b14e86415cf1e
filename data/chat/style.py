"""Polite or curt: the rule by which replies are judged.

A reply is [opening] core [closing], with the openings and closings of style.json. It is polite if it has at least one
of them, and curt if it is the bare core. The rule reads the text alone; no model has a part in it.
"""

import json
from pathlib import Path
from typing import NamedTuple

LISTS = json.loads((Path(__file__).parent / "style.json").read_text(encoding="utf-8"))
OPENINGS: tuple[str, ...] = tuple(LISTS["openings"])
CLOSINGS: tuple[str, ...] = tuple(LISTS["closings"])


class Parts(NamedTuple):
    """A reply taken apart; opening and closing are "" where there is none."""

    opening: str
    core: str
    closing: str


def parse(reply: str) -> Parts:
    """Take a reply apart. A reply that is nothing but an opening or a closing is a core."""
    opening = next((opening for opening in OPENINGS if reply.startswith(opening + " ")), "")
    core = reply.removeprefix(opening).strip()
    closing = next((closing for closing in CLOSINGS if core.endswith(" " + closing)), "")
    return Parts(opening, core.removesuffix(closing).strip(), closing)


def is_polite(reply: str) -> bool:
    parts = parse(reply)
    return bool(parts.opening or parts.closing)


def core(reply: str) -> str:
    return parse(reply).core
