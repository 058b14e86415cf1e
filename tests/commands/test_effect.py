"""A setting that has no effect beside the others is refused, by the commands and by the library."""

import pytest

import toolkit
from toolkit.errors import ConfigError

IDLE = [
    ({"temperature": 0.5}, "temperature is 0.5, but while do_sample is False nothing is drawn"),
    ({"top_k": 5}, "top_k is 5, but while do_sample is False nothing is drawn"),
    ({"top_p": 0.9, "num_beams": 2}, "top_p is 0.9, but while do_sample is False nothing is drawn"),
    ({"min_p": 0.2}, "min_p is 0.2, but while do_sample is False nothing is drawn"),
    ({"do_sample": True, "temperature": 0.0, "top_k": 5}, "top_k is 5, but at temperature 0 nothing is drawn"),
    ({"early_stopping": True}, "early_stopping is True, but with one beam there is nothing to stop"),
]
# A seed may always be given, and so may a value that asks for nothing.
FINE = [
    {"seed": 3},
    {"temperature": 0.0, "seed": 3},
    {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0},
    {"do_sample": True, "temperature": 0.5, "top_k": 5},
    {"early_stopping": True, "num_beams": 2},
    {"length_penalty": 0.5},
]
SHORT = {"max_new_tokens": 2}


def flags_of(settings):
    """The settings as words of a command; do_sample is on where it is there."""
    pairs = [(f"--{name.replace('_', '-')}", value) for name, value in settings.items()]
    return [word for flag, value in pairs for word in ((flag,) if flag == "--do-sample" else (flag, value))]


@pytest.mark.parametrize(("settings", "sentence"), IDLE, ids=lambda value: "" if isinstance(value, str) else str(value))
def test_what_has_no_effect_is_refused_by_every_verb(run, tiny_model, tiny_gpt, settings, sentence):
    translator, model = toolkit.load(tiny_model), toolkit.load(tiny_gpt)
    greedy = {"do_sample": False, **settings}
    for call in (
        lambda: translator.translate("a", **settings, **SHORT),
        lambda: translator.translate_n("a", **settings, **SHORT),
        lambda: model.generate("a", **greedy, **SHORT),
        lambda: model.generate_n("a", **greedy, **SHORT),
        lambda: model.stream("a", **greedy, **SHORT),
        lambda: model.chat(template="plain", **settings),
    ):
        with pytest.raises(ConfigError, match=sentence):
            call()
    assert sentence in run("translate", "--model", tiny_model, "a", *flags_of(settings)).sentence
    assert sentence in run("generate", "--model", tiny_gpt, "a", "--no-do-sample", *flags_of(settings)).sentence
    assert sentence in run("chat", "--model", tiny_gpt, "--template", "plain", "a", *flags_of(settings)).sentence


@pytest.mark.parametrize("settings", FINE, ids=str)
def test_what_has_an_effect_or_asks_for_nothing_is_taken(tiny_model, tiny_gpt, settings):
    translator, model = toolkit.load(tiny_model), toolkit.load(tiny_gpt)
    assert isinstance(translator.translate("a", **settings, **SHORT), str)
    assert isinstance(model.generate("a", **{"do_sample": False, **settings}, **SHORT), str)
