"""An encoder-decoder with its tokenizer: `translate`, `translate_n` (n-best, with all that is known) and `score`."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, TypedDict, Unpack, overload

from toolkit.confidence import Calibration, Confidence, Example
from toolkit.data.sentences import sentence_text
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
from toolkit.decoding.weights import PackedWeights
from toolkit.display import counted
from toolkit.errors import ConfigError, DataError
from toolkit.functional.arrays import Array
from toolkit.minimum_risk import chosen_by_risk, drawn_several
from toolkit.models.seq2seq import Seq2Seq
from toolkit.noisy_channel import WEIGHT, chosen_by_both, searched_wide
from toolkit.outputs import Translation, distinct, joined_translation, translation
from toolkit.speller import Speller
from toolkit.text_model import Where, config_of, listed
from toolkit.tokenization import Tokenizer
from toolkit.tokenization.carrying import Carried, Listed, mark
from toolkit.tokenization.special import EOS
from toolkit.translation_reader import Prepared, Target, TranslationReader, without_eos


class TranslationSettings(GenerationSettings, total=False):
    """The keywords of `Translator.translate`, for editors and type checkers."""

    prefix: str | Iterable[str]
    bad_words: Sequence[str]
    split_sentences: bool | None
    source_language: str | None
    target_language: str | None
    batch_size: int
    workers: int
    reverse: "Translator | None"
    reverse_weight: float
    mbr_samples: int
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
    source_language: str | None
    target_language: str | None
    batch_size: int
    where: Where


BEAMS_AGAIN = 4  # of a second search, where something that is carried over is missing


class Translator(TranslationReader):
    """An encoder-decoder with its tokenizer: text in one language to text in another."""

    def __init__(self, model: Seq2Seq, tokenizer: Tokenizer, name: str = "the model"):
        """Raises ModelError where the tokenizer belongs to another model."""
        super().__init__(model, tokenizer, name)
        self._packed, self._shared = PackedWeights(), {}
        self.calibration: Calibration | None = None  # what its probabilities mean, where it was calibrated
        self.speller: Speller | None = None  # writes unknown words in the other script, where there is one

    def __reduce__(self) -> tuple:
        """Pickle and copy as `TranslationReader` does, with what belongs to the model."""
        kind, arguments, state = super().__reduce__()
        own = {name: getattr(self, name) for name in ("calibration", "speller")}
        return kind, arguments, state | own

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

        Sentences are translated by themselves, and joined with what stood between them: line breaks, which always end
        one, and other white space, numbers and bullets of lists, lines without a word (see `divided`). An empty or
        blank text has an empty translation. White space at the ends of a text makes no difference, nor does more of it
        than one space between words. Translations are in Unicode normal form C.

        config: how to decode; settings: those of `GenerationConfig` by name, which change it, and these:
        split_sentences: False gives every text to the model as one, line breaks as spaces; True divides it; None does
            what the model was trained for (`Seq2SeqConfig.split_sentences`).
        prefix: the beginning of every translation, or a list of one for each text: of its first sentence. The model
            goes on from its tokens, perhaps within its last word.
        bad_words: not written, each as it is tokenized by itself and after a space; a model may still spell it in other
            tokens.
        source_language, target_language: for a model that knows several (see `between`).
        batch_size: the sentences that are translated at once (64).
        workers: the number of processes that share the texts (1). More than one are started when they are first asked
            for, with the model as it is then, and wait for more until the translator goes or `close` is called. They
            change the time it takes, not the result.
        reverse, reverse_weight: a translator of the other direction, and how much it counts (0.2): of what the beams
            find (8 unless more than one are asked for), what both think best is taken (see `noisy_channel`).
        mbr_samples: with do_sample, draw so many and take the one that the others resemble most (see `minimum_risk`).
        where, first: for parts of a longer input: a function that names a text in an error, by its number from 1; and
            the number of texts, blank ones aside, that came before these (samples depend on the number of their text,
            and on that of the sentence in it).

        Raises DataError for an item that is no text, a text that is not Unicode, one with a sentence that is longer
        than the model can read (`limit` tokens), and for a prefix that leaves no room; ConfigError for a setting out
        of range, and for a language that the model does not know, or that must be said.
        """
        config = config_of(GenerationConfig, config, settings, TranslationSettings.__optional_keys__)
        if config.num_return_sequences > 1:
            raise ConfigError(f"num_return_sequences is {config.num_return_sequences}: translate_n gives several")
        prepared, found = self._search(text, config, **settings)
        texts = [
            source.text.joined(
                [
                    self.restored(sentence_text(self.tokenizer, hypotheses[0].ids), items)
                    for hypotheses, items in zip(groups, source.carried, strict=True)
                ]
            )
            for source, groups in zip(prepared.sources, prepared.by_text(found), strict=True)
        ]
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

        A blank text has none. Those of several sentences are the combinations of theirs whose scores have the largest
        mean, and have them as `segments`.

        Those that a search finds have different texts: of several ways to spell one in tokens, the most probable is
        kept. There may be fewer than asked for; more beams find more. Samples may repeat.

        alignments: with attention and word alignment. The other settings are those of `translate`, which says what is
        refused.
        """
        config = config_of(GenerationConfig, config, settings, TranslationSettings.__optional_keys__)
        prepared, found = self._search(texts, widened(config), **settings)
        groups = self.candidates(prepared, found, config)
        if alignments:
            repeated = [ids for ids, group in zip(prepared.sentences, groups, strict=True) for _ in group]
            every = [each for group in groups for each in group]
            flat = iter(self._aligned(repeated, every, settings.get("batch_size", BATCH_SIZE)))
            groups = [list(islice(flat, len(group))) for group in groups]
        results = prepared.chosen(groups, config)
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
        source_language: str | None = None,
        target_language: str | None = None,
        batch_size: int = BATCH_SIZE,
        where: Where | None = None,
    ) -> Translation | list[Translation]:
        """Compute how probable the model finds a given translation of a source, or each of a list: texts, or ids.

        The ids of a translation that ended by itself have the score that `translate_n` gives it; their EOS may be
        there or not, and so may the token of their language, which counts nothing. Its text has that score only where
        tokenizing it gives the same ids again. A target is scored as one sentence, unless it is a list of texts or ids,
        one for each sentence of its source.

        where, languages: as for `translate`, of a source. Raises DataError for lists of unequal length, a blank source,
        a text that is too long, and ids that this model does not have, and ConfigError as `translate` for languages.
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
        reader = self.between(source_language, target_language)
        pairs, targets = reader.pairs(texts, given, where)
        encoded = [ids for source in pairs for ids in source.ids]
        with self.arithmetic():
            found = score(self.model, encoded, targets, batch_size, length_penalty, reader.language("target"))
        self.check_finite([hypothesis.log_prob for hypothesis in found])
        scored = [translation(hypothesis, self.tokenizer) for hypothesis in found]
        flat = iter(self._aligned(encoded, scored, batch_size) if alignments else scored)
        results = [joined_translation(source.text, [*islice(flat, len(source.ids))]) for source in pairs]
        return results[0] if isinstance(sources, str) else results

    def close(self) -> None:
        """End all processes that `workers` has started."""
        for shared in self._shared.values():
            shared.close()
        self._shared.clear()

    def _search(
        self,
        text: str | Iterable[str],
        config: GenerationConfig,
        *,
        prefix: str | Iterable[str] = "",
        bad_words: Sequence[str] = (),
        split_sentences: bool | None = None,
        source_language: str | None = None,
        target_language: str | None = None,
        batch_size: int = BATCH_SIZE,
        workers: int = 1,
        reverse: "Translator | None" = None,
        reverse_weight: float = WEIGHT,
        mbr_samples: int = 0,
        where: Where | None = None,
        first: int = 0,
    ) -> tuple[Prepared, list[list[Hypothesis]]]:
        """Encode and decode -> the texts as they were read, and the hypotheses of each sentence."""
        texts, where = listed(text, "text", where)
        config = searched_wide(self, reverse, reverse_weight, config) if reverse else config
        count, config = config.num_return_sequences, drawn_several(config, mbr_samples) if mbr_samples else config
        reader, more = self.between(source_language, target_language), {"split_sentences": split_sentences}
        prepared = reader.prepared(texts, config, where, prefix=prefix, bad_words=bad_words, first=first, **more)
        found = self._generate(
            workers,
            prepared.sentences,
            config,
            batch_size,
            prepared.prefixes,
            prepared.numbers,
            prepared.bad_ids,
            prepared.language,
        )
        self.check_found(found)
        found = self.completed(prepared, found, {})
        if lost := [] if config.samples else self.lost(prepared, found):
            some, wide = prepared.only(lost), searching_again(config)
            more = (some.prefixes, some.numbers, some.bad_ids, some.language)
            again = self._generate(workers, some.sentences, wide, batch_size, *more)
            found = self.completed(prepared, found, dict(zip(lost, again, strict=True)))
        if reverse:
            score_source = partial(reverse.score, batch_size=batch_size)
            found = chosen_by_both(self, score_source, prepared, found, reverse_weight)
            found = self.completed(prepared, found, {})
        return prepared, chosen_by_risk(self, prepared, found, count) if mbr_samples else found

    def check_found(self, found: Iterable[Sequence[Hypothesis]]) -> None:
        """Raise ModelError where what was found of a sentence is nothing, or not finite."""
        for group in found:
            self.check_finite([hypothesis.log_prob for hypothesis in group] or [math.nan])

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

    def _aligned(
        self, sources: Sequence[Sequence[int]], translations: Sequence[Translation], batch_size: int
    ) -> list[Translation]:
        targets = self.target_ids(translations)
        with self.arithmetic():
            maps = cross_attention(self.model, sources, targets, batch_size)
        return self.aligned(sources, translations, maps)

    def target_ids(self, translations: Sequence[Translation]) -> list[list[int]]:
        """Give the ids of sentences' translations as `cross_attention` takes them."""
        return [without_eos(self.tokenizer.given_ids(each.ids)) for each in translations]

    def aligned(
        self, sources: Sequence[Sequence[int]], translations: Sequence[Translation], maps: Sequence[Array]
    ) -> list[Translation]:
        """Add their attention and the alignment to translations, each of the source of the same number."""
        results, targets = [], self.target_ids(translations)
        for source, target, each, attention in zip(sources, targets, translations, maps, strict=True):
            source_tokens = [self.tokenizer.piece(each) for each in [*source, EOS]]
            alignment = word_alignment(attention, self._words(source), self._words(target))
            attention = attention[: len(each.tokens)]  # an output may have been cut off before its EOS
            results.append(replace(each, source_tokens=source_tokens, attention=attention, alignment=alignment))
        return results

    def candidates(
        self, prepared: Prepared, found: Sequence[Sequence[Hypothesis]], config: GenerationConfig
    ) -> list[list[Translation]]:
        """Give, of every sentence, the translations of which those of texts are made, with their confidence if known.

        found: hypotheses by the settings that `widened` gives.
        """
        groups = []
        for source, items, hypotheses in zip(prepared.sentences, prepared.carried, found, strict=True):
            group = [translation(each, self.tokenizer) for each in hypotheses]
            if self.calibration:
                group = [replace(each, confidence=self._confidence(source, each, items)) for each in group]
            groups.append([replace(each, text=self.restored(each.text, items)) for each in group])
        if not config.samples:
            groups = [[*islice(distinct(group), config.num_return_sequences)] for group in groups]
        return groups

    def _confidence(self, source: Sequence[int], found: Translation, items: list[Carried]) -> Confidence:
        """Compute the confidence in a translation with marks: none where one of those of its source is missing.

        It is not sure of an unknown word in small letters, which is hardly a name: spelling it does not translate it.
        """
        known = self.calibration.of(self.example(source, found))
        if any(mark(number) not in found.text for number in range(len(items))):
            return replace(known, sentence=0.0, sure=False, lost=True)
        small = [each.text for each in items if each.is_word and each.text.islower()]
        return replace(known, sure=known.sure and (not small or (bool(self.listed) and all(map(self.listed, small)))))

    def spell(self, word: str) -> str:
        """Write a word in the script of the translations: as it is known, else letter by letter, else as it is."""
        return self.speller.spell(word) if self.speller else word

    @property
    def listed(self) -> Listed | None:
        return self.speller.lists if self.speller else None

    def example(self, source: Sequence[int], found: Translation) -> Example:
        """Give what a calibration looks at: the translation of a sentence, and the ids of its source."""
        tokens = found.tokens[: len(self.target_ids([found])[0])]
        return Example(tokens, found.token_log_probs, [self.tokenizer.piece(each) for each in source])

    def _words(self, ids: Sequence[int]) -> list[int]:
        """Number the words of a sentence, for every token; its language belongs to none."""
        if self.by_ids:  # an id is a word
            return list(range(len(ids)))
        languages = set(self.tokenizer.languages.ids.values()) if self.tokenizer.languages else ()
        return words_of(["" if each in languages else self.tokenizer.piece(each) for each in ids])


def searching_again(config: GenerationConfig) -> GenerationConfig:
    """Ask for all that several beams find of a sentence whose translation lacks something."""
    beams = max(BEAMS_AGAIN, config.num_beams)
    return replace(config, num_beams=beams, num_return_sequences=beams)


def widened(config: GenerationConfig) -> GenerationConfig:
    """Ask for all that the beams find, where several are wanted: some of it may be the same text."""
    if config.num_return_sequences > 1 and not config.samples:
        return replace(config, num_return_sequences=config.num_beams)
    return config
