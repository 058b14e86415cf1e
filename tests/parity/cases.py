"""Which models are compared with their reference implementations, on what, and by which searches.

Shared by `make.py`, which asks the reference, and by the tests, which know its answers from files. A model is described
by the config.json of Hugging Face's format.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent / "fixtures"

CONFIG, WEIGHTS, EXPECTED = "config.json", "model.safetensors", "expected.npz"

MAX_NEW_TOKENS = 14  # end mark included

_FIXED = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
_SEQ2SEQ = {
    **_FIXED,
    "is_encoder_decoder": True,
    "d_model": 16,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 32,
}
_MARIAN = {
    **_SEQ2SEQ,
    "architectures": ["MarianMTModel"],
    "model_type": "marian",
    "vocab_size": 61,
    "decoder_vocab_size": 61,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "eos_token_id": 0,
    "forced_eos_token_id": 0,
    "pad_token_id": 60,
    "decoder_start_token_id": 60,
}
_GPT2 = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "vocab_size": 62,
    "n_embd": 16,
    "n_head": 4,
    "n_layer": 2,
    "n_positions": 32,
    "bos_token_id": 61,
    "eos_token_id": 61,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
    "resid_pdrop": 0.0,
}


@dataclass(frozen=True)
class Case:
    """A model in the reference's format, with random weights."""

    config: dict[str, Any]
    seed: int  # of weights, inputs and labels
    end: float  # how much likelier the end mark is made, so that outputs end at different lengths
    dtype: str = "float32"  # of the stored weights
    begin: bool = False  # decoder-only: whether texts begin with bos_token_id
    forced_bos: int | None = None  # encoder-decoder: what every output begins with
    searches: Sequence["Search"] | None = None  # those that are compared; None: all

    @property
    def is_seq2seq(self) -> bool:
        return self.config.get("is_encoder_decoder", False)

    @property
    def compared(self) -> Sequence["Search"]:
        return SEARCHES if self.searches is None else self.searches

    @property
    def end_id(self) -> int:
        return self.config["eos_token_id"]

    @property
    def padding(self) -> int:
        """What shorter texts are filled up with; where the model has no padding symbol, users take the end mark."""
        padding = self.config.get("pad_token_id")
        return self.end_id if padding is None else padding

    @property
    def forced_eos(self) -> str:
        """Our name for what happens at the length limit."""
        return "none" if self.config.get("forced_eos_token_id") is None else "free"

    @property
    def never_written(self) -> list[int]:
        """Control symbols other than the end mark. Our searches never write them; the reference's has to be told."""
        names = ("pad_token_id", "decoder_start_token_id" if self.is_seq2seq else "bos_token_id")
        return sorted({self.config.get(name) for name in names} - {None, self.end_id})


@dataclass(frozen=True)
class Search:
    """Settings that both sides know by the same names."""

    settings: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.settings.items()) or "greedy"

    @property
    def looks_back(self) -> bool:
        """Whether scores depend on the ids that were read and written."""
        return bool(self.settings.keys() & {"repetition_penalty", "no_repeat_ngram_size"})

    @property
    def beams(self) -> int:
        return self.settings.get("num_beams", 1)


def _beams(count: int, **settings: Any) -> Search:
    """The whole n-best list of a beam search."""
    return Search({"num_beams": count, "num_return_sequences": count, **settings})


SEARCHES = [
    Search(),
    Search({"min_new_tokens": 9}),
    Search({"max_new_tokens": 5}),
    Search({"repetition_penalty": 1.6}),
    Search({"no_repeat_ngram_size": 2}),
    *(
        _beams(count, early_stopping=rule, length_penalty=power)
        for count in (2, 4)
        for rule in (True, False, "never")
        for power in (0.0, 1.0, 2.0)
    ),
    _beams(4, early_stopping=False, min_new_tokens=9),
    _beams(3, early_stopping=True, min_new_tokens=2, max_new_tokens=5),
    _beams(4, early_stopping=False, repetition_penalty=1.6),
    _beams(2, early_stopping="never", no_repeat_ngram_size=2),
    _beams(4, early_stopping="never", no_repeat_ngram_size=3, repetition_penalty=0.8, min_new_tokens=4),
]


