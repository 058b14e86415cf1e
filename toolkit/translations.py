"""What a translation is made of: its text, its tokens, how probable they are, which source words they come from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import numpy as np

from toolkit.data.sentences import sentence_text
from toolkit.decoding import GenerationSettings, Hypothesis, cross_attention, word_alignment, words_of
from toolkit.functional.arrays import Array
from toolkit.models.seq2seq import Seq2Seq
from toolkit.tokenization import Tokenizer
from toolkit.tokenization.normal_form import check_text
from toolkit.tokenization.special import EOS

PLACES = 6  # digits of log-probabilities and scores in JSON
_SHARES = 10_000

# A translation that is to be scored: a text, or the ids of one.
Target = str | Iterable[int]


class TranslationSettings(GenerationSettings, total=False):
    """The keywords of `Translator.translate`, for editors and type checkers."""

    prefix: str | Iterable[str]
    bad_words: Sequence[str]
    batch_size: int
    workers: int


class TranslationsSettings(TranslationSettings, total=False):
    """Those of `Translator.translate_n`."""

    num_return_sequences: int
    alignments: bool


class ScoreSettings(TypedDict, total=False):
    """Those of `Translator.score`."""

    length_penalty: float
    alignments: bool
    batch_size: int


@dataclass(frozen=True)
class Translation:
    """A translation, and how probable the model finds it.

    `log_prob` is the sum of the log-probabilities of all tokens, end mark included, and `score` that divided by the
    length penalty. Attention and alignment are there where they were asked for.
    """

    text: str
    score: float
    log_prob: float
    finished: bool  # False where the length limit, not the model, ended it
    ids: list[int]  # the end mark included where there is one
    tokens: list[str]  # how each id is shown
    token_log_probs: list[float]  # one for each of `tokens`
    source_tokens: list[str] | None = None  # end mark included
    attention: Array | None = None  # (tokens, source tokens): how far each token looks at each; rows sum to 1
    alignment: list[tuple[int, int]] | None = None  # (source word, target word), counted from 0

    def to_dict(self) -> dict[str, Any]:
        """Give what `toolkit translate --json` prints of it: probabilities to six digits, attention to four."""
        record: dict[str, Any] = {
            "text": self.text,
            "score": round(self.score, PLACES),
            "log_prob": round(self.log_prob, PLACES),
            "finished": self.finished,
            "ids": self.ids,
            "tokens": self.tokens,
            "token_log_probs": [round(each, PLACES) for each in self.token_log_probs],
        }
        if self.attention is not None:
            record["source_tokens"] = self.source_tokens
            record["attention"] = rounded_rows(self.attention).tolist()
            record["alignment"] = self.alignment
        return record

    def __eq__(self, other: object) -> bool:
        """Compare every field, and every number of the attention."""
        if not isinstance(other, Translation):
            return NotImplemented
        one, two = ({**vars(each), "attention": None} for each in (self, other))
        return one == two and np.array_equal(self.attention, other.attention)


def described(hypothesis: Hypothesis, tokenizer: Tokenizer) -> Translation:
    """A hypothesis with its text and its tokens."""
    ids = [*hypothesis.ids, EOS][: len(hypothesis.token_log_probs)]
    tokens = [tokenizer.piece(each) for each in ids]
    return Translation(
        sentence_text(tokenizer, hypothesis.ids), tokens=tokens, **hypothesis._replace(ids=ids)._asdict()
    )


def without_end(ids: Sequence[int]) -> list[int]:
    """Drop the end mark of a translation's ids, where there is one."""
    return list(ids[:-1] if len(ids) and ids[-1] == EOS else ids)


def ids_of(given: Iterable[int], name: str) -> list[int]:
    """The ids of a translation, without its end mark.  Raises DataError for what is neither a text nor ids."""
    ids = list(given) if isinstance(given, Iterable) and not isinstance(given, bytes) else [None]
    if not all(isinstance(each, int | np.integer) for each in ids):
        check_text(given, name)
    return without_end([int(each) for each in ids])


def aligned(
    model: Seq2Seq,
    tokenizer: Tokenizer,
    sources: Sequence[Sequence[int]],
    translations: Sequence[Translation],
    batch_size: int,
) -> list[Translation]:
    """Translations, each of the source of the same number, with attention and alignment."""
    targets = [without_end(translation.ids) for translation in translations]
    maps = cross_attention(model, sources, targets, batch_size)
    results = []
    for source, target, translation, attention in zip(sources, targets, translations, maps, strict=True):
        source_tokens = [tokenizer.piece(each) for each in [*source, EOS]]
        target_words = words_of(translation.tokens[: len(target)])
        alignment = word_alignment(attention, words_of(source_tokens[:-1]), target_words)
        attention = attention[: len(translation.tokens)]  # an output may have been cut off before its end mark
        results.append(replace(translation, source_tokens=source_tokens, attention=attention, alignment=alignment))
    return results


def rounded_rows(rows: Array) -> Array:
    """Round rows that sum to 1 to ten-thousandths that still do: the largest remainders are rounded up.

    Shapes: (T, S) -> (T, S).
    """
    shares = rows.astype(np.float64) * _SHARES
    whole = np.floor(shares)
    left = np.rint(_SHARES - whole.sum(axis=1, keepdims=True))
    rank = np.argsort(np.argsort(whole - shares, axis=1, kind="stable"), axis=1)
    return (whole + (rank < left)) / _SHARES
