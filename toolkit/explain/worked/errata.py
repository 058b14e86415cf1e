"""The known errors of the founding documents, each with what the toolkit computes instead."""

from collections.abc import Collection

from toolkit.explain.pages.blocks import Erratum
from toolkit.explain.worked.errata_claims import CLAIMS
from toolkit.explain.worked.errata_numbers import NUMBERS

_ALL = {**CLAIMS, **NUMBERS}


def erratum(key: str) -> Erratum:
    """One of them, computed now.  Raises KeyError for one that is not known."""
    return _ALL[key]()


def errata(without: Collection[str] = ()) -> dict[str, Erratum]:
    """All of them by key, the documents in order.  without: keys to leave out."""
    found = {key: compute() for key, compute in _ALL.items() if key not in without}
    return dict(sorted(found.items(), key=lambda item: item[1].document))
