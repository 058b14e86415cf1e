"""Directories of transformers in unusual but legal settings: import computes and writes the same, or refuses by name.

    python tests/parity/directories.py                     # 200 directories, drawn at random from a seed
    python tests/parity/directories.py --count 1000 --seed 7

Needs the `bench` extra. What the library cannot read itself is drawn again. Logits are compared over texts as long as
the context, outputs by greedy search, with the flags that import names.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import torch
import transformers
from transformers.utils import logging

from tests.parity.drawn import FAMILIES, Draw
from toolkit.decoding import ContinuationConfig, GenerationConfig, generate
from toolkit.errors import ModelError
from toolkit.functional.arrays import Array
from toolkit.functional.positions import sinusoidal_positions
from toolkit.interop.hugging_face import HuggingFaceModel
from toolkit.interop.vocabulary import Vocabulary
from toolkit.models.seq2seq import Seq2Seq
from toolkit.nn.module import Model
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.tokenization.languages import Languages
from toolkit.tokenization.special import EOS, FIRST_TOKEN, SPECIAL_TOKENS

_NEW = 8  # tokens that are written after each text
_TEXTS = 3
_NEAR = 1e-5  # of the largest logit


class Outcome(NamedTuple):
    """What became of a directory."""

    family: str
    is_right: bool
    kind: str  # "equal", "refused" or "different"
    words: str


def compared(draw: Draw, directory: Path) -> Outcome:
    """What import makes of a directory beside what the library does, which reads it first."""
    make = transformers.AutoModelForSeq2SeqLM if draw.is_seq2seq else transformers.AutoModelForCausalLM
    theirs = make.from_pretrained(directory, dtype=torch.float32).eval()
    try:
        found = HuggingFaceModel(directory)
        vocabulary = found.vocabulary()
        model = found.read(vocabulary, begin=False, languages=languages_of(draw, vocabulary))
    except ModelError as error:
        words = str(error).replace(str(directory), "…")
        return Outcome(draw.family, is_named(words, directory), "refused", words)
    if any("positions are exact here" in note for note in found.notes):
        for side in (theirs.model.encoder, theirs.model.decoder):
            side.embed_positions.weight.data = exact_waves(side.embed_positions.weight)
    far = distance(theirs, model, vocabulary, draw)
    if not far <= _NEAR:
        return Outcome(draw.family, False, "different", f"logits by {far:.0e}")
    wanted, written = there(theirs, vocabulary, draw), here(theirs, model, vocabulary, draw)
    if wanted != written:
        return Outcome(draw.family, False, "different", f"it writes {written}, not {wanted}")
    return Outcome(draw.family, True, "equal", "; ".join(found.notes))


def languages_of(draw: Draw, vocabulary: Vocabulary) -> Languages | None:
    """What outputs of an M2M100 are forced to begin with is a language, unless it is special."""
    forced = draw.generation.get("forced_bos_token_id")
    if draw.family != "m2m_100" or forced is None:
        return None
    [index] = vocabulary.ours([forced])
    return Languages({"xx": index}) if index >= FIRST_TOKEN else None


def exact_waves(table: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(sinusoidal_positions(*table.shape, "halves"))


def is_named(words: str, directory: Path) -> bool:
    """Whether a refusal says what it refuses: a setting, or a tensor."""
    names = set()
    for path in directory.glob("*.json"):
        values = json.loads(path.read_text())
        names |= {*values, *values.get("weight_map", ())}
        names |= {each for section in ("rope_parameters", "rope_scaling") for each in values.get(section) or ()}
    return any(name in words for name in names | {"lm_head.weight", "embed_tokens.weight"})


def texts_of(draw: Draw, most: int) -> list[list[int]]:
    """Foreign ids, none of them special."""
    special = {each for name, each in draw.config.items() if name.endswith("_token_id")}
    ordinary = [each for each in range(draw.size) if each not in special]
    rng = np.random.default_rng(draw.size)
    return [rng.choice(ordinary, max(1, most - number)).tolist() for number in range(_TEXTS)]


def distance(theirs: Any, model: Model, vocabulary: Vocabulary, draw: Draw) -> float:
    """How far logits are apart, as a share of the largest, over texts as long as the context."""
    found, tape = 0.0, Tape()
    end = draw.config["eos_token_id"]
    for ids in texts_of(draw, min(model.config.max_length, 24) - draw.is_seq2seq):
        ours = np.array(vocabulary.ours(ids))
        if isinstance(model, Seq2Seq):
            begin = draw.config["decoder_start_token_id"]
            with torch.no_grad():
                given, before = torch.tensor([[*ids, end]]), torch.tensor([[begin, *ids]])
                expected = theirs(input_ids=given, decoder_input_ids=before).logits[0].numpy()
            sources = Rows(np.array([len(ids) + 1]))
            memory = model.encode(np.append(ours, EOS), sources, tape)
            rows = Rows(np.array([len(ids) + 1]), memory=sources, memory_of=np.array([0]))
            x = model.decode(np.insert(ours, 0, 2), memory, rows, tape)
        else:
            with torch.no_grad():
                expected = theirs(torch.tensor([ids])).logits[0].numpy()
            x = model.read(ours, Rows(np.array([len(ids)])), tape)
        logits = model.output.logits(x, tape)[:, vocabulary.ours(range(draw.size))]
        found = max(found, float(_apart(logits, expected)))
    return found


def _apart(found: Array, expected: Array) -> float:
    """Of a begin mark, which one of ours stands for that is never written, nothing is compared."""
    written = np.abs(found).max(axis=0) < 5e3
    return np.abs(found - expected)[:, written].max() / np.abs(expected).max()


def there(theirs: Any, vocabulary: Vocabulary, draw: Draw) -> list[list[int]]:
    """What the library writes, by greedy search, without the special tokens that ours never writes."""
    end = draw.config["eos_token_id"]
    never = {vocabulary.rows[ours] for ours in range(len(SPECIAL_TOKENS))} - {-1, vocabulary.rows[EOS]}
    settings = {"num_beams": 1, "do_sample": False, "max_length": None, "eos_token_id": end, "pad_token_id": end}
    written = []
    for ids in _prompts(theirs, draw):
        given = torch.tensor([[*ids, end] if draw.is_seq2seq else ids])
        with torch.no_grad():
            mask, forbidden = torch.ones_like(given), sorted(never) or None
            settings |= {"suppress_tokens": forbidden, "max_new_tokens": _new(theirs)}
            found = theirs.generate(given, attention_mask=mask, **settings)
        new = found[0, 1 if draw.is_seq2seq else len(ids) :].tolist()
        written.append(new[: new.index(end)] if end in new else new)
    return written


def here(theirs: Any, model: Model, vocabulary: Vocabulary, draw: Draw) -> list[list[int]]:
    """What ours writes, with the flags that import names."""
    asked = theirs.generation_config
    names = ("repetition_penalty", "no_repeat_ngram_size", "min_new_tokens")
    settings = {name: getattr(asked, name, None) for name in names}
    settings = {name: value for name, value in settings.items() if value is not None} | {"max_new_tokens": _new(theirs)}
    settings["forced_eos"] = "none" if asked.forced_eos_token_id is None else "free"
    prompts = [vocabulary.ours(ids) for ids in _prompts(theirs, draw)]
    if draw.is_seq2seq:
        forced = None if asked.forced_bos_token_id is None else vocabulary.ours([asked.forced_bos_token_id])[0]
        found = generate(model, prompts, GenerationConfig(**settings), forced_bos=forced)
    else:
        found = generate(model, prompts, ContinuationConfig(do_sample=False, **settings))
    return [vocabulary.foreign(hypotheses[0].ids) for hypotheses in found]


def _prompts(theirs: Any, draw: Draw) -> list[list[int]]:
    return [ids[: max(1, _context(theirs) - _NEW)] for ids in texts_of(draw, 6)]


def _new(theirs: Any) -> int:
    """How many tokens follow a prompt."""
    return min(_NEW, _context(theirs) - 1)


def _context(theirs: Any) -> int:
    """So far a model that attends to a window computes what one does that attends to everything."""
    window = getattr(theirs.config, "sliding_window", None) or theirs.config.max_position_embeddings
    return min(window, theirs.config.max_position_embeddings)


def outcomes(count: int, seed: int) -> list[Outcome]:
    """The families in turn.  What the library itself does not read is drawn again."""
    found: list[Outcome] = []
    while len(found) < count:
        draw = Draw(FAMILIES[len(found) % len(FAMILIES)], seed)
        seed += 1
        with tempfile.TemporaryDirectory() as scratch:
            try:
                draw.save(Path(scratch))
                make = transformers.AutoModelForSeq2SeqLM if draw.is_seq2seq else transformers.AutoModelForCausalLM
                make.from_pretrained(scratch)
            except (
                ValueError,
                RuntimeError,
                LookupError,
                ImportError,
                TypeError,
                AttributeError,
                ArithmeticError,
            ) as error:
                print(f"drawn again: {draw.family}: {type(error).__name__}: {error!s:.100}", file=sys.stderr)
                continue
            found.append(compared(draw, Path(scratch)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="directories")
    parser.add_argument("--seed", type=int, default=0, help="of the first")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    found = outcomes(arguments.count, arguments.seed)
    for outcome in found:
        print("     " if outcome.is_right else "WRONG", *(outcome.family, outcome.kind, outcome.words), flush=True)
    for family in FAMILIES:
        kinds = Counter(outcome.kind for outcome in found if outcome.family == family)
        print(family, *(f"{kinds[kind]} {kind}" for kind in ("equal", "refused", "different")), sep=", ")
    raise SystemExit(int(not all(outcome.is_right for outcome in found)))


if __name__ == "__main__":
    main()
