"""The reading of a translator: texts by their sentences, beginnings of translations, whole ones that are given."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Literal, NamedTuple, Self, TypeVar

import numpy as np

from toolkit.data.sentence_boundaries import DividedText, divided, sentence_names
from toolkit.data.sentences import sentence_ids
from toolkit.decoding import GenerationConfig, Hypothesis
from toolkit.display import counted
from toolkit.errors import ConfigError, DataError, LengthError
from toolkit.models.seq2seq import Seq2Seq
from toolkit.outputs import Translation, best_translations, sampled_translations
from toolkit.text_model import CHARACTERS_OF_A_TOKEN, TextModel, Where, check_length
from toolkit.tokenization import Tokenizer
from toolkit.tokenization.carrying import Carried, Listed, Masked, mark
from toolkit.tokenization.normal_form import check_text, text_list
from toolkit.tokenization.special import CONTROL_IDS, EOS

# The longest text for a model whose positions have no end, in tokens: attention computes the square of that.
READING_LIMIT = 1024

# Samples depend on the number of their text, and above these bits on that of the sentence.
_SENTENCE_BITS = 64

Item = TypeVar("Item")

# A translation that is to be scored: a text or the ids of one, or a list of such for the sentences of its source.
Target = str | Iterable[int] | Sequence[str | Iterable[int]]


class Source(NamedTuple):
    """A text as it is read: where its sentences are, the ids of each, and what is carried over from it."""

    text: DividedText
    ids: list[list[int]]
    carried: list[list[Carried]]


class Prepared(NamedTuple):
    """Texts that are ready to be translated: what `generate` takes for each of their sentences."""

    sources: list[Source]
    sentences: list[list[int]]  # ids of all of them
    carried: list[list[Carried]]  # what is carried over from each
    prefixes: list[Sequence[int]] | None
    numbers: list[int]  # by which samples are drawn
    bad_ids: list[list[int]]
    language: int | None  # the token that all translations begin with

    def by_text(self, items: Iterable[Item]) -> list[list[Item]]:
        """Divide what there is of every sentence into a list for each text."""
        flat = iter(items)
        return [[*islice(flat, len(source.ids))] for source in self.sources]

    def only(self, places: Sequence[int]) -> Self:
        """Give some of the sentences, by their places, without the texts that they come from."""
        picked = ([every[place] for place in places] for every in (self.sentences, self.carried, self.numbers))
        sentences, carried, numbers = picked
        prefixes = None if self.prefixes is None else [self.prefixes[place] for place in places]
        return self._replace(sources=[], sentences=sentences, carried=carried, prefixes=prefixes, numbers=numbers)

    def chosen(self, groups: Sequence[Sequence[Translation]], config: GenerationConfig) -> list[list[Translation]]:
        """Make translations of every text, best first, of those that were found of every sentence."""
        choose = sampled_translations if config.samples else best_translations
        by_text = zip(self.sources, self.by_text(groups), strict=True)
        return [choose(source.text, own, config.num_return_sequences) for source, own in by_text]


class TranslationReader(TextModel):
    """An encoder-decoder and its tokenizer: text to ids, as far as the model can read."""

    model: Seq2Seq

    def __init__(self, model: Seq2Seq, tokenizer: Tokenizer, name: str = "the model"):
        """Raises ModelError where the tokenizer belongs to another model."""
        super().__init__(model, tokenizer, name)
        length = model.config.max_length
        self.limit = length if model.config.positions == "learned" else max(READING_LIMIT, length)
        self._languages = tokenizer.languages

    def __reduce__(self) -> tuple:
        """Pickle and copy as `TextModel` does, for the same languages."""
        return *super().__reduce__(), {"_languages": self._languages}

    def between(self, source_language: str | None = None, target_language: str | None = None) -> Self:
        """Give the same translator for other languages of a model that knows several; None: those that it is for.

        By their codes there, such as npi_Deva, or shorter: npi, ne. Raises ConfigError for a language that the model
        does not know, and for one at all where it translates in one direction.
        """
        given = {"source_language": source_language, "target_language": target_language}
        if all(name is None for name in given.values()):
            return self
        for setting, name in given.items():
            if not isinstance(name, str | None):
                raise ConfigError(f"{setting} is {name!r:.40}: it must be a text, the code of a language")
        if self._languages is None:
            setting, name = next((setting, name) for setting, name in given.items() if name is not None)
            why = f"{self._name} has no languages to choose: leave it out"
            why = "a language is an id, too: put it in front of the source, or into the prefix" if self.by_ids else why
            raise ConfigError(f"{setting} is {name!r:.40}, but {why}")
        found = object.__new__(type(self))  # with the same packed weights and processes
        vars(found).update(vars(self), _languages=self._languages.between(source_language, target_language))
        return found

    def language(self, side: Literal["source", "target"]) -> int | None:
        """Give the token that all sources, or all translations, begin with; None where they begin with none."""
        return self._languages.token(side) if self._languages else None

    def encode(self, texts: Sequence[str], where: Where, source: bool = True) -> list[list[int]]:
        """Give the ids of every text, a source or a translation; none for a blank one.

        where: names a text in an error. Raises LengthError for one that is longer than the model reads, and ConfigError
        where its language must be said.
        """
        for number, text in enumerate(texts, start=1):
            if len(text) > CHARACTERS_OF_A_TOKEN * READING_LIMIT:
                raise LengthError(f"{where(number)} has {len(text)} characters: divide it")
        language = self.language("source" if source else "target")
        begin = [] if language is None else [language]
        ids = [without_eos(own) for own in self._tokenized(texts, where, source)]  # EOS is there where texts are ids
        ids = [[*begin, *own] if own else own for own in ids]
        self._check_lengths(ids, where)
        return ids

    def _tokenized(self, texts: Sequence[str], where: Where, source: bool = False) -> list[list[int]]:
        """Tokenize texts.  Raises DataError, with the name of the first that cannot be."""
        tokenizer, ignores_case = self.tokenizer, False
        if source:
            tokenizer, ignores_case = tokenizer.source, self.model.config.ignore_case
        try:
            return sentence_ids(tokenizer, texts, ignores_case)
        except DataError:
            for number, text in enumerate(texts, start=1):
                try:
                    sentence_ids(tokenizer, [text], ignores_case)
                except DataError as error:
                    raise DataError(f"{where(number)} cannot be read: {error}") from error
            raise

    def read(self, texts: Sequence[str], where: Where, split_sentences: bool | None = None) -> list[Source]:
        """Divide texts into sentences and encode these; one of ids is a whole.  Raises LengthError as `encode` does.

        split_sentences: None: as the model says.
        """
        if split_sentences is None:
            split_sentences = self.model.config.split_sentences
        if not isinstance(split_sentences, bool):
            raise ConfigError(f"split_sentences is {split_sentences!r:.40}: it must be True or False")
        return self._encoded([divided(text, split_sentences and not self.by_ids) for text in texts], where)

    def prepared(
        self,
        texts: Sequence[str],
        config: GenerationConfig,
        where: Where,
        *,
        prefix: str | Iterable[str] = "",
        bad_words: Sequence[str] = (),
        split_sentences: bool | None = None,
        first: int = 0,
    ) -> Prepared:
        """Encode texts, with what is said of their translations.  Raises what `Translator.translate` does."""
        prefixes = one_for_each(prefix, len(texts))
        sources = self.read(texts, where, split_sentences)
        begun = None
        if prefixes is not None:
            begins = self._prefix_ids(prefixes, config, where)
            begun = [
                () if place else ids
                for ids, each in zip(begins, sources, strict=True)
                for place in range(len(each.ids))
            ]
        spoken = (source for source in sources if source.text.text.strip())
        numbers = [
            number + (place << _SENTENCE_BITS)
            for number, source in enumerate(spoken, start=first)
            for place in range(len(source.ids))
        ]
        sentences = [ids for source in sources for ids in source.ids]
        carried = [items for source in sources for items in source.carried]
        return Prepared(sources, sentences, carried, begun, numbers, self.bad_ids(bad_words), self.language("target"))

    def pairs(
        self, sources: Sequence[str], targets: Sequence[Target], where: Where
    ) -> tuple[list[Source], list[list[int]]]:
        """Encode what is to be scored -> the sources, and the ids that belong to each sentence of them in turn.

        where: names a source in an error. Raises LengthError as `encode` does, and DataError as `score` does.
        """
        listed_targets = [None] * len(sources)
        if not self.by_ids:
            listed_targets = [_sentence_targets(source, each) for source, each in zip(sources, targets, strict=True)]
        texts = [divided(source, each is not None) for source, each in zip(sources, listed_targets, strict=True)]
        read = self._encoded(texts, where)
        flat: list[str | Iterable[int]] = []
        for number, (source, each, target) in enumerate(zip(read, listed_targets, targets, strict=True), start=1):
            if not source.text.text.strip() or (each is None and not source.ids):
                raise DataError(f"{where(number)} has a blank source: there is nothing to translate")
            own = [target] if each is None else each
            if len(own) != len(source.ids):
                raise DataError(
                    f"{where(number)} has {counted(len(source.ids), 'sentence')} and translations of {len(own)}: each "
                    "needs the other"
                )
            flat += map(self._masked_target, own, source.carried)
        return read, self._target_ids(
            flat, sentence_names([each.text for each in read], lambda number: f"the translation of {where(number)}")
        )

    def _encoded(self, texts: list[DividedText], where: Where) -> list[Source]:
        """Encode the sentences of texts; of those without ids, as other tokenizers may leave them, nothing is read."""
        masked = [self._masked(each) for text in texts for each in text.sentences]
        flat = iter(self.encode([each.text for each in masked], sentence_names(texts, where)))
        carried = iter(masked)
        sources = []
        for text in texts:
            ids, items = [*islice(flat, len(text.spans))], [each.items for each in islice(carried, len(text.spans))]
            if not all(ids) and not self.by_ids:  # an end mark alone is given as such
                text = text._replace(spans=tuple(span for span, own in zip(text.spans, ids, strict=True) if own))
                items = [each for each, own in zip(items, ids, strict=True) if own]
                ids = [own for own in ids if own]
            sources.append(Source(text, ids, items))
        return sources

    def _masked_target(self, target: str | Iterable[int], items: list[Carried]) -> str | Iterable[int]:
        """Put marks into a given translation, where it has what is carried over from its source."""
        if isinstance(target, str) and self.tokenizer.carrier:
            for number in range(len(items)):
                carried = self.tokenizer.carrier.restored(mark(number), items, self.spell)
                target = target.replace(carried, mark(number)) if carried else target
        return target

    def restored(self, text: str, items: list[Carried]) -> str:
        """Put back what was carried over."""
        carrier = self.tokenizer.carrier
        return carrier.restored(text, items, self.spell) if carrier else text

    def spell(self, word: str) -> str:
        """Write a word in the script of the translations: as it is, where nothing is known of that."""
        return word

    @property
    def listed(self) -> Listed | None:
        """A function that says if it is known how a word is spelled; None where there is no list."""
        return None

    def _masked(self, sentence: str) -> Masked:
        """Take out of a sentence what is carried over, as far as the model does that."""
        carrier = self.tokenizer.carrier
        return carrier.masked(sentence, self.listed) if carrier else Masked(sentence, [])

    def _target_ids(self, targets: Sequence[str | Iterable[int]], where: Where) -> list[list[int]]:
        """Give the ids of translations that are to be scored; where: names one in an error."""
        texts = self.encode([each if isinstance(each, str) else "" for each in targets], where, source=False)
        begin = [each for each in [self.language("target")] if each is not None]
        ids = [
            text if isinstance(each, str) else self._given_ids(each, where(number))
            for number, (text, each) in enumerate(zip(texts, targets, strict=True), start=1)
        ]
        ids = [own if own[: len(begin)] == begin else [*begin, *own] for own in ids]
        self._check_lengths(ids, where)
        size = self.tokenizer.vocab_size
        for number, own in enumerate(ids, start=1):
            if not all(0 <= each < size and each not in CONTROL_IDS for each in own):
                raise DataError(f"{where(number)} has ids that are no text for this model: did another one write it?")
        return ids

    def lost(self, prepared: Prepared, found: Sequence[Sequence[Hypothesis]]) -> list[int]:
        """List the places of sentences in whose best translation something is missing that is carried over."""
        pairs = enumerate(zip(found, prepared.carried, strict=True))
        return [place for place, (group, items) in pairs if not self._has_all(group[0], items)]

    def completed(
        self, prepared: Prepared, found: Sequence[Sequence[Hypothesis]], again: Mapping[int, Sequence[Hypothesis]]
    ) -> list[list[Hypothesis]]:
        """Put translations first in which nothing is missing that is carried over.

        again: what another search, with the settings of `searching_again`, has found of some sentences, by place.
        """
        groups = []
        for place, (group, items) in enumerate(zip(found, prepared.carried, strict=True)):
            every = [*group, *again.get(place, ())]
            groups.append(sorted(every, key=lambda each: not self._has_all(each, items))[: len(group)])
        return groups

    def _has_all(self, hypothesis: Hypothesis, items: list[Carried]) -> bool:
        """Say if a translation has the marks of all that is carried over."""
        text = self.tokenizer.decode(hypothesis.ids) if items else ""
        return all(mark(number) in text for number in range(len(items)))

    def _given_ids(self, given: Iterable[int], name: str) -> list[int]:
        """Give the ids of a translation, without EOS.  Raises DataError for what is neither a text nor ids."""
        ids = list(given) if isinstance(given, Iterable) and not isinstance(given, bytes) else [None]
        if not all(isinstance(each, int | np.integer) for each in ids):
            check_text(given, name)
        try:
            return without_eos(self.tokenizer.given_ids(map(int, ids)))
        except DataError as error:
            raise DataError(f"{name} cannot be read: {error}") from error

    def _check_lengths(self, ids: list[list[int]], where: Where) -> None:
        for number, own in enumerate(ids, start=1):
            if len(own) + 1 > self.limit:  # EOS counts
                tokens, most = counted(len(own), "token"), self.limit - 1
                raise LengthError(f"{where(number)} has {tokens}, the model reads {most} at most: divide it")

    def _prefix_ids(self, prefixes: Sequence[str], config: GenerationConfig, where: Where) -> list[list[int]]:
        most = self.model.config.max_length - max(config.shortest, 1) - bool(self._languages)
        for number, prefix in enumerate(prefixes, start=1):
            check_length(prefix, f"the prefix of {where(number)}", self.model.config.max_length)
        ids = self._tokenized(prefixes, lambda number: f"the prefix of {where(number)}")
        for number, prefix in enumerate(ids, start=1):
            if len(prefix) > most:
                raise DataError(
                    f"the prefix of {where(number)} has {counted(len(prefix), 'token')}, which leaves no room for "
                    f"more: the model writes {most} after it at most"
                )
        return ids


def without_eos(ids: Sequence[int]) -> list[int]:
    """Give ids without the end mark."""
    return list(ids[:-1] if len(ids) and ids[-1] == EOS else ids)


def _sentence_targets(source: str, target: Target) -> list[str | Iterable[int]] | None:
    """List the translations of the sentences of a source; None where there is one of the whole."""
    if not isinstance(target, list | tuple) or not all(isinstance(each, str | list | tuple) for each in target):
        return None
    return list(target) if target or not divided(source).spans else None  # [] is also that of no ids


def one_for_each(prefix: str | Iterable[str], count: int) -> list[str] | None:
    """List the prefix of every text; None where there are none.  Raises DataError where there are not as many."""
    if isinstance(prefix, str):
        return [prefix] * count if prefix else None
    prefixes = text_list(prefix, "prefixes", "prefix {}".format)
    if len(prefixes) != count:
        raise DataError(
            f"prefix is a list of {len(prefixes)} for {counted(count, 'text')}: give one for each, or one for all"
        )
    return prefixes