CASES = {
    "marian": Case({**_MARIAN, "activation_function": "swish", "scale_embedding": True}, seed=49, end=5.0),
    "marian-decoder-tied": Case(
        {
            **_MARIAN,
            "activation_function": "relu",
            "scale_embedding": False,
            "share_encoder_decoder_embeddings": False,
            "encoder_layers": 2,
            "decoder_layers": 1,
        },
        seed=30,
        end=4.0,
        dtype="float16",
    ),
    "marian-untied": Case(
        {
            **_MARIAN,
            "activation_function": "gelu",
            "scale_embedding": True,
            "share_encoder_decoder_embeddings": False,
            "tie_word_embeddings": False,
        },
        seed=31,
        end=5.0,
        dtype="float16",
    ),
    "pegasus": Case(
        {
            **_SEQ2SEQ,
            "architectures": ["PegasusForConditionalGeneration"],
            "model_type": "pegasus",
            "vocab_size": 64,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "activation_function": "relu",
            "scale_embedding": True,
            "pad_token_id": 0,
            "eos_token_id": 1,
            "decoder_start_token_id": 0,
            "forced_eos_token_id": None,
        },
        seed=3,
        end=6.0,
    ),
    "m2m100": Case(
        {
            **_SEQ2SEQ,
            "architectures": ["M2M100ForConditionalGeneration"],
            "model_type": "m2m_100",
            "vocab_size": 64,
            "encoder_layers": 1,
            "decoder_layers": 2,
            "activation_function": "relu",
            "scale_embedding": True,
            "bos_token_id": 0,
            "pad_token_id": 1,
            "eos_token_id": 2,
            "decoder_start_token_id": 2,
            "forced_eos_token_id": None,
        },
        seed=3,
        end=3.0,
        dtype="float16",
        forced_bos=60,
    ),
    "gpt2": Case({**_GPT2, "activation_function": "gelu_new"}, seed=19, end=2.5),
    "gpt2-untied": Case(
        {**_GPT2, "activation_function": "gelu", "tie_word_embeddings": False, "layer_norm_epsilon": 1e-3},
        seed=7,
        end=3.0,
        dtype="float16",
    ),
    "llama": Case(
        {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": 67,
            "hidden_size": 24,
            "intermediate_size": 28,
            "num_hidden_layers": 2,
            "num_attention_heads": 6,
            "num_key_value_heads": 2,
            "hidden_act": "silu",
            "attention_bias": True,
            "mlp_bias": True,
            "rms_norm_eps": 1e-3,
            "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
            "max_position_embeddings": 32,
            "tie_word_embeddings": False,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 0,
        },
        seed=18,
        end=2.0,
        dtype="bfloat16",
        begin=True,
    ),
    "starcoder2": Case(
        {
            "attention_dropout": 0.0,
            "residual_dropout": 0.0,
            "embedding_dropout": 0.0,
            "architectures": ["Starcoder2ForCausalLM"],
            "model_type": "starcoder2",
            "vocab_size": 63,
            "hidden_size": 16,
            "intermediate_size": 24,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 4,
            "hidden_act": "gelu",
            "norm_epsilon": 1e-4,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0},
            "max_position_embeddings": 32,
            "bos_token_id": 0,
            "eos_token_id": 0,
        },
        seed=5,
        end=1.5,
    ),
}

