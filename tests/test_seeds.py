"""Samples: without a seed they are drawn anew, and the seed that is told repeats them, whatever they are drawn in."""

import builtins
import io
import json
import re
import sys

import numpy as np
import pytest

import toolkit
from toolkit.commands import lines as windows
from toolkit.decoding import ContinuationConfig, GenerationConfig, config, generate
from toolkit.errors import ConfigError
from toolkit.evaluation.replies import SAMPLED
from toolkit.preference.replies import write_replies
from toolkit.tokenization.special import BOS, EOS

SHORT = ("--max-new-tokens", 8)
WIDE = ("--temperature", 2, "--min-p", 0)  # so that equal samples are not to be expected
NOTE = re.compile(r"^toolkit: seed (\d+): --seed \1 repeats it$", re.MULTILINE)


@pytest.fixture
def drawn(monkeypatch):
    """The seeds that are drawn: 11, 12, ..."""
    seeds = []
    monkeypatch.setattr(config, "fresh_seed", lambda: seeds.append(len(seeds) + 11) or seeds[-1])
    return seeds


# The library


@pytest.mark.usefixtures("fresh_seeds")
def test_without_a_seed_every_call_draws_anew_and_a_number_repeats(tiny_model, tiny_gpt):
    translator, model = toolkit.load(tiny_model), toolkit.load(tiny_gpt)
    wide = {"temperature": 2.0, "min_p": 0.0, "max_new_tokens": 12}
    for write in (
        lambda **seed: translator.translate("I am a boy.", do_sample=True, **wide, **seed),
        lambda **seed: model.generate("I am", **wide, **seed),
        lambda **seed: "".join(model.stream("I am", **wide, **seed)),
        lambda **seed: model.chat(template="plain", do_sample=True, **wide, **seed).send("I am").text,
    ):
        assert len({write() for _ in range(4)}) > 1
        assert len({write(seed=3) for _ in range(2)}) == 1
    seeds = {ContinuationConfig().seeded().seed for _ in range(20)}
    assert len(seeds) == 20
    assert all(0 <= seed < 1 << 31 for seed in seeds)


def test_one_seed_serves_all_batches_processes_and_replies(drawn, tiny_model, tiny_gpt):
    translator, model = toolkit.load(tiny_model), toolkit.load(tiny_gpt)
    texts, settings = ["I am a boy.", "She eats", "Where", "I am"], {"max_new_tokens": 6}
    sampled = {"do_sample": True, "temperature": 2.0, **settings}
    for write in (
        lambda **how: translator.translate(texts, batch_size=1, **sampled, **how),
        lambda **how: translator.translate(texts, workers=2, **sampled, **how),
        lambda **how: model.generate(texts, batch_size=1, temperature=2.0, **settings, **how),
    ):
        drawn.clear()
        assert write() == write(seed=11)
        assert drawn == [11]
    translator.close()
    drawn.clear()
    one, two = model.chat(template="plain", **sampled), model.chat(template="plain", **sampled, seed=11)
    assert [one.send(text).text for text in texts[:2]] == [two.send(text).text for text in texts[:2]]
    assert (drawn, one.config.seed) == ([11], 11)


def test_a_search_draws_nothing_and_neither_does_what_is_measured(monkeypatch, tiny_model, tiny_gpt):
    def fail():
        raise AssertionError("a seed is drawn")

    monkeypatch.setattr(config, "fresh_seed", fail)
    translator = toolkit.load(tiny_model).model
    for way in {}, {"num_beams": 2}, {"do_sample": True, "temperature": 0.0}, {"do_sample": True, "seed": 4}:
        assert generate(translator, [[20, 21]], GenerationConfig(**way))
    model = toolkit.load(tiny_gpt).model
    assert generate(model, [[20]], SAMPLED)  # the share of polite replies
    assert write_replies(model, [np.array([BOS, 20])], EOS, max_new_tokens=2)  # PPO and the reward's scale
    for wrong in -1, 1.5, "a", True:
        with pytest.raises(ConfigError, match="seed is "):
            GenerationConfig(seed=wrong)


# The command


