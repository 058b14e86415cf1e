"""Language models at the library's front door: a prompt in, a continuation out, and what a text is worth."""

import math
import unicodedata

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

import toolkit
from toolkit.decoding import ContinuationConfig
from toolkit.errors import ConfigError, DataError, ModelError
from toolkit.evaluation.perplexity import WindowLosses, windows
from toolkit.language_model import LanguageModel
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.tokenization import CharacterTokenizer
from toolkit.tokenization.special import BOS, EOS

PROMPTS = ["She eats", "", "म केटा", "Where do you go?", "I"]
GREEDY = {"temperature": 0.0}
WAYS = [GREEDY, {"seed": 3}, {"do_sample": False, "num_beams": 3}, {"past_context": "slide", "max_new_tokens": 40}]


@pytest.fixture(scope="module")
def model(tiny_gpt):
    return toolkit.load(tiny_gpt)


def of_characters(text="ab \n", **settings):
    """A random model that knows no marks and the characters of `text`."""
    tokenizer = CharacterTokenizer.train([text])
    config = {"d_model": 8, "layers": 1, "num_heads": 2, "d_ff": 8, "max_length": 16, "begin": False, **settings}
    gpt = GPT(GPTConfig(vocab_size=tokenizer.vocab_size, **config))
    gpt.allocate()
    gpt.initialize(np.random.default_rng(0))
    return LanguageModel(gpt, tokenizer)


# Kinds of models


def test_a_directory_is_loaded_as_what_it_holds(tiny_gpt, tiny_model, model):
    assert isinstance(model, toolkit.LanguageModel)
    assert isinstance(toolkit.load_language_model(tiny_gpt), toolkit.LanguageModel)
    assert isinstance(toolkit.load_translator(tiny_model), toolkit.Translator)
    with pytest.raises(ModelError, match="is a language model, which translates nothing: use toolkit generate"):
        toolkit.load_translator(tiny_gpt)
    with pytest.raises(ModelError, match="is a translator, which continues no text: use toolkit translate"):
        toolkit.load_language_model(tiny_model)


def test_a_tokenizer_of_another_model_is_refused(model):
    with pytest.raises(ModelError, match="copy both"):
        LanguageModel(model.model, CharacterTokenizer.train(["abc"]))


# Generation


def test_a_prompt_gives_a_text_and_a_list_a_list(model):
    one = model.generate(PROMPTS[0], **GREEDY)
    assert isinstance(one, str)
    assert one
    assert model.generate([PROMPTS[0]], **GREEDY) == [one]
    assert model.generate([], **GREEDY) == []


def test_settings_are_those_of_a_config_or_change_one(model):
    config = ContinuationConfig(seed=5, max_new_tokens=9)
    expected = model.generate(PROMPTS, seed=3, max_new_tokens=9)
    assert model.generate(PROMPTS, config, seed=3) == expected != model.generate(PROMPTS, config)
    assert "".join(model.stream(PROMPTS[0], config, seed=3)) == expected[0]
    with pytest.raises(ConfigError, match="num_return_sequences is 2: generate_n gives several"):
        model.generate(PROMPTS, num_return_sequences=2)


@pytest.mark.parametrize("settings", WAYS, ids=str)
def test_a_list_equals_its_prompts_for_every_batch_size(model, settings):
    together = model.generate(PROMPTS, batch_size=2, **settings)
    assert model.generate(PROMPTS, **settings) == together
    if "seed" not in settings and "slide" not in settings.values():  # samples depend on the number of their prompt
        assert [model.generate(prompt, **settings) for prompt in PROMPTS] == together


def test_samples_depend_on_the_seed_alone(model):
    first = model.generate(PROMPTS, seed=1)
    assert model.generate(PROMPTS, seed=1, batch_size=1) == first
    assert model.generate(PROMPTS, seed=2) != first
    assert model.generate(PROMPTS, temperature=0.0) == model.generate(PROMPTS, do_sample=False)


@pytest.mark.parametrize("settings", WAYS, ids=str)
def test_a_stream_is_what_generate_gives(model, settings):
    for prompt in PROMPTS:
        parts = list(model.stream(prompt, **settings))
        assert "".join(parts) == model.generate(prompt, **settings)
        assert all(parts)


def test_a_stream_is_written_as_it_is_asked_for(model):
    written = model.stream("I", past_context="slide", max_new_tokens=10**5, min_new_tokens=10**5)
    assert len([next(written) for _ in range(50)]) == 50


