"""The founding document's figures come out of the toolkit's own modules."""

import numpy as np
import pytest

from toolkit.errors import ConfigError, DataError
from toolkit.explain.worked import worked_page
from toolkit.explain.worked_model import (
    cross_attended,
    later_differences,
    later_gradients,
    self_attended,
    worked_pass,
)
from toolkit.pages.blocks import Numbers
from toolkit.pages.html import document


def read(module_of, name):
    worked = worked_pass()
    return worked.recorder.found(module_of(worked.model), name)


def close(values, expected, atol=0.00051):
    np.testing.assert_allclose(np.asarray(values), expected, atol=atol)


def test_the_figures_of_the_document_that_are_right():
    close(read(lambda m: m.source.positions, "positions"), [[0, 1], [0.841, 0.540], [0.909, -0.416]])
    close(read(lambda m: m.encoder, "query")[:, 0], [[1, 1], [0.841, 1.540], [1.909, 0.584]], 1e-12)
    scores = read(lambda m: m.encoder, "scores")[0, 0]
    close(scores[0] * 2**0.5, [2, 2.381, 2.493])
    close(read(lambda m: m.encoder, "probabilities")[0, 0][:, 0], [0.268, 0.351, 0.380])
    # It rounds weights and products; the sum of its rounded terms is what it prints.
    context = read(lambda m: m.encoder, "context")[0]
    close(context, [1.288, 1.030], 0.002)
    rounded = np.array([[0.268, 0.268], [0.295, 0.540], [0.725, 0.222]])
    close(rounded.sum(axis=0), [1.288, 1.030], 1e-12)
    close(rounded.sum(axis=0), context, 0.002)
    close(read(lambda m: m.decoder, "query")[0, 0], [0.5, 1.5], 1e-12)


def test_the_model_is_symmetric_as_identity_weights_make_it():
    scores = read(lambda m: m.encoder, "scores")[0, 0]
    np.testing.assert_array_equal(scores, scores.T)
    for name in ("key", "value"):
        np.testing.assert_array_equal(read(lambda m: m.encoder, "query"), read(lambda m: m.encoder, name))
    memory = read(lambda m: m.encoder, "context")
    np.testing.assert_array_equal(read(lambda m: m.encoder.output, "output"), memory)
    np.testing.assert_array_equal(read(lambda m: m.cross_attention, "key")[:, 0], memory)
    np.testing.assert_array_equal(
        read(lambda m: m.cross_attention, "query")[:, 0], read(lambda m: m.decoder, "context")
    )


def test_the_decoder_sees_no_later_word():
    both, alone = worked_pass(), worked_pass(target=("<sos>",))
    weights = both.recorder.found(both.model.decoder, "probabilities")[0, 0].T
    assert weights[0].tolist() == [1, 0]
    first, only = (each.recorder.found(each.model, "logits")[0] for each in (both, alone))
    np.testing.assert_allclose(first, only, atol=1e-12)


def test_one_row_alone_keeps_itself():
    """The document's first step: masked self-attention leaves a first word as it is."""
    close(self_attended([[1.0, 1.5]], causal=True).context, [[1.0, 1.5]], 1e-12)


def test_the_documents_cross_attention_over_its_own_rows():
    rows = [[1.288, 1.030], [1.201, 1.178], [1.485, 0.989]]
    attended = cross_attended([[1.0, 1.5]], rows)
    close(attended.dots, [[2.833, 2.968, 2.969]])
    close(attended.weights, [[0.312, 0.343, 0.345]], 0.0013)
    close(attended.context, attended.weights @ rows, 1e-12)


def test_the_later_gradient_is_the_slope_of_the_loss():
    np.testing.assert_allclose(later_gradients()[0], later_differences(), atol=1e-9)
    assert np.abs(later_gradients()[0]).min() > 1e-3


def test_other_sentences_of_the_same_words():
    page = worked_page("boy boy I am", "म केटा हुँ")
    tables = [block for section in page.sections for block in section.blocks if isinstance(block, Numbers)]
    weights = [each for each in tables if each.name == "P"]
    assert weights[0].values.shape == (4, 4)
    assert weights[1].values.shape == (4, 4)
    assert list(weights[0].rows) == ["boy", "boy", "I", "am"]
    assert list(weights[1].rows) == ["<sos>", "म", "केटा", "हुँ"]
    assert not page.cut


def test_words_that_the_example_does_not_have():
    with pytest.raises(DataError, match="made of I, am, boy, without 'girl'"):
        worked_page("I am girl")
    with pytest.raises(DataError, match=r"the target .* without 'छ'"):
        worked_page("I am boy", "म केटा छ")
    with pytest.raises(DataError, match="blank"):
        worked_page(" ")


def test_a_long_sentence_is_cut_and_the_page_says_so():
    page = worked_page("I " * 100)
    assert page.cut == ["The text has 100 words: the first 64 are read."]


def test_the_example_has_one_layer_and_one_head():
    from toolkit.commands.explain import ExplainAttention

    for chosen in ({"head": 2}, {"layer": 2}, {"model": "en-ne-small"}):
        with pytest.raises(ConfigError, match="one head"):
            ExplainAttention(documents=True, **chosen).page()
    assert document(ExplainAttention(documents=True).page()) == document(worked_page())
