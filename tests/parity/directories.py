"""Directories of transformers in unusual but legal settings: import computes and writes the same, or refuses by name.

    python tests/parity/directories.py                     # 200 directories, drawn at random from a seed
    python tests/parity/directories.py --count 1000 --seed 7

Needs the `bench` extra. Each directory is drawn from the settings of one of the five classes, saved by the library
itself, and then changed as other versions and authors write: other names of settings, tensors of older files, tables
that are not tied though config.json says so. What the library cannot read itself is drawn again.
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
from safetensors.torch import load_file, save_file
from transformers.utils import logging

from toolkit.decoding import ContinuationConfig, GenerationConfig, continue_prompts, generate
from toolkit.errors import ModelError
from toolkit.functional.arrays import Array
from toolkit.functional.positions import sinusoidal_positions
from toolkit.interop.hugging_face import HuggingFaceModel
from toolkit.interop.vocabulary import Vocabulary
from toolkit.models.seq2seq import Seq2Seq
from toolkit.nn.module import Model
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import EOS, SPECIAL_TOKENS

Settings = dict[str, Any]

FAMILIES = ("gpt2", "llama", "starcoder2", "marian", "pegasus")
_NEW = 8  # tokens that are written after each text
_TEXTS = 3
_NEAR = 1e-5  # of the largest logit
# Of these, an unusual value is drawn so often.
_SELDOM = 0.04

_ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu", "swish")
_OTHER_ACTIVATIONS = ("quick_gelu", "tanh", "relu2", "gelu_10", "mish")
_SEQ2SEQ_NAMES = {"hidden_size": "d_model", "num_attention_heads": "encoder_attention_heads"} | {
    "num_hidden_layers": "encoder_layers"
}
_NAMES = {
    "gpt2": {
        "hidden_size": "n_embd",
        "max_position_embeddings": "n_positions",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    },
    "marian": _SEQ2SEQ_NAMES,
    "pegasus": _SEQ2SEQ_NAMES,
}


class Outcome(NamedTuple):
    """What became of a directory."""

    family: str
    is_right: bool
    kind: str  # "equal", "refused" or "different"
    words: str


class Draw:
    """One directory, drawn at random."""

    def __init__(self, family: str, seed: int):
        self.rng = np.random.default_rng([seed, FAMILIES.index(family)])
        self.family, self.is_seq2seq = family, family in ("marian", "pegasus")
        self.size = int(self.rng.integers(24, 70))
        own = {"gpt2": self._gpt2, "llama": self._llama, "starcoder2": self._starcoder2}.get(family, self._seq2seq)
        self.config = {"vocab_size": self.size, **own(), **self._special()}
        self.generation = self._generation()

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def one_of(self, *values: Any) -> Any:
        return values[self.rng.integers(len(values))]

    def _activation(self) -> str:
        return self.one_of(*(_OTHER_ACTIVATIONS if self.chance(_SELDOM) else _ACTIVATIONS))

    def _gpt2(self) -> Settings:
        heads = self.one_of(1, 2, 3, 4)
        found = {
            "n_head": heads,
            "n_embd": heads * self.one_of(4, 5, 6),
            "n_layer": self.one_of(1, 2, 3),
            "n_positions": self.one_of(16, 24, 33),
            "n_inner": self.one_of(None, 20, 33),
            "activation_function": self._activation(),
            "layer_norm_epsilon": self.one_of(1e-5, 1e-3, 1e-7),
            "tie_word_embeddings": self.chance(0.7),
            "initializer_range": 0.3,
        }
        flags = ("scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "add_cross_attention")
        found |= {name: True for name in flags if self.chance(_SELDOM)}
        return found | ({"scale_attn_weights": False} if self.chance(_SELDOM) else {})

    def _rotary(self) -> Settings:
        heads = self.one_of(1, 2, 4, 6)
        shared = self.one_of(*(each for each in (1, 2, 3, 4, 6) if heads % each == 0))
        return {
            "num_attention_heads": heads,
            "num_key_value_heads": shared,
            "hidden_size": heads * self.one_of(4, 6, 8),
            "intermediate_size": self.one_of(11, 24, 40),
            "num_hidden_layers": self.one_of(1, 2, 3),
            "max_position_embeddings": self.one_of(16, 24, 33),
            "tie_word_embeddings": self.chance(0.5),
            "initializer_range": 0.3,
        } | self._rope()

    def _rope(self) -> Settings:
        theta = self.one_of(10000.0, 500.0, 1e6)
        kind = self.one_of("linear", "llama3", "yarn") if self.chance(2 * _SELDOM) else "default"
        section: Settings = {"rope_type": "dynamic" if self.chance(0.15) else kind, "rope_theta": theta}
        if section["rope_type"] != "default":
            section |= {"factor": self.one_of(2.0, 4.0)}
        if section["rope_type"] == "llama3":
            section |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8}
        return {"rope_parameters": section}

    def _llama(self) -> Settings:
        found = self._rotary() | {
            "attention_bias": self.chance(0.3),
            "mlp_bias": self.chance(0.3),
            "rms_norm_eps": self.one_of(1e-6, 1e-3, 1e-5),
        }
        found |= {"hidden_act": self._activation()} if self.chance(_SELDOM) else {}
        return found | ({"head_dim": self.one_of(4, 6, 8, 10)} if self.chance(2 * _SELDOM) else {})

    def _starcoder2(self) -> Settings:
        found = self._rotary() | {
            "use_bias": self.chance(0.6),
            "norm_epsilon": self.one_of(1e-5, 1e-3),
            "hidden_act": self._activation(),
        }
        return found | ({"sliding_window": self.one_of(5, 12, 100)} if self.chance(0.4) else {})

    def _seq2seq(self) -> Settings:
        heads, hidden = self.one_of(1, 2, 4), self.one_of(11, 24)
        found = {
            "d_model": heads * self.one_of(4, 5, 6),
            "encoder_attention_heads": heads,
            "decoder_attention_heads": heads,
            "encoder_ffn_dim": hidden,
            "decoder_ffn_dim": hidden,
            "encoder_layers": self.one_of(1, 2),
            "decoder_layers": self.one_of(1, 2, 3),
            "max_position_embeddings": self.one_of(24, 33),
            "activation_function": self._activation(),
            "scale_embedding": self.chance(0.5),
            "tie_word_embeddings": self.chance(0.7),
            "init_std": 0.3,
        }
        if self.chance(_SELDOM):
            found |= {"decoder_ffn_dim": hidden + 3}
        if self.chance(_SELDOM) and heads > 1:
            found |= {"decoder_attention_heads": heads // 2}
        if self.family == "marian":
            found |= {"share_encoder_decoder_embeddings": self.chance(0.7)}
            if self.chance(_SELDOM):
                found |= {"decoder_vocab_size": self.size + 2, "share_encoder_decoder_embeddings": False}
        return found

    def _special(self) -> Settings:
        """Any tokens may be special, none, and one of them several things."""
        pad, bos, eos = (int(each) for each in self.rng.permutation(self.size)[:3])
        if self.is_seq2seq:
            start = self.one_of(pad, pad, pad, eos, bos)
            forced = bos if self.chance(_SELDOM) else self.one_of(eos, eos, None)
            ids = {"pad_token_id": pad, "eos_token_id": eos, "bos_token_id": self.one_of(None, bos)}
            return ids | {"decoder_start_token_id": start, "forced_eos_token_id": forced}
        bos, pad = self.one_of(bos, eos, None), self.one_of(pad, eos, None)
        eos = None if self.chance(0.1) else eos
        return {"bos_token_id": bos, "eos_token_id": eos, "pad_token_id": pad}

    def _generation(self) -> Settings:
        token = int(self.rng.integers(self.size))
        found: Settings = {name: value for name, value in self.config.items() if name.endswith("_token_id")}
        for taste in (
            {"max_length": 60},
            {"num_beams": 3, "length_penalty": 0.5},
            {"do_sample": True, "temperature": 0.5},
            {"repetition_penalty": 1.5},
            {"no_repeat_ngram_size": 2},
            {"min_new_tokens": 3},
        ):
            found |= taste if self.chance(0.15) else {}
        for name, value in {
            "suppress_tokens": [token],
            "begin_suppress_tokens": [token],
            "bad_words_ids": [[token], [token, token]],
            "forced_bos_token_id": token,
            "sequence_bias": [[[token], 2.0]],
            "encoder_repetition_penalty": 1.3,
            "eos_token_id": [self.config["eos_token_id"], token],
        }.items():
            found |= {name: value} if self.chance(_SELDOM / 2) else {}
        if self.is_seq2seq and self.chance(0.3):
            found["bad_words_ids"] = [[self.config["pad_token_id"]]]
        return found

    def save(self, directory: Path) -> None:
        """Have the library write it, and change it as others write.  Raises what the library raises."""
        torch.manual_seed(int(self.rng.integers(1 << 30)))
        config = transformers.AutoConfig.for_model(self.family, **self.config)
        make = transformers.AutoModelForSeq2SeqLM if self.is_seq2seq else transformers.AutoModelForCausalLM
        model = make.from_config(config)
        with torch.no_grad():
            for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
                if tensor.is_floating_point() and "embed_positions" not in name and "inv_freq" not in name:
                    tensor += torch.randn_like(tensor) * (0.3 if tensor.dim() == 1 else 0.05)
            if self.is_seq2seq and self.chance(0.6):
                model.final_logits_bias.zero_()
        model.generation_config = transformers.GenerationConfig(**self.generation)
        model.to(self.one_of(torch.float32, torch.float32, torch.float16, torch.bfloat16))
        model.save_pretrained(directory, max_shard_size=self.one_of("5GB", "5GB", "8KB"))
        self._edit_config(directory / "config.json")
        if self.chance(0.1):
            (directory / "generation_config.json").unlink()
        if (directory / "model.safetensors").exists():
            self._edit_weights(directory / "model.safetensors")

    def _edit_config(self, path: Path) -> None:
        values = json.loads(path.read_text())
        for alias, name in _NAMES.get(self.family, {}).items():
            if self.chance(0.3) and name in values:
                values[alias] = values.pop(name)
        section = values.get("rope_parameters")
        if section and self.chance(0.5):  # as versions before 5 have it
            values["rope_theta"] = section.pop("rope_theta")
            del values["rope_parameters"]
            if section["rope_type"] != "default":
                values["rope_scaling"] = section
        elif section and self.chance(0.3):
            values["rope_scaling"] = values.pop("rope_parameters")
        if self.chance(_SELDOM):
            values |= {"n_ctx": 99} if self.family == "gpt2" else {"partial_rotary_factor": 0.5}
        path.write_text(json.dumps(values))

    def _edit_weights(self, path: Path) -> None:
        tensors = load_file(path)
        dtype = next(iter(tensors.values())).dtype
        if self.family == "gpt2" and self.chance(0.3):
            mask = torch.tril(torch.ones(1, 1, 16, 16, dtype=self.one_of(torch.bool, torch.uint8, torch.float32)))
            tensors |= {f"transformer.h.{layer}.attn.bias": mask.clone() for layer in range(self.config["n_layer"])}
        if self.family == "gpt2" and self.chance(0.3) and self.config["tie_word_embeddings"]:
            tensors = {name.removeprefix("transformer."): value for name, value in tensors.items()}
        if self.chance(0.2):
            name = self.one_of(
                "lm_head.weight", "model.decoder.embed_tokens.weight", "model.encoder.embed_tokens.weight"
            )
            name = name if self.is_seq2seq else "lm_head.weight"
            width = self.config.get("n_embd") or self.config.get("hidden_size") or self.config.get("d_model")
            if name not in tensors:
                tensors[name] = torch.randn(self.size, width).to(dtype) * 0.5
        save_file(tensors, path, {"format": "pt"})


def compared(draw: Draw, directory: Path) -> Outcome:
    """What import makes of a directory beside what the library does, which reads it first."""
    make = transformers.AutoModelForSeq2SeqLM if draw.is_seq2seq else transformers.AutoModelForCausalLM
    theirs = make.from_pretrained(directory, dtype=torch.float32).eval()
    try:
        found = HuggingFaceModel(directory)
        vocabulary = found.vocabulary()
        model = found.read(vocabulary, begin=False)
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


def exact_waves(table: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(sinusoidal_positions(*table.shape, "halves"))


def is_named(words: str, directory: Path) -> bool:
    """Whether a refusal says what it refuses: a setting, or a tensor."""
    names = set()
    for path in directory.glob("*.json"):
        values = json.loads(path.read_text())
        names |= {*values, *values.get("weight_map", ()), *(values.get("rope_parameters") or ())}
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
        logits = model.logits(x, tape)[:, vocabulary.ours(range(draw.size))]
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
    settings["forced_end"] = "none" if asked.forced_eos_token_id is None else "free"
    prompts = [vocabulary.ours(ids) for ids in _prompts(theirs, draw)]
    if draw.is_seq2seq:
        found = generate(model, prompts, GenerationConfig(**settings))
    else:
        found = continue_prompts(model, prompts, ContinuationConfig(do_sample=False, **settings))
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
                KeyError,
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
