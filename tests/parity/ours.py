"""Our side: the same questions put to the model that `toolkit.interop` makes of the same files."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

from tests.parity.cases import CONFIG, MAX_NEW_TOKENS, WEIGHTS, Case, Search
from toolkit.decoding import ContinuationConfig, GenerationConfig, Hypothesis, generate
from toolkit.functional.arrays import Array
from toolkit.interop import read_hugging_face
from toolkit.interop.vocabulary import Vocabulary
from toolkit.models.gpt import text_batch
from toolkit.models.seq2seq import translation_batch
from toolkit.models.storage import new_model
from toolkit.nn.module import Model
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import BOS, PAD


def read(directory: Path, case: Case, dtype: type = np.float64) -> tuple[Model, Vocabulary]:
    """The model of a directory in the reference's format, in this precision.

    What training leaves alone there, and here, is given a gradient: a bias that is a constant, and the row of
    padding, where outputs begin with it.
    """
    imported, vocabulary = read_hugging_face(directory, begin=case.begin)
    arrays = imported.arrays()
    begin = BOS if imported.config.begin_row == PAD else imported.config.begin_row
    model = new_model(replace(imported.config, fixed_output_bias=False, begin_row=begin))
    model.allocate(dtype)
    model.load_arrays(arrays, str(directory))
    return model, vocabulary


def real(ids: Array, mask: Array) -> list[list[int]]:
    """Padded texts (B, T) without their padding."""
    return [row[kept].tolist() for row, kept in zip(ids, mask, strict=True)]


def logits(model: Model, vocabulary: Vocabulary, case: Case, inputs: Mapping[str, Array]) -> Array:
    """Scores of all foreign ids after every real token, text by text.  Shapes: (N, foreign size)."""
    tape = Tape()
    if case.is_seq2seq:
        batch = translation_batch(*_pairs(vocabulary, inputs))
        x = model.decode(batch.inputs, model.encode(batch.sources, batch.source_rows, tape), batch.rows, tape)
    else:
        texts = _texts(vocabulary, inputs)
        x = model.read(np.concatenate(texts), Rows(np.array([len(text) for text in texts])), tape)
    return model.output.logits(x, tape)[:, vocabulary.ours(range(case.config["vocab_size"]))]


def loss_and_gradient(
    model: Model, vocabulary: Vocabulary, case: Case, inputs: Mapping[str, Array]
) -> tuple[float, dict[str, Array]]:
    """The mean loss over real tokens, and its gradient by the names of our parameters."""
    batch = (
        translation_batch(*_pairs(vocabulary, inputs)) if case.is_seq2seq else text_batch(_texts(vocabulary, inputs))
    )
    views = model.views(np.zeros_like(model.vector))
    tape = Tape(views)
    loss = model.loss(batch, tape).loss
    model.backward(tape, 1 / len(batch.labels))
    return loss / len(batch.labels), {name: views[each] for name, each in model.parameters().items()}


def _pairs(vocabulary: Vocabulary, inputs: Mapping[str, Array]) -> tuple[list[Array], list[Array]]:
    """Sources and targets as our ids, without the end marks that batches add."""
    sides = (real(inputs["sources"], inputs["source_mask"]), real(inputs["targets"], inputs["target_mask"]))
    return tuple([np.array(vocabulary.ours(text[:-1]), np.int64) for text in side] for side in sides)


def _texts(vocabulary: Vocabulary, inputs: Mapping[str, Array]) -> list[Array]:
    return [np.array(vocabulary.ours(text)) for text in real(inputs["texts"], inputs["text_mask"])]


def places(directory: Path, case: Case, scratch: Path) -> tuple[dict[str, Array], dict[str, slice]]:
    """Which number of the reference's tensors each of ours is: counted from 1 through model.safetensors, in the order
    of names; 0 or less where ours is a constant. And from where to where each tensor goes, counted from 0.

    Found out by reading a model whose weights are these numbers, so that no table is repeated here.
    """
    total, tensors, parts = 0, {}, {}
    with safe_open(directory / WEIGHTS, framework="numpy") as file:
        for name in sorted(file.keys()):
            if case.is_seq2seq and name.endswith(
                "embed_positions.weight"
            ):  # sines that some files have, and that are checked
                tensors[name] = file.get_tensor(name)
                continue
            shape = file.get_slice(name).get_shape()
            parts[name] = slice(total, total + math.prod(shape))
            total = parts[name].stop
            tensors[name] = np.arange(parts[name].start + 1, total + 1, dtype=np.float32).reshape(shape)
    assert total < 1 << 24  # float32 counts so far
    (scratch / CONFIG).write_bytes((directory / CONFIG).read_bytes())
    (scratch / WEIGHTS).write_bytes(save(tensors))
    model, _ = read_hugging_face(scratch, begin=case.begin)
    return {name: value.astype(np.int64) for name, value in model.arrays().items()}, parts


def search(
    model: Model, vocabulary: Vocabulary, case: Case, wanted: Search, texts: Array, mask: Array
) -> list[list[Hypothesis]]:
    """The hypotheses of every text (B, T), with foreign ids."""
    settings = {"max_new_tokens": MAX_NEW_TOKENS, "forced_eos": case.forced_eos, **wanted.settings}
    given = [vocabulary.ours(text) for text in real(texts, mask)]
    if case.is_seq2seq:
        first = None if case.forced_bos is None else vocabulary.ours([case.forced_bos])[0]
        found = generate(model, [text[:-1] for text in given], GenerationConfig(**settings), forced_bos=first)
    else:
        begin = int(model.config.begin)
        config = ContinuationConfig(do_sample=False, **settings)
        found = generate(model, [text[begin:] for text in given], config)
    return [[each._replace(ids=vocabulary.foreign(each.ids)) for each in hypotheses] for hypotheses in found]
