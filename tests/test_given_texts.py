"""One rule for every verb of the library: a text gives what belongs to a text, an iterable of texts a list of that."""

import numpy as np
import pytest

import toolkit
from toolkit.errors import ConfigError, DataError, ToolkitError

SHORT = {"max_new_tokens": 4}
TEXTS = ["She eats", "I am", "यो मेरो"]


@pytest.fixture(scope="module")
def translator(tiny_model):
    return toolkit.load_translator(tiny_model)


@pytest.fixture(scope="module")
def model(tiny_gpt):
    return toolkit.load_language_model(tiny_gpt)


@pytest.fixture(scope="module")
def verbs(translator, model):
    """Every verb that takes texts, and gives the same for the same ones."""
    return {
        "translate": lambda given: translator.translate(given, **SHORT),
        "translate_n": lambda given: translator.translate_n(given, num_beams=2, num_return_sequences=2, **SHORT),
        "score": lambda given: translator.score(given, given),
        "generate": lambda given: model.generate(given, temperature=0.0, **SHORT),
        "generate_n": lambda given: model.generate_n(given, temperature=0.0, **SHORT),
    }


VERBS = ["translate", "translate_n", "score", "generate", "generate_n"]


@pytest.mark.parametrize("verb", VERBS)
def test_a_text_is_one_text_and_not_its_letters(verbs, verb):
    one = verbs[verb](TEXTS[0])
    [several] = verbs[verb]([TEXTS[0]])
    assert type(one) is type(several)
    assert one == several


@pytest.mark.parametrize("verb", VERBS)
def test_any_iterable_is_a_list(verbs, verb):
    expected = verbs[verb](TEXTS)
    assert isinstance(expected, list)
    assert len(expected) == len(TEXTS)
    if verb != "score":  # which reads its two lists one after the other
        assert verbs[verb](each for each in TEXTS) == expected
    assert verbs[verb](np.array(TEXTS)) == verbs[verb](tuple(TEXTS)) == expected


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("item", [None, float("nan"), b"She", 5, ["She"]], ids=repr)
def test_an_item_that_is_no_text_is_named(verbs, verb, item):
    with pytest.raises(DataError, match=rf"(text|prompt) 2 is .*\({type(item).__name__}\), not a text"):
        verbs[verb](["She", item])


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("given", [None, 5, b"She", {"She": 1}, {"She"}, np.array("She")], ids=repr)
def test_what_is_no_list_of_texts_is_refused(verbs, verb, given):
    with pytest.raises(ConfigError, match="are given as a list of texts, not "):
        verbs[verb](given)


def test_everything_else_that_takes_texts_has_the_rule(translator, model):
    texts = "abc ab", "b"
    assert model.perplexity(each for each in texts) == model.perplexity(list(texts)) != model.perplexity("abc abb")
    assert translator.translate(TEXTS, prefix=iter("ab "), **SHORT) == translator.translate(
        TEXTS, prefix=["a", "b", " "], **SHORT
    )
    wrong = {
        "text 1 is None": lambda: model.perplexity([None]),
        "prefix 2 is None": lambda: translator.translate(["a", "b"], prefix=["", None]),
        "bad word 1 is b'a'": lambda: translator.translate("a", bad_words=[b"a"]),
        "stop string 2 is 5": lambda: model.generate("a", stop_strings=["a", 5]),
        "the prompt is": lambda: model.stream(["a"]),
        "the message is None": lambda: model.chat(template="control").send(None),
        "the translation of text 2 is None": lambda: translator.score(["a", "b"], ["c", None]),
        "the translation of the text is": lambda: translator.score("a", [None]),
        "the sources are a list, and the targets 'b'": lambda: translator.score(["a"], "b"),
    }
    for sentence, call in wrong.items():
        with pytest.raises(ToolkitError, match=sentence):
            call()
