"""The page with the transformer on it, and the models: the same losses, gradients and outputs, in float64."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.checks import batch_of, gpt_batch, random_model, small_config, small_gpt_config
from tests.decoding.reference import greedy
from toolkit import plain
from toolkit.models.gpt import GPT
from toolkit.models.seq2seq import Seq2Seq
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import BOS, EOS

Arrays = dict[str, np.ndarray]
CLOSE = {"rtol": 1e-10, "atol": 1e-12}


def affine(arrays: Arrays, name: str) -> Arrays:
    return {"weight": arrays[f"{name}.weight"], "bias": arrays[f"{name}.bias"]}


def normalising(arrays: Arrays, name: str) -> Arrays:
    return {"gain": arrays[f"{name}.gain"], "bias": arrays[f"{name}.bias"]}


def several(arrays: Arrays, name: str, count: int) -> list[Arrays]:
    """Maps that lie side by side in one matrix."""
    weights, biases = np.split(arrays[f"{name}.weight"], count, axis=1), np.split(arrays[f"{name}.bias"], count)
    return [{"weight": weight, "bias": bias} for weight, bias in zip(weights, biases, strict=True)]


def block_tree(arrays: Arrays, block: str) -> dict[str, Any]:
    """The parameters, or gradients, of one of our blocks as `plain` has them."""
    maps = {"self_attention": several(arrays, f"{block}.attention.layer.query_key_value", 3)}
    if f"{block}.cross_attention.layer.query.weight" in arrays:
        query, pair = affine(arrays, f"{block}.cross_attention.layer.query"), f"{block}.cross_attention.layer.key_value"
        maps["cross_attention"] = [query, *several(arrays, pair, 2)]
    tree = {
        name: {
            "norm": normalising(arrays, f"{block}.{name.removeprefix('self_')}.norm"),
            **dict(zip(("query", "key", "value"), three, strict=True)),
            "output": affine(arrays, f"{block}.{name.removeprefix('self_')}.layer.output"),
        }
        for name, three in maps.items()
    }
    tree["feed_forward"] = {
        "norm": normalising(arrays, f"{block}.feed_forward.norm"),
        "up": affine(arrays, f"{block}.feed_forward.layer.up"),
        "down": affine(arrays, f"{block}.feed_forward.layer.down"),
    }
    return tree


def stack_tree(arrays: Arrays, stack: str, count: int) -> dict[str, Any]:
    return {
        "blocks": [block_tree(arrays, f"{stack}.blocks.{layer}") for layer in range(count)],
        "norm": normalising(arrays, f"{stack}.norm"),
    }


def seq2seq_tree(arrays: Arrays, config: Any) -> dict[str, Any]:
    return {
        "table": arrays["source.embedding.table"],
        "encoder": stack_tree(arrays, "encoder", config.encoder_layers),
        "decoder": stack_tree(arrays, "decoder", config.decoder_layers),
    }


def gpt_tree(arrays: Arrays, config: Any) -> dict[str, Any]:
    return {
        "table": arrays["trunk.input.embedding.table"],
        "positions": arrays["trunk.input.positions.embedding.table"],
        "decoder": stack_tree(arrays, "trunk.decoder", config.layers),
    }


def ours(model: Seq2Seq | GPT, batch: Any) -> tuple[float, Arrays]:
    """The loss summed over a batch, and its gradient by name."""
    views = model.views(np.zeros_like(model.vector))
    tape = Tape(views)
    loss = model.loss(batch, tape).loss
    model.backward(tape)
    return loss, {name: views[parameter] for name, parameter in model.parameters().items()}


def summed(examples: list[tuple], logits_of: Callable) -> tuple[float, list[np.ndarray]]:
    """The same by `plain`, one text at a time: the sums over (what is read, labels) of loss and gradient."""
    total, gradients = 0.0, None
    for *read, labels in examples:
        logits, back = logits_of(*read)
        loss, back_loss = plain.cross_entropy(logits, labels)
        total += loss * len(labels)
        tree = plain.leaves(back(back_loss() * len(labels)))
        gradients = [a + b for a, b in zip(gradients, tree, strict=True)] if gradients else list(tree)
    return total, gradients


def check_equal(found: tuple[float, Any], expected: tuple[float, list[np.ndarray]]) -> None:
    assert np.isclose(found[0], expected[0], **CLOSE)
    for one, other in zip(plain.leaves(found[1]), expected[1], strict=True):
        scale = max(np.abs(other).max(), 1.0)
        np.testing.assert_allclose(one / scale, other / scale, **CLOSE)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(6)


@pytest.fixture
def translator(rng: np.random.Generator) -> Seq2Seq:
    return random_model(small_config(encoder_layers=2), rng)


@pytest.fixture
def writer(rng: np.random.Generator) -> GPT:
    return random_model(small_gpt_config(positions="learned", bias=True, activation="gelu_tanh"), rng)


def test_seq2seq_has_the_loss_and_every_gradient_of_the_page(translator: Seq2Seq, rng: np.random.Generator):
    pairs = [tuple(rng.integers(16, 30, length) for length in lengths) for lengths in ((4, 6), (1, 6), (7, 2), (3, 1))]
    found = ours(translator, batch_of(pairs))
    parameters = seq2seq_tree(translator.arrays(), translator.config)
    examples = [([*source, EOS], [BOS, *target], np.array([*target, EOS])) for source, target in pairs]
    expected = summed(examples, lambda source, ids: plain.seq2seq(source, ids, parameters, translator.config.num_heads))
    check_equal((found[0], seq2seq_tree(found[1], translator.config)), expected)
    assert len(expected[1]) > 60


def test_gpt_has_the_loss_and_every_gradient_of_the_page(writer: GPT, rng: np.random.Generator):
    batch = gpt_batch(rng, (3, 8, 1, 5))
    found = ours(writer, batch)
    parameters, cuts = gpt_tree(writer.arrays(), writer.config), np.cumsum((3, 8, 1))
    examples = list(zip(np.split(batch.inputs, cuts), np.split(batch.labels, cuts), strict=True))
    expected = summed(examples, lambda ids: plain.gpt(ids, parameters, writer.config.num_heads))
    check_equal((found[0], gpt_tree(found[1], writer.config)), expected)
    assert len(expected[1]) == 2 + 2 * 16 + 2


def test_greedy_output_of_gpt_is_that_of_the_model(writer: GPT, rng: np.random.Generator):
    parameters = gpt_tree(writer.arrays(), writer.config)

    def logits_after(ids: np.ndarray) -> np.ndarray:
        tape = Tape()
        return writer.output.logits(writer.read(ids, Rows(np.array([len(ids)])), tape), tape)

    outputs = []
    for prompt in rng.integers(16, 30, (6, 3)):
        outputs.append(plain.greedy(lambda ids: plain.gpt(ids, parameters, writer.config.num_heads)[0], prompt, EOS, 8))
        assert outputs[-1] == plain.greedy(logits_after, prompt, EOS, 8)
    assert len({tuple(output[3:]) for output in outputs}) > 3


def test_greedy_output_of_seq2seq_is_that_of_the_search(translator: Seq2Seq, rng: np.random.Generator):
    parameters = seq2seq_tree(translator.arrays(), translator.config)
    outputs = []
    for source in rng.integers(16, 30, (6, 4)):

        def logits_after(ids: np.ndarray, source: np.ndarray = source) -> np.ndarray:
            logits = plain.seq2seq([*source, EOS], ids, parameters, translator.config.num_heads)[0]
            logits[:, [token for token in range(16) if token != EOS]] = -np.inf  # the search never writes specials
            return logits

        outputs.append([each for each in plain.greedy(logits_after, [BOS], EOS, 8)[1:] if each != EOS])
        assert outputs[-1] == greedy(translator, list(source), 8)[:7]
    assert len({tuple(output) for output in outputs}) > 3


def test_the_toy_translates_what_it_has_not_seen(capsys: pytest.CaptureFixture[str]):
    plain.main()
    out = capsys.readouterr().out
    losses = [float(figure) for figure in re.findall(r"loss ([\d.]+)\n", out)]
    assert min(losses[:5]) < 0.1 < 3 < float(re.search(r"= ([\d.]+)", out)[1])
    asked = re.findall(r"-> (.+?)   \(right: (.+?)\)", out)
    assert len(asked) == 2
    assert all(written == right for written, right in asked)
