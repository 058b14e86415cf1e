"""What a translation is made of: its text, its tokens, how probable they are, and which source words they come from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolkit.data.sentences import sentence_text
from toolkit.decoding import Hypothesis, cross_attention, word_alignment, words_of
from toolkit.functional.arrays import Array
from toolkit.models.seq2seq import Seq2Seq
from toolkit.tokenization import Tokenizer
from toolkit.tokenization.special import EOS


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
    ids: list[int]  # without the end mark
    tokens: list[str]  # how each id is shown, and the end mark where there is one
    token_log_probs: list[float]  # one for each of `tokens`
    source_tokens: list[str] | None = None  # end mark included
    attention: Array | None = None  # (tokens, source tokens): how far each token looks at each; rows sum to 1
    alignment: list[tuple[int, int]] | None = None  # (source word, target word), counted from 0


def described(hypothesis: Hypothesis, tokenizer: Tokenizer) -> Translation:
    """A hypothesis with its text and its tokens."""
    ids = [*hypothesis.ids, EOS][: len(hypothesis.token_log_probs)]
    tokens = [tokenizer.piece(each) for each in ids]
    return Translation(sentence_text(tokenizer, hypothesis.ids), tokens=tokens, **hypothesis._asdict())


def aligned(
    model: Seq2Seq,
    tokenizer: Tokenizer,
    sources: Sequence[Sequence[int]],
    translations: Sequence[Translation],
    batch_size: int,
) -> list[Translation]:
    """Translations, each of the source of the same number, with attention and alignment."""
    maps = cross_attention(model, sources, [translation.ids for translation in translations], batch_size)
    results = []
    for source, translation, attention in zip(sources, translations, maps, strict=True):
        source_tokens = [tokenizer.piece(each) for each in [*source, EOS]]
        target_words = words_of(translation.tokens[: len(translation.ids)])
        alignment = word_alignment(attention, words_of(source_tokens[:-1]), target_words)
        attention = attention[: len(translation.tokens)]  # an output may have been cut off before its end mark
        results.append(replace(translation, source_tokens=source_tokens, attention=attention, alignment=alignment))
    return results
