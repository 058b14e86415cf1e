"""Help pages: they fit the terminal, name every flag, have what is used most first, and their examples are true."""

import re
import shlex
from dataclasses import fields
from importlib import import_module

import pytest

from toolkit.cli import KINDS, TOPICS, VERBS, main, parsed
from toolkit.commands.generate import Generate
from toolkit.commands.translate import Translate
from toolkit.decoding import ContinuationConfig, GenerationConfig
from toolkit.recipes import recipe_of

# All commands that have flags: "toolkit translate", "toolkit explain attention", "toolkit train chat", ...
COMMANDS = {
    f"{menu} {choice}": home
    for menu, choices in {"toolkit": VERBS, "toolkit explain": TOPICS, "toolkit train": KINDS}.items()
    for choice, (home, _) in choices.items()
    if home or choices is KINDS
}
# What the files of examples hold, where they are run.
FILES = {
    "letter.txt": "I am a boy.\n\nShe likes milk.\n",
    "prompts.txt": "Once upon a time\nOne day\n",
    "new.en": "I am a boy.\nWhere is my book?\n",
    "new.ne": "म केटा हुँ।\nमेरो किताब कहाँ छ?\n",
    "translated.ne": "म केटा हुँ।\nमेरो कलम कहाँ छ?\n",
    "other.ne": "म केटी हुँ।\nमेरो किताब कहाँ छ?\n",
    "story.txt": "Once upon a time, there was a little boy.\n",
    "other.txt": "One day a bird saw a fish.\n",
    "pairs.jsonl": '{"source": "I am a boy.", "target": "म केटा हुँ।"}\n',
    "translations.jsonl": '{"source": "I am a boy.", "translations": [{"text": "म केटा हुँ।"}]}\n',
    "requests.jsonl": '{"message": "Hello."}\n',
}
CHEAP = ("translate", "generate", "chat", "score", "evaluate", "perplexity", "presets")


def examples_of(program):
    """The examples of a command, as words, with the file that standard input comes from."""
    module, _, name = COMMANDS[program].partition(".")
    command = (
        getattr(import_module(f"toolkit.commands.{module}"), name) if module else recipe_of(program.split()[2]).Settings
    )
    for example in command.examples:
        words, _, given = example.partition(" < ")
        yield shlex.split(words.partition(" > ")[0]), given


