"""What is trained: models with their initial values, and the batches of every update, as files both sides read."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from toolkit.data.batches import Example, epoch_batches
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqConfig
from toolkit.tokenization import SentencePieceTokenizer

BATCHES = 64  # different ones, then again from the first
LONGEST = 127  # tokens of a sentence, its end mark not counted


@dataclass(frozen=True)
class Workload:
    """One row of the table of training."""

    name: str
    title: str
    config: GPTConfig | Seq2SeqConfig
    batch: int  # texts, or target tokens of a translation batch
    steps: int  # that a side takes at a time
    smoothing: float = 0.0


def _gpt(**settings: int) -> GPTConfig:
    return GPTConfig(positions="learned", activation="gelu", bias=False, **settings)


_SMALL = _gpt(vocab_size=65, d_model=128, layers=4, num_heads=4, d_ff=512, max_length=64)
_MEDIUM = _gpt(vocab_size=65, d_model=384, layers=6, num_heads=6, d_ff=1536, max_length=256)
_WORDS = _gpt(vocab_size=8000, d_model=256, layers=6, num_heads=8, d_ff=1024, max_length=128)
_TRANSLATION = Seq2SeqConfig(vocab_size=4000, max_length=LONGEST + 1)  # 3+3 layers, D 256, F 1024, dropout 0.1

TRAINING = (
    Workload("train-gpt-small", "GPT, 4 layers, D 128, T 64, B 12, V 65", _SMALL, 12, 60),
    Workload("train-gpt-medium", "GPT, 6 layers, D 384, T 256, B 8, V 65", _MEDIUM, 8, 3),
    Workload("train-gpt-words", "GPT, 6 layers, D 256, T 128, B 16, V 8000", _WORDS, 16, 4),
    Workload("train-translation", "translation, 3+3 layers, D 256, V 4000, real pairs", _TRANSLATION, 2048, 8, 0.1),
)


def write_workload(workload: Workload, pairs: Sequence[tuple[str, str]], directory: Path) -> dict:
    """Leave in `directory` what a side reads -> what there is to know of the batches."""
    rng = np.random.default_rng(1)
    config = workload.config
    model = GPT(config) if isinstance(config, GPTConfig) else Seq2Seq(config)
    model.allocate()
    model.initialize(rng)
    np.savez(directory / "weights.npz", **model.arrays())
    settings = {"kind": model.kind, "model": asdict(config), "smoothing": workload.smoothing}
    (directory / "workload.json").write_text(json.dumps(settings), encoding="utf-8")
    if isinstance(config, Seq2SeqConfig):
        return _write_pairs(workload, pairs, rng, directory)
    stream = rng.integers(config.vocab_size, size=1 << 17, dtype=np.int32)
    starts = rng.integers(len(stream) - config.max_length, size=(BATCHES, workload.batch))
    np.savez(directory / "batches.npz", stream=stream, starts=starts)
    return {"tokens": workload.batch * config.max_length}


def _write_pairs(workload: Workload, pairs: Sequence[tuple[str, str]], rng: np.random.Generator, where: Path) -> dict:
    tokenizer = SentencePieceTokenizer.train(chain.from_iterable(pairs), workload.config.vocab_size)
    encoded = [map(np.array, tokenizer.encode_batch(texts)) for texts in zip(*pairs, strict=True)]
    examples = [Example(*pair) for pair in zip(*encoded, strict=True)]
    examples = [each for each in examples if all(0 < len(side) <= LONGEST for side in each)]
    batches = epoch_batches(examples, workload.batch, rng)[:BATCHES]
    arrays = _ragged("batch", batches)
    for side in Example._fields:
        arrays |= _ragged(side, [getattr(each, side) for each in examples])
    np.savez(where / "batches.npz", **arrays)
    found = {}
    for side in Example._fields:
        lengths = [np.array([len(getattr(examples[index], side)) + 1 for index in batch]) for batch in batches]
        real, padded = sum(each.sum() for each in lengths), sum(each.max() * len(each) for each in lengths)
        found[f"{side}_padding"] = float(1 - real / padded)
        found["tokens"] = float(real / len(batches))  # of the targets, which come last
    return found | {"pairs": len(examples), "longest": LONGEST}


def _ragged(name: str, parts: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    ends = np.cumsum([len(part) for part in parts])
    return {f"{name}_values": np.concatenate(parts), f"{name}_ends": ends}


def read_pairs(paths: Iterable[Path]) -> list[tuple[str, str]]:
    """Two files whose lines belong together."""
    sides = [path.read_text(encoding="utf-8").splitlines() for path in paths]
    return [pair for pair in zip(*sides, strict=True) if all(text.strip() for text in pair)]
