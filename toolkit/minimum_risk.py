"""A choice among translations that were drawn: the one that most of the others resemble.

The most probable translation of a sentence that a model hardly knows is short and repeats itself, while what it draws
by chance is various and right in parts. So of N translations y of a source, drawn at random, the one is taken that has
the largest mean chrF against all of them:

    1/N · sum over i of  chrF(y, y_i)

which is the expected score if what is drawn is as probable as references are: minimum Bayes risk (Kumar, Byrne 2004;
by samples: Eikema, Aziz 2020). chrF is that of sacreBLEU for a single sentence without its smoothing (Popović 2015):
F with beta 2 of the means, over n-grams of 1 to 6 characters without spaces, of precision and of recall. Recall counts
four times as much, so the more are drawn, the longer is what is taken.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolkit.data.sentences import sentence_text
from toolkit.decoding import GenerationConfig, Hypothesis
from toolkit.errors import ConfigError
from toolkit.functional.arrays import Array
from toolkit.translation_reader import Prepared, TranslationReader

CHARACTER_ORDER, BETA = 6, 2  # of chrF


def drawn_several(config: GenerationConfig, samples: int) -> GenerationConfig:
    """Ask for so many translations.

    Raises ConfigError where nothing is drawn, for a number that is none above 1, and for one below those asked for.
    """
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 2:
        raise ConfigError(
            f"mbr_samples is {samples!r:.40}: it must be a whole number, and at least 2, or 0 for no choice"
        )
    if not config.samples:
        raise ConfigError("mbr_samples chooses among translations that are drawn: add do_sample")
    if config.num_return_sequences > samples:
        raise ConfigError(f"num_return_sequences is {config.num_return_sequences}, of {samples} samples: draw more")
    return replace(config, num_return_sequences=samples)


def chosen_by_risk(
    translator: TranslationReader, prepared: Prepared, found: Sequence[Sequence[Hypothesis]], count: int
) -> list[list[Hypothesis]]:
    """Give the `count` of every sentence that have the largest mean chrF, from 0 to 1, which becomes their score."""
    groups = []
    for items, group in zip(prepared.carried, found, strict=True):
        texts = [translator.restored(sentence_text(translator.tokenizer, each.ids), items) for each in group]
        means = mutual_chrf(texts).mean(axis=1)
        scored = [each._replace(score=float(mean)) for each, mean in zip(group, means, strict=True)]
        groups.append(sorted(scored, key=lambda each: -each.score)[:count])
    return groups


def mutual_chrf(texts: Sequence[str]) -> Array:
    """Compute the chrF of each of N texts against each as the reference -> (N, N) from 0 to 1."""
    texts, orders = ["".join(text.split()) for text in texts], range(1, CHARACTER_ORDER + 1)
    precisions, recalls = (np.full((CHARACTER_ORDER, len(texts), len(texts)), np.nan) for _ in range(2))
    for order, precision, recall in zip(orders, precisions, recalls, strict=True):
        counted = [Counter(text[at : at + order] for at in range(len(text) - order + 1)) for text in texts]
        column = {gram: place for place, gram in enumerate(dict.fromkeys(gram for each in counted for gram in each))}
        counts = np.zeros((len(texts), max(len(column), 1)), np.float32)
        for row, each in zip(counts, counted, strict=True):
            row[[column[gram] for gram in each]] = [*each.values()]
        shared, totals = np.stack([np.minimum(row, counts).sum(axis=1) for row in counts]), counts.sum(axis=1)
        np.divide(shared, totals[:, None], out=precision, where=totals[:, None] > 0)
        np.divide(shared, totals, out=recall, where=totals > 0)
    # An order counts where both texts are so long; a text is like itself, also an empty one.
    usable = ~(np.isnan(precisions) | np.isnan(recalls))
    some = np.maximum(usable.sum(axis=0), 1)
    p, r = (np.where(usable, each, 0).sum(axis=0) / some for each in (precisions, recalls))
    f = (1 + BETA**2) * p * r / np.maximum(BETA**2 * p + r, 1e-12)
    f[np.equal.outer(texts, texts)] = 1
    return f
