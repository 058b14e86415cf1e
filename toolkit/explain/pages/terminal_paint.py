"""Colours of a terminal, which are left out where there are none."""

from collections.abc import Callable

Paint = Callable[..., str]  # (text, style) -> text

BOLD, DIM, RED, GREEN, BLUE = "1", "2", "31", "32", "36"

# The colour map viridis, dark to bright, in the 256 colours of a terminal: both grounds are set, so that it looks alike
# on a light and on a dark one.
_SCALE = (53, 54, 60, 24, 30, 36, 77, 113, 148, 220)


def paint(text: str, style: str) -> str:
    """The text in a style of ECMA-48, such as "1" for bold."""
    return f"\033[{style}m{text}\033[0m"


def plain(text: str, style: str) -> str:
    """The text as it is."""
    return text


def ground(share: float) -> str:
    """The style of a cell of a map, from 0 (nothing) to 1 (the largest weight)."""
    step = min(int(share * len(_SCALE)), len(_SCALE) - 1)
    return f"38;5;{231 if step < 6 else 16};48;5;{_SCALE[step]}"
