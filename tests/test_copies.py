"""Models and conversations are pickled and copied, translations are compared, and ids stand beside their tokens."""

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest

import toolkit
from toolkit.models.storage import load_model
from toolkit.tokenization import ByteTokenizer

WAYS = [lambda model: pickle.loads(pickle.dumps(model)), copy.deepcopy]
TEXTS = ["I am a boy.", "She eats rice."]


def written(model):
    """What a model writes, and every number that it says of it."""
    if isinstance(model, toolkit.Translator):
        return model.translate_n(TEXTS, num_beams=3, num_return_sequences=2, alignments=True, max_new_tokens=9)
    return model.generate_n(TEXTS, num_return_sequences=2, max_new_tokens=9)


@pytest.mark.parametrize("again", WAYS, ids=["pickle", "copy"])
@pytest.mark.parametrize("kind", ["tiny_model", "tiny_gpt", "bytes"])
def test_a_copied_model_writes_the_same_and_is_another(request, make_gpt, tmp_path, kind, again):
    directory = make_gpt(tmp_path / "bytes", ByteTokenizer()) if kind == "bytes" else request.getfixturevalue(kind)
    model = toolkit.load(directory)
    expected = written(model)
    other = again(model)
    assert type(other) is type(model)
    assert written(other) == expected
    assert not np.shares_memory(other.model.vector, model.model.vector)
    other.model.vector[...] = 0  # what training and averaging change is what the model computes with
    assert written(other) != expected
    assert written(model) == expected


def test_a_pickled_model_is_as_large_as_its_weights(tiny_gpt):
    model = load_model(tiny_gpt)
    assert len(pickle.dumps(model)) < 1.5 * model.vector.nbytes


def test_another_process_takes_a_model(tiny_model):
    model = toolkit.load(tiny_model)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        assert processes.submit(model.translate, TEXTS, max_new_tokens=9).result() == model.translate(
            TEXTS, max_new_tokens=9
        )


@pytest.mark.parametrize("again", WAYS, ids=["pickle", "copy"])
def test_a_copied_conversation_goes_on_by_itself(tiny_gpt, again):
    session = toolkit.load(tiny_gpt).chat(template="control", max_new_tokens=3)
    session.send("She eats")
    other = again(session)
    assert other.messages == session.messages
    assert other.send("I am").text == session.send("I am").text
    session.send("Where?")
    assert len(other.messages) < len(session.messages)


def test_translations_with_alignments_are_compared(tiny_model):
    translator = toolkit.load(tiny_model)
    [one], [two] = (translator.translate_n(TEXTS[:1], alignments=True, max_new_tokens=9) for _ in range(2))
    assert one == two
    assert one[0] != replace(two[0], attention=two[0].attention[::-1].copy())
    assert one[0] != replace(two[0], attention=None)
    assert one[0] != "a translation"


@pytest.mark.parametrize("end", ["scored", "none"])
def test_ids_tokens_and_log_probabilities_stand_side_by_side(tiny_model, tiny_gpt, end):
    translator, model = toolkit.load(tiny_model), toolkit.load(tiny_gpt)
    settings = {"max_new_tokens": 9, "forced_eos": end}
    found = [each for group in translator.translate_n(TEXTS, **settings) for each in group]
    found += [each for group in model.generate_n(TEXTS, num_return_sequences=3, **settings) for each in group]
    for each in found:
        tokenizer = (translator if isinstance(each, type(found[0])) else model).tokenizer
        assert [tokenizer.piece(index) for index in each.ids] == each.tokens
        assert len(each.ids) == len(each.token_log_probs)
    assert any(each.tokens[-1] == "</s>" for each in found) == (end == "scored")


def test_ids_are_scored_with_their_end_mark_and_without(tiny_model):
    translator = toolkit.load(tiny_model)
    [found] = translator.translate_n(TEXTS[0], max_new_tokens=9)
    assert found.tokens[-1] == "</s>"
    scored = [translator.score(TEXTS[0], ids) for ids in (found.ids, found.ids[:-1], np.array(found.ids))]
    assert scored[0] == scored[1] == scored[2]
    assert scored[0].ids == found.ids