@pytest.mark.usefixtures("fresh_seeds")
def test_the_seed_that_is_shown_repeats_the_text(run, monkeypatch, tiny_model, tiny_gpt, tmp_path):
    monkeypatch.setattr(windows, "WINDOW", 2)
    (tmp_path / "lines").write_text("I am\nShe eats\nWhere do\nI am\nShe\n")
    generate = ("generate", "--model", tiny_gpt, *SHORT, *WIDE)
    translate = ("translate", "--model", tiny_model, "--do-sample", *SHORT, *WIDE)
    for words in (
        (*generate, "She eats"),
        (*generate, "--num-return-sequences", 2, "She eats"),
        (*generate, "--file", tmp_path / "lines", "--workers", 2, "--batch-size", 1),
        (*translate, "She eats"),
    ):
        shown = run(*words)
        [seed] = NOTE.findall(shown.err)
        again, other = run(*words, "--seed", seed), run(*words, "--quiet")
        assert (again.lines, again.err) == (shown.lines, "")
        assert (other.lines != shown.lines, other.err) == (True, "")
    for words in (*generate[:3], "--temperature", 0, "She"), (*translate[:3], "She"):
        assert run(*words).err == ""


def test_a_seed_is_told_after_what_is_wrong_is_known(run, drawn, tiny_gpt):
    assert "the prompt has" in run("generate", "--model", tiny_gpt, "xq" * 99).sentence
    assert (
        "the message has" in run("chat", "--model", tiny_gpt, "--template", "plain", "--do-sample", "xq" * 99).sentence
    )
    assert drawn == [11, 12]


def test_lines_of_json_have_the_seed_of_what_was_drawn(run, drawn, tiny_model, tiny_gpt):
    found = run("generate", "--model", tiny_gpt, "--json", *SHORT, "I am", "She eats rice")
    assert found.err == ""
    assert [json.loads(line)["seed"] for line in found.lines] == [11, 11]
    assert json.loads(run("generate", "--model", tiny_gpt, "--json", *SHORT, "--seed", 5, "I am").out)["seed"] == 5
    blank, spoken = map(json.loads, run("translate", "--model", tiny_model, "--json", "--do-sample", "\nI am").lines)
    assert ("seed" in blank, spoken["seed"]) == (False, 12)
    assert "seed" not in json.loads(run("translate", "--model", tiny_model, "--json", "I am").out)
    chat = ("chat", "--model", tiny_gpt, "--template", "plain", "--json", "--max-new-tokens", 2)
    assert json.loads(run(*chat, "--do-sample", "I am").out)["seed"] == 13
    assert "seed" not in json.loads(run(*chat, "I am").out)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_prompt_and_a_conversation_tell_their_seed_once(run, drawn, capsys, monkeypatch, tiny_model, tiny_gpt):
    for words, note in (
        (("generate", "--model", tiny_gpt), "toolkit: seed 11: --seed 11 repeats it"),
        (("translate", "--model", tiny_model, "--do-sample"), "toolkit: seed 12: --seed 12 repeats it"),
        (("chat", "--model", tiny_gpt, "--template", "plain", "--do-sample"), "(seed 13: --seed 13 repeats it)"),
    ):
        typed = iter(["She", "I am", ""])
        monkeypatch.setattr(sys, "stdin", Terminal())
        monkeypatch.setattr(builtins, "input", lambda prompt="", typed=typed: next(typed, "/quit"))
        assert toolkit.cli.main([*map(str, words), *map(str, SHORT)]) == 0
        assert capsys.readouterr().err.count(note) == 1
    piped = run("chat", "--model", tiny_gpt, "--template", "plain", "--do-sample", stdin=b"a\nb\n")
    assert piped.err.count("(seed 14: --seed 14 repeats it)") == 1
    assert "with seed 15" in run("explain", "generate", "I am", "--model", tiny_gpt).out


def test_what_is_typed_is_drawn_as_lines_of_a_pipe_are(run, capsys, monkeypatch, tiny_model):
    words = ("translate", "--model", tiny_model, "--do-sample", "--seed", 5)
    piped = run(*words, stdin=b"I am\nI am\nShe\n").lines
    typed = iter(["I am", "I am", "She", ""])
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(builtins, "input", lambda prompt="": next(typed))
    assert toolkit.cli.main([*map(str, words)]) == 0
    assert capsys.readouterr().out.splitlines() == piped
    assert piped[0] != piped[1]
