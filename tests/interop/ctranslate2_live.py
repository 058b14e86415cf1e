"""Against CTranslate2 itself, by hand, where it is installed with transformers and torch (extra `bench`).

    python tests/interop/ctranslate2_live.py                  # random models of ours: the same tokens and scores there?
    python tests/interop/ctranslate2_live.py --fixtures       # write tests/interop/fixtures/ctranslate2 anew

The fixtures are models with random weights that CTranslate2's own converters made from transformers, in several types
of numbers, with what CTranslate2 then says: the ordinary tests read them without it.
"""

import argparse
import copy
import itertools
import json
import shutil
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import ctranslate2
import numpy as np

from toolkit.decoding import ContinuationConfig, GenerationConfig, generate, score
from toolkit.interop.ctranslate2 import write_weights
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqConfig
from toolkit.tokenization.special import EOS, SPECIAL_TOKENS

FIXTURES = Path(__file__).parent / "fixtures" / "ctranslate2"
SIZE = 48
TOKENS = [*SPECIAL_TOKENS, *(f"t{index}" for index in range(len(SPECIAL_TOKENS), SIZE))]
ONE_THREAD = {"inter_threads": 1, "intra_threads": 1, "compute_type": "float32"}
# As our searches do it: control tokens are not written, and nothing is longer for being short.
SEARCH = {
    "suppress_sequences": [[token] for index, token in enumerate(SPECIAL_TOKENS) if index != EOS],
    "disable_unk": True,
    "return_scores": True,
    "length_penalty": 0,
}

Model = Seq2Seq | GPT

SHARED: dict[str, list] = {"output_bias": [False, True], "bias": [True, False]}
SEQ2SEQ = SHARED | {
    "norm_position": ["pre", "post"],
    "activation": ["relu", "gelu", "gelu_tanh", "silu"],
    "positions": ["sinusoidal", "sinusoidal_halves", "learned"],
    "tie": ["none", "decoder", "all"],
    "scale_embedding": [True, False],
}
LANGUAGE_MODEL = SHARED | {
    "norm": ["layer", "rms"],
    "activation": ["relu", "gelu", "gelu_tanh", "silu", "swiglu"],
    "positions": ["sinusoidal", "sinusoidal_halves", "learned", "rotary"],
    "tie": [False, True],
    "num_key_value_heads": [0, 1, 2],
    "norm_eps": [1e-5, 1e-2],
    "rotary_base": [10000.0, 500.0],
    "rotary_scaling": ["none", "linear"],
    "rotary_factor": [2.5],
    "head_dim": [0, 6],
    "qk_norm": [False, True],
    "bias_in": ["all", "attention_input"],
    "begin": [True, False],
}


def random_models(kind: type, config_class: type, options: dict[str, list], count: int) -> Iterator[Model]:
    """Models of random combinations of the options. Their control tokens are improbable, as in trained models."""
    rng = np.random.default_rng(0)
    combinations = list(itertools.product(*options.values()))
    for chosen in rng.permutation(len(combinations))[:count]:
        settings = dict(zip(options, combinations[chosen], strict=True))
        model = kind(config_class(SIZE, d_model=16, num_heads=4, d_ff=32, max_length=40, **settings))
        model.allocate()
        for parameter in model.parameters().values():
            parameter.data[...] = parameter.initial(rng, parameter.shape)
            parameter.data += 0.2 * rng.standard_normal(parameter.shape)
        if model.output.bias:
            model.output.bias.data[: len(SPECIAL_TOKENS)] -= 30
            model.output.bias.data[EOS] += 33
        yield model


def compare(count: int) -> None:
    """Write random models and compare tokens of searches, their scores, and scores of given outputs."""
    rng = np.random.default_rng(0)
    texts = [rng.integers(16, SIZE, length).tolist() for length in (3, 7, 2, 12, 5, 9)]
    for kind, config_class, options, check in (
        (Seq2Seq, Seq2SeqConfig, SEQ2SEQ, compare_translator),
        (GPT, GPTConfig, LANGUAGE_MODEL, compare_generator),
    ):
        outputs = different = 0
        worst = 0.0
        for model in random_models(kind, config_class, options, count):
            with tempfile.TemporaryDirectory() as directory:
                write_weights(model, TOKENS, Path(directory))
                for ours, theirs, difference in check(model, directory, texts):
                    outputs, different = outputs + 1, different + (ours != theirs)
                    worst = max(worst, difference if ours == theirs else 0.0)
        print(
            f"{kind.__name__}: {count} models, {different} of {outputs} outputs differ, scores by {worst:.1e} at most"
        )


