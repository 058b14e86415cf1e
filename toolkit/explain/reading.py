"""A real pass of a model over one text, with all that its modules show on the way.

`read_translation` and `read_text` run the model that `toolkit.load` gives, as training does: the whole target at once.
A `Reading` knows what was read, and its recorder what each module showed.
"""

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from toolkit.data.sentences import sentence_ids
from toolkit.decoding import GenerationConfig, generate
from toolkit.decoding.generation import check_ids
from toolkit.errors import ConfigError, DataError, ModelError
from toolkit.functional.arrays import Array
from toolkit.language_model import LanguageModel
from toolkit.models.gpt import GPT
from toolkit.models.seq2seq import Seq2Seq, translation_batch
from toolkit.nn.module import Module
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Recorder, Tape
from toolkit.pages.blocks import Table
from toolkit.pages.writing import labels
from toolkit.text_model import CHARACTERS_OF_A_TOKEN
from toolkit.tokenization import Tokenizer
from toolkit.tokenization.special import BOS
from toolkit.tokenization.tokenizer import LOST
from toolkit.translator import Translator

DEFAULT_PAIR = "I am a boy", "म केटा हुँ"
# As the embedded stories begin, in both languages.
DEFAULT_TEXTS = (
    "Long ago, a little boy named Bikash lived near a big forest.",
    "धेरै पहिलेको कुरा हो, एउटा गाउँमा हरि नाम गरेको एउटा केटा बस्थ्यो।",
)

_BYTE = re.compile("<0x[0-9A-F]{2}>")
_STRANGE = 1.5  # 1 is a text letter by letter, 2 one of ASCII byte by byte


@dataclass(frozen=True)
class Reading:
    """One text that went through a model, or one pair of sentences."""

    model: Seq2Seq | GPT
    tokenizer: Tokenizer
    recorder: Recorder
    inputs: Array  # (T,) ids that the language model or the decoder read, the begin mark included
    following: Array  # (T,) or (T - 1,) ids that came after each of them; the last of a language model's is not known
    # (S,) ids that the encoder read, end included; none of a language model
    sources: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    cut: Sequence[str] = ()  # a sentence for each thing that was not read

    @property
    def words(self) -> list[str]:
        """A label for each of `inputs`."""
        return labels(self.tokenizer, self.inputs)

    @property
    def source_words(self) -> list[str]:
        """A label for each of `sources`."""
        return labels(self.tokenizer, self.sources)


def within(module: Module) -> Iterator[Module]:
    """Give a module and all that it owns; a shared one at each of its places."""
    yield module
    for value in vars(module).values():
        for member in value if isinstance(value, list) else [value]:
            if isinstance(member, Module):
                yield from within(member)


def read_translation(
    translator: Translator,
    source: str,
    target: str | Sequence[int] | None = None,
    owners: Collection[Module] | None = None,
) -> Reading:
    """Run a pass over a sentence and its translation.

    target: a text, or ids without marks; None is what the model itself writes (greedily). owners: the modules to listen
    to (None: all of them; attention's maps then take H·T·S numbers a layer).

    Sides that are longer than the model was trained for (`max_length`) are cut. Raises DataError for a blank source and
    for text that the model cannot read, ModelError where the model computes what is not finite.
    """
    model, cut = translator.model, []
    most = model.config.max_length - 1
    ids = source_ids(translator, source, most, cut)
    if not ids:
        raise DataError("the text is blank: there is nothing to read")
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if target is None:
            language = translator.language("target")
            target = generate(model, [ids], GenerationConfig(), forced_bos=language)[0][0].ids
        if isinstance(target, str):
            target = source_ids(translator, target, most, cut, "The target", source=False)
        check_ids(model, [target[:most]], "the target")
        batch = translation_batch([np.array(ids)], [np.array(target[:most], np.int64)])
        recorder = Recorder(owners)
        tape = Tape(recorder=recorder)
        logits = model.output.logits(model.forward(batch, tape), tape)
    check_finite(logits)
    return Reading(model, translator.tokenizer, recorder, batch.inputs, batch.labels, batch.sources, tuple(cut))


