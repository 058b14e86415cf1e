"""An encoder-decoder with its tokenizer: `translate`, `translate_n` (n-best, with all that is known) and `score`."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, TypedDict, Unpack, overload

import numpy as np

from toolkit.data.sentences import sentence_ids, sentence_text
from toolkit.decoding import (
    GenerationConfig,
    GenerationSettings,
    Hypothesis,
    cross_attention,
    generate,
    score,
    word_alignment,
    words_of,
)
from toolkit.decoding.generation import SENTENCES_AT_ONCE as BATCH_SIZE
from toolkit.decoding.generation import SharedDecoding
from toolkit.decoding.step import PackedWeights
from toolkit.display import counted
from toolkit.errors import ConfigError, DataError, LengthError
from toolkit.models.seq2seq import Seq2Seq
from toolkit.outputs import Translation, translation
from toolkit.text_model import CHARACTERS_OF_A_TOKEN, TextModel, Where, check_length, config_of, listed
from toolkit.tokenization import Tokenizer
from toolkit.tokenization.normal_form import check_text, text_list
from toolkit.tokenization.special import CONTROL_IDS, EOS

# The longest text for a model whose positions have no end, in tokens: attention computes the square of that.
READING_LIMIT = 1024

# A translation that is to be scored: a text, or the ids of one.
Target = str | Iterable[int]


class TranslationSettings(GenerationSettings, total=False):
    """The keywords of `Translator.translate`, for editors and type checkers."""

    prefix: str | Iterable[str]
    bad_words: Sequence[str]
    batch_size: int
    workers: int
    where: Where
    first: int


class TranslationsSettings(TranslationSettings, total=False):
    """Those of `Translator.translate_n`."""

    num_return_sequences: int
    alignments: bool


class ScoreSettings(TypedDict, total=False):
    """Those of `Translator.score`."""

    length_penalty: float
    alignments: bool
    batch_size: int
    where: Where


class Translator(TextModel):
    """An encoder-decoder with its tokenizer: text in one language to text in another."""

    model: Seq2Seq

    def __init__(self, model: Seq2Seq, tokenizer: Tokenizer, name: str = "the model"):
        """Raises ModelError where the tokenizer belongs to another model."""
        super().__init__(model, tokenizer, name)
        length = model.config.max_length
        self._packed, self._shared = PackedWeights(), {}
        self.limit = length if model.config.positions == "learned" else max(READING_LIMIT, length)

    @overload
    def translate(
        self, text: str, config: GenerationConfig | None = None, **settings: Unpack[TranslationSettings]
    ) -> str: ...

    @overload
    def translate(
        self, text: Iterable[str], config: GenerationConfig | None = None, **settings: Unpack[TranslationSettings]
    ) -> list[str]: ...

    def translate(
        self, text: str | Iterable[str], config: GenerationConfig | None = None, **settings: Any
    ) -> str | list[str]:
        """Translate a text, or each text of a list or other iterable.

        An empty or blank text has an empty translation. White space at the ends of a text makes no difference, nor
        does more of it than one space between words. Translations are in Unicode normal form C.

        config: how to decode; settings: those of `GenerationConfig` by name, which change it, and these:
        prefix: the beginning of every translation, or a list of one for each text. The model goes on from its tokens,
            perhaps within its last word.
        bad_words: not written, each as it is tokenized by itself and after a space; a model may still spell it in other
            tokens.
        batch_size: the sentences that are translated at once (64).
        workers: the number of processes that share the texts (1). More than one are started when they are first asked
            for, with the model as it is then, and wait for more until the translator goes or `close` is called. They
            change the time it takes, not the result.
        where, first: for parts of a longer input: a function that names a text in an error, by its number from 1; and
            the number of texts, blank ones aside, that came before these (samples depend on the number of their text).

        Raises DataError for an item that is no text, a text that is not Unicode or longer than the model can read
        (`limit` tokens), and for a prefix that leaves no room; ConfigError for a setting out of range.
        """
        config = config_of(GenerationConfig, config, settings, TranslationSettings.__optional_keys__)
        if config.num_return_sequences > 1:
            raise ConfigError(f"num_return_sequences is {config.num_return_sequences}: translate_n gives several")
        _, found = self._search(text, config, **settings)
        texts = [sentence_text(self.tokenizer, hypotheses[0].ids) if hypotheses else "" for hypotheses in found]
        return texts[0] if isinstance(text, str) else texts

    @overload
    def translate_n(
        self, texts: str, config: GenerationConfig | None = None, **settings: Unpack[TranslationsSettings]
    ) -> list[Translation]: ...

    @overload
    def translate_n(
        self, texts: Iterable[str], config: GenerationConfig | None = None, **settings: Unpack[TranslationsSettings]
    ) -> list[list[Translation]]: ...

    def translate_n(
        self,
        texts: str | Iterable[str],
        config: GenerationConfig | None = None,
        *,
        alignments: bool = False,
        **settings: Any,
    ) -> list[Translation] | list[list[Translation]]:
        """Find up to `num_return_sequences` translations, best first, with scores: of a text, or of each of a list.

        A blank text has none.

        Those that a search finds have different texts: of several ways to spell one in tokens, the most probable is
        kept. There may be fewer than asked for; more beams find more. Samples may repeat.

        alignments: with attention and word alignment. The other settings are those of `translate`, which says what is
        refused.
        """
        config = config_of(GenerationConfig, config, settings, TranslationSettings.__optional_keys__)
        wanted, wider = config.num_return_sequences, config
        if wanted > 1 and not config.samples:  # all that the beams find, because some of it may be the same text
            wider = replace(config, num_return_sequences=config.num_beams)
        sources, found = self._search(texts, wider, **settings)
        results = [[translation(hypothesis, self.tokenizer) for hypothesis in group] for group in found]
        if not config.samples:
            results = [_distinct(group)[:wanted] for group in results]
        if alignments:
            repeated = [source for source, group in zip(sources, results, strict=True) for _ in group]
            every = [each for group in results for each in group]
            flat = iter(self._aligned(repeated, every, settings.get("batch_size", BATCH_SIZE)))
            results = [list(islice(flat, len(group))) for group in results]
        return results[0] if isinstance(texts, str) else results

    @overload
    def score(self, sources: str, targets: Target, **settings: Unpack[ScoreSettings]) -> Translation: ...

    @overload
    def score(
        self, sources: Iterable[str], targets: Iterable[Target], **settings: Unpack[ScoreSettings]
    ) -> list[Translation]: ...

    def score(
        self,
        sources: str | Iterable[str],
        targets: Target | Iterable[Target],
        *,
        length_penalty: float = 1.0,
        alignments: bool = False,
        batch_size: int = BATCH_SIZE,
        where: Where | None = None,
    ) -> Translation | list[Translation]:
        """Compute how probable the model finds a given translation of a source, or each of a list: texts, or ids.

        The ids of a translation that ended by itself have the score that `translate_n` gives it; their EOS may be
        there or not. Its text has that score only where tokenizing it gives the same ids again.

        where: as for `translate`, of a source. Raises DataError for lists of unequal length, a blank source, a text
        that is too long, and ids that this model does not have.
        """
        texts, where = listed(sources, "text", where)
        if isinstance(sources, str):
            given = [targets]
        elif isinstance(targets, str | bytes) or not isinstance(targets, Iterable):
            raise ConfigError(f"the sources are a list, and the targets {targets!r:.60}: give a list of as many")
        else:
            given = list(targets)
        if len(texts) != len(given):
            raise DataError(
                f"{counted(len(texts), 'source')} and {counted(len(given), 'target')} are given: each needs the other"
            )
        encoded = self.encode(texts, where)
        ids = self.target_ids(given, where)
        for number, source in enumerate(encoded, start=1):
            if not source:
                raise DataError(f"{where(number)} has a blank source: there is nothing to translate")
        with self.arithmetic():
            found = score(self.model, encoded, ids, batch_size, length_penalty)
        self.check_finite([hypothesis.log_prob for hypothesis in found])
        results = [translation(hypothesis, self.tokenizer) for hypothesis in found]
        results = self._aligned(encoded, results, batch_size) if alignments else results
        return results[0] if isinstance(sources, str) else results

    def close(self) -> None:
        """End all processes that `workers` has started."""
        for shared in self._shared.values():
            shared.close()
        self._shared.clear()

    def encode(self, texts: Sequence[str], where: Where, source: bool = True) -> list[list[int]]:
        """Give the ids of every text, a source or a translation; none for a blank one.

        where: names a text in an error. Raises LengthError for one that is longer than the model reads.
        """
        for number, text in enumerate(texts, start=1):
            if len(text) > CHARACTERS_OF_A_TOKEN * READING_LIMIT:
                raise LengthError(f"{where(number)} has {len(text)} characters: translate it sentence by sentence")
        tokenizer = self.tokenizer.source if source else self.tokenizer
        ids = sentence_ids(tokenizer, texts, source and self.model.config.ignore_case)
        self._check_lengths(ids, where)
        return ids

    def target_ids(self, targets: Sequence[Target], where: Where) -> list[list[int]]:
        """Give the ids of translations that are to be scored; where: names a source in an error."""

        def which(number: int) -> str:
            return f"the translation of {where(number)}"

        texts = self.encode([each if isinstance(each, str) else "" for each in targets], which, source=False)
        ids = [
            text if isinstance(each, str) else _ids_of(each, which(number))
            for number, (text, each) in enumerate(zip(texts, targets, strict=True), start=1)
        ]
        self._check_lengths(ids, which)
        size = self.tokenizer.vocab_size
        for number, own in enumerate(ids, start=1):
            if not all(0 <= each < size and each not in CONTROL_IDS for each in own):
                raise DataError(f"{which(number)} has ids that are no text for this model: did another one write it?")
        return ids

    def _search(
        self,
        text: str | Iterable[str],
        config: GenerationConfig,
        *,
        prefix: str | Iterable[str] = "",
        bad_words: Sequence[str] = (),
        batch_size: int = BATCH_SIZE,
        workers: int = 1,
        where: Where | None = None,
        first: int = 0,
    ) -> tuple[list[list[int]], list[list[Hypothesis]]]:
        """Encode and decode -> the ids of every source, and its hypotheses, of which an empty one has none."""
        texts, where = listed(text, "text", where)
        prefixes = _each(prefix, len(texts))
        sources = self.encode(texts, where)
        begun = None
        if prefixes is not None:
            ids = self._prefix_ids(prefixes, config, where)
            begun = [begin for begin, source in zip(ids, sources, strict=True) if source]
        bad_ids, spoken = self._bad_ids(bad_words), [source for source in sources if source]
        numbers = range(first, first + len(spoken))
        found = self._generate(workers, spoken, config, batch_size, begun, numbers, bad_ids)
        for group in found:
            self.check_finite([hypothesis.log_prob for hypothesis in group] or [math.nan])
        groups = iter(found)
        return sources, [next(groups) if source else [] for source in sources]

    def _generate(self, workers: int, sources: list[list[int]], *arguments: Any) -> list[list[Hypothesis]]:
        """Call `generate`, in this process or in several.  Raises ConfigError for fewer than one worker."""
        if workers < 1:
            raise ConfigError(f"workers is {workers}: it must be at least 1")
        if workers == 1 or len(sources) < 2:
            with self.arithmetic():
                return generate(self.model, sources, *arguments, packed=self._packed)
        if workers not in self._shared:
            self._shared[workers] = SharedDecoding(self.model, self._name, workers)
        try:
            return self._shared[workers].generate(sources, *arguments)
        except BaseException:
            self.close()  # nobody waits for what is still being done
            raise

    def _check_lengths(self, ids: list[list[int]], where: Where) -> None:
        for number, own in enumerate(ids, start=1):
            if len(own) + 1 > self.limit:  # EOS counts
                raise LengthError(
                    f"{where(number)} has {counted(len(own), 'token')}, the model reads {self.limit - 1} at most: "
                    "translate it sentence by sentence"
                )

    def _prefix_ids(self, prefixes: Sequence[str], config: GenerationConfig, where: Where) -> list[list[int]]:
        most = self.model.config.max_length - max(config.shortest, 1)
        for number, prefix in enumerate(prefixes, start=1):
            check_length(prefix, f"the prefix of {where(number)}", self.model.config.max_length)
        ids = sentence_ids(self.tokenizer, prefixes)
        for number, prefix in enumerate(ids, start=1):
            if len(prefix) > most:
                raise DataError(
                    f"the prefix of {where(number)} has {counted(len(prefix), 'token')}, which leaves no room for "
                    f"more: the model writes {most} after it at most"
                )
        return ids

    def _aligned(
        self, sources: Sequence[Sequence[int]], translations: Sequence[Translation], batch_size: int
    ) -> list[Translation]:
        """Add attention and alignment to translations, each of the source of the same number."""
        targets = [_without_eos(each.ids) for each in translations]
        with self.arithmetic():
            maps = cross_attention(self.model, sources, targets, batch_size)
        results = []
        for source, target, each, attention in zip(sources, targets, translations, maps, strict=True):
            source_tokens = [self.tokenizer.piece(each) for each in [*source, EOS]]
            target_words = words_of(each.tokens[: len(target)])
            alignment = word_alignment(attention, words_of(source_tokens[:-1]), target_words)
            attention = attention[: len(each.tokens)]  # an output may have been cut off before its EOS
            results.append(replace(each, source_tokens=source_tokens, attention=attention, alignment=alignment))
        return results


def _without_eos(ids: Sequence[int]) -> list[int]:
    return list(ids[:-1] if len(ids) and ids[-1] == EOS else ids)


def _ids_of(given: Iterable[int], name: str) -> list[int]:
    """Give the ids of a translation, without EOS.  Raises DataError for what is neither a text nor ids."""
    ids = list(given) if isinstance(given, Iterable) and not isinstance(given, bytes) else [None]
    if not all(isinstance(each, int | np.integer) for each in ids):
        check_text(given, name)
    return _without_eos([int(each) for each in ids])


def _distinct(translations: list[Translation]) -> list[Translation]:
    first: dict[str, Translation] = {}
    for each in translations:
        first.setdefault(each.text, each)
    return list(first.values())


def _each(prefix: str | Iterable[str], count: int) -> list[str] | None:
    if isinstance(prefix, str):
        return [prefix] * count if prefix else None
    prefixes = text_list(prefix, "prefixes", "prefix {}".format)
    if len(prefixes) != count:
        raise DataError(
            f"prefix is a list of {len(prefixes)} for {counted(count, 'text')}: give one for each, or one for all"
        )
    return prefixes
