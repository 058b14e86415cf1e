"""An encoder-decoder with its tokenizer, and all that can be asked of it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Literal, Unpack, overload

from toolkit.data.sentences import sentence_ids, sentence_text
from toolkit.decoding import GenerationConfig, GenerationSettings, Hypothesis, generate, score
from toolkit.decoding.generation import SENTENCES_AT_ONCE as BATCH_SIZE
from toolkit.decoding.shared import SharedDecoding
from toolkit.decoding.step_weights import PackedWeights
from toolkit.display import counted
from toolkit.errors import ConfigError, DataError, LengthError
from toolkit.models.seq2seq import Seq2Seq
from toolkit.text_model import CHARACTERS_OF_A_TOKEN, TextModel, Where, check_length
from toolkit.tokenization import Tokenizer
from toolkit.tokenization.normal_form import text_list
from toolkit.tokenization.special import CONTROL_IDS
from toolkit.translations import (
    ScoreSettings,
    Target,
    Translation,
    TranslationSettings,
    TranslationsSettings,
    aligned,
    described,
    ids_of,
)

# The longest text for a model whose positions have no end, in tokens: attention computes the square of that.
READING_LIMIT = 1024


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
    def translate(self, text: str, **settings: Unpack[TranslationSettings]) -> str: ...

    @overload
    def translate(self, text: Iterable[str], **settings: Unpack[TranslationSettings]) -> list[str]: ...

    def translate(
        self,
        text: str | Iterable[str],
        *,
        max_new_tokens: int | None = None,
        min_new_tokens: int = 0,
        num_beams: int = 1,
        early_stopping: Literal[True, False, "never", "settled"] = "settled",
        forced_end: Literal["scored", "free", "none"] = "scored",
        length_penalty: float = 1.0,
        do_sample: bool = False,
        temperature: float = 1.0,
        top_k: int = 50,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        no_repeat_ngram_size: int = 0,
        seed: int = 0,
        prefix: str | Iterable[str] = "",
        bad_words: Sequence[str] = (),
        batch_size: int = BATCH_SIZE,
        workers: int = 1,
    ) -> str | list[str]:
        """Translate a text, or each text of a list or other iterable; the settings are those of `GenerationConfig`.

        An empty or blank text has an empty translation. White space at the ends of a text makes no difference, nor
        does more of it than one space between words. Translations are in Unicode normal form C.

        prefix: what every translation begins with, or a list of one for each text. The model goes on from its tokens,
            perhaps within its last word.
        bad_words: not written, each as it is tokenized by itself and after a space; a model may still spell it in other
            tokens.
        workers: how many processes share the texts. More than one are started when they are first asked for, with the
            model as it is then, and wait for more until the translator goes or `close` is called. They change the time
            it takes, not the result.

        Raises DataError for an item that is no text, a text that is not Unicode or longer than the model can read
        (`limit` tokens), and for a prefix that leaves no room; ConfigError for a setting out of range.
        """
        config = GenerationConfig(
            max_new_tokens=max_new_tokens,
            min_new_tokens=min_new_tokens,
            num_beams=num_beams,
            early_stopping=early_stopping,
            forced_end=forced_end,
            length_penalty=length_penalty,
            do_sample=do_sample,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            no_repeat_ngram_size=no_repeat_ngram_size,
            seed=seed,
        )
        texts, where = _listed(text)
        found = self.translate_all(
            texts, config, batch_size, where, _each(prefix, len(texts)), bad_words=bad_words, workers=workers
        )
        return found[0] if isinstance(text, str) else found

    @overload
    def translate_n(self, texts: str, **settings: Unpack[TranslationsSettings]) -> list[Translation]: ...

    @overload
    def translate_n(
        self, texts: Iterable[str], **settings: Unpack[TranslationsSettings]
    ) -> list[list[Translation]]: ...

    def translate_n(
        self,
        texts: str | Iterable[str],
        *,
        num_return_sequences: int = 1,
        alignments: bool = False,
        prefix: str | Iterable[str] = "",
        bad_words: Sequence[str] = (),
        batch_size: int = BATCH_SIZE,
        workers: int = 1,
        **settings: Unpack[GenerationSettings],
    ) -> list[Translation] | list[list[Translation]]:
        """Find up to `num_return_sequences` translations, best first, with scores: of a text, or of each of a list.

        A blank text has none.

        Those that a search finds have different texts: of several ways to spell one in tokens, the most probable is
        kept. There may be fewer than asked for; more beams find more. Samples may repeat.

        alignments: with attention and word alignment. The other settings are those of `translate`, which says what is
        refused.
        """
        config = GenerationConfig(num_return_sequences=num_return_sequences, **settings)
        listed, where = _listed(texts)
        found = self.translations(
            listed,
            config,
            batch_size,
            where,
            _each(prefix, len(listed)),
            bad_words=bad_words,
            alignments=alignments,
            workers=workers,
        )
        return found[0] if isinstance(texts, str) else found

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
    ) -> Translation | list[Translation]:
        """Compute how probable the model finds a given translation of a source, or each of a list: texts, or ids.

        The ids of a translation that ended by itself have the score that `translate_n` gives it; their end mark may be
        there or not. Its text has that score only where tokenizing it gives the same ids again.

        Raises DataError for lists of unequal length, a blank source, a text that is too long, and ids that this model
        does not have.
        """
        listed, where = _listed(sources)
        given = [targets] if isinstance(sources, str) else _targets(targets)
        found = self.scores(listed, given, length_penalty, alignments, batch_size, where)
        return found[0] if isinstance(sources, str) else found

    def scores(
        self,
        sources: Sequence[str],
        targets: Sequence[Target],
        length_penalty: float = 1.0,
        alignments: bool = False,
        batch_size: int = BATCH_SIZE,
        where: Where = "text {}".format,
    ) -> list[Translation]:
        """As `score`.  where: names a source in an error."""
        if len(sources) != len(targets):
            raise DataError(
                f"{counted(len(sources), 'source')} and {counted(len(targets), 'target')} are given: "
                "each needs the other"
            )
        encoded = self.encode(sources, where)
        ids = self.target_ids(targets, where)
        for number, source in enumerate(encoded, start=1):
            if not source:
                raise DataError(f"{where(number)} has a blank source: there is nothing to translate")
        with self.arithmetic():
            found = score(self.model, encoded, ids, batch_size, length_penalty)
        self.check_finite([hypothesis.log_prob for hypothesis in found])
        results = [described(hypothesis, self.tokenizer) for hypothesis in found]
        return self._aligned(encoded, results, batch_size) if alignments else results

    def translate_all(
        self,
        texts: Sequence[str],
        config: GenerationConfig,
        batch_size: int = BATCH_SIZE,
        where: Where = "text {}".format,
        prefixes: Sequence[str] | None = None,
        first: int = 0,
        bad_words: Sequence[str] = (),
        workers: int = 1,
    ) -> list[str]:
        """One translation for each text, in order.

        where: names a text in an error. first: how many texts, blank ones aside, came before these; samples depend
        on the number of their text.
        """
        found = self._search(self.encode(texts, where), config, batch_size, where, prefixes, first, bad_words, workers)
        return [sentence_text(self.tokenizer, hypotheses[0].ids) if hypotheses else "" for hypotheses in found]

    def translations(
        self,
        texts: Sequence[str],
        config: GenerationConfig,
        batch_size: int = BATCH_SIZE,
        where: Where = "text {}".format,
        prefixes: Sequence[str] | None = None,
        first: int = 0,
        bad_words: Sequence[str] = (),
        alignments: bool = False,
        workers: int = 1,
    ) -> list[list[Translation]]:
        """As `translate_all`, but all the translations that `config` asks for, with everything known about them."""
        sources, wanted = self.encode(texts, where), config.num_return_sequences
        if wanted > 1 and not config.samples:  # all that the beams find, because some of it may be the same text
            config = replace(config, num_return_sequences=config.num_beams)
        found = self._search(sources, config, batch_size, where, prefixes, first, bad_words, workers)
        results = [[described(hypothesis, self.tokenizer) for hypothesis in group] for group in found]
        if not config.samples:
            results = [_distinct(group)[:wanted] for group in results]
        if not alignments:
            return results
        repeated = [source for source, group in zip(sources, results, strict=True) for _ in group]
        flat = iter(self._aligned(repeated, [each for group in results for each in group], batch_size))
        return [list(islice(flat, len(group))) for group in results]

    def _search(
        self,
        sources: list[list[int]],
        config: GenerationConfig,
        batch_size: int,
        where: Where,
        prefixes: Sequence[str] | None,
        first: int,
        bad_words: Sequence[str],
        workers: int,
    ) -> list[list[Hypothesis]]:
        """The hypotheses for every source; none for an empty one."""
        spoken = [index for index, source in enumerate(sources) if source]
        begun = None
        if prefixes is not None:
            begun = self._prefix_ids(prefixes, config, where)
            begun = [begun[index] for index in spoken]
        found: list[list[Hypothesis]] = [[] for _ in sources]
        bans, chosen = self._bans(bad_words), [sources[index] for index in spoken]
        numbers = range(first, first + len(chosen))
        outputs = self._decode(workers, chosen, config, batch_size, begun, numbers, bans)
        for index, hypotheses in zip(spoken, outputs, strict=True):
            self.check_finite([hypothesis.log_prob for hypothesis in hypotheses] or [math.nan])
            found[index] = hypotheses
        return found

    def _decode(self, workers: int, sources: list[list[int]], *arguments: Any) -> list[list[Hypothesis]]:
        """`generate`, in this process or in several.  Raises ConfigError for fewer than one worker."""
        if workers < 1:
            raise ConfigError(f"workers is {workers}: it must be at least 1")
        if workers == 1 or len(sources) < 2:
            with self.arithmetic():
                return generate(self.model, sources, *arguments, packed=self._packed)
        shared = self._shared.get(workers) or SharedDecoding(self.model, self._name, workers)
        self._shared[workers] = shared
        try:
            return shared.generate(sources, *arguments)
        except BaseException:
            self.close()  # nobody waits for what is still being done
            raise

    def close(self) -> None:
        """End all processes that `workers` has started."""
        for shared in self._shared.values():
            shared.close()
        self._shared.clear()

    def _aligned(self, sources: list[list[int]], translations: list[Translation], batch_size: int) -> list[Translation]:
        with self.arithmetic():
            return aligned(self.model, self.tokenizer, sources, translations, batch_size)

    def encode(self, texts: Sequence[str], where: Where, ignore_case: bool | None = None) -> list[list[int]]:
        """The ids of every text, by default as a source; none for a blank one.

        where: names a text in an error. Raises LengthError for one that is longer than the model reads.
        """
        for number, text in enumerate(texts, start=1):
            if len(text) > CHARACTERS_OF_A_TOKEN * READING_LIMIT:
                raise LengthError(f"{where(number)} has {len(text)} characters: translate it sentence by sentence")
        if ignore_case is None:
            ids = sentence_ids(self.tokenizer.source, texts, self.model.config.ignore_case)
        else:
            ids = sentence_ids(self.tokenizer, texts, ignore_case)
        self._check_lengths(ids, where)
        return ids

    def _check_lengths(self, ids: list[list[int]], where: Where) -> None:
        for number, own in enumerate(ids, start=1):
            if len(own) + 1 > self.limit:  # the end mark counts
                raise LengthError(
                    f"{where(number)} has {counted(len(own), 'token')}, the model reads {self.limit - 1} at most: "
                    "translate it sentence by sentence"
                )

    def target_ids(self, targets: Sequence[Target], where: Where) -> list[list[int]]:
        """The ids of the translations that are to be scored; where: names a source in an error."""

        def which(number: int) -> str:
            return f"the translation of {where(number)}"

        texts = self.encode([each if isinstance(each, str) else "" for each in targets], which, ignore_case=False)
        ids = [
            text if isinstance(each, str) else ids_of(each, which(number))
            for number, (text, each) in enumerate(zip(texts, targets, strict=True), start=1)
        ]
        self._check_lengths(ids, which)
        size = self.tokenizer.vocab_size
        for number, own in enumerate(ids, start=1):
            if not all(0 <= each < size and each not in CONTROL_IDS for each in own):
                raise DataError(f"{which(number)} has ids that are no text for this model: did another one write it?")
        return ids

    def _prefix_ids(self, prefixes: Sequence[str], config: GenerationConfig, where: Where) -> list[list[int]]:
        """The ids that outputs begin with."""
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


def _distinct(translations: list[Translation]) -> list[Translation]:
    """Of those with the same text, the first."""
    first: dict[str, Translation] = {}
    for each in translations:
        first.setdefault(each.text, each)
    return list(first.values())


def _listed(text: str | Iterable[str]) -> tuple[list[str], Where]:
    """A text as a list of one, or the list of several, and how an error calls each."""
    if isinstance(text, str):
        return [text], lambda _: "the text"
    return text_list(text, "texts", "text {}".format), "text {}".format


def _each(prefix: str | Iterable[str], count: int) -> list[str] | None:
    """A prefix for each of `count` texts."""
    if isinstance(prefix, str):
        return [prefix] * count if prefix else None
    prefixes = text_list(prefix, "prefixes", "prefix {}".format)
    if len(prefixes) != count:
        raise DataError(
            f"prefix is a list of {len(prefixes)} for {counted(count, 'text')}: give one for each, or one for all"
        )
    return prefixes


def _targets(given: Iterable[Target]) -> list[Target]:
    """Translations that belong to a list of sources."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ConfigError(f"the sources are a list, and the targets {given!r:.60}: give a list of as many")
    return list(given)