def test_what_is_wrong_with_a_stream_is_told_at_once(model):
    for wrong in {"max_new_tokens": 0}, {"stop_strings": [""]}, {"bad_words": [""]}, {"top_p": 2.0}:
        with pytest.raises(ConfigError):
            model.stream("a", **wrong)
    with pytest.raises(ConfigError, match="stop strings"):
        model.stream("a", stop_strings=["a"], num_beams=2, do_sample=False)
    with pytest.raises(DataError, match="the prompt has"):
        model.stream("xq" * 40)
    for write in model.stream, model.generate, model.generate_n:
        with pytest.raises(TypeError, match="there is no setting 'num_beam': did you mean 'num_beams'"):
            write("a", num_beam=2)


def test_all_that_is_known_of_continuations_fits_together(model):
    groups = model.generate_n(PROMPTS, num_return_sequences=3, seed=4, max_new_tokens=9)
    assert [len(group) for group in groups] == [3] * len(PROMPTS)
    for prompt, group in zip(PROMPTS, groups, strict=True):
        assert [each.score for each in group] == sorted((each.score for each in group), reverse=True)
        for each in group:
            assert each.prompt == prompt
            assert each.text == model.tokenizer.decode(each.ids)
            ended = each.finish_reason == "stop"
            assert len(each.tokens) == len(each.token_log_probs) == len(each.ids) + ended
            assert each.tokens[-1] == "</s>" if ended else len(each.ids) == 9
            assert each.log_prob == pytest.approx(sum(each.token_log_probs))
            assert each.score == pytest.approx(each.log_prob / len(each.tokens))


def test_the_log_probabilities_are_those_of_the_text(model):
    """Reading prompt and continuation finds what generation said, whatever was reshaped in drawing it."""
    [[whole]] = model.generate_n(["I am"], top_p=0.5, repetition_penalty=1.5, bad_words=["boy"], max_new_tokens=12)
    prompt = [BOS, *model.tokenizer.encode("I am")]
    ids = [*prompt, *whole.ids, *([EOS] if whole.finish_reason == "stop" else [])]
    (before, _), (both, _) = (WindowLosses(model.model)([*windows([(text, True)], 32)]) for text in (prompt, ids))
    assert before - both == pytest.approx(whole.log_prob, abs=1e-4)


def test_an_empty_prompt_is_a_line_feed_where_there_are_no_marks():
    model = of_characters()
    settings = {"past_context": "slide", "max_new_tokens": 30, **GREEDY}
    assert model.generate("", **settings) == model.generate("\n", **settings)
    assert len(model.generate("", **settings)) == 30
    with pytest.raises(DataError, match="prompt 2 is empty, and this model cannot begin"):
        of_characters("ab").generate(["a", ""])


def test_the_end_of_the_context(model):
    [[stopped]], [[slid]] = (
        model.generate_n(["I am"], past_context=how, min_new_tokens=20, max_new_tokens=70, **GREEDY)
        for how in ("stop", "slide")
    )
    read = 1 + len(model.tokenizer.encode("I am"))
    assert (len(stopped.tokens), stopped.finish_reason) == (32 - read, "length")
    assert slid.ids[: 32 - read] == stopped.ids
    assert len(slid.ids) > len(stopped.ids)
    long = "I am a boy. " * 20
    assert model.generate(long, past_context="slide", max_new_tokens=3)
    with pytest.raises(DataError, match=r"the prompt has \d+ tokens, and the model has room for 30"):
        model.generate(long)
    with pytest.raises(DataError, match="has 1000000 characters"):
        model.generate("x" * 1_000_000)


# Stop strings and bans


@pytest.mark.parametrize("settings", [GREEDY, {"seed": 5}], ids=str)
def test_a_text_ends_in_front_of_the_first_stop_string(model, settings):
    settings = {**settings, "max_new_tokens": 24}
    plain = [group[0] for group in model.generate_n(PROMPTS, **settings)]
    tried = 0
    for number, whole in enumerate(plain):
        for begin in range(0, len(whole.text) - 2, 3):
            stops = [whole.text[begin : begin + 2], whole.text[begin + 1 : begin + 3]]
            if not all(unicodedata.is_normalized("NFC", stop) for stop in stops):
                continue
            expected = whole.text[: min(whole.text.find(stop) for stop in stops)]
            found = model.generate_n(PROMPTS, stop_strings=stops, **settings)[number][0]
            assert (found.text, found.finish_reason) == (expected, "stop")
            assert found.ids == whole.ids[: len(found.ids)]
            assert number or "".join(model.stream(PROMPTS[0], stop_strings=stops, **settings)) == expected
            tried += 1
    assert tried > 5


