"""What a recorder keeps of a real pass."""

import numpy as np
import pytest

from tests.checks import batch_of, gpt_batch, random_model, random_pairs, small_config, small_gpt_config
from toolkit.functional.attention import softmax_over_keys
from toolkit.nn.attention import CrossAttention, SelfAttention
from toolkit.nn.blocks import DecoderBlock
from toolkit.nn.module import Model
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Recorder, Tape

WIDTH, HEADS = 8, 2


class Pair(Model):
    kind = "pair"

    def __init__(self):
        self.own = SelfAttention(WIDTH, HEADS, dropout=0.5, causal=True)
        self.cross = CrossAttention(WIDTH, HEADS, dropout=0.5)

    def forward(self, x, memory, rows, tape):
        return self.cross.forward(self.own.forward(x, rows, tape), memory, rows, tape)


@pytest.fixture
def pair():
    model = Pair()
    model.allocate(np.float64)
    model.vector[:] = np.random.default_rng(0).standard_normal(len(model.vector))
    return model


def run(pair, recorder, lengths, memory_lengths, **options):
    generator = np.random.default_rng(1)
    memory_rows = Rows(np.array(memory_lengths))
    rows = Rows(np.array(lengths), memory=memory_rows, memory_of=np.arange(len(lengths)))
    x, memory = (generator.standard_normal((each.total, WIDTH)) for each in (rows, memory_rows))
    return pair.forward(x, memory, rows, Tape(recorder=recorder, **options))


@pytest.mark.parametrize("dropout", [None, 3])
def test_every_sequence_has_its_map(pair, dropout):
    lengths, memory_lengths = [4, 4, 1, 6, 6, 6], [2, 5, 3, 3, 1, 4]
    recorder, options = Recorder(), {} if dropout is None else {"dropout": np.random.SFC64(dropout)}
    run(pair, recorder, lengths, memory_lengths, **options)
    own, cross = recorder.attention_maps(pair.own), recorder.attention_maps(pair.cross)
    assert [each.shape for each in own] == [(HEADS, length, length) for length in lengths]
    assert [each.shape for each in cross] == [(HEADS, *shape) for shape in zip(lengths, memory_lengths, strict=True)]
    for each in [*own, *cross]:
        np.testing.assert_allclose(each.sum(axis=2), 1, atol=1e-12)
    for each in own:
        assert not np.triu(each, 1).any()  # nobody sees what comes later
    for number in range(len(lengths)):  # alone it has the same map
        alone = Recorder([pair.own])
        first, last = sum(lengths[:number]), sum(lengths[: number + 1])
        x = np.random.default_rng(1).standard_normal((sum(lengths), WIDTH))[first:last]
        pair.own.forward(x, Rows(np.array([last - first])), Tape(recorder=alone))
        np.testing.assert_allclose(alone.attention_maps(pair.own)[0], own[number], atol=1e-12)


def test_only_those_asked_for_are_kept(pair):
    of_cross, scores = Recorder([pair.cross]), Recorder(names=["scores"])
    run(pair, of_cross, [3, 2], [2, 2])
    assert {record.owner for record in of_cross.records} == {pair.cross}
    assert {record.name for record in of_cross.records} == {
        "query",
        "key",
        "value",
        "scores",
        "probabilities",
        "context",
    }
    run(pair, scores, [3, 2], [2, 2])
    assert [(each.owner, each.name) for each in scores.records] == [
        (owner, "scores") for owner in (pair.own, pair.own, pair.cross, pair.cross)
    ]


def test_scores_that_nobody_wants_are_not_computed(pair, monkeypatch):
    calls = []
    monkeypatch.setattr("toolkit.nn.attention.scaled_scores", lambda *arguments: calls.append(arguments))
    for recorder in (None, Recorder(names=["probabilities"]), Recorder([])):
        run(pair, recorder, [3, 2], [2, 2])
    assert not calls


def test_records_are_copies():
    recorder, value = Recorder(), np.ones(3)
    Tape(recorder=recorder).show("owner", "name", value, "where")
    value[:] = np.nan
    ((owner, name, kept, where),) = recorder.records
    assert (owner, name, kept.tolist(), where) == ("owner", "name", [1, 1, 1], "where")
    Tape().show("owner", "name", value)  # nobody listens


MODELS = {
    "seq2seq": small_config(),
    "post-norm, learned": small_config(
        norm_position="post", positions="learned", bias=False, tie="none", output_bias=True
    ),
    "gpt": small_gpt_config(),
    "grouped, rms, swiglu": small_gpt_config(num_key_value_heads=2, norm="rms", activation="swiglu", tie=False),
    "learned": small_gpt_config(positions="learned", output_bias=True, bias=True),
}


def model_pass(config, recorder, tape=None):
    """The model, its recorded pass over a ragged batch, the rows of its sides, and the logits."""
    rng = np.random.default_rng(5)
    model, tape = random_model(config, rng), tape or Tape(recorder=recorder)
    if model.kind == "gpt":
        batch = gpt_batch(rng, [3, 3, 5])
        return model, model.output.logits(model.read(batch.inputs, batch.rows, tape), tape).copy()
    batch = batch_of(random_pairs(rng, 5))
    memory = model.encode(batch.sources, batch.source_rows, tape)
    return model, model.output.logits(model.decode(batch.inputs, memory, batch.rows, tape), tape).copy()


def blocks_of(model):
    return model.trunk.decoder.blocks if model.kind == "gpt" else model.encoder.blocks + model.decoder.blocks


def attentions_of(model):
    blocks = blocks_of(model)
    crossing = [block.cross_attention for block in blocks if isinstance(block, DecoderBlock)]
    return [residual.layer for residual in [*(block.attention for block in blocks), *crossing]]


