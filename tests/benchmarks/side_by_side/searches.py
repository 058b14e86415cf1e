"""What is decoded: models with random weights and trained ones, in the formats of all sides, and what they read."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from toolkit.data.embedded import CORPORA, make_embedded
from toolkit.data.sentences import sentence_ids
from toolkit.interop.ctranslate2 import distinct, write_weights
from toolkit.interop.hugging_face import write_hugging_face
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.presets import PRESETS
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqConfig
from toolkit.models.storage import find_model, load_model, save_model
from toolkit.nn.module import Model
from toolkit.tokenization import load_tokenizer
from toolkit.tokenization.special import SPECIAL_TOKENS

SENTENCES = CORPORA / "en_ne" / "test.en"


@dataclass(frozen=True)
class Search:
    """One row of the tables of decoding."""

    name: str
    title: str
    model: str  # of `MODELS`, or the name or directory of a trained translator
    beams: int = 1
    texts: int = 8
    together: bool = False  # all texts at once on all cores, or one after the other
    steps: int | None = 30  # tokens that are written, no more and no less; None: until the model ends by itself
    prompt: int = 20  # tokens of random sources and prompts


def _gpt2(**sizes: int) -> GPTConfig:
    return GPTConfig(activation="gelu_tanh", bias=True, positions="learned", begin=False, **sizes)


# The translator of the rows against CTranslate2: 3+3 layers, D 256, F 1024. Marian's is post-norm.
MODELS = {
    "random": Seq2SeqConfig(vocab_size=8000),
    "marian": Seq2SeqConfig(vocab_size=8000, norm_position="post", positions="sinusoidal_halves"),
    "marian-tiny": Seq2SeqConfig(
        vocab_size=2000,
        d_model=128,
        num_heads=4,
        d_ff=512,
        encoder_layers=2,
        decoder_layers=2,
        norm_position="post",
        positions="sinusoidal_halves",
    ),
    "gpt2-small": _gpt2(vocab_size=8000, d_model=256, layers=6, num_heads=8, d_ff=1024),
    "gpt2-tiny": _gpt2(vocab_size=2000, d_model=128, layers=4, num_heads=4, d_ff=512),
    "gpt2": replace(PRESETS["gpt2"], begin=False),
}


def against_ctranslate2(translator: str) -> list[Search]:
    """The four rows with random weights, then the same of a trained model, which ends by itself."""
    kinds = (("random", "random", "random weights", 30), ("trained", translator, Path(translator).name, None))
    return [
        Search(f"decode-{kind}-{name}", f"{told}: {title}", model, beams, texts, together, steps)
        for kind, model, told, steps in kinds
        for name, title, beams, texts, together in (
            ("one-greedy", "one sentence at a time, greedy", 1, 8, False),
            ("one-beam", "one sentence at a time, beam 4", 4, 8, False),
            ("64-greedy", "64 sentences, greedy", 1, 64, True),
            ("64-beam", "64 sentences, beam 4", 4, 64, True),
        )
    ]


AGAINST_TRANSFORMERS = (
    Search("generate-gpt2-tiny", "GPT-2's shape, 4 layers, D 128, V 2000", "gpt2-tiny", texts=2, steps=64, prompt=16),
    Search("generate-marian-tiny", "Marian's shape, 2+2 layers, D 128, V 2000", "marian-tiny", texts=2),
    Search("generate-gpt2-small", "GPT-2's shape, 6 layers, D 256, V 8000", "gpt2-small", texts=2, steps=64, prompt=16),
    Search("generate-marian", "Marian's shape, 3+3 layers, D 256, V 8000", "marian", texts=2),
    Search("generate-gpt2", "GPT-2, 12 layers, D 768, V 50257", "gpt2", texts=1, steps=32, prompt=16),
)


def write_search(
    search: Search, directory: Path, transformers: bool, sentences: Path = SENTENCES, int8: bool = False
) -> dict:
    """Leave in `directory` the model in our format and theirs, and what is to be read -> what there is to know.

    sentences: a file with a line for each text that a trained model reads. int8: both are stored so.
    """
    make_embedded([sentences])
    model, tokens, texts = _random(search) if search.model in MODELS else _trained(search, sentences)
    for name in ("toolkit", "theirs"):
        (directory / name).mkdir()
    if transformers:
        write_hugging_face(model, directory / "theirs")
    else:
        write_weights(model, tokens, directory / "theirs", int8=int8)
    found = {"parameters": model.parameter_count, "streamed": 4 * _streamed(model)}
    if int8:
        model.quantize()
    save_model(model, directory / "toolkit")
    work = {"beams": search.beams, "together": search.together, "steps": search.steps, "texts": texts, "tokens": tokens}
    (directory / "search.json").write_text(json.dumps(work), encoding="utf-8")
    return found


def _random(search: Search) -> tuple[Model, list[str], list[list[int]]]:
    config = MODELS[search.model]
    model = GPT(config) if isinstance(config, GPTConfig) else Seq2Seq(config)
    model.allocate()
    model.initialize(np.random.default_rng(0))
    for name, values in model.arrays().items():
        if name.endswith(("output.weight", "down.weight")):
            values *= 10  # as they are drawn, the last token drowns everything else and is repeated for ever
    size, special = config.vocab_size, len(SPECIAL_TOKENS)
    model.output.table.data[:special] = 0  # scores of 0 are never among the best: no side has to exclude any
    texts = np.random.default_rng(1).integers(special, size, (search.texts, search.prompt)).tolist()
    return model, [f"t{index}" for index in range(size)], texts


def _trained(search: Search, sentences: Path) -> tuple[Model, list[str], list[list[int]]]:
    """A trained model, and the first lines of what there is to translate."""
    directory = find_model(search.model)
    model, tokenizer = load_model(directory), load_tokenizer(directory)
    lines = [line for line in sentences.read_text(encoding="utf-8").splitlines() if line.strip()][: search.texts]
    texts = [list(map(int, ids)) for ids in sentence_ids(tokenizer, lines, model.config.ignore_case)]
    return model, distinct([tokenizer.piece(index) for index in range(tokenizer.vocab_size)]), texts


def _streamed(model: Model) -> int:
    """Weights that a step of decoding has to read: all but the encoder, what reads its output, and positions."""
    output = model.output.table
    skipped = ("encoder", "source", "target", "trunk.input")
    return sum(
        parameter.data.size
        for name, parameter in model.parameters().items()
        if parameter is output or not (name.startswith(skipped) or "cross_attention.layer.key_value" in name)
    )
