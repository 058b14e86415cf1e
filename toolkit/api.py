"""From text to text: `load` a model directory, and translate with it."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from threadpoolctl import ThreadpoolController

from toolkit.data.sentences import sentence_ids, sentence_text
from toolkit.decoding import GenerationConfig, generate
from toolkit.errors import DataError, ModelError
from toolkit.models.seq2seq import Seq2Seq
from toolkit.models.storage import CONFIG_FILE, load_model, model_directory
from toolkit.tokenization import Tokenizer, load_tokenizer

BATCH_SIZE = 64

# The longest text for a model whose positions have no end, in tokens: attention computes the square of that.
READING_LIMIT = 1024
# No tokenizer makes so few tokens of so many characters: such a text is refused before it is tokenized.
_MOST_CHARACTERS = 64 * READING_LIMIT


def load(path_or_name: str | os.PathLike[str]) -> "Translator":
    """Read a model from a directory, from a run (its best checkpoint), or by the name of a shipped one ("en-ne").

    Raises ModelError where there is none of that name, or where it is damaged or foreign.
    """
    directory = find_model(path_or_name)
    return Translator(load_model(directory), load_tokenizer(directory), str(directory))


class Translator:
    """An encoder-decoder with its tokenizer: text in one language to text in another."""

    def __init__(self, model: Seq2Seq, tokenizer: Tokenizer, name: str = "the model"):
        """Raises ModelError where the tokenizer belongs to another model."""
        if tokenizer.vocab_size != model.config.vocab_size:
            raise ModelError(
                f"{name} has a tokenizer of {tokenizer.vocab_size} tokens and a model of {model.config.vocab_size}: "
                "copy both from one directory"
            )
        self.model, self.tokenizer = model, tokenizer
        length = model.config.max_length
        self.limit = length if model.config.positions == "learned" else max(READING_LIMIT, length)
        self._threads = ThreadpoolController()

    def translate(
        self,
        text: str | Sequence[str],
        *,
        num_beams: int = 1,
        max_new_tokens: int | None = None,
        length_penalty: float = 1.0,
        do_sample: bool = False,
        temperature: float = 1.0,
        top_k: int = 50,
        top_p: float = 1.0,
        seed: int = 0,
        batch_size: int = BATCH_SIZE,
    ) -> str | list[str]:
        """Translate a text, or each text of a list; the settings are those of `GenerationConfig`.

        An empty or blank text has an empty translation. White space at the ends of a text makes no difference, nor
        does more of it than one space between words. Translations are in Unicode normal form C.

        Raises DataError for a text that is not Unicode or longer than the model can read (`limit` tokens), and
        ConfigError for a setting out of range.
        """
        config = GenerationConfig(
            num_beams=num_beams,
            max_new_tokens=max_new_tokens,
            length_penalty=length_penalty,
            do_sample=do_sample,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
        )
        if isinstance(text, str):
            return self.translate_all([text], config, batch_size, lambda _: "the text")[0]
        return self.translate_all(text, config, batch_size)

    def translate_all(
        self,
        texts: Sequence[str],
        config: GenerationConfig,
        batch_size: int = BATCH_SIZE,
        where: Callable[[int], str] = "text {}".format,
    ) -> list[str]:
        """One translation for each text, in order.  `where(number)`, from 1, names a text in an error."""
        sources = self._encode(texts, where)
        spoken = [index for index, source in enumerate(sources) if source]
        translations = [""] * len(texts)
        # A decoding step is too small to be divided: two threads were measured several times slower than one.
        with self._threads.limit(limits=1, user_api="blas"):
            found = generate(self.model, [sources[index] for index in spoken], config, batch_size)
        for index, hypotheses in zip(spoken, found, strict=True):
            translations[index] = sentence_text(self.tokenizer, hypotheses[0].ids)
        return translations

    def _encode(self, texts: Sequence[str], where: Callable[[int], str]) -> list[list[int]]:
        """The ids of every text; none for a blank one."""
        for number, text in enumerate(texts, start=1):
            if len(text) > _MOST_CHARACTERS:
                raise DataError(f"{where(number)} has {len(text)} characters: translate it sentence by sentence")
        sources = sentence_ids(self.tokenizer, texts, self.model.config.ignore_case)
        for number, source in enumerate(sources, start=1):
            if len(source) + 1 > self.limit:  # the end mark counts
                raise DataError(
                    f"{where(number)} has {len(source)} tokens, the model reads {self.limit - 1} at most: "
                    "translate it sentence by sentence"
                )
        return sources


def find_model(path_or_name: str | os.PathLike[str]) -> Path:
    """The directory of a model: itself, the best checkpoint of a run, or a shipped one by its name.

    A directory at hand comes before a shipped model of the same name.

    Raises ModelError, with the names there are, where nothing is found.
    """
    path, shipped = Path(path_or_name), shipped_models()
    for candidate in (path, shipped.get(str(path_or_name), path)):
        directory = model_directory(candidate)
        if directory != candidate or (directory / CONFIG_FILE).exists():
            return directory
    if path.is_dir():
        raise ModelError(f"{path} is not a model: it has no {CONFIG_FILE}")
    names = ", ".join(sorted(shipped)) or "none is shipped"
    raise ModelError(f"there is no model {str(path_or_name)!r}: give the path of a directory, or a name ({names})")


def shipped_models() -> dict[str, Path]:
    """The models that come with the toolkit: within the installed package, or beside it in a clone."""
    package = Path(__file__).parent
    shelf = package / "checkpoints"
    if not shelf.is_dir():
        shelf = package.parent / "checkpoints"
    if not shelf.is_dir():
        return {}
    return {path.name: path for path in shelf.iterdir() if path.is_dir() and not path.name.startswith(".")}
