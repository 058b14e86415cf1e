"""What CTranslate2's own converter makes of each family of transformers: import computes the same, or refuses by name.

    python tests/parity/converted.py                  # every family that the converter knows
    python tests/parity/converted.py Llama OPT        # some of them

Needs the `bench` extra. Models are tiny and random; logits are compared with those of transformers, and greedy outputs.
"""

import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"

import numpy as np
import torch
import transformers
from ctranslate2.converters import TransformersConverter

from toolkit.decoding import ContinuationConfig, GenerationConfig, generate, score
from toolkit.errors import ModelError
from toolkit.functional.arrays import Array
from toolkit.interop.ctranslate2 import StoredModel, read
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape

SIZE = 48
TEXTS = [np.random.default_rng(length).integers(4, SIZE - 1, length).tolist() for length in (3, 7, 5, 9)]
_NEW, _NEAR = 12, 1e-5  # tokens that are written; a share of the largest number

_MARKS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_TRANSLATOR = {
    **_MARKS,
    "vocab_size": SIZE,
    "d_model": 16,
    **dict.fromkeys(("encoder_layers", "decoder_layers"), 1),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 2),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 24),
    "max_position_embeddings": 64,
    "decoder_start_token_id": 2,
}
_GPT2 = {**_MARKS, "vocab_size": SIZE, "n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 64}
_HEADS = {**_MARKS, "vocab_size": SIZE, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4}
_LLAMA = {**_HEADS, "intermediate_size": 24, "max_position_embeddings": 64}
_GROUPED = {**_LLAMA, "num_key_value_heads": 2}
_OPT = {**_HEADS, "word_embed_proj_dim": 16, "ffn_dim": 24, "max_position_embeddings": 64}
_T5 = {**_MARKS, "vocab_size": SIZE, "d_model": 16, "d_kv": 8, "num_heads": 2, "num_layers": 1, "d_ff": 24}
_ENDED = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": SIZE - 1, "decoder_start_token_id": SIZE - 1}
_STRETCHED = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "original_max_position_embeddings": 32}
_STRETCHED |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}

# By family: the name of its config class, without Config behind it, and settings.
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "Marian": ("Marian", {**_TRANSLATOR, **_ENDED, "activation_function": "swish", "scale_embedding": True}),
    "Pegasus": ("Pegasus", {**_TRANSLATOR, "bos_token_id": 0, "decoder_start_token_id": 0}),
    "M2M100": ("M2M100", {**_TRANSLATOR, "bos_token_id": 0, "pad_token_id": 1}),
    "BART": ("Bart", _TRANSLATOR),
    "mBART": ("MBart", _TRANSLATOR),
    "T5": ("T5", {**_T5, "decoder_start_token_id": 0}),
    "GPT-2": ("GPT2", _GPT2),
    "GPT-BigCode": ("GPTBigCode", _GPT2),
    "GPT-J": ("GPTJ", {**_GPT2, "rotary_dim": 2}),
    "CodeGen": ("CodeGen", {**_GPT2, "rotary_dim": 2}),
    "GPT-NeoX": ("GPTNeoX", _LLAMA),
    "OPT": ("OPT", _OPT),
    "Bloom": ("Bloom", _HEADS),
    "Falcon": ("Falcon", _HEADS),
    "MPT": ("Mpt", {"vocab_size": SIZE, "d_model": 16, "n_layers": 1, "n_heads": 4, "max_seq_len": 64}),
    "Llama": ("Llama", _GROUPED),
    "Llama linear": (
        "Llama",
        {**_GROUPED, "rope_parameters": {"rope_type": "linear", "rope_theta": 500.0, "factor": 2.0}},
    ),
    "Llama 3": ("Llama", {**_GROUPED, "rope_parameters": _STRETCHED}),
    "Mistral": ("Mistral", {**_GROUPED, "sliding_window": 32}),
    "Qwen2": ("Qwen2", _GROUPED),
    "Qwen3": ("Qwen3", {**_GROUPED, "head_dim": 4}),
    "Gemma": ("Gemma", {**_GROUPED, "head_dim": 4}),
    "Gemma 2": ("Gemma2", {**_GROUPED, "head_dim": 4}),
    "Phi": ("Phi", _LLAMA),
    "Phi3": ("Phi3", {**_LLAMA, "original_max_position_embeddings": 64}),
    "Starcoder2": ("Starcoder2", _GROUPED),
}
# What published files of these classes say, and the converter asks for.
_NORMS = {"normalize_before": True, "normalize_embedding": True, "add_final_layer_norm": True}
PUBLISHED = {
    "BART": {**_NORMS, "normalize_before": False},
    "mBART": {**_NORMS, "tokenizer_class": "MBart50Tokenizer"},
    "Pegasus": {**_NORMS, "normalize_embedding": False},
}


class Outcome(NamedTuple):
    """What became of a family."""

    family: str
    kind: str  # "equal", "refused", "not converted" or "different"
    words: str


class Converter(TransformersConverter):
    """The converter, with a tokenizer that does nothing but name tokens."""

    def __init__(self, directory: Path, names: Sequence[str]):
        super().__init__(str(directory))
        self.names = names

    def load_tokenizer(self, *_: Any, **__: Any) -> SimpleNamespace:
        marks = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
        return SimpleNamespace(
            get_vocab=lambda: {name: index for index, name in enumerate(self.names)},
            convert_ids_to_tokens=lambda index: self.names[index],
            special_tokens_map=marks,
            **marks,
        )


