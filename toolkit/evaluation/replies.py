"""Replies in a conversation, judged by rules: is the answer right, is it polite, does it end by itself?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from toolkit.errors import DataError
from toolkit.evaluation.scores import normalise_for_match
from toolkit.tokenization.normal_form import normal_form
from toolkit.untrusted import ANYTHING, SETTINGS_BYTES, Items, Record, Text, UnfitError, check, parse_json, read_bytes

_LISTS = ("openings", "closings")
_STYLE = Record(dict.fromkeys(_LISTS, Items(Text())), needed=_LISTS, others=ANYTHING)


@dataclass(frozen=True)
class Style:
    """The rule by which a reply is polite: it opens or closes with one of these sentences.

    A reply is [opening] core [closing]; what is said is the core. Text is in normal form C.
    """

    openings: tuple[str, ...]
    closings: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> "Style":
        """From a file {"openings": [...], "closings": [...]}.  Raises DataError where it is missing or is not that."""
        try:
            value = check(parse_json(read_bytes(path, SETTINGS_BYTES)), _STYLE)
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}") from error
        except UnfitError as error:
            raise DataError(f'{path} is no style ({error}): write {{"openings": ["…"], "closings": ["…"]}}') from error
        return cls(*(tuple(map(_plain, value[name])) for name in _LISTS))

    def is_polite(self, reply: str) -> bool:
        return self.core(reply) != _plain(reply)

    def core(self, reply: str) -> str:
        """The reply without the sentence that opens it and the one that closes it."""
        text = _plain(reply)
        for opening in sorted(self.openings, key=len, reverse=True):
            if text.startswith(f"{opening} "):
                text = text[len(opening) + 1 :].lstrip()
                break
        for closing in sorted(self.closings, key=len, reverse=True):
            if text.endswith(f" {closing}"):
                return text[: -len(closing) - 1].rstrip()
        return text


def _plain(reply: str) -> str:
    return normal_form(reply).strip()


class Judged(NamedTuple):
    """What the rules say of one reply."""

    kind: str
    exact: bool  # its core is one of the accepted ones, a final mark aside
    polite: bool
    ended: bool  # by its end marker, and not at a limit


def judge(reply: str, ended: bool, kind: str, accept: Sequence[str], style: Style) -> Judged:
    """One reply, against the cores that are accepted."""
    core = normalise_for_match(style.core(reply))
    return Judged(kind, core in {normalise_for_match(each) for each in accept}, style.is_polite(reply), ended)


def summary(judged: Iterable[Judged]) -> dict[str, dict[str, float]]:
    """For each kind, and for all together under "all": `count`, and the percentages `exact`, `polite`, `ended`."""
    groups: dict[str, list[Judged]] = {}
    for each in judged:
        groups.setdefault(each.kind, []).append(each)
    together = [each for group in groups.values() for each in group]
    return {kind: _shares(group) for kind, group in (*sorted(groups.items()), ("all", together)) if group}


def _shares(group: Sequence[Judged]) -> dict[str, float]:
    shares = {name: 100 * sum(getattr(each, name) for each in group) / len(group) for name in Judged._fields[1:]}
    return {"count": len(group), **shares}


def table(scores: dict[str, dict[str, float]]) -> list[list[str]]:
    """A summary as the rows of a table."""
    rows = [["prompts", "count", "exact", "polite", "end by themselves"]]
    for kind, shares in scores.items():
        figures = (f"{shares[name]:.1f} %" for name in ("exact", "polite", "ended"))
        rows.append([kind.replace("_", " "), str(shares["count"]), *figures])
    return rows
