"""What a recorder keeps of a real pass."""

import numpy as np
import pytest

from toolkit.nn.attention import CrossAttention, SelfAttention
from toolkit.nn.module import Model
from toolkit.nn.recorder import Recorder
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape

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
    recorder = Recorder([pair.cross])
    run(pair, recorder, [3, 2], [2, 2])
    assert {record.owner for record in recorder.records} == {pair.cross}
    assert {record.name for record in recorder.records} == {"probabilities"}


def test_listening_changes_nothing(pair):
    arguments = ([3, 2], [4, 1])
    np.testing.assert_array_equal(run(pair, Recorder(), *arguments), run(pair, None, *arguments))


def test_records_are_copies():
    recorder, value = Recorder(), np.ones(3)
    Tape(recorder=recorder).record("owner", "name", value, "where")
    value[:] = np.nan
    ((owner, name, kept, where),) = recorder.records
    assert (owner, name, kept.tolist(), where) == ("owner", "name", [1, 1, 1], "where")
    Tape().record("owner", "name", value)  # nobody listens
