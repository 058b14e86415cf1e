"""Directories of transformers in unusual but legal settings, drawn at random, as `directories.py` compares them.

Each is saved by the library itself and then changed as other versions and authors write: other names of settings,
tensors of older files, tables that are not tied though config.json says so.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

Settings = dict[str, Any]

_SEQ2SEQ = ("marian", "pegasus", "m2m_100")
FAMILIES = (
    *("gpt2", "llama", "starcoder2", "marian", "pegasus", "mistral", "qwen2", "qwen3", "phi3", "gpt_bigcode", "opt"),
    "m2m_100",
)

# Of these, an unusual value is drawn so often.
_SELDOM = 0.04

_ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu", "swish")
_OTHER_ACTIVATIONS = ("quick_gelu", "tanh", "relu2", "gelu_10", "mish")
_SEQ2SEQ_NAMES = {"hidden_size": "d_model", "num_attention_heads": "encoder_attention_heads"} | {
    "num_hidden_layers": "encoder_layers"
}
_GPT2_NAMES = {
    "hidden_size": "n_embd",
    "max_position_embeddings": "n_positions",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
}
_NAMES = {"gpt2": _GPT2_NAMES, "gpt_bigcode": _GPT2_NAMES, **dict.fromkeys(_SEQ2SEQ, _SEQ2SEQ_NAMES)}


class Draw:
    """One directory, drawn at random."""

    def __init__(self, family: str, seed: int):
        self.rng = np.random.default_rng([seed, FAMILIES.index(family)])
        self.family, self.is_seq2seq = family, family in _SEQ2SEQ
        self.size = int(self.rng.integers(24, 70))
        own = self._seq2seq if self.is_seq2seq else getattr(self, f"_{family}")
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

    def _gpt_bigcode(self) -> Settings:
        found = self._gpt2() | ({"multi_query": False} if self.chance(_SELDOM) else {})
        return {name: value for name, value in found.items() if name != "reorder_and_upcast_attn"}

    def _opt(self) -> Settings:
        heads = self.one_of(1, 2, 3, 4)
        found = {
            "num_attention_heads": heads,
            "hidden_size": heads * self.one_of(4, 5, 6),
            "ffn_dim": self.one_of(11, 24, 40),
            "num_hidden_layers": self.one_of(1, 2, 3),
            "max_position_embeddings": self.one_of(16, 24, 33),
            "activation_function": self._activation(),
            "enable_bias": self.chance(0.8),
            "tie_word_embeddings": self.chance(0.7),
            "init_std": 0.3,
        }
        for name in ("do_layer_norm_before", "layer_norm_elementwise_affine"):
            found |= {name: False} if self.chance(_SELDOM) else {}
        return found | ({"word_embed_proj_dim": found["hidden_size"] + 2} if self.chance(_SELDOM) else {})

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
        if self.family == "phi3":
            return {"rope_parameters": {"rope_type": "default", "rope_theta": self.one_of(10000.0, 500.0)}}
        theta = self.one_of(10000.0, 500.0, 20.0, 1e6)
        kind = self.one_of("linear", "llama3", "yarn") if self.chance(0.4) else "default"
        section: Settings = {"rope_type": "dynamic" if self.chance(0.15) else kind, "rope_theta": theta}
        kind = section["rope_type"]
        if kind != "default":
            section |= {"factor": self.one_of(1.0, 2.0, 4.0, 3.7)}
        if kind in ("llama3", "yarn") and self.chance(0.8):
            section |= {"original_max_position_embeddings": self.one_of(4, 8, 12)}
        if kind == "llama3":
            section |= {"low_freq_factor": self.one_of(1.0, 0.3), "high_freq_factor": self.one_of(4.0, 1.2)}
        return {"rope_parameters": section | (self._yarn() if kind == "yarn" else {})}

    def _yarn(self) -> Settings:
        found: Settings = {}
        for unusual in (
            {"beta_fast": self.one_of(2.0, 0.7), "beta_slow": self.one_of(0.1, 0.5)},
            {"attention_factor": self.one_of(0.7, 1.6)},
            {"mscale": 0.7, "mscale_all_dim": self.one_of(1.0, 0.5)},
            {"mscale": 1.0},
        ):
            found |= unusual if self.chance(0.3) else {}
        return found | ({"truncate": False} if self.chance(_SELDOM) else {})

    def _llama(self) -> Settings:
        found = self._rotary() | {
            "attention_bias": self.chance(0.3),
            "mlp_bias": self.chance(0.3),
            "rms_norm_eps": self.one_of(1e-6, 1e-3, 1e-5),
        }
        found |= {"hidden_act": self._activation()} if self.chance(_SELDOM) else {}
        return found | ({"head_dim": self.one_of(4, 6, 8, 10)} if self.chance(2 * _SELDOM) else {})

    def _mistral(self) -> Settings:
        window = {"sliding_window": self.one_of(None, None, 5, 12, 100)}
        return self._rotary() | window | ({"head_dim": self.one_of(4, 6, 8, 10)} if self.chance(0.3) else {})

    def _qwen2(self) -> Settings:
        found = self._rotary() | {"rms_norm_eps": self.one_of(1e-6, 1e-3)}
        if self.chance(0.4):
            found |= {"sliding_window": self.one_of(5, 12, 100), "max_window_layers": self.one_of(0, 1, 2, 28)}
        return found | {"use_sliding_window": self.chance(0.3)}

    def _qwen3(self) -> Settings:
        return self._qwen2() | {"head_dim": self.one_of(4, 6, 8), "attention_bias": self.chance(0.3)}

    def _phi3(self) -> Settings:
        return self._rotary() | {"sliding_window": self.one_of(None, None, 5, 100)}

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
            if self.family == "m2m_100" and not self.chance(_SELDOM):  # positions are counted from its padding, 1
                eos, bos = (int(each) for each in 2 + self.rng.permutation(self.size - 2)[:2])
                pad, start = 1, self.one_of(eos, eos, eos, bos)
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
        if self.family == "m2m_100" and self.chance(0.6):
            special = {each for name, each in self.config.items() if name.endswith("_token_id")}
            found["forced_bos_token_id"] = self.one_of(*(each for each in range(self.size) if each not in special))
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
                is_sine = self.is_seq2seq and "embed_positions" in name
                if tensor.is_floating_point() and not is_sine and "inv_freq" not in name:
                    tensor += torch.randn_like(tensor) * (0.3 if tensor.dim() == 1 else 0.05)
            if self.family in ("marian", "pegasus") and self.chance(0.6):
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
        if self.family == "m2m_100" and self.chance(0.3):  # older files have the waves
            model = transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(**self.config))
            names = ("model.encoder.embed_positions.weights", "model.decoder.embed_positions.weights")
            tensors |= {name: model.model.encoder.embed_positions.weights.clone() for name in names}
        prefix = {"gpt2": "transformer.", "gpt_bigcode": "transformer.", "opt": "model."}.get(self.family)
        if prefix and self.chance(0.3) and self.config["tie_word_embeddings"]:
            tensors = {name.removeprefix(prefix): value for name, value in tensors.items()}
        if self.chance(0.2):
            name = self.one_of(
                "lm_head.weight", "model.decoder.embed_tokens.weight", "model.encoder.embed_tokens.weight"
            )
            name = name if self.is_seq2seq else "lm_head.weight"
            width = self.config.get("n_embd") or self.config.get("hidden_size") or self.config.get("d_model")
            if name not in tensors:
                tensors[name] = torch.randn(self.size, width).to(dtype) * 0.5
        save_file(tensors, path, {"format": "pt"})