def pages(run, monkeypatch, program, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    return run(*program.split()[1:], "--help").lines


@pytest.mark.parametrize("program", COMMANDS)
def test_help_fits_the_terminal(run, monkeypatch, program):
    for columns in (60, 120) if program == "toolkit translate" else (60,):
        lines = pages(run, monkeypatch, program, columns)
        examples = {line for line in lines if line.startswith(f"  {program}")}  # to be copied: they are not broken
        assert max(map(len, examples)) <= 80
        names = {line for line in lines if line.startswith("  --")}  # a flag with its choices has a line of its own
        assert max(len(line) for line in lines if line not in examples | names) <= min(columns, 100)
        assert not [line for line in lines if "{None}" in line or "default: None" in line or "│" in line]


@pytest.mark.parametrize("program", COMMANDS)
def test_every_example_is_read_by_its_command(program):
    found = [*examples_of(program)]
    assert 2 <= len(found) <= 4
    *menu, choice = program.split()
    for words, _ in found:
        assert parsed([choice, *words], " ".join(menu))


@pytest.mark.parametrize("verb", CHEAP)
def test_examples_run(run, monkeypatch, tmp_path, verb):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for words, given in examples_of(f"toolkit {verb}"):
        if not any("checkpoints/" in word for word in words):
            outcome = run(verb, *words, stdin=FILES[given].encode() if given else b"")
            assert outcome.lines or "--output" in words or not words


def test_help_names_every_flag_and_every_word(run, monkeypatch):
    page = "\n".join(pages(run, monkeypatch, "toolkit translate", 80))
    assert page.startswith("usage: toolkit translate [options] [TEXT ...]\n")
    for name in [each.name for kind in (Translate, GenerationConfig) for each in fields(kind)]:
        flag = name.replace("_", "-")
        assert name in ("text", "generation") or re.search(rf"^  --(\[no-\])?{flag}( |$)", page, re.MULTILINE)
    assert "  --output PATH           File to write instead of standard output (-); it takes\n" in page


@pytest.mark.parametrize(("verb", "command"), [("translate", Translate), ("generate", Generate)])
def test_what_is_used_most_comes_first(run, monkeypatch, verb, command):
    lines = pages(run, monkeypatch, f"toolkit {verb}", 80)
    titles = [line for line in lines if re.fullmatch(r"\w[\w ]*:", line)]
    groups = ["examples:", "arguments:", "options:", "search and sampling:", "what is written:", "rarely used:"]
    assert titles == groups  # no setting of decoding is in none of them
    flags = re.findall(r"^  --(?:\[no-\])?([\w-]+)", "\n".join(lines), re.MULTILINE)
    assert (flags[:2], flags[-1]) == (["model", "file"], "quiet")
    expected = {*fields(command), *fields(ContinuationConfig if verb == "generate" else GenerationConfig)}
    assert {flag.replace("-", "_") for flag in flags} == {each.name for each in expected} - {"text", "generation"}
    assert len(flags) == len({*flags})


def test_the_settings_of_a_recipe_stand_before_those_of_its_model_and_training(run, monkeypatch):
    lines = pages(run, monkeypatch, "toolkit train translation", 80)
    flags = re.findall(r"^  --(?:\[no-\])?([\w.-]+)", "\n".join(lines), re.MULTILINE)
    assert flags[:4] == ["run", "resume", "start", "source"]
    assert [line for line in lines if line.endswith(":") and line[0] != " "][-3:] == ["filters:", "model:", "training:"]


def test_embedded_files_are_not_told_by_where_they_lie(run, monkeypatch: pytest.MonkeyPatch) -> None:
    page = " ".join(" ".join(pages(run, monkeypatch, "toolkit train chat", 200)).split())
    assert "(default: the embedded chat/test.jsonl)" in page


# Did you mean


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["tranlate", "x"], "there is no verb 'tranlate': did you mean translate?"),
        (["gen"], "there is no verb 'gen': did you mean generate?"),
        (["Translate"], "there is no verb 'Translate': did you mean translate?"),
        (["attention"], "there is no verb 'attention': did you mean toolkit explain attention?"),
        (["language-model"], "there is no verb 'language-model': did you mean toolkit train language-model?"),
        (["explain", "atention"], "there is no topic 'atention': did you mean attention?"),
        (["train", "translate"], "there is no kind 'translate': did you mean translation?"),
        (["train", "languagemodel"], "there is no kind 'languagemodel': did you mean language-model?"),
        (["help"], "there is no verb 'help': did you mean --help?"),
        (["--versoin"], "there is no flag '--versoin': did you mean --version?"),
        (["paint"], "there is no verb 'paint': it is toolkit VERB, with a verb of translate, generate, "),
        (["translate", "x", "--model", "en-nee"], "there is no model 'en-nee': did you mean en-ne?"),
        (["translate", "x", "--model", "EN-NE"], "there is no model 'EN-NE': did you mean en-ne?"),
        (
            ["generate", "x", "--model", "novels"],
            "there is no model 'novels': give the path of a directory, or ",
        ),
    ],
)
def test_what_was_meant_is_guessed(run, words, sentence):
    assert run(*words).sentence.startswith(f"toolkit: {sentence}")


@pytest.mark.parametrize("menu", [(), ("train",), ("explain",)])
def test_a_menu_lists_its_choices(capsys, menu):
    assert main([*menu]) == main([*menu, "--help"]) == 0
    page = capsys.readouterr().out
    choices = {(): VERBS, ("train",): KINDS, ("explain",): TOPICS}[menu]
    assert [each for each in choices if f"\n  {each} " not in page] == []
    assert max(map(len, page.splitlines())) <= 80
