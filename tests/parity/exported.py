"""Random models of ours, exported: transformers and CTranslate2 compute the same and find the same."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import ctranslate2
import numpy as np
import torch
from transformers import GenerationConfig as TheirConfig

from tests.checks import random_model, small_config, small_gpt_config
from tests.parity import reference
from toolkit.decoding import ContinuationConfig, GenerationConfig, generate
from toolkit.interop import write_hugging_face
from toolkit.interop.ctranslate2 import write_weights
from toolkit.models.gpt import GPTConfig
from toolkit.models.seq2seq import Seq2SeqConfig
from toolkit.nn.module import Model
from toolkit.tokenization.special import BOS, CONTROL_IDS, EOS, PAD, SPECIAL_TOKENS, UNK

_NEW = 12
_NEVER = sorted(CONTROL_IDS - {EOS} | {UNK})
_RULES = [(1, "settled", 1.0), (4, True, 1.0), (4, False, 0.0), (2, "never", 2.0)]

Line = tuple[bool, str]


def configs() -> Iterator[Seq2SeqConfig | GPTConfig]:
    """The options of our models, each value once or more."""
    activations = ("relu", "gelu", "gelu_tanh", "silu")
    for number, (norm, tie) in enumerate((norm, tie) for norm in ("pre", "post") for tie in ("all", "decoder", "none")):
        yield small_config(
            norm_position=norm,
            tie=tie,
            activation=activations[number % 4],
            positions=("sinusoidal", "sinusoidal_halves")[number % 2],
            bias=number % 3 != 1,
            output_bias=number % 3 == 0,
            scale_embedding=number % 4 != 2,
            max_length=40,
        )
    shapes = (
        {"positions": "learned", "bias": True, "activation": "gelu_tanh"},
        {"positions": "learned", "bias": False, "activation": "relu", "tie": False},
        {"norm": "rms", "activation": "swiglu", "num_key_value_heads": 2, "tie": False, "rotary_base": 500.0},
        {"norm": "rms", "activation": "swiglu", "bias": True, "norm_eps": 1e-3},
        {"activation": "gelu"},
        {"activation": "silu", "bias": True, "num_key_value_heads": 1, "tie": False},
        {"positions": "sinusoidal", "activation": "gelu"},
        {"positions": "learned", "bias": True, "num_key_value_heads": 1},
        {"norm": "rms", "activation": "swiglu", "bias": True, "bias_in": "attention_input", "num_key_value_heads": 2},
        {"norm": "rms", "activation": "swiglu", "qk_norm": True, "head_dim": 6, "num_key_value_heads": 1},
        {"norm": "rms", "activation": "swiglu", "head_dim": 8, "rotary_scaling": "linear", "rotary_factor": 2.5},
    )
    for shape in shapes:
        yield small_gpt_config(max_length=40, **shape)


def compare(scratch: Path) -> Iterator[Line]:
    """One line for each model and library."""
    for seed, config in enumerate(configs()):
        rng = np.random.default_rng(seed)
        model = random_model(config, rng, np.float32)
        model.output.table.data[EOS] *= 1.5
        texts = [rng.integers(len(SPECIAL_TOKENS), config.vocab_size, length).tolist() for length in (3, 9, 1, 6)]
        title = f"{type(config).__name__} {_told(config)}"
        for library, compared in (("transformers", with_transformers), ("CTranslate2", with_ctranslate2)):
            directory = scratch / f"{library}-{seed}"
            directory.mkdir()
            off, different, count = compared(model, texts, directory)
            line = f"{library}: {title}: logits or scores differ by {off:.0e}, {different} of {count} outputs"
            yield off < 1e-4 and not different, line


def _told(config: Seq2SeqConfig | GPTConfig) -> str:
    names = (
        "norm_position",
        "norm",
        "tie",
        "activation",
        "positions",
        "bias",
        "output_bias",
        "scale_embedding",
        "num_key_value_heads",
        "head_dim",
        "qk_norm",
        "rotary_scaling",
    )
    return " ".join(f"{name}={getattr(config, name)}" for name in names if hasattr(config, name))


def with_transformers(model: Model, texts: list[list[int]], directory: Path) -> tuple[float, int, int]:
    """How much log-probabilities differ, and how many outputs of how many."""
    write_hugging_face(model, directory)
    theirs = reference.read(directory, torch.float32)
    off, different, count = 0.0, 0, 0
    for beams, rule, power in _RULES:
        found = ours(model, texts, beams, rule, power)
        for text, hypotheses in zip(texts, found, strict=True):
            ids, log_probs = _theirs(theirs, text, beams, rule, power)
            different += ids != hypotheses[0].ids
            count += 1
            if ids == hypotheses[0].ids:
                off = max(off, float(np.abs(np.array(log_probs) - hypotheses[0].token_log_probs).max()))
    return off, different, count


def _theirs(model: torch.nn.Module, text: list[int], beams: int, rule: bool | str, power: float) -> tuple[list, list]:
    """What transformers writes, and teacher forcing's log-probability of each token of it."""
    settings = {} if beams == 1 else {"early_stopping": rule, "length_penalty": power}
    config = TheirConfig(max_new_tokens=_NEW, num_beams=beams, suppress_tokens=_NEVER, **settings)
    is_seq2seq = model.config.is_encoder_decoder
    given = [*text, EOS] if is_seq2seq else [BOS, *text]
    with torch.no_grad():
        ids = torch.tensor([given])
        output = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)[0].tolist()
        written = [each for each in output[1 if is_seq2seq else len(given) :] if each != PAD]
        written = written[: written.index(EOS) + 1] if EOS in written else written
        if is_seq2seq:
            logits = model(ids, decoder_input_ids=torch.tensor([[BOS, *written[:-1]]])).logits[0]
        else:
            logits = model(torch.tensor([[*given, *written[:-1]]])).logits[0, len(given) - 1 :]
    log_probs = logits.double().log_softmax(dim=-1)[range(len(written)), written].tolist()
    return [each for each in written if each != EOS], log_probs


