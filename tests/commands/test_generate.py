"""toolkit generate: every way in gives what the library gives, and one prompt is answered as it is written."""

import builtins
import io
import json
import os
import pickle
import subprocess
import sys

import pytest

import toolkit
from tests.outcome import Outcome
from toolkit.cli import main
from toolkit.commands import lines as windows
from toolkit.commands.generate import Generate, _Work
from toolkit.commands.lines import Window
from toolkit.decoding import ContinuationConfig

PROMPTS = ["She eats", "", "म केटा", "Where do"]
SHORT = ("--max-new-tokens", 6)


@pytest.fixture
def generate(run, tiny_gpt):
    """Run `toolkit generate` with the tiny model."""
    return lambda *arguments, **options: run("generate", "--model", tiny_gpt, *arguments, **options)


@pytest.fixture(scope="module")
def model(tiny_gpt):
    return toolkit.load(tiny_gpt)


def whole(prompts, continuations):
    """What is printed: texts with an empty line between them."""
    return "\n\n".join(map(str.__add__, prompts, continuations)) + "\n"


def test_every_way_in_gives_what_the_library_gives(generate, model, tmp_path):
    (tmp_path / "prompts").write_text("\n".join(PROMPTS) + "\n")
    expected = whole(PROMPTS, model.generate(PROMPTS, max_new_tokens=6))
    assert generate(*SHORT, *PROMPTS).out == expected
    assert generate(*SHORT, "--file", tmp_path / "prompts").out == expected
    assert generate(*SHORT, stdin=(tmp_path / "prompts").read_bytes()).out == expected
    assert generate(*SHORT, "--batch-size", 1, *PROMPTS).out == expected
    assert generate(stdin=b"") == Outcome(0, "", "")


@pytest.mark.parametrize(
    ("flags", "settings"),
    [
        ([], {}),
        (["--seed", 5, "--top-p", 0.9, "--min-p", 0.1], {"seed": 5, "top_p": 0.9, "min_p": 0.1}),
        (["--no-do-sample", "--num-beams", 3], {"do_sample": False, "num_beams": 3}),
        (["--temperature", 0, "--no-repeat-ngram-size", 2], {"temperature": 0.0, "no_repeat_ngram_size": 2}),
        (["--past-context", "slide", "--max-new-tokens", 50], {"past_context": "slide", "max_new_tokens": 50}),
        (["--bad-words", "boy", "--bad-words", "eats"], {"bad_words": ["boy", "eats"]}),
    ],
)
def test_flags_are_the_settings_of_the_library_for_one_prompt_and_several(generate, model, flags, settings):
    assert generate(*flags, "She").out == whole(["She"], [model.generate("She", **settings)])
    assert generate(*flags, "--only-new", "She").out == model.generate("She", **settings) + "\n"
    assert generate(*flags, *PROMPTS).out == whole(PROMPTS, model.generate(PROMPTS, **settings))


def test_stop_strings_end_the_text(generate, model):
    text = model.generate("She", temperature=0.0)
    stops = [text[5:7], text[9:11]]
    flags = [word for stop in stops for word in ("--stop-strings", stop)]
    found = generate("--temperature", 0, *flags, "She").out
    assert found == whole(["She"], [model.generate("She", temperature=0.0, stop_strings=stops)])
    assert len(found) < len(text)


def test_several_continuations_stand_below_each_other(generate, model):
    [group] = model.generate_n(["She"], num_return_sequences=3, max_new_tokens=6)
    assert generate(*SHORT, "--num-return-sequences", 3, "She").out == whole(["She"] * 3, [each.text for each in group])


def test_json_has_all_that_the_library_has(generate, model):
    found = [json.loads(line) for line in generate(*SHORT, "--json", "--num-return-sequences", 2, *PROMPTS).lines]
    assert [each["prompt"] for each in found] == PROMPTS
    expected = model.generate_n(PROMPTS, num_return_sequences=2, max_new_tokens=6)
    for each, group in zip(found, expected, strict=True):
        for record, continuation in zip(each["continuations"], group, strict=True):
            for name in ("text", "finish_reason", "ids", "tokens"):
                assert record[name] == getattr(continuation, name)
            for name in ("score", "log_prob", "token_log_probs"):
                assert record[name] == pytest.approx(getattr(continuation, name), abs=1e-6)
    assert len(generate("--json", *SHORT, "She").lines) == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_long_input_does_not_depend_on_windows_or_workers(generate, model, monkeypatch, workers):
    prompts = [PROMPTS[number % 4] for number in range(40)]
    text = "".join(f"{prompt}\n" for prompt in prompts).encode()
    monkeypatch.setattr(windows, "WINDOW", 10)
    found = generate(*SHORT, "--workers", workers, "--batch-size", 4, stdin=text).out
    assert found == whole(prompts, model.generate(prompts, max_new_tokens=6))


