"""Families of language models with the tokenizers that they come with: read as in transformers, and written again."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import toolkit
from tests.checks import random_model
from tests.conftest import ENGLISH
from tests.interop.foreign_models import edit
from toolkit.commands.models import ImportModel
from toolkit.interop import export_model, import_model, write_hugging_face
from toolkit.interop.hugging_face import ARCHITECTURES
from toolkit.models.gpt import GPTConfig
from toolkit.tokenization.special import BOS, EOS

tokenizers = pytest.importorskip("tokenizers", reason="the optional extra hf is not installed")

LLAMA = {"norm": "rms", "activation": "swiglu"}
SHAPES: dict[str, dict[str, Any]] = {
    "MistralForCausalLM": LLAMA | {"head_dim": 6},
    "Phi3ForCausalLM": LLAMA | {"num_key_value_heads": 1, "tie": False},
    "Qwen2ForCausalLM": LLAMA | {"bias": True, "bias_in": "attention_input", "rotary_scaling": "yarn"},
    "Qwen3ForCausalLM": LLAMA | {"qk_norm": True, "head_dim": 6, "rotary_scaling": "linear", "rotary_factor": 2.0},
    "GPTBigCodeForCausalLM": {"positions": "learned", "bias": True, "num_key_value_heads": 1},
    "OPTForCausalLM": {"positions": "learned", "bias": True, "activation": "relu"},
}
TEXTS = ["I am a boy", "म केटा हुँ", "don't 123 stop\n\n  here", "", " two  spaces ", "日本 x"]


def trained(tokenizer: Any, special: list[str], alphabet: bool) -> Any:
    letters = tokenizers.pre_tokenizers.ByteLevel.alphabet() if alphabet else []
    settings = {"vocab_size": 330, "special_tokens": special, "initial_alphabet": letters, "show_progress": False}
    tokenizer.train_from_iterator(ENGLISH, tokenizers.trainers.BpeTrainer(**settings))
    return tokenizer


def byte_level(*special: str) -> Any:
    """BPE of bytes, words apart; special tokens stand behind the others, as Qwen's."""
    found = tokenizers.Tokenizer(tokenizers.models.BPE())
    found.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = tokenizers.decoders.ByteLevel()
    trained(found, [], alphabet=True).add_special_tokens(list(special))
    return found


def with_bytes_for_the_unknown(*added: str, begins: bool = False) -> Any:
    """BPE as of SentencePiece: spaces are ▁, and characters that are not known are bytes."""
    found = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    steps = tokenizers.normalizers
    found.normalizer = steps.Sequence([steps.Prepend("▁"), steps.Replace(" ", "▁")])
    trained(found, ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))], alphabet=False)
    content = json.loads(found.to_str())
    content["added_tokens"] = content["added_tokens"][:3]
    found = tokenizers.Tokenizer.from_str(json.dumps(content))
    steps = tokenizers.decoders
    found.decoder = steps.Sequence(
        [steps.Replace("▁", " "), steps.ByteFallback(), steps.Fuse(), steps.Strip(" ", 1, 0)]
    )
    if begins:
        marks = [("<s>", 1)]
        found.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A", special_tokens=marks)
    found.add_special_tokens(list(added))
    return found


def make(name: str, directory: Path) -> dict[str, Any]:
    """Write a model of a family with its tokenizer, and return what it calls its special tokens."""
    llama = {"tokenizer_class": "LlamaTokenizer", "unk_token": "<unk>", "bos_token": "<s>", "legacy": False}
    qwen = {"tokenizer_class": "Qwen2Tokenizer", "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    gpt2 = {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": False}
    tokenizer, settings, spare = {
        "MistralForCausalLM": (with_bytes_for_the_unknown(begins=True), llama | {"eos_token": "</s>"}, 0),
        "Phi3ForCausalLM": (
            with_bytes_for_the_unknown("<|endoftext|>", "<|end|>"),
            llama | {"add_bos_token": False, "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>"},
            6,
        ),
        "Qwen2ForCausalLM": (byte_level("<|endoftext|>", "<|im_start|>", "<|im_end|>"), qwen, 13),
        "Qwen3ForCausalLM": (byte_level("<|endoftext|>", "<|im_start|>", "<|im_end|>"), qwen, 0),
        "GPTBigCodeForCausalLM": (
            byte_level("<|endoftext|>"),
            gpt2 | dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|endoftext|>"),
            0,
        ),
        "OPTForCausalLM": (
            byte_level("<pad>", "</s>"),
            gpt2
            | dict.fromkeys(("bos_token", "eos_token", "unk_token"), "</s>")
            | {"pad_token": "<pad>", "add_bos_token": True},
            0,
        ),
    }[name]
    ids = tokenizer.get_vocab()
    config = GPTConfig(len(ids) + spare, d_model=16, layers=1, num_heads=2, d_ff=16, max_length=64, **SHAPES[name])
    directory.mkdir()
    write_hugging_face(random_model(config, np.random.default_rng(0), np.float32), directory, came_as=name)
    special = {f"{role}_token_id": ids.get(settings.get(f"{role}_token")) for role in ("pad", "bos", "eos")}
    edit(directory, toolkit=None, **special)
    (directory / "generation_config.json").unlink()
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
    if name == "OPTForCausalLM":  # in the two files of GPT-2
        tokenizer.model.save(str(directory))
        words = json.loads((directory / "vocab.json").read_text()) | {each: ids[each] for each in ("<pad>", "</s>")}
        (directory / "vocab.json").write_text(json.dumps(words))
    else:
        tokenizer.save(str(directory / "tokenizer.json"))
    return settings


@pytest.mark.parametrize("name", SHAPES)
def test_a_family_reads_as_in_transformers_and_gets_back_its_class(name: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    settings = make(name, tmp_path / "theirs")
    assert import_model(tmp_path / "theirs", tmp_path / "own").name == name
    own, theirs = toolkit.load(tmp_path / "own"), transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    assert export_model(tmp_path / "own", tmp_path / "back").name == name
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
    begin = [BOS] if own.model.config.begin else []
    for text in TEXTS:
        read = [own.tokenizer.rows[index] for index in begin + own.tokenizer.encode(text)]
        assert read == theirs(text)["input_ids"] == again(text)["input_ids"]
    assert bool(begin) == (name in ("MistralForCausalLM", "OPTForCausalLM"))
    assert theirs.convert_ids_to_tokens(own.tokenizer.rows[EOS]) == settings["eos_token"]
    before, after = (json.loads((tmp_path / each / "config.json").read_text()) for each in ("theirs", "back"))
    assert before | {"toolkit": None} == after | {"toolkit": None}


def test_help_names_every_class() -> None:
    ends = "MTModel|ForConditionalGeneration|LMHeadModel|ForCausalLM"
    named = set(re.findall(r"\w+", ImportModel.__doc__ or ""))
    assert {re.sub(f"({ends})$", "", each.name) for each in ARCHITECTURES} <= named


def test_a_class_that_no_longer_computes_a_model_is_not_chosen(tmp_path: Path) -> None:
    """Such as one that a hand has changed, or that is named by nonsense."""
    make("MistralForCausalLM", tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "own")
    for came_as, expected in (
        ("Phi3ForCausalLM", "LlamaForCausalLM"),
        (["MistralForCausalLM"], "LlamaForCausalLM"),
        ("MistralForCausalLM", "MistralForCausalLM"),
    ):
        path = tmp_path / "own" / "metrics.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"imported_from": came_as}))
        assert export_model(tmp_path / "own", tmp_path / str(came_as)).name == expected
