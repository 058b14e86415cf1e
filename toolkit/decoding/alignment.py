"""Which source words an output was made of, read from cross-attention in the real pass."""

from collections.abc import Sequence

import numpy as np

from toolkit.decoding.generate import Sources
from toolkit.decoding.scoring import batches_by_length, check_pairs
from toolkit.errors import ConfigError
from toolkit.functional.arrays import Array
from toolkit.models.seq2seq import Seq2Seq
from toolkit.nn.memory import Pool
from toolkit.nn.recorder import Recorder
from toolkit.nn.tape import Tape

_SPACE_MARK = "\u2581"  # begins the first piece of a word in every tokenizer here


def cross_attention(
    model: Seq2Seq, sources: Sources, targets: Sources, batch_size: int = 64, layer: int | None = None
) -> list[Array]:
    """How much of what the decoder takes from the source comes from each token, averaged over the heads.

    sources, targets: ids without special marks. Returns (T + 1, S + 1) for each pair, in input order: row t belongs to
    the step that writes target token t (the last one: the end mark), column s to source token s (the last one: its end
    mark); rows sum to 1.
    layer: a decoder layer, from 0. None averages over all: against alignments counted from the corpora (IBM model 1,
    both directions) words were aligned best so in models of 2 and of 3 layers, next best by the last layer of 2 and by
    the last but one of 3.

    Raises DataError for ids that the model cannot read, ConfigError for a layer that it does not have.
    """
    check_pairs(model, sources, targets, batch_size)
    count = len(model.decoder)
    if layer is not None and not 0 <= layer < count:
        raise ConfigError(f"layer is {layer}: the decoder has layers 0 to {count - 1}")
    modules = [block.cross_attention for block in (model.decoder if layer is None else [model.decoder[layer]])]
    pool = Pool()
    results: dict[int, Array] = {}
    for chosen, batch in batches_by_length(sources, targets, batch_size):
        recorder = Recorder(modules, ["probabilities"])
        tape = Tape(memory=pool, recorder=recorder)
        model.decode(batch.inputs, model.encode(batch.sources, batch.source_rows, tape), batch.rows, tape)
        by_layer = zip(*(recorder.attention_maps(module) for module in modules), strict=True)
        results.update(zip(chosen, (np.mean(maps, axis=(0, 1)) for maps in by_layer), strict=True))
    return [results[index] for index in range(len(targets))]


def word_alignment(attention: Array, source_words: Sequence[int], target_words: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs (source word, target word), counted from 0, by target word: what Pharaoh's format writes as 0-0 2-1.

    attention: (T + 1, S + 1) as from `cross_attention`. source_words (S,) and target_words (T,): the word that each
    token belongs to, -1 for none, as from `words_of`. Every target word is paired with the source word that its tokens
    take most from; end marks are nobody's words, so without source words there are no pairs.
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
    """The word of every piece of a tokenizer, from 0, as splitting the text at spaces counts them.

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