def ours(model: Model, texts: list[list[int]], beams: int, rule: bool | str, power: float) -> list:
    settings = {"num_beams": beams, "early_stopping": rule, "length_penalty": power}
    settings |= {"max_new_tokens": _NEW, "forced_eos": "none"}
    if isinstance(model.config, Seq2SeqConfig):
        return generate(model, texts, GenerationConfig(**settings))
    return generate(model, texts, ContinuationConfig(do_sample=False, **settings))


def _without_control(model: Model) -> Model:
    """The same model with a bias that makes control tokens impossible.

    CTranslate2 gives the probability of what is suppressed to the other tokens; then there is none to give.
    """
    changed = type(model)(replace(model.config, output_bias=True))
    changed.allocate()
    changed.load_arrays({"output.bias": np.zeros(model.config.vocab_size)} | model.arrays(), "the model")
    changed.output.bias.data[_NEVER] = -1e3
    return changed


def with_ctranslate2(model: Model, texts: list[list[int]], directory: Path) -> tuple[float, int, int]:
    """The same for CTranslate2, whose rule without a length penalty is to stop where nothing better can come."""
    model = _without_control(model)
    tokens = [*SPECIAL_TOKENS, *(f"t{number}" for number in range(len(SPECIAL_TOKENS), model.config.vocab_size))]
    write_weights(model, tokens, directory)
    names = dict(zip(tokens, range(len(tokens)), strict=True))
    options = {"length_penalty": 0, "return_scores": True, "disable_unk": True}
    options["suppress_sequences"] = [[tokens[each]] for each in _NEVER]
    single = {"inter_threads": 1, "intra_threads": 1}
    off, different, count = 0.0, 0, 0
    for beams in (1, 2, 4):
        options["beam_size"] = beams
        if isinstance(model.config, Seq2SeqConfig):
            given = [[tokens[each] for each in text] for text in texts]
            options |= {"max_decoding_length": _NEW, "min_decoding_length": 0}
            results = ctranslate2.Translator(str(directory), **single).translate_batch(given, **options)
            written = [result.hypotheses[0] for result in results]
        else:
            given = [[tokens[each] for each in (BOS, *text)] for text in texts]
            options |= {"max_length": _NEW, "min_length": 0, "include_prompt_in_result": False}
            # One by one: with beams and prompts of unequal length, it never ends the output of a longer one at once.
            generator = ctranslate2.Generator(str(directory), **single)
            results = [generator.generate_batch([each], **options)[0] for each in given]
            written = [result.sequences[0] for result in results]
        found = ours(model, texts, beams, "settled", 0.0)
        for hypotheses, result, names_of in zip(found, results, written, strict=True):
            ids = [names[each] for each in names_of]
            different += ids != hypotheses[0].ids
            count += 1
            if ids == hypotheses[0].ids:
                off = max(off, abs(result.scores[0] - hypotheses[0].log_prob))
    return off, different, count
