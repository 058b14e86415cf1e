"""Directories of models as other people's programs have written them, and changes to them."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from tests.checks import random_model, small_config
from tests.conftest import ENGLISH
from toolkit.interop import write_hugging_face
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.tokenization import SentencePieceTokenizer


def make_marian(directory: Path, target: Path) -> Path:
    """A MarianMTModel with ids of its own, and two SentencePiece models; target: that of what it writes."""
    directory.mkdir()
    SentencePieceTokenizer.train(ENGLISH, vocab_size=330, model_type="bpe").save(directory)
    (directory / "tokenizer.model").rename(directory / "source.spm")
    shutil.copy(target, directory / "target.spm")
    pieces = dict.fromkeys(piece for name in ("source.spm", "target.spm") for piece in _texts(directory / name))
    ids = {piece: index for index, piece in enumerate(["</s>", "<unk>", *pieces, "<pad>"])}
    (directory / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    config = small_config(vocab_size=len(ids), norm_position="post", max_length=32)
    write_hugging_face(random_model(config, np.random.default_rng(0), np.float32), directory)
    special = dict.fromkeys(("pad_token_id", "decoder_start_token_id"), ids["<pad>"]) | {"eos_token_id": 0}
    edit(directory, **special, bos_token_id=None, toolkit=None)
    (directory / "generation_config.json").unlink()
    return directory


def make_llama(directory: Path, texts: Iterable[str], **settings: Any) -> Path:
    """A LlamaForCausalLM, small but not tiny, with a SentencePiece model of these texts.  settings: of GPTConfig."""
    directory.mkdir()
    with (directory / "tokenizer.model").open("wb") as file:
        SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=file,
            vocab_size=400,
            hard_vocab_limit=False,
            byte_fallback=True,
            minloglevel=2,
        )
    size = SentencePieceProcessor(model_file=str(directory / "tokenizer.model")).vocab_size()
    _write_gpt(directory, vocab_size=size, norm="rms", activation="swiglu", **settings)
    edit(directory, bos_token_id=1, eos_token_id=2, pad_token_id=None, toolkit=None)
    return directory


def make_gpt2(directory: Path, content: dict[str, Any], **settings: Any) -> Path:
    """A GPT2LMHeadModel with this tokenizer.json, in which the end token is <|endoftext|>.  settings: of GPTConfig."""
    directory.mkdir()
    (directory / "tokenizer.json").write_text(json.dumps(content))
    ids = content["model"]["vocab"]
    shape = {"positions": "learned", "bias": True, "activation": "gelu_tanh"}
    _write_gpt(directory, vocab_size=len(ids), **shape, **settings)
    special = dict.fromkeys(("bos_token_id", "eos_token_id"), ids["<|endoftext|>"])
    edit(directory, **special, pad_token_id=None, toolkit=None)
    return directory


def _write_gpt(directory: Path, **settings: Any) -> None:
    """Write a small language model as training begins with it, without generation_config.json."""
    shape = {"d_model": 32, "num_heads": 4, "layers": 1, "d_ff": 32, "max_length": 64}
    model = GPT(GPTConfig(**{**shape, **settings}))
    model.allocate()
    model.initialize(np.random.default_rng(0))
    write_hugging_face(model, directory)
    (directory / "generation_config.json").unlink()


def _texts(path: Path) -> list[str]:
    """The pieces of a SentencePiece model that can stand in a text."""
    own = SentencePieceProcessor(model_file=str(path))
    return [own.id_to_piece(i) for i in range(own.vocab_size()) if not (own.is_control(i) or own.is_unknown(i))]


def put_into_shards(directory: Path) -> None:
    """Divide the weights of a directory between two files, with the index that says which is where."""
    tensors = load_file(directory / "model.safetensors")
    places = {name: f"model-0000{number % 2 + 1}-of-00002.safetensors" for number, name in enumerate(sorted(tensors))}
    for shard in set(places.values()):
        save_file({name: tensors[name] for name, place in places.items() if place == shard}, directory / shard)
    (directory / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    (directory / "model.safetensors").unlink()


def edit(directory: Path, **values: Any) -> None:
    """Change config.json."""
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
