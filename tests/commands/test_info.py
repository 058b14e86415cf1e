"""toolkit info: what is known about a model of either kind."""

import json

import pytest

import toolkit


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("seq2seq", ("recipes/translation.py --seed 0", "test.bleu", "decoder_layers", "encoder")),
        ("gpt", ("recipes/language_model.py --seed 0", "valid.loss", "num_key_value_heads", "decoder")),
    ],
)
def test_every_parameter_and_byte_is_counted(run, tiny_model, tiny_gpt, kind, shown):
    directory = tiny_model if kind == "seq2seq" else tiny_gpt
    facts = json.loads(run("info", directory, "--json").out)
    total = facts["parameters"].pop("total")
    assert facts["kind"] == kind
    assert total == sum(facts["parameters"].values()) == toolkit.load(directory).model.parameter_count
    assert facts["bytes"] == {path.name: path.stat().st_size for path in directory.iterdir()}
    text = run("info", directory).out
    for words in (f"{total:,}", kind, "F32", "d_ff", *shown):
        assert words in text