def compare_translator(model: Seq2Seq, directory: str, texts: list[list[int]]) -> Iterator[tuple[Any, Any, float]]:
    translator = ctranslate2.Translator(directory, **ONE_THREAD)
    sources, targets = named(texts), [text[:4] for text in reversed(texts)]
    given = translator.score_batch(sources, named(targets))
    for ours, theirs in zip(score(model, texts, targets), given, strict=True):
        yield None, None, float(np.abs(np.subtract(ours.token_log_probs, theirs.log_probs)).max())
    for beams in (1, 2, 4) if model.output.bias else (1,):
        config = GenerationConfig(num_beams=beams, max_new_tokens=20, length_penalty=0.0, forced_eos="none")
        theirs = translator.translate_batch(
            sources, beam_size=beams, max_decoding_length=20, min_decoding_length=0, **SEARCH
        )
        for (best, *_), found in zip(generate(model, texts, config), theirs, strict=True):
            difference = abs(best.score - found.scores[0]) if model.output.bias else 0.0
            yield [TOKENS[index] for index in best.ids], found.hypotheses[0], difference


def compare_generator(model: GPT, directory: str, texts: list[list[int]]) -> Iterator[tuple[Any, Any, float]]:
    generator = ctranslate2.Generator(directory, **ONE_THREAD)
    prompts = [["<s>", *text] if model.config.begin else text for text in named(texts)]
    for beams in (1, 2, 4) if model.output.bias else (1,):
        config = ContinuationConfig(
            num_beams=beams, do_sample=False, max_new_tokens=20, length_penalty=0.0, forced_eos="none"
        )
        theirs = generator.generate_batch(
            prompts, beam_size=beams, max_length=20, min_length=0, include_prompt_in_result=False, **SEARCH
        )
        for (best, *_), found in zip(generate(model, texts, config), theirs, strict=True):
            if best.ids:  # it does not return that nothing more comes
                difference = abs(best.score - found.scores[0]) if model.output.bias else 0.0
                yield [TOKENS[index] for index in best.ids], found.sequences[0], difference


def named(texts: list[list[int]]) -> list[list[str]]:
    return [[TOKENS[index] for index in text] for text in texts]


class Foreign(NamedTuple):
    """A model of transformers with what a converter asks of its tokenizer."""

    kind: type
    config: Any
    named: dict[int, str]  # tokens that have a meaning, by their ids
    special: dict[str, str]
    types: tuple[str, ...]  # of numbers that it is converted to