def read_text(
    language_model: LanguageModel, text: str | Sequence[int], owners: Collection[Module] | None = None
) -> Reading:
    """Run a pass over a text, or ids, after the BOS of a model that knows one.  owners: as for `read_translation`.

    What does not fit into the context is cut. Raises DataError for text that the model cannot read, and for an empty
    one where there is no BOS; ModelError where the model computes what is not finite.
    """
    model, cut = language_model.model, []
    begin = [BOS] if model.config.begin else []
    most = model.config.max_length - len(begin)
    if isinstance(text, str):
        text = text_ids(language_model.tokenizer, text, most, cut)
    ids = np.array([*begin, *text[:most]], np.int64)
    if not len(ids):
        raise DataError("the text is empty, and this model cannot begin: give it a word")
    check_ids(model, [ids], "the text", model.config.max_length)
    recorder = Recorder(owners)
    tape = Tape(recorder=recorder)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        logits = model.output.logits(model.read(ids, Rows(np.array([len(ids)])), tape), tape)
    check_finite(logits)
    return Reading(model, language_model.tokenizer, recorder, ids, ids[1:], cut=tuple(cut))


def tokens_table(words: Sequence[str], ids: Sequence[int] | Array) -> Table:
    """Tabulate what was read: the place, the label and the id of every token."""
    rows = [(str(place), word, str(token)) for place, (word, token) in enumerate(zip(words, ids, strict=True))]
    return Table(("position", "token", "id"), rows, left=(1,))


def check_choice(layers: int, heads: int, layer: int | None, head: int | None) -> None:
    """Raises ConfigError for a layer or a head, counted from 1, that a model does not have."""
    for name, asked, count in (("layer", layer, layers), ("head", head, heads)):
        if asked is not None and not 1 <= asked <= count:
            raise ConfigError(f"{name} is {asked}: this model has {name}s 1 to {count}")


def check_finite(logits: Array) -> None:
    """Raises ModelError where one of the scores is not."""
    if not np.isfinite(logits).all():
        raise ModelError("the model computes numbers that are not finite: it is damaged, or its training diverged")


def text_ids(tokenizer: Tokenizer, text: str, most: int, cut: list[str], what: str = "The text") -> list[int]:
    """Cut a text into its first `most` tokens, without BOS and EOS; `cut` gets a sentence on everything left out.

    Raises DataError for a text that the tokenizer cannot read.
    """
    return _first(tokenizer.encode(_beginning(text, most, cut)), most, cut, what)


def source_ids(
    translator: Translator, text: str, most: int, cut: list[str], what: str = "The text", source: bool = True
) -> list[int]:
    """Cut a sentence in the same way, as a translator reads its sources, or writes; no ids for a blank one."""
    side, tokenizer, ignore_case = "target", translator.tokenizer, False
    if source:
        side, tokenizer, ignore_case = "source", tokenizer.source, translator.model.config.ignore_case
    [ids] = sentence_ids(tokenizer, [_beginning(text, most, cut)], ignore_case, translator.language(side))
    return _first(ids, most, cut, what)


def default_text(tokenizer: Tokenizer, texts: Sequence[str] = DEFAULT_TEXTS) -> str:
    """Choose the text that the tokenizer knows best: it has the letters, in the longest tokens.

    Raises ConfigError where it has the letters of none.
    """
    best = min(texts, key=lambda text: _strangeness(tokenizer, text))
    if _strangeness(tokenizer, best) > _STRANGE:
        raise ConfigError("the text is missing: give one, for this model knows neither English nor Nepali letters")
    return best


def _strangeness(tokenizer: Tokenizer, text: str) -> float:
    """Count tokens for each character, single bytes twice; infinite where something is lost."""
    try:
        ids = tokenizer.encode(text)
    except DataError:
        return math.inf
    if any(tokenizer.surface(each) == LOST for each in ids):
        return math.inf
    return (len(ids) + sum(_BYTE.fullmatch(tokenizer.piece(each)) is not None for each in ids)) / len(text)


def _beginning(text: str, most: int, cut: list[str]) -> str:
    """Keep the characters of a text that can make more than `most` tokens, whatever comes after them."""
    characters = CHARACTERS_OF_A_TOKEN * (most + 1)
    if len(text) > characters:
        cut.append(f"Of {len(text)} characters only the first {characters} were tokenized.")
    return text[:characters]


def _first(ids: list[int], most: int, cut: list[str], what: str) -> list[int]:
    if len(ids) > most:
        cut.append(f"{what} has {len(ids)} tokens, of which the model reads the first {most}.")
    return ids[:most]