def values(recorder, owner, name):
    return [record for record in recorder.records if record.owner is owner and record.name == name]


@pytest.mark.parametrize("name", MODELS)
def test_probabilities_are_the_softmax_of_the_scores_that_the_mask_leaves(name):
    recorder = Recorder()
    model, _ = model_pass(MODELS[name], recorder)
    for module in attentions_of(model):
        shown = zip(values(recorder, module, "scores"), values(recorder, module, "probabilities"), strict=True)
        for scores, probabilities in shown:
            seen = np.ones(scores.value.shape, bool)
            if isinstance(module, SelfAttention):
                seen = np.tril(seen) if module.causal else seen
            elif scores.where.real is not None:
                seen &= scores.where.real[:, None, None, :]
            again = np.where(seen, scores.value, -np.inf).swapaxes(-1, -2).copy()
            softmax_over_keys(again, None)
            np.testing.assert_allclose(again, probabilities.value, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_scores_and_contexts_follow_from_queries_keys_and_values(name):
    recorder = Recorder()
    model, _ = model_pass(MODELS[name], recorder)
    for module in attentions_of(model):
        query, key, value, context = (
            values(recorder, module, each)[0].value for each in ("query", "key", "value", "context")
        )
        group = np.arange(module.num_heads) // (
            module.num_heads // key.shape[1]
        )  # the head of keys of each head of queries
        shown = zip(values(recorder, module, "scores"), values(recorder, module, "probabilities"), strict=True)
        for scores, probabilities in shown:
            crosses = isinstance(module, CrossAttention)
            span = scores.where.span if crosses else scores.where
            for number in range(span.count):
                rows = slice(span.rows.start + number * span.length, span.rows.start + (number + 1) * span.length)
                keys = scores.where.keys[number] if crosses else rows
                k, v = key[keys][:, group], value[keys][:, group]
                products = np.einsum("thk,shk->hts", query[rows], k) / module.head_dim**0.5
                np.testing.assert_allclose(scores.value[number], products, atol=1e-12)
                mixed = np.einsum("hst,shk->thk", probabilities.value[number], v)
                np.testing.assert_allclose(context[rows].reshape(mixed.shape), mixed, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_sums_norms_and_logits_follow_from_what_was_shown_before(name):
    recorder = Recorder()
    model, logits = model_pass(MODELS[name], recorder)

    def one(owner, what):
        (record,) = values(recorder, owner, what)
        return record.value

    for block in blocks_of(model):
        attention, feed_forward = block.attention, block.feed_forward
        before = one(attention, "sum") if attention.pre_norm else one(attention.norm, "output")
        if isinstance(block, DecoderBlock):
            crossing = block.cross_attention
            np.testing.assert_allclose(one(crossing, "sum"), before + one(crossing.layer.output, "output"))
            before = one(crossing, "sum") if crossing.pre_norm else one(crossing.norm, "output")
        branch = one(feed_forward.layer.down, "output")
        np.testing.assert_allclose(one(feed_forward, "sum"), before + branch, atol=1e-12)
    stack = model.trunk.decoder if model.kind == "gpt" else model.decoder
    last = stack.norm or stack.blocks[-1].feed_forward.norm
    expected = one(last, "output") @ model.output.table.data.T
    if model.output.bias:
        expected += model.output.bias.data
    np.testing.assert_allclose(one(model.output, "logits"), expected, atol=1e-12)
    np.testing.assert_array_equal(one(model.output, "logits"), logits)


def test_a_turned_query_is_shown_after_turning():
    recorder = Recorder()
    model, _ = model_pass(MODELS["gpt"], recorder)
    module = model.trunk.decoder.blocks[0].attention.layer
    (query,), (product,) = (values(recorder, *each) for each in ((module, "query"), (module.query_key_value, "output")))
    before = product.value[:, : model.config.d_model].reshape(query.value.shape)
    np.testing.assert_allclose(np.linalg.norm(query.value, axis=2), np.linalg.norm(before, axis=2))
    first = [0, 3, 6]  # position 0 of each text is turned by nothing
    np.testing.assert_array_equal(query.value[first], before[first])
    assert (np.abs(np.delete(query.value - before, first, axis=0)).max(axis=(1, 2)) > 1e-3).all()


@pytest.mark.parametrize("name", ["post-norm, learned", "seq2seq", "learned"])
def test_what_is_added_for_positions_is_shown(name):
    recorder = Recorder()
    model, _ = model_pass(MODELS[name], recorder)
    for side in [model.trunk.input] if model.kind == "gpt" else [model.source, model.target]:
        embedded = [record.value for record in values(recorder, side.embedding, "output")]
        (added,), (total,) = (values(recorder, side.positions, each) for each in ("positions", "output"))
        assert any(
            np.array_equal(total.value, each + added.value) for each in embedded if len(each) == len(added.value)
        )


@pytest.mark.parametrize("name", MODELS)
def test_recording_changes_nothing(name):
    _, recorded = model_pass(MODELS[name], Recorder())
    _, alone = model_pass(MODELS[name], None)
    np.testing.assert_array_equal(recorded, alone)


def test_gradients_are_the_same_while_recording():
    rng = np.random.default_rng(5)
    model, batch = random_model(MODELS["seq2seq"], rng), batch_of(random_pairs(rng, 5))
    found = []
    for recorder in (None, Recorder()):
        vector = np.zeros_like(model.vector)
        tape = Tape(model.views(vector), recorder=recorder)
        model.loss(batch, tape)
        model.backward(tape)
        assert tape.finished
        found.append(vector)
    np.testing.assert_array_equal(*found)
