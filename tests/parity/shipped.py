"""The models that ship, exported: transformers, with its own tokenizer, and CTranslate2 write the same texts."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ctranslate2
import torch
from transformers import AutoTokenizer

from tests.parity import reference
from toolkit import load
from toolkit.data import read_lines
from toolkit.data.embedded import embedded
from toolkit.data.sentences import spaced, tidy
from toolkit.interop import export_model
from toolkit.language_model import LanguageModel
from toolkit.tokenization.special import BOS, CONTROL_IDS, EOS, UNK
from toolkit.translator import Translator

_COUNT, _TOGETHER, _NEW = 200, 50, 48
_BEAMS = (1, 4)

# A search with so many beams, of some texts.
Search = Callable[[list[str], int], list[str]]


def compare(scratch: Path) -> Iterator[tuple[bool, str]]:
    """One line for each model, library and search."""
    for name, texts in (
        ("en-ne-small", read_lines(embedded("en_ne") / "test.en")[:: 1000 // _COUNT]),
        ("stories", _beginnings("en")),
        ("stories-ne", _beginnings("ne")),
    ):
        model = load(name)
        for library, make in (("hugging-face", _transformers), ("ctranslate2", _ctranslate2)):
            directory = scratch / f"{name}-{library}"
            export_model(name, directory, to=library)
            theirs, settings = make(model, directory)
            for beams in _BEAMS:
                found = theirs(texts[:_COUNT], beams)
                own = _ours(model, texts[:_COUNT], beams, settings)
                pairs = [(mine, yours) for mine, yours in zip(own, found, strict=True) if mine != yours]
                example = "" if not pairs else f", such as {pairs[0][0]!r} and {pairs[0][1]!r}"
                yield not pairs, f"{name} in {library}, {beams} beams: {len(pairs)} of {len(own)} texts differ{example}"


def _beginnings(language: str) -> list[str]:
    """One to three words of stories that the model has not seen."""
    stories = [line for line in read_lines(embedded("stories") / f"valid.{language}.txt") if line.strip()]
    return [" ".join(stories[number % len(stories)].split()[: 1 + number % 3]) for number in range(_COUNT)]


def _ours(model: Translator | LanguageModel, texts: list[str], beams: int, settings: dict[str, Any]) -> list[str]:
    settings = {"num_beams": beams, "max_new_tokens": _NEW, "forced_eos": "none", **settings}
    if isinstance(model, Translator):
        return model.translate(texts, **settings)
    written = model.generate(texts, do_sample=False, **settings)
    return [tidy(text + rest) for text, rest in zip(texts, written, strict=True)]


def _transformers(model: Translator | LanguageModel, directory: Path) -> tuple[Search, dict[str, Any]]:
    """A search of the exported model, and what makes ours the same."""
    tokenizer, theirs = AutoTokenizer.from_pretrained(directory), reference.read(directory, torch.float32)

    def search(texts: list[str], beams: int) -> list[str]:
        found = []
        for first in range(0, len(texts), _TOGETHER):
            given = tokenizer(texts[first : first + _TOGETHER], padding=True, return_tensors="pt")
            rule = {"num_beams": beams, "early_stopping": False} if beams > 1 else {}
            given.pop("token_type_ids", None)
            found += theirs.generate(**given, max_new_tokens=_NEW, do_sample=False, **rule)
        return [tidy(text) for text in tokenizer.batch_decode(found, skip_special_tokens=True)]

    return search, {"early_stopping": False}


def _ctranslate2(model: Translator | LanguageModel, directory: Path) -> tuple[Search, dict[str, Any]]:
    """The same, without a length penalty: there it stops, as ours does, where nothing better can come."""
    tokenizer = model.tokenizer
    never = [[tokenizer.piece(each)] for each in sorted(CONTROL_IDS - {EOS} | {UNK})]
    options = {"length_penalty": 0, "suppress_sequences": never, "max_batch_size": _TOGETHER}
    ids_of = {tokenizer.piece(each): each for each in range(tokenizer.vocab_size)}

    def pieces(text: str) -> list[str]:
        return [tokenizer.piece(each) for each in tokenizer.encode(text)]

    def translate(texts: list[str], beams: int) -> list[str]:
        translator = ctranslate2.Translator(str(directory), inter_threads=1, intra_threads=1)
        given = [pieces(spaced(text, model.model.config.ignore_case)) for text in texts]
        results = translator.translate_batch(given, beam_size=beams, max_decoding_length=_NEW, **options)
        return [tidy(tokenizer.decode([ids_of[each] for each in result.hypotheses[0]])) for result in results]

    def generate(texts: list[str], beams: int) -> list[str]:
        generator = ctranslate2.Generator(str(directory), inter_threads=1, intra_threads=1)
        prompts, found = [tokenizer.encode(text) for text in texts], [""] * len(texts)
        for length in set(map(len, prompts)):  # together only where they are equally long: see `exported`
            chosen = [index for index, prompt in enumerate(prompts) if len(prompt) == length]
            given = [[tokenizer.piece(each) for each in (BOS, *prompts[index])] for index in chosen]
            new = {"max_length": _NEW, "include_prompt_in_result": False}
            results = generator.generate_batch(given, beam_size=beams, **new, **options)
            for index, result in zip(chosen, results, strict=True):
                ids = [ids_of[each] for each in result.sequences[0]]
                found[index] = tidy(tokenizer.decode([*prompts[index], *ids]))
        return found

    settled = {"early_stopping": "settled", "length_penalty": 0.0}
    return translate if isinstance(model, Translator) else generate, settled