def test_what_a_spawned_process_is_given_does_the_same(tiny_gpt):
    command = Generate(model=str(tiny_gpt), bad_words=("boy",), generation=ContinuationConfig(max_new_tokens=4))
    work, window = _Work(command), Window(PROMPTS, "it")
    assert pickle.loads(pickle.dumps(work))(window) == work(window)


def test_a_model_that_converses_is_asked_by_the_chat(run, chatty):
    for verb in ("generate",), ("explain", "generate"):
        sentence = run(*verb, "What is this?", "--model", chatty).sentence
        assert f"was taught to converse, and continues no bare text: toolkit chat --model {chatty} asks" in sentence
    assert toolkit.load(chatty).generate("She", max_new_tokens=3)
    assert run("perplexity", "--model", chatty, "-", stdin=b"She eats rice.").code == 0


# The prompt


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_prompt_answers_what_is_typed_with_new_samples_every_time(capsys, monkeypatch, tiny_gpt, model):
    typed = iter(["She", "xq" * 99, "She", ""])
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(builtins, "input", lambda prompt="": next(typed))
    assert main(["generate", "--model", str(tiny_gpt)]) == 0
    outcome = capsys.readouterr()
    texts = ["".join(model.stream("She", first=number)) for number in (0, 2)]
    assert outcome.out == "".join(f"She{text}\n" for text in texts)
    assert texts[0] != texts[1]
    assert "toolkit: the prompt has" in outcome.err


def test_a_pipe_gets_the_text_as_it_is_written(tiny_gpt):
    flags = ["--past-context", "slide", "--max-new-tokens", "90000", "--min-new-tokens", "90000", "--seed", "1"]
    command = [sys.executable, "-m", "toolkit", "generate", "--model", str(tiny_gpt), *flags, "She"]
    reading, writing = os.pipe()
    with subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE) as running:
        os.close(writing)
        assert os.read(reading, 3) == b"She"
        os.close(reading)  # the reader leaves long before the end
        assert running.stderr.read() == b""
    assert running.returncode == 141


# Mistakes


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--file", "x"], "choose one"),
        (["--model", "no-such-model"], "there is no model 'no-such-model'"),
        (["--num-beams", 2], "num_beams is 2, but sampling has no beams"),
        (["--num-beams", 2, "--no-do-sample", "--stop-strings", "a"], "stop strings"),
        (["--stop-strings", ""], "a stop string is empty"),
        (["--bad-words", ""], "a bad word is empty"),
        (["--min-p", 2], "min_p is 2"),
        (["--batch-size", 0], "batch_size is 0"),
        (["--workers", 0], "workers is 0"),
        (["--past-context", "wrap"], "--past-context is 'wrap': it must be one of stop, slide"),
        (["--max-new-tokens", 0], "max_new_tokens is 0"),
        (["xq" * 30], "prompt 2 has"),
        (["caf\udce9"], "prompt 2 cannot be read"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(generate, flags, words):
    assert words in generate("She eats", *flags).sentence


def test_a_prompt_that_does_not_fit_is_named(generate, tmp_path):
    (tmp_path / "prompts").write_text("a\n" * 5 + "xq" * 30 + "\n")
    assert "prompts, line 6 has" in generate(*SHORT, "--batch-size", 6, "--file", tmp_path / "prompts").sentence
    assert "the prompt has" in generate("xq" * 30).sentence
    assert "the prompt cannot be read" in generate("caf\udce9").sentence


def test_models_of_another_kind_are_told_what_they_are_for(run, tiny_model, tiny_gpt):
    assert "use toolkit translate" in run("generate", "--model", tiny_model, "a").sentence
    assert "use toolkit generate" in run("translate", "--model", tiny_gpt, "a").sentence
    line = b'{"source": "a", "target": "b"}\n'
    assert "use toolkit perplexity" in run("score", "--model", tiny_gpt, stdin=line).sentence
    assert "use toolkit score" in run("perplexity", "--model", tiny_model, __file__).sentence
