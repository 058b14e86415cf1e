"""A choice among the translations that a search has found, by a translator of the other direction.

A translation that leaves out a clause, or is of another sentence, may be quite probable; but from it nobody would guess
the source. So of what the beams find of a source x, the y is taken that has the largest

    log p(y | x) / |y|  +  weight · log q(x | y) / |x|

with p the translator, q the one of the other direction, and |·| the numbers of tokens. By Bayes' rule the product of
q(x | y) and the probability of y ranks as p(y | x) would if both were exact; they are not, and err in different ways
(noisy channel reranking: Yee, Dauphin, Auli 2019). The weight is to be chosen on held-out sentences: of the two
translators that ship, 0.2 is best in both directions.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from toolkit.data.sentences import sentence_text
from toolkit.decoding import GenerationConfig, Hypothesis
from toolkit.errors import ConfigError
from toolkit.outputs import Translation
from toolkit.translation_reader import Prepared, TranslationReader

WEIGHT = 0.2  # of the other direction, unless another is given
BEAMS = 8  # of a search for it, where one beam is asked for
NEVER = -1e3  # the mean log-probability of a source, given a blank translation


def searched_wide(
    translator: TranslationReader, reverse: TranslationReader, weight: float, config: GenerationConfig
) -> GenerationConfig:
    """Ask for all that several beams find.

    Raises ConfigError where there is nothing to choose from, for translators that do not fit together, and for a weight
    that is negative or no number.
    """
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
        raise ConfigError(f"reverse_weight is {weight!r:.40}: it must be a number, and at least 0")
    if config.samples:
        raise ConfigError("what is sampled is not chosen by a translator of the other direction: leave out one of both")
    if translator.by_ids or reverse.by_ids:
        raise ConfigError("ids are not read by a translator of the other direction: translate texts")
    carriers = translator.tokenizer.carrier, reverse.tokenizer.carrier
    if all(carriers) and carriers[0].script == carriers[1].script:
        raise ConfigError("the reverse translator writes the same language: give one of the other direction")
    beams = config.num_beams if config.num_beams > 1 else BEAMS
    return replace(config, num_beams=beams, num_return_sequences=beams)


def chosen_by_both(
    translator: TranslationReader,
    score_source: Callable[[Sequence[str], Sequence[str]], Sequence[Translation]],
    prepared: Prepared,
    found: Sequence[Sequence[Hypothesis]],
    weight: float,
) -> list[list[Hypothesis]]:
    """Put the hypotheses of every sentence in order of what both directions say, with that as their scores.

    score_source: `Translator.score` of the other direction, of translations and the sources that they are of.
    """
    sources = [sentence for source in prepared.sources for sentence in source.text.sentences]
    pairs = [
        (translator.restored(sentence_text(translator.tokenizer, each.ids), items), source)
        for source, items, group in zip(sources, prepared.carried, found, strict=True)
        for each in group
    ]
    said = [place for place, (text, _) in enumerate(pairs) if text.strip()]
    backward = dict.fromkeys(range(len(pairs)), NEVER)
    if said:
        texts, targets = zip(*(pairs[place] for place in said), strict=True)
        scored = zip(said, score_source(texts, targets), strict=True)
        backward |= {place: each.score for place, each in scored}
    flat, groups = iter(backward.values()), []
    for group in found:
        means = (each.log_prob / max(len(each.token_log_probs), 1) + weight * next(flat) for each in group)
        scored_group = [each._replace(score=score) for each, score in zip(group, means, strict=True)]
        groups.append(sorted(scored_group, key=lambda each: -each.score))
    return groups