def outcomes(families: Sequence[str] = ()) -> Iterator[Outcome]:
    """Convert one model of each family, or of those that are named, and read what comes of it."""
    for family in families or FAMILIES:
        with tempfile.TemporaryDirectory() as scratch:
            yield Outcome(family, *_outcome(family, Path(scratch)))


def _outcome(family: str, scratch: Path) -> tuple[str, str]:
    theirs = _written(family, scratch / "theirs")
    try:
        Converter(scratch / "theirs", _names(theirs.config)).convert(str(scratch / "converted"))
    except (ValueError, KeyError, AttributeError) as error:
        return "not converted", f"{type(error).__name__}: {error}"[:90]
    try:
        reading = read(scratch / "converted").by_ids()
    except ModelError as error:
        return "refused", str(error).rpartition("converted/")[2]
    compare = _translations if theirs.config.is_encoder_decoder else _continuations
    distance, same = compare(theirs, reading)
    words = f"{same} of {len(TEXTS)} outputs are the same, logits differ by {distance:.0e}"
    return ("equal" if same == len(TEXTS) and distance < _NEAR else "different"), words


def _written(family: str, directory: Path) -> Any:
    """Write a random model whose tokens differ enough for one to be clearly the best -> the model as it is read."""
    name, settings = FAMILIES[family]
    config = getattr(transformers, f"{name}Config")(**settings)
    for setting, value in PUBLISHED.get(family, {}).items():
        setattr(config, setting, value)
    auto = transformers.AutoModelForSeq2SeqLM if config.is_encoder_decoder else transformers.AutoModelForCausalLM
    torch.manual_seed(3)
    model = auto.from_config(config)
    with torch.no_grad():
        for each, parameter in model.named_parameters():
            if "embed_positions" not in each or family == "OPT":
                parameter.add_((0.5 if parameter.ndim == 2 else 0.2) * torch.randn_like(parameter))
        if family == "Marian":  # whose outputs begin with zeros; the converter leaves the padding symbol out
            model.model.shared.weight[config.pad_token_id] = 0
            model.final_logits_bias[0, config.pad_token_id] = -1e4
    model.save_pretrained(directory)
    return auto.from_pretrained(directory).eval()


def _names(config: Any) -> list[str]:
    """Name all tokens, the special ones by what their settings say."""
    names = [f"w{index}" for index in range(SIZE)]
    names[1 if config.eos_token_id == 0 else 3] = "<unk>"
    for mark, name in (("bos_token_id", "<s>"), ("pad_token_id", "<pad>"), ("eos_token_id", "</s>")):
        if getattr(config, mark, None) is not None:
            names[getattr(config, mark)] = name
    return names


def _continuations(theirs: Any, reading: StoredModel) -> tuple[float, int]:
    model, ours = reading.model(), reading.vocabulary.ours
    config = ContinuationConfig(max_new_tokens=_NEW, do_sample=False)
    found = generate(model, [ours(text) for text in TEXTS], config)
    distance, same = 0.0, 0
    for text, (best, *_) in zip(TEXTS, found, strict=True):
        ids, asked = np.array(ours(text)), torch.tensor([text])
        scores = model.output.logits(model.read(ids, Rows(np.array([len(ids)])), Tape()), Tape())
        with torch.no_grad():
            distance = max(distance, _apart(scores[:, ours(range(SIZE))], theirs(asked).logits[0].numpy()))
            written = theirs.generate(asked, max_new_tokens=_NEW, do_sample=False)[0].tolist()[len(text) :]
        same += _until_end(written, theirs) == _until_end(reading.vocabulary.foreign(best.ids), theirs)
    return distance, same


def _translations(theirs: Any, reading: StoredModel) -> tuple[float, int]:
    model, ours, config = reading.model(), reading.vocabulary.ours, theirs.config
    never = [index for index, name in enumerate(_names(config)) if name[0] == "<" and index != config.eos_token_id]
    sources = [ours(text) for text in TEXTS]
    targets = [text[:4] for text in reversed(TEXTS)]
    scored = score(model, sources, [ours(target) for target in targets])
    found = generate(model, sources, GenerationConfig(max_new_tokens=_NEW, num_beams=1, forced_eos="none"))
    distance, same = 0.0, 0
    for text, target, given, (best, *_) in zip(TEXTS, targets, scored, found, strict=True):
        source = torch.tensor([[*text, config.eos_token_id]])
        read_before = torch.tensor([[config.decoder_start_token_id, *target]])
        search = partial(theirs.generate, forced_eos_token_id=None, forced_bos_token_id=None, suppress_tokens=never)
        with torch.no_grad():
            log_probs = theirs(input_ids=source, decoder_input_ids=read_before).logits[0].log_softmax(-1).numpy()
            written = search(source, max_new_tokens=_NEW, num_beams=1, do_sample=False)[0].tolist()[1:]
        expected = log_probs[np.arange(len(target) + 1), [*target, config.eos_token_id]]
        distance = max(distance, _apart(np.array(given.token_log_probs), expected))
        same += _until_end(written, theirs) == _until_end(reading.vocabulary.foreign(best.ids), theirs)
    return distance, same


def _until_end(ids: list[int], theirs: Any) -> list[int]:
    end = theirs.config.eos_token_id
    return ids[: ids.index(end)] if end in ids else ids


def _apart(ours: Array, theirs: Array) -> float:
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    logging.disable(logging.WARNING)
    different = 0
    for outcome in outcomes(sys.argv[1:]):
        print(f"{outcome.family:12} {outcome.kind:14} {outcome.words}", flush=True)
        different += outcome.kind == "different"
    sys.exit(different > 0)