def test_a_stop_string_that_is_not_written_changes_nothing(model):
    settings = {"seed": 1, "max_new_tokens": 20}
    assert model.generate(PROMPTS, stop_strings=["never written"], **settings) == model.generate(PROMPTS, **settings)


def test_bad_words_are_not_written_with_or_without_a_space():
    model = of_characters("ab\n")
    settings = {"min_new_tokens": 12, "seed": 2, "temperature": 1.0}
    assert sum(text.count("ab") for text in model.generate(["a", "b"] * 4, **settings)) > 5
    for text in model.generate(["a", "b"] * 4, bad_words=["ab"], **settings):
        assert len(text) > 5
        assert "ab" not in text


def test_bad_words_are_banned_in_both_forms(model):
    words = model.tokenizer.encode("boy"), model.tokenizer.encode(" boy")
    assert model.bad_ids(["boy"]) == [*words]
    assert model.bad_ids([" boy"]) == [words[1], words[1]]
    with pytest.raises(ConfigError, match="as a list"):
        model.generate("a", bad_words="boy")
    with pytest.raises(ConfigError, match="empty"):
        model.generate("a", bad_words=[""])


# What cannot be


def test_what_is_no_prompt_is_named(model):
    with pytest.raises(DataError, match="surrogate"):
        model.generate("a\ud800")
    with pytest.raises(DataError, match=r"prompt 2 cannot be read: .*U\+00E7"):
        of_characters().generate(["a", "ç"])
    for wrong in {"top_k": -1}, {"batch_size": 0}, {"past_context": "wrap"}, {"num_beams": 2}, {"min_p": 2.0}:
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            model.generate("a", **wrong)


def test_numbers_that_are_not_finite_are_told(tiny_gpt):
    model = toolkit.load(tiny_gpt)
    for name, value in model.model.arrays().items():
        value *= 1e30 if name.endswith("gain") else 1
    for ask in (
        lambda: model.generate("a", **GREEDY),
        lambda: model.generate("a"),
        lambda: model.generate("a", num_beams=2, do_sample=False),
        lambda: model.stream("a"),
        lambda: model.perplexity("a b c"),
    ):
        with pytest.raises(ModelError, match="not finite"):
            ask()


def test_the_callers_blas_threads_are_left_as_they_were_between_parts(model):
    with threadpool_limits(2, user_api="blas"):
        before = ThreadpoolController().info()
        written = model.stream("a", past_context="slide", max_new_tokens=50, min_new_tokens=40)
        next(written)
        assert ThreadpoolController().info() == before
        with np.errstate(over="raise"):
            next(written)
            assert np.geterr()["over"] == "raise"
        model.generate("a", max_new_tokens=2)
        assert ThreadpoolController().info() == before


# Perplexity


def test_the_perplexity_of_a_text_counts_its_end_mark_and_its_bytes(model):
    text = "म केटा हुँ।"
    found = model.perplexity(text)
    assert found.tokens == len(model.tokenizer.encode(text)) + 1
    assert found.bytes == len(text.encode())
    assert found.perplexity == pytest.approx(math.exp(found.loss))
    assert found.bits_per_byte == pytest.approx(found.loss * found.tokens / math.log(2) / found.bytes)
    assert model.perplexity(unicodedata.normalize("NFD", "é")) == model.perplexity("é")


def test_texts_are_read_each_by_itself(model):
    texts = ["She eats rice.", "I am a boy. " * 30, ""]
    alone = [model.perplexity(text) for text in texts[:2]]
    both = model.perplexity(texts[:2])
    assert both.tokens == sum(each.tokens for each in alone)
    assert both.loss * both.tokens == pytest.approx(sum(each.loss * each.tokens for each in alone), rel=1e-6)
    assert model.perplexity(texts).tokens == both.tokens + 1  # an empty text has an end, too


def test_a_text_in_pieces_is_the_text(model):
    text = "She eats rice. Where do you go? " * 8
    pieces = [(text[:40], False), (text[40:], True)]
    assert text[40] == " "
    whole = model.perplexity(text, overlap=5)
    assert model.perplexity_of(pieces, overlap=5) == whole
    assert whole.loss != model.perplexity(text).loss


def test_a_model_without_marks_predicts_all_but_the_first():
    model = of_characters()
    assert model.perplexity("abba").tokens == 3
    for nothing in "", "a", []:
        with pytest.raises(DataError, match="nothing to predict"):
            model.perplexity(nothing)


def test_an_overlap_beyond_the_context_is_refused(model):
    with pytest.raises(ConfigError, match="overlap is 32"):
        model.perplexity("abc", overlap=32)