# Families that differ from one above in little: with a few searches, for those differ in nothing.
_SOME = (SEARCHES[0], SEARCHES[-1])
_FAMILY = {
    "vocab_size": 41,
    "hidden_size": 12,
    "intermediate_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "max_position_embeddings": 32,
    "rms_norm_eps": 1e-3,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
_SCALED = {**_FAMILY, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "tie_word_embeddings": True}
FAMILIES = {
    "mistral": Case(
        {
            **_FAMILY,
            "architectures": ["MistralForCausalLM"],
            "model_type": "mistral",
            "rope_parameters": {"rope_type": "default", "rope_theta": 300.0},
            "sliding_window": None,
        },
        seed=1,
        end=1.5,
        dtype="bfloat16",
        begin=True,
        searches=_SOME,
    ),
    "qwen2": Case(
        {
            **_FAMILY,
            "architectures": ["Qwen2ForCausalLM"],
            "model_type": "qwen2",
            "num_attention_heads": 6,
            "num_key_value_heads": 2,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0},
            "tie_word_embeddings": True,
        },
        seed=2,
        end=1.5,
        dtype="bfloat16",
        searches=_SOME,
    ),
    "phi3": Case(
        {
            **_FAMILY,
            "architectures": ["Phi3ForCausalLM"],
            "model_type": "phi3",
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "rope_parameters": {"rope_type": "default", "rope_theta": 300.0, "partial_rotary_factor": 1.0},
            "original_max_position_embeddings": 32,
        },
        seed=1,
        end=2.0,
        dtype="bfloat16",
        searches=_SOME,
    ),
    "gpt_bigcode": Case(
        {
            **_GPT2,
            "architectures": ["GPTBigCodeForCausalLM"],
            "model_type": "gpt_bigcode",
            "vocab_size": 41,
            "n_embd": 12,
            "n_head": 3,
            "n_inner": 16,
            "activation_function": "gelu_pytorch_tanh",
            "bos_token_id": 0,
            "eos_token_id": 0,
        },
        seed=3,
        end=2.0,
        dtype="float16",
        searches=_SOME,
    ),
    "opt": Case(
        {
            "architectures": ["OPTForCausalLM"],
            "model_type": "opt",
            "vocab_size": 41,
            "hidden_size": 12,
            "word_embed_proj_dim": 12,
            "ffn_dim": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 3,
            "max_position_embeddings": 32,
            "dropout": 0.0,
            "bos_token_id": 2,
            "eos_token_id": 2,
            "pad_token_id": 1,
        },
        seed=5,
        end=2.0,
        dtype="float16",
        begin=True,
        # A penalty there sees that texts begin with the end mark.
        searches=(SEARCHES[0], _beams(4, early_stopping=False)),
    ),
    "qwen3": Case(
        {
            **_FAMILY,
            "architectures": ["Qwen3ForCausalLM"],
            "model_type": "qwen3",
            "num_attention_heads": 2,
            "head_dim": 4,
            "rope_parameters": {"rope_type": "default", "rope_theta": 300.0},
            "tie_word_embeddings": True,
        },
        seed=1,
        end=2.0,
        dtype="bfloat16",
        searches=_SOME,
    ),
    "llama-linear": Case(
        {**_SCALED, "rope_parameters": {"rope_type": "linear", "rope_theta": 100.0, "factor": 2.5}},
        seed=1,
        end=2.0,
        dtype="bfloat16",
        begin=True,
        searches=_SOME,
    ),
    "llama-llama3": Case(
        {
            **_SCALED,
            "head_dim": 8,
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 20.0,
                "factor": 4.0,
                "low_freq_factor": 0.5,
                "high_freq_factor": 1.5,
                "original_max_position_embeddings": 12,
            },
        },
        seed=1,
        end=2.0,
        dtype="bfloat16",
        begin=True,
        searches=_SOME,
    ),
    "llama-yarn": Case(
        {
            **_SCALED,
            "head_dim": 8,
            "rope_parameters": {
                "rope_type": "yarn",
                "rope_theta": 20.0,
                "factor": 4.0,
                "beta_fast": 1.5,
                "beta_slow": 0.5,
                "original_max_position_embeddings": 12,
            },
        },
        seed=1,
        end=2.0,
        dtype="bfloat16",
        begin=True,
        searches=_SOME,
    ),
}
CASES |= FAMILIES


def searched(case: Case, inputs: Mapping[str, Any]) -> tuple[Any, Any]:
    """What searches are given, and which places of it are real."""
    return (inputs["sources"], inputs["source_mask"]) if case.is_seq2seq else (inputs["prompts"], inputs["prompt_mask"])
