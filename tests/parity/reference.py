"""The reference's side: Hugging Face models with random weights, and what PyTorch makes of them.

Needs the `bench` extra. Everything is computed in float64 where the reference allows it.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, GenerationConfig, PreTrainedModel

from tests.parity.cases import MAX_NEW_TOKENS, WEIGHTS, Case, Search, searched

_IGNORED = -100  # a label that does not count
_SOURCES = (3, 9, 1, 6, 5, 12)  # lengths, without marks
_TARGETS = (7, 2, 10, 5, 0, 4)
_PROMPTS = (2, 7, 1, 4, 5, 10)
# Of matrices, over the root of their width: what sub-layers add outweighs the embedding, so outputs do not repeat it.
_GAIN = 3.0


def build(case: Case, dtype: torch.dtype = torch.float64) -> PreTrainedModel:
    """The model, its weights rounded to what is stored.

    The other implementation of attention takes softmax in float32, where the mask of float64 is minus infinity.
    """
    config = AutoConfig.for_model(**case.config)
    make = AutoModelForSeq2SeqLM if case.is_seq2seq else AutoModelForCausalLM
    model = make.from_config(config, attn_implementation="sdpa").to(dtype).eval()
    names = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id", "forced_eos_token_id")
    model.generation_config = GenerationConfig(**{name: case.config.get(name) for name in names})
    generator, stored = np.random.default_rng(case.seed), getattr(torch, case.dtype)
    tensors = stored_tensors(model)
    with torch.no_grad():
        for name, tensor in tensors.items():
            tensor.copy_(torch.from_numpy(_draw(name, tensor.shape, generator)))
        _favour_end(model, case)
        for tensor in tensors.values():
            tensor.copy_(tensor.to(stored))
    return model


def _draw(name: str, shape: torch.Size, generator: np.random.Generator) -> np.ndarray:
    """Nothing is 0 or 1 that an initialiser would make so: a bias that is forgotten shows."""
    values = generator.standard_normal(shape)
    if name == "final_logits_bias":
        return values * 0.5
    if len(shape) == 1:
        is_gain = name.endswith("weight")
        return values * 0.25 + is_gain
    if any(part in name for part in ("shared", "embed_tokens", "lm_head", "wte", "wpe", "embed_positions")):
        return values * 0.7
    inputs = shape[0] if name.startswith("transformer.") else shape[1]  # GPT-2's maps are (inputs, outputs)
    return values * _GAIN / np.sqrt(inputs)


def _favour_end(model: PreTrainedModel, case: Case) -> None:
    """Make the end mark's score larger by a constant, or where there is no bias, more variable."""
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias[0, case.end_id] = case.end
    else:
        model.get_output_embeddings().weight[case.end_id] *= case.end


def save(model: PreTrainedModel, case: Case, directory: Path) -> None:
    """Write config and weights in the reference's format."""
    copy = type(model)(model.config)
    copy.load_state_dict(model.state_dict())
    copy.generation_config = model.generation_config
    copy.to(getattr(torch, case.dtype)).save_pretrained(directory)
    (directory / WEIGHTS).chmod(0o644)


def read(directory: Path, dtype: torch.dtype = torch.float64) -> PreTrainedModel:
    """A model as a user gets it."""
    config = AutoConfig.from_pretrained(directory)
    make = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    return make.from_pretrained(directory, dtype=dtype, attn_implementation="sdpa").eval()


def expectations(case: Case) -> dict[str, np.ndarray]:
    """What the tests compare with, by name: inputs, logits, loss, gradients, and what searches find."""
    inputs = inputs_of(case)
    return {**inputs, **loss_and_gradient(build(case), case, inputs), **searches(build(case), case, inputs)}


def inputs_of(case: Case) -> dict[str, np.ndarray]:
    """Random texts, side by side with their masks: pairs, or texts and prompts."""
    generator = np.random.default_rng([case.seed, 1])
    return _pairs(case, generator) if case.is_seq2seq else _texts(case, generator) | _prompts(case, generator)


