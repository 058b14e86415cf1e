"""Teacher forcing instead of search: scores of given outputs, and their alignment with the source."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from toolkit.decoding.generation import Texts, check_batch_size, check_ids
from toolkit.decoding.hypothesis import Hypothesis, hypothesis_of
from toolkit.decoding.sampling import log_sum_exp
from toolkit.errors import ConfigError, DataError
from toolkit.functional.arrays import Array, row_blocks
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqBatch, translation_batch
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Recorder, Tape

# Logits of one block of rows, 4 MB of float32, so that memory does not grow with batch times vocabulary.
_BLOCK_LOGITS = 1 << 20

_SPACE_MARK = "\u2581"  # begins the first piece of a word in every tokenizer here


def score(
    model: Seq2Seq,
    sources: Texts,
    targets: Texts,
    batch_size: int = 64,
    length_penalty: float = 1.0,
    forced_bos: int | None = None,
) -> list[Hypothesis]:
    """Score the targets as hypotheses that end with EOS, in input order: as `generate` reports the same ids.

    sources, targets: ids without BOS and EOS, one target for each source. Pairs of similar length are scored together,
    `batch_size` at a time, which changes nothing but the time.
    forced_bos: an id that all targets begin with, whose log-probability is 0, as in `generate`.

    Raises DataError for ids that the model cannot read, ConfigError for a batch_size below 1.
    """
    if forced_bos is not None and any(not len(target) or target[0] != forced_bos for target in targets):
        raise DataError(f"a target does not begin with the id {forced_bos}, which all begin with")

    def log_probs(batch: Seq2SeqBatch, pool: Pool) -> list[Array]:
        found = _label_log_probs(model, batch, Tape(memory=pool))
        if forced_bos is not None:
            found[batch.rows.starts] = 0
        return np.split(found, batch.rows.starts[1:])

    pairs = zip(targets, _by_length(model, sources, targets, batch_size, log_probs), strict=True)
    return [hypothesis_of(list(map(int, ids)), found.tolist(), length_penalty, finished=True) for ids, found in pairs]


def _label_log_probs(model: Seq2Seq, batch: Seq2SeqBatch, tape: Tape) -> Array:
    """Compute the log-probability of every label, (N,) in float64."""
    x = model.forward(batch, tape)
    result = np.empty(len(x))
    for rows in row_blocks(len(x), model.config.vocab_size, _BLOCK_LOGITS):
        logits = model.output.logits(x[rows], tape)
        result[rows] = logits[np.arange(len(logits)), batch.labels[rows]] - log_sum_exp(logits)
    return result


def cross_attention(
    model: Seq2Seq, sources: Texts, targets: Texts, batch_size: int = 64, layer: int | None = None
) -> list[Array]:
    """Read the decoder's attention to each source token in a real pass, averaged over the heads.

    sources, targets: ids without BOS and EOS. Returns (T + 1, S + 1) for each pair, in input order: row t belongs to
    the step that writes target token t (the last one: EOS), column s to source token s (the last one: EOS); rows sum
    to 1.
    layer: a decoder layer, from 0. None averages over all: against alignments counted from the corpora (IBM model 1,
    both directions) words were aligned best so in models of 2 and of 3 layers, next best by the last layer of 2 and by
    the last but one of 3.

    Raises DataError for ids that the model cannot read, ConfigError for a layer that it does not have.
    """
    count = len(model.decoder.blocks)
    if layer is not None and not 0 <= layer < count:
        raise ConfigError(f"layer is {layer}: the decoder has layers 0 to {count - 1}")
    blocks = model.decoder.blocks if layer is None else [model.decoder.blocks[layer]]
    modules = [block.cross_attention.layer for block in blocks]

    def maps(batch: Seq2SeqBatch, pool: Pool) -> Iterator[Array]:
        recorder = Recorder(modules, ["probabilities"])
        tape = Tape(memory=pool, recorder=recorder)
        model.forward(batch, tape)
        by_layer = zip(*(recorder.attention_maps(module) for module in modules), strict=True)
        return (np.mean(each, axis=(0, 1)) for each in by_layer)

    return _by_length(model, sources, targets, batch_size, maps)


def word_alignment(attention: Array, source_words: Sequence[int], target_words: Sequence[int]) -> list[tuple[int, int]]:
    """Pair (source word, target word), counted from 0, by target word: Pharaoh's format writes them as 0-0 2-1.

    attention: (T + 1, S + 1) as from `cross_attention`. source_words (S,) and target_words (T,): the word that each
    token belongs to, -1 for none, as from `words_of`. Every target word is paired with the source word that its tokens
    take most from; EOS belongs to no word, so without source words there are no pairs.
    """
    source, target = (np.asarray(words, np.int64) for words in (source_words, target_words))
    weights = np.zeros((target.max(initial=-1) + 1, source.max(initial=-1) + 1))
    if weights.size == 0:
        return []
    of_target, of_source = np.flatnonzero(target >= 0), np.flatnonzero(source >= 0)
    tokens = attention[np.ix_(of_target, of_source)]
    np.add.at(weights, (target[of_target][:, None], source[of_source]), tokens)
    return [(int(best), word) for word, best in enumerate(weights.argmax(axis=1))]


def words_of(pieces: Sequence[str]) -> list[int]:
    """Number the words of a text, from 0, as splitting at spaces counts them, for every piece of a tokenizer.

    A piece that is a space alone belongs to no word: -1.
    """
    words, word, begins = [], -1, True
    for piece in pieces:
        begins |= piece.startswith(_SPACE_MARK)
        if piece.strip(_SPACE_MARK):
            word += begins
            begins = False
        words.append(word if piece.strip(_SPACE_MARK) else -1)
    return words


def _by_length(
    model: Seq2Seq,
    sources: Texts,
    targets: Texts,
    batch_size: int,
    compute: Callable[[Seq2SeqBatch, Pool], Iterable[Array]],
) -> list[Array]:
    """Check the pairs, and compute something of each, in batches of similar length with teacher forcing."""
    check_batch_size(batch_size)
    if len(sources) != len(targets):
        raise DataError(f"there are {len(targets)} translations for {len(sources)} sentences: give one for each")
    check_ids(model, sources, "sentence {}")
    check_ids(model, targets, "the translation of sentence {}")
    pool, results = Pool(), {}
    order = sorted(range(len(targets)), key=lambda index: (len(targets[index]), len(sources[index])))
    for begin in range(0, len(order), batch_size):
        chosen = order[begin : begin + batch_size]
        batch = translation_batch([sources[index] for index in chosen], [targets[index] for index in chosen])
        results.update(zip(chosen, compute(batch, pool), strict=True))
    return [results[index] for index in range(len(targets))]
