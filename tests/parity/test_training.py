"""Fifty updates of AdamW: imported models learn what they learn in PyTorch, and go back as what they have become."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolkit.interop import read_hugging_face, write_hugging_face
from toolkit.interop.vocabulary import Vocabulary
from toolkit.models.gpt import text_batch
from toolkit.models.seq2seq import Seq2Seq, translation_batch
from toolkit.nn.module import Model
from toolkit.nn.tape import Tape
from toolkit.training.optimizer import Adam

torch = pytest.importorskip("torch", reason="PyTorch, of the extra bench, is not installed")
transformers = pytest.importorskip("transformers", reason="transformers, of the extra bench, is not installed")

_UPDATES, _BATCHES = 50, 8
_RATE, _BETAS, _EPS, _DECAY = 1e-3, (0.9, 0.98), 1e-8, 0.1
_SIZE = 40

_GPT2 = {
    "n_embd": 16,
    "n_head": 4,
    "n_layer": 2,
    "n_positions": 32,
    "bos_token_id": 39,
    "eos_token_id": 39,
} | dict.fromkeys(("embd_pdrop", "attn_pdrop", "resid_pdrop"), 0.0)
_ROTARY = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_YARN = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "original_max_position_embeddings": 8}
_OPT = {
    "hidden_size": 16,
    "ffn_dim": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 32,
    "bos_token_id": 2,
    "eos_token_id": 2,
    "pad_token_id": 1,
    "dropout": 0.0,
}
_SEQ2SEQ = {
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 32,
    "pad_token_id": 39,
    "decoder_start_token_id": 39,
    "eos_token_id": 0,
    "forced_eos_token_id": 0,
    "dropout": 0.0,
}
CASES = {
    "gpt2": ("gpt2", _GPT2),
    "gpt2, not tied": ("gpt2", _GPT2 | {"tie_word_embeddings": False}),
    "llama": ("llama", _ROTARY),
    "llama, biases of attention": ("llama", _ROTARY | {"attention_bias": True, "tie_word_embeddings": True}),
    "llama, biases of networks": ("llama", _ROTARY | {"mlp_bias": True}),
    "mistral": ("mistral", _ROTARY | {"sliding_window": None}),
    "qwen2": ("qwen2", _ROTARY),
    "phi3": ("phi3", _ROTARY | {"pad_token_id": 0}),
    "qwen3, yarn": ("qwen3", _ROTARY | {"head_dim": 6, "rope_parameters": _YARN}),
    "gpt_bigcode": ("gpt_bigcode", _GPT2),
    "opt": ("opt", _OPT),
    "starcoder2": ("starcoder2", _ROTARY),
    "starcoder2, biases of norms": ("starcoder2", _ROTARY | {"use_bias": False}),
    "marian": ("marian", _SEQ2SEQ | {"scale_embedding": True}),
    "marian, biased": ("marian", _SEQ2SEQ | {"share_encoder_decoder_embeddings": False}),
    "pegasus": (
        "pegasus",
        _SEQ2SEQ | {"pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 1, "forced_eos_token_id": 1},
    ),
    "pegasus, not tied": ("pegasus", _SEQ2SEQ | {"tie_word_embeddings": False}),
    "m2m_100": (
        "m2m_100",
        _SEQ2SEQ
        | {"pad_token_id": 1, "decoder_start_token_id": 2, "eos_token_id": 2, "forced_eos_token_id": None}
        | dict.fromkeys(("encoder_layerdrop", "decoder_layerdrop", "attention_dropout"), 0.0),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_fifty_updates_are_those_of_pytorch(name: str, tmp_path: Path) -> None:
    theirs = build(*CASES[name], biased=name.endswith("biased"))
    theirs.save_pretrained(tmp_path / "before")
    model, vocabulary = read_hugging_face(tmp_path / "before", begin=False)
    texts = batches(theirs)
    expected, found = losses_there(theirs, texts), losses_here(model, vocabulary, texts)
    assert expected[-1] < 0.98 * expected[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    (tmp_path / "after").mkdir()
    write_hugging_face(model, tmp_path / "after", vocabulary, came_as=type(theirs).__name__)
    again = type(theirs).from_pretrained(tmp_path / "after", dtype=torch.float32)
    assert {key: value.shape for key, value in again.state_dict().items()} == {
        key: value.shape for key, value in theirs.state_dict().items()
    }
    with torch.no_grad():
        wanted, got = (loss_there(each.eval(), texts[0]).logits.numpy() for each in (theirs, again))
    np.testing.assert_allclose(got, wanted, atol=1e-4 * np.abs(wanted).max(), rtol=0)


def build(model_type: str, settings: dict[str, Any], biased: bool) -> Any:
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(model_type, vocab_size=_SIZE, **settings)
    model = transformers.AutoModelForSeq2SeqLM if config.is_encoder_decoder else transformers.AutoModelForCausalLM
    model = model.from_config(config).train()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn(parameter.shape) * parameter.requires_grad
        if biased:
            model.final_logits_bias += torch.randn(_SIZE)
    return model


def batches(model: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Sources and targets (B, T) of foreign ids, all of one length, each with the end mark; of language models, targets
    are the texts.
    """
    rng, end = np.random.default_rng(0), model.config.eos_token_id
    ids = rng.integers(4, _SIZE - 2, (_BATCHES, 2, 4, 9))
    ids[..., 1] = ids[..., 0]  # something to learn
    ids[..., -1] = end
    return [(source, target) for source, target in ids]


def loss_there(model: Any, batch: tuple[np.ndarray, np.ndarray]) -> Any:
    source, target = map(torch.from_numpy, batch)
    return model(input_ids=source if model.config.is_encoder_decoder else target, labels=target, use_cache=False)


def losses_there(model: Any, texts: list) -> list[float]:
    """The loss before each update."""
    groups = [
        {"params": [each for each in model.parameters() if each.dim() > 1], "weight_decay": _DECAY},
        {"params": [each for each in model.parameters() if each.dim() == 1], "weight_decay": 0.0},
    ]
    optimizer, found = torch.optim.AdamW(groups, lr=_RATE, betas=_BETAS, eps=_EPS), []
    for update in range(_UPDATES):
        optimizer.zero_grad()
        loss = loss_there(model, texts[update % _BATCHES]).loss
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def losses_here(model: Model, vocabulary: Vocabulary, texts: list) -> list[float]:
    rule = Adam(*_BETAS, _EPS, _DECAY)
    moments, found = (np.zeros_like(model.vector), np.zeros_like(model.vector)), []
    for update in range(_UPDATES):
        source, target = ([np.array(vocabulary.ours(row)) for row in side] for side in texts[update % _BATCHES])
        if isinstance(model, Seq2Seq):
            batch = translation_batch([row[:-1] for row in source], [row[:-1] for row in target])
        else:
            batch = text_batch(target)
        gradient = np.zeros_like(model.vector)
        tape = Tape(model.views(gradient))
        sums = model.loss(batch, tape)
        model.backward(tape)
        rule.update(model.vector, gradient, moments, update + 1, _RATE, 1 / sums.tokens, model.decayed)
        found.append(sums.loss / sums.tokens)
    return found