def foreign_models() -> dict[str, Foreign]:
    import transformers as hf

    small = {"vocab_size": 40, "d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "max_position_embeddings": 32}
    small |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 12, "decoder_ffn_dim": 12}
    marian = hf.MarianConfig(
        **small, activation_function="swish", scale_embedding=True, pad_token_id=39, eos_token_id=0, bos_token_id=0
    )
    pegasus = hf.PegasusConfig(**small, activation_function="relu", scale_embedding=False)
    pegasus.normalize_before, pegasus.normalize_embedding = True, False  # what the converter asks for
    gpt2 = hf.GPT2Config(vocab_size=40, n_embd=8, n_layer=1, n_head=2, n_positions=32, bos_token_id=5, eos_token_id=5)
    llama = hf.LlamaConfig(
        vocab_size=40,
        hidden_size=8,
        intermediate_size=12,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    plain = {"vocab_size": 40, "hidden_size": 8, "num_hidden_layers": 1, "intermediate_size": 12}
    plain |= {"num_attention_heads": 4, "num_key_value_heads": 2}
    mistral, qwen2 = hf.MistralConfig(**plain, sliding_window=24), hf.Qwen2Config(**plain)
    qwen3 = hf.Qwen3Config(**plain, head_dim=2)
    wide = {"hidden_size": 8, "word_embed_proj_dim": 8, "ffn_dim": 12, "num_hidden_layers": 1, "num_attention_heads": 2}
    opt = hf.OPTConfig(vocab_size=40, **wide, max_position_embeddings=32)
    bigcode = hf.GPTBigCodeConfig(vocab_size=40, n_embd=8, n_layer=1, n_head=2, n_positions=32)
    m2m100 = hf.M2M100Config(**small, activation_function="relu", scale_embedding=True)
    one = dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|endoftext|>")
    marks = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    ended = dict.fromkeys(one, "</s>") | {"pad_token": "<pad>"}
    end, unk, pad = "</s>", "<unk>", "<pad>"
    return {
        "marian": Foreign(hf.MarianMTModel, marian, {0: end, 1: unk, 39: pad}, marks, ("int8", "int16")),
        "pegasus": Foreign(
            hf.PegasusForConditionalGeneration, pegasus, {0: pad, 1: end, 2: unk}, marks, ("float32", "float16")
        ),
        "gpt2": Foreign(hf.GPT2LMHeadModel, gpt2, {5: "<|endoftext|>"}, one, ("float32",)),
        "llama": Foreign(hf.LlamaForCausalLM, llama, {0: unk, 1: "<s>", 2: end}, marks, ("float32", "bfloat16")),
        "mistral": Foreign(hf.MistralForCausalLM, mistral, {0: unk, 1: "<s>", 2: end}, marks, ("float16",)),
        "qwen2": Foreign(hf.Qwen2ForCausalLM, qwen2, {5: "<|endoftext|>"}, one, ("float32",)),
        "qwen3": Foreign(hf.Qwen3ForCausalLM, qwen3, {5: "<|endoftext|>"}, one, ("bfloat16",)),
        "opt": Foreign(hf.OPTForCausalLM, opt, {1: pad, 2: end}, ended, ("float32",)),
        "gpt_bigcode": Foreign(hf.GPTBigCodeForCausalLM, bigcode, {5: "<|endoftext|>"}, one, ("float32",)),
        "m2m100": Foreign(
            hf.M2M100ForConditionalGeneration, m2m100, {0: "<s>", 1: pad, 2: end, 3: unk}, marks, ("float32",)
        ),
    }


def write_fixtures() -> None:
    """Convert models of transformers and keep what CTranslate2 makes of some texts."""
    import torch

    torch.set_num_threads(1)
    shutil.rmtree(FIXTURES, ignore_errors=True)
    for name, (make, config, named, special, types) in foreign_models().items():
        torch.manual_seed(6)  # so that a model does not depend on those before it
        model = make(config).eval()
        shake(model, name)
        tokens = [named.get(index, f"w{index}") for index in range(40)]
        for kind in types:
            directory = FIXTURES / f"{name}-{kind}"
            convert(model, tokens, special, kind, directory)
            expected = expect_translator if model.config.is_encoder_decoder else expect_generator
            found = {"ctranslate2": version("ctranslate2"), "transformers": version("transformers")}
            text = json.dumps(found | expected(str(directory), tokens, special), ensure_ascii=False)
            (directory / "expected.json").write_text(text + "\n", encoding="utf-8")


def shake(model: Any, name: str) -> None:
    """Weights that differ enough for one token to be clearly the best, and biases and gains that matter."""
    import torch

    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if "embed_positions" not in parameter_name:
                parameter.add_((0.6 if parameter.ndim == 2 else 0.2) * torch.randn_like(parameter))
        if name == "marian":
            model.final_logits_bias.copy_(0.5 * torch.randn_like(model.final_logits_bias))
            model.model.shared.weight[39] = 0  # the padding that outputs begin with


def convert(model: Any, tokens: list[str], special: dict[str, str], kind: str, directory: Path) -> None:
    """As the converter of CTranslate2 does it, with a tokenizer that only names tokens."""
    import torch
    from ctranslate2.converters.transformers import _MODEL_LOADERS

    tokenizer = SimpleNamespace(
        get_vocab=lambda: {token: index for index, token in enumerate(tokens)},
        convert_ids_to_tokens=lambda index: tokens[index],
        special_tokens_map=special,
        **({"pad_token": None} | special),
    )
    directory.mkdir(parents=True)
    with torch.no_grad():
        model = copy.deepcopy(model)  # the converter takes it apart
        specification = _MODEL_LOADERS[type(model.config).__name__](model, tokenizer)
        specification.validate()
        specification.optimize(kind)
    specification.save(str(directory))


def expect_translator(directory: str, tokens: list[str], special: dict[str, str]) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    texts = [[tokens[index] for index in rng.integers(6, 38, length)] for length in (3, 7, 1, 5)]
    sources, targets = [[*text, special["eos_token"]] for text in texts], [text[:4] for text in reversed(texts)]
    translator = ctranslate2.Translator(directory, **ONE_THREAD)
    scores = [np.round(found.log_probs, 5).tolist() for found in translator.score_batch(sources, targets)]
    search = {"max_decoding_length": 12, "min_decoding_length": 0, "length_penalty": 0, "disable_unk": True}
    search["suppress_sequences"] = [["<pad>"]] if "<pad>" in tokens[:39] else None
    outputs = {
        beams: [found.hypotheses[0] for found in translator.translate_batch(sources, beam_size=beams, **search)]
        for beams in (1, 3)
    }
    return {"sources": texts, "targets": targets, "log_probs": scores, "outputs": outputs}


def expect_generator(directory: str, tokens: list[str], special: dict[str, str]) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    texts = [[tokens[index] for index in rng.integers(6, 38, length)] for length in (3, 7, 2, 5)]
    prompts = [[special["bos_token"], *text] for text in texts]
    generator = ctranslate2.Generator(directory, **ONE_THREAD)
    scores = [np.round(found.log_probs, 5).tolist() for found in generator.score_batch(prompts)]
    marks = {special["bos_token"], special["unk_token"]} - {special["eos_token"]}
    found = generator.generate_batch(
        prompts,
        max_length=12,
        min_length=0,
        include_prompt_in_result=False,
        suppress_sequences=[[mark] for mark in sorted(marks)] or None,
    )
    return {"prompts": texts, "log_probs": scores, "outputs": {1: [each.sequences[0] for each in found]}}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fixtures", action="store_true", help="write the fixtures of the ordinary tests anew")
    parser.add_argument("--models", type=int, default=40, help="how many random models of each kind are compared")
    arguments = parser.parse_args()
    if arguments.fixtures:
        write_fixtures()
    else:
        compare(arguments.models)
