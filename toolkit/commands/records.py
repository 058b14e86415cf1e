"""Translations as JSON, one object a line."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.display import json_text
from toolkit.functional.arrays import Array
from toolkit.translations import Translation

PLACES = 6  # of log-probabilities and scores
_SHARES = 10_000


def json_line(source: str, translations: Sequence[Translation], **marks: bool) -> str:
    """A source and its translations, best first, as one line of JSON; marks: what else there is to say of the line."""
    return json_text({"source": source, "translations": [*map(_record, translations)], **marks})


def _record(translation: Translation) -> dict[str, Any]:
    record: dict[str, Any] = {
        "text": translation.text,
        "score": round(translation.score, PLACES),
        "log_prob": round(translation.log_prob, PLACES),
        "finished": translation.finished,
        "ids": translation.ids,
        "tokens": translation.tokens,
        "token_log_probs": [round(each, PLACES) for each in translation.token_log_probs],
    }
    if translation.attention is not None:
        record["source_tokens"] = translation.source_tokens
        record["attention"] = rounded_rows(translation.attention).tolist()
        record["alignment"] = translation.alignment
    return record


def rounded_rows(rows: Array) -> Array:
    """Rows that sum to 1, in ten-thousandths that still do: what rounding down leaves goes to the largest remainders.

    Shapes: (T, S) -> (T, S).
    """
    shares = rows.astype(np.float64) * _SHARES
    whole = np.floor(shares)
    left = np.rint(_SHARES - whole.sum(axis=1, keepdims=True))
    rank = np.argsort(np.argsort(whole - shares, axis=1, kind="stable"), axis=1)
    return (whole + (rank < left)) / _SHARES