def searches(model: PreTrainedModel, case: Case, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What all searches find, in two arrays.

    ids (searches, B, most hypotheses, MAX_NEW_TOKENS), -1 where nothing is, and scores (searches, B, most hypotheses).
    """
    texts, mask = searched(case, inputs)
    count, most = len(texts), max(each.beams for each in case.compared)
    ids = np.full((len(case.compared), count, most, MAX_NEW_TOKENS), -1, np.int8)
    scores = np.full(ids.shape[:3], np.nan, np.float32)
    for number, wanted in enumerate(case.compared):
        for text, hypotheses in enumerate(search(model, case, wanted, texts, mask)):
            for rank, (found, score) in enumerate(hypotheses):
                ids[number, text, rank, : len(found)] = found
                scores[number, text, rank] = score
    return {"ids": ids, "scores": scores}


def _ordinary(case: Case, generator: np.random.Generator, count: int) -> np.ndarray:
    special = {case.end_id, case.padding, *case.never_written}
    return generator.choice(sorted(set(range(case.config["vocab_size"])) - special), count)


def _padded(texts: list, filler: int, left: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Texts of unequal lengths side by side, and which places are real.  Shapes: (B, T) each."""
    width = max(map(len, texts))
    ids, mask = np.full((len(texts), width), filler, np.int16), np.zeros((len(texts), width), bool)
    for row, text in enumerate(texts):
        place = slice(width - len(text), None) if left else slice(len(text))
        ids[row, place], mask[row, place] = text, True
    return ids, mask


def _pairs(case: Case, generator: np.random.Generator) -> dict[str, np.ndarray]:
    sources, targets = (
        [[*_ordinary(case, generator, length), case.end_id] for length in lengths] for lengths in (_SOURCES, _TARGETS)
    )
    names = ("sources", "source_mask", "targets", "target_mask")
    return dict(zip(names, (*_padded(sources, case.padding), *_padded(targets, case.padding)), strict=True))


def _texts(case: Case, generator: np.random.Generator) -> dict[str, np.ndarray]:
    texts = [[*_ordinary(case, generator, length), case.end_id] for length in _SOURCES]
    texts = [[case.config["bos_token_id"], *text] if case.begin else text for text in texts]
    return dict(zip(("texts", "text_mask"), _padded(texts, case.padding), strict=True))


def _prompts(case: Case, generator: np.random.Generator) -> dict[str, np.ndarray]:
    mark = [case.config["bos_token_id"]] if case.begin else []
    texts = [[*mark, *_ordinary(case, generator, length)] for length in _PROMPTS]
    return dict(zip(("prompts", "prompt_mask"), _padded(texts, case.padding, left=True), strict=True))


def loss_and_gradient(model: PreTrainedModel, case: Case, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Logits of real rows one after the other, the mean loss, and the gradients of all stored tensors in a row.

    An embedding with a padding index gets no gradient at that row, even where a decoder reads it as its first token:
    that is a setting of the framework, not a derivative, and is turned off.
    """
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding):
            module.padding_idx = None
    tensors = stored_tensors(model)
    for tensor in tensors.values():
        tensor.requires_grad_(True)
        tensor.grad = None
    if case.is_seq2seq:
        real = inputs["target_mask"]
        labels = np.where(real, inputs["targets"], _IGNORED)
        texts, mask = inputs["sources"], inputs["source_mask"]
    else:
        real = inputs["text_mask"]
        labels = np.where(real, inputs["texts"], _IGNORED)
        texts, mask = inputs["texts"], real
    output = model(_long(texts), attention_mask=_long(mask), labels=_long(labels), use_cache=False)
    output.loss.backward()
    gradients = [tensor.grad.reshape(-1).numpy() for tensor in tensors.values()]
    return {
        "logits": output.logits.detach().numpy()[real].astype(np.float32),
        "loss": np.float64(output.loss.item()),
        "gradient": np.concatenate(gradients).astype(np.float32),
    }


def stored_tensors(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """What is learned, by the names that `save_pretrained` gives it, in order: shared tensors once, no sines."""
    shared = set(model.all_tied_weights_keys)
    return {
        name: tensor
        for name, tensor in sorted([*model.named_parameters(), *model.named_buffers()])
        if name in model.state_dict() and name not in shared and not are_sines(name, model)
    }


def are_sines(name: str, model: PreTrainedModel) -> bool:
    """Whether a tensor holds positions that are computed: language models learn theirs."""
    return model.config.is_encoder_decoder and "embed_positions" in name


def _long(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(values.astype(np.int64))


Found = list[list[tuple[list[int], float]]]  # new ids without end marks, and the score, of every hypothesis of a text


def search(model: PreTrainedModel, case: Case, wanted: Search, texts: np.ndarray, mask: np.ndarray) -> Found:
    """What a search finds for padded texts (B, T).

    The reference's repetition penalty sees padding in front of a prompt, and where padding is the end mark, makes the
    end less likely. So prompts are then given one by one.
    """
    if wanted.looks_back and not case.is_seq2seq:
        alone = [(row[None, real], real[None, real]) for row, real in zip(texts, mask, strict=True)]
        return [_search(model, case, wanted, *each)[0] for each in alone]
    return _search(model, case, wanted, texts, mask)


def _search(model: PreTrainedModel, case: Case, wanted: Search, texts: np.ndarray, mask: np.ndarray) -> Found:
    settings: dict[str, Any] = {"max_new_tokens": MAX_NEW_TOKENS, "pad_token_id": case.padding, **wanted.settings}
    settings |= {"suppress_tokens": case.never_written or None, "return_dict_in_generate": True}
    settings |= {"forced_bos_token_id": case.forced_bos}
    config = GenerationConfig(**settings, output_logits=True, output_scores=True)
    with torch.no_grad():
        output = model.generate(_long(texts), attention_mask=_long(mask), generation_config=config)
    begin = 1 if case.is_seq2seq else texts.shape[1]
    sequences = output.sequences[:, begin:].tolist()
    if wanted.beams == 1:
        scores = _greedy_scores(case, output.logits, sequences, settings["max_new_tokens"])
    else:
        scores = output.sequences_scores.tolist()
    found = [(_before(ids, {case.end_id, case.padding}), score) for ids, score in zip(sequences, scores, strict=True)]
    each = wanted.settings.get("num_return_sequences", 1)
    return [found[first : first + each] for first in range(0, len(found), each)]


def _before(sequence: list[int], marks: set[int]) -> list[int]:
    return next((sequence[:place] for place, token in enumerate(sequence) if token in marks), sequence)


def _greedy_scores(case: Case, logits: tuple, sequences: list[list[int]], limit: int) -> list[float]:
    """The mean log-probability of what was written; what is forced, at the limit or at first, counts 0."""
    log_probs = torch.stack(logits, dim=1).double().log_softmax(dim=-1)  # (B, T, V)
    scores = []
    for row, sequence in enumerate(sequences):
        text = _before(sequence, {case.end_id, case.padding})
        written = [*text, case.end_id][: min(limit, len(text) + 1)]
        parts = [float(log_probs[row, place, token]) for place, token in enumerate(written)]
        if case.forced_eos == "free" and len(written) == limit:
            parts[-1] = 0.0
        if case.forced_bos is not None:
            parts[0] = 0.0
        scores.append(sum(parts) / len(parts))
    return scores
