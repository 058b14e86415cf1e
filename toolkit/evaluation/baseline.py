"""What a system has to beat: a test set translated by looking up the nearest training sentence."""

from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.display import counted
from toolkit.errors import DataError
from toolkit.evaluation.lookup import nearest
from toolkit.tokenization.normal_form import normal_form


@dataclass(frozen=True)
class Baseline:
    """The looked-up translations, and how near the training sentences come to the sources.

    similarity: mean cosine of a source and its nearest training source. verbatim: how many sources occur among the
    training sources, white space at the ends aside: these are no test of anything but memory.
    """

    translations: list[str]
    similarity: float
    verbatim: int


def look_up(sources: Sequence[str], train_sources: Sequence[str], train_targets: Sequence[str]) -> Baseline:
    """Translate every source by the target of the most similar training source (see `lookup.nearest`).

    Raises DataError if there is no source or no training pair, and for unequal numbers of training sentences.
    """
    if len(train_sources) != len(train_targets):
        raise DataError(
            f"{counted(len(train_sources), 'training source')} and {counted(len(train_targets), 'target')} are given: "
            "each line needs its counterpart"
        )
    if not sources:
        raise DataError("there is no sentence to look up: give at least one")
    index, similarity = nearest(sources, train_sources)
    known = {_plain(text) for text in sources}.intersection(map(_plain, train_sources))
    return Baseline(
        translations=[train_targets[place] for place in index],
        similarity=float(similarity.mean()),
        verbatim=sum(_plain(text) in known for text in sources),
    )


def _plain(text: str) -> str:
    return normal_form(text).strip()
