"""toolkit translate: all that is known about a translation as JSON, beginnings that are given, several processes."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time

import pytest

import toolkit
from toolkit.commands import lines as windows
from toolkit.commands import translate as command
from toolkit.commands.lines import Window
from toolkit.commands.translate import Translate, _Work
from toolkit.confidence import Calibration, Line
from toolkit.decoding import GenerationConfig

LINES = ["I am a boy.", "", "She eats rice.", "Where do you go?"]
BEAMS = ("--json", "--num-beams", 4, "--num-return-sequences", 3, "--max-new-tokens", 12)


@pytest.fixture(scope="module")
def translator(tiny_model):
    return toolkit.load(tiny_model)


def objects(outcome):
    return [json.loads(line) for line in outcome.lines]


def test_json_has_all_that_the_library_has(translate, translator):
    found = objects(translate(*BEAMS, *LINES))
    assert [each["source"] for each in found] == LINES
    expected = translator.translate_n(LINES, num_beams=4, num_return_sequences=3, max_new_tokens=12)
    for each, group in zip(found, expected, strict=True):
        assert len(each["translations"]) == len(group) in ((1, 2, 3) if each["source"] else (0,))
        for record, translation in zip(each["translations"], group, strict=True):
            for name in ("text", "finished", "ids", "tokens"):
                assert record[name] == getattr(translation, name)
            for name in ("score", "log_prob", "token_log_probs"):
                assert record[name] == pytest.approx(getattr(translation, name), abs=1e-6)
            assert "attention" not in record


LETTER = "Dear Sita,\n\n1. I am a boy. She eats rice!\n- 42\nWhere do you go?"


def test_paragraphs_come_out_as_paragraphs_from_a_file_and_from_words(translate, translator, tmp_path):
    (tmp_path / "letter").write_text(LETTER)
    expected = translator.translate(LETTER, max_new_tokens=6)
    for given in (LETTER,), ("--file", tmp_path / "letter"):
        assert translate(*given, "--max-new-tokens", 6).out == f"{expected}\n"
    assert expected.split("\n")[1::2] == ["", "- 42"]
    whole = translate(LETTER, "--max-new-tokens", 6, "--no-split-sentences").lines
    assert whole == translator.translate(LETTER.split("\n"), max_new_tokens=6, split_sentences=False)
    assert whole[2] != expected.split("\n")[2]


def test_the_flag_decides_and_without_it_the_model_does(translate, run, make_model, tmp_path):
    of_numbers = ("--model", make_model(tmp_path / "numbers", split_sentences=False), "--max-new-tokens", 6)
    [free], [whole], [copied] = (
        translate(*of_numbers, "3 1 2", *flag).lines for flag in ([], ["--no-split-sentences"], ["--split-sentences"])
    )
    assert free == whole != copied == "3 1 2"
    for words in (["3 1 2", "--json"], ["3 1 2", "--long-lines", "skip", "--json"]):
        [[translation]] = [each["translations"] for each in objects(translate(*of_numbers, *words))]
        assert translation["text"] == free
        assert "segments" not in translation
    assert free in run("explain", "translate", *of_numbers, "3 1 2").out


def test_the_sentences_of_a_line_are_segments_in_json(translate, translator):
    first, copied, one = objects(translate("--json", *BEAMS[1:], "1. I am. She eats.", "* * *", "I am a boy."))
    for translation in first["translations"]:
        assert [each["source"] for each in translation["segments"]] == ["I am.", "She eats."]
        assert [(each["start"], each["end"]) for each in translation["segments"]] == [(3, 8), (9, 18)]
        assert translation["text"] == "1. {} {}".format(*(each["text"] for each in translation["segments"]))
        assert translation["ids"] == [token for each in translation["segments"] for token in each["ids"]]
    assert copied["translations"] == [
        {"text": "* * *", "score": 0, "log_prob": 0, "finished": True}
        | {"ids": [], "tokens": [], "token_log_probs": [], "segments": []}
    ]
    assert all("segments" not in each for each in one["translations"])
    [record] = objects(translate("--json", "--alignments", "--max-new-tokens", 6, "1. I am. She eats."))
    [translation] = record["translations"]
    assert "attention" not in translation
    words = record["source"].split(), translation["text"].split()
    assert all(
        0 <= place < len(side) for pair in translation["alignment"] for place, side in zip(pair, words, strict=True)
    )
    assert [len(each["attention"]) for each in translation["segments"]] == [
        len(each["tokens"]) for each in translation["segments"]
    ]


def test_n_best_lists_are_sorted_and_distinct_and_their_parts_add_up(translate):
    for each in objects(translate(*BEAMS, *LINES)):
        translations = each["translations"]
        scores = [translation["score"] for translation in translations]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(translation["ids"]) for translation in translations}) == len(translations)
        for translation in translations:
            assert sum(translation["token_log_probs"]) == pytest.approx(translation["log_prob"], abs=1e-4)
            assert len(translation["tokens"]) == len(translation["token_log_probs"]) == len(translation["ids"])


@pytest.mark.parametrize("flags", [[], ["--num-beams", 2, "--num-return-sequences", 2], ["--forced-eos", "none"]])
def test_attention_of_every_token_sums_to_1(translate, flags):
    for each in objects(translate("--json", "--alignments", "--max-new-tokens", 6, *flags, *LINES)):
        for translation in each["translations"]:
            assert translation["source_tokens"][-1] == "</s>"
            attention = translation["attention"]
            assert [len(row) for row in attention] == [len(translation["source_tokens"])] * len(translation["tokens"])
            assert [sum(row) for row in attention] == pytest.approx([1] * len(attention), abs=1e-9)
            words = len(each["source"].split()), len(translation["text"].split())
            for pair in translation["alignment"]:
                assert all(0 <= word < count for word, count in zip(pair, words, strict=True))


@pytest.mark.parametrize("flags", [[], ["--num-beams", 3], ["--do-sample"]])
def test_every_translation_begins_with_its_prefix(translate, tmp_path, flags):
    flags = [*flags, "--max-new-tokens", 5]
    prefixed = translate("--prefix", "मेरो घर", *flags, *LINES).lines
    assert [line.startswith("मेरो घर") for line in prefixed] == [True, False, True, True]
    assert prefixed[1] == ""
    (tmp_path / "prefixes").write_text("मेरो घर\n\n\nम\n", encoding="utf-8")
    one_by_one = translate("--prefix-file", tmp_path / "prefixes", *flags, *LINES).lines
    assert one_by_one[0] == prefixed[0]
    assert one_by_one[2] == translate(*flags, *LINES).lines[2]
    assert one_by_one[3].startswith("म")


@pytest.fixture
def fifty(tmp_path):
    """A file of fifty lines, every fourth of them empty."""
    path = tmp_path / "lines"
    path.write_text("".join(f"{LINES[number % 4]}\n" for number in range(50)))
    return path


@pytest.mark.parametrize("flags", [["--json", "--alignments"], ["--do-sample", "--seed", 3]])
def test_output_does_not_depend_on_the_number_of_workers(translate, fifty, monkeypatch, flags):
    monkeypatch.setattr(windows, "WINDOW", 7)
    one, two, three = (
        translate("--file", fifty, "--workers", workers, "--max-new-tokens", 4, *flags).lines for workers in (1, 2, 3)
    )
    assert one == two == three
    assert len(one) == 50


@pytest.mark.parametrize("flags", [[], ["--do-sample", "--seed", 3]])
def test_text_does_not_depend_on_windows(translate, fifty, monkeypatch, flags):
    expected = translate("--file", fifty, "--max-new-tokens", 4, *flags).lines
    monkeypatch.setattr(windows, "WINDOW", 7)
    assert translate("--file", fifty, "--max-new-tokens", 4, *flags).lines == expected


@pytest.mark.parametrize("given", ["file", "pipe"])
def test_long_lines_make_short_windows(translate, tmp_path, monkeypatch, given):
    """All sentences of a window are translated together, and memory is not to grow with them."""
    short, seen = ("--max-new-tokens", 3, "--do-sample", "--workers", 1), []
    answers = _Work._answers
    monkeypatch.setattr(
        _Work, "_answers", lambda work, window, cut=(): seen.append(window.lines) or answers(work, window, cut)
    )
    text = "I am. She eats.\n" * 9 + "\n" + "You go. " * 30 + "\nI am.\n"
    (tmp_path / "lines").write_text(text)
    ways = {
        "file": lambda: translate("--file", tmp_path / "lines", *short),
        "pipe": lambda: translate(*short, stdin=text.encode()),
    }
    whole = ways[given]()
    assert seen == [text.splitlines()]
    monkeypatch.setattr(windows, "CHARACTERS", 40)
    assert ways[given]() == whole
    assert [line for lines in seen[1:] for line in lines] == text.splitlines()
    assert max(len(lines) for lines in seen[1:]) == 3


def test_what_a_spawned_process_is_given_does_the_same(tiny_model):
    command = Translate(model=str(tiny_model), prefix="म", generation=GenerationConfig(max_new_tokens=4))
    work, window = _Work(command), Window(LINES, "it")
    assert pickle.loads(pickle.dumps(work))(window) == work(window)


def test_an_error_names_the_line_of_the_file_in_any_process(translate, tmp_path, monkeypatch):
    monkeypatch.setattr(windows, "WINDOW", 2)
    path = tmp_path / "lines"
    path.write_text("a\n" * 8 + "xq" * 3000 + "\na\n")
    for workers in (1, 2):
        output = tmp_path / f"output-{workers}"
        assert (
            "lines, line 9 has 6,001 tokens"
            in translate("--file", path, "--output", output, "--workers", workers, "--max-new-tokens", 1).sentence
        )
        assert not output.exists()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--alignments"], "add --json"),
        (["--num-beams", 2, "--num-return-sequences", 2], "add --json"),
        (["--json", "--num-return-sequences", 2], "num_return_sequences is 2, but a search with 1 beam finds"),
        (["--prefix", "a", "--prefix-file", "b"], "choose one"),
        (["--prefix-file", "no-such-file"], "no-such-file does not exist"),
        (["--prefix", "क" * 3000], "the prefix of the text, line 1 has"),
        (["--workers", 0], "workers is 0"),
        (["--reverse-weight", 0.3], "give both, or none"),
        (["--reverse-model", "no-such-model"], "no-such-model"),
        (["--reverse-model", "auto"], "--reverse-model auto belongs to en-ne and ne-en"),
        (["--bad-words", ""], "a bad word is empty"),
        (["--workers", "two"], "--workers is 'two': it must be a whole number"),
        (["--forced-eos", "maybe"], "--forced-eos is 'maybe': it must be one of scored, free, none"),
        (["--forced-end", "none"], "there is no flag --forced-end any more: it is called --forced-eos now"),
    ],
)
def test_what_does_not_go_together_is_told_in_one_sentence(translate, flags, words):
    assert words in translate("text", *flags).sentence


def test_a_model_of_the_other_direction_has_its_say(translate, translator, fifty, tiny_model, monkeypatch):
    monkeypatch.setattr(windows, "WINDOW", 7)
    flags = ["--max-new-tokens", 4, "--num-beams", 3, "--reverse-model", tiny_model, "--reverse-weight", 2.5]
    one, two = (translate("--file", fifty, "--workers", workers, *flags).lines for workers in (1, 2))
    settings = {"max_new_tokens": 4, "num_beams": 3}
    assert one == two
    assert one[:4] == translator.translate(LINES, reverse=translator, reverse_weight=2.5, **settings)
    assert one[:4] != translator.translate(LINES, **settings)
    for direction, other in (("en-ne", "ne-en"), ("ne-en", "en-ne")):
        assert command.reverse_of(Translate(model=direction, reverse_model="auto")) == other
        assert command.reverse_of(Translate(model=direction)) is None


def test_a_prefix_for_every_line(translate, tmp_path):
    path, prefixes = tmp_path / "lines", tmp_path / "prefixes"
    path.write_text("a\nb\n")
    prefixes.write_text("a\n")
    assert "lines has 2 lines" in translate("--file", path, "--prefix-file", prefixes).sentence


def test_control_c_ends_all_processes_without_a_traceback(tiny_model, tmp_path):
    path, output = tmp_path / "lines", tmp_path / "output"
    path.write_text("I am a boy. She eats rice.\n" * 30_000)
    arguments = ["translate", "--model", tiny_model, "--file", path, "--output", output, "--workers", 2]
    with subprocess.Popen(
        [sys.executable, "-m", "toolkit", *map(str, arguments)], stderr=subprocess.PIPE, start_new_session=True
    ) as running:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (tmp_path / "output.part").exists():
            time.sleep(0.02)
        time.sleep(0.2)
        os.killpg(running.pid, signal.SIGINT)
        assert running.wait(timeout=60) == 130
        assert running.stderr.read().strip() == b""
    with pytest.raises(ProcessLookupError):
        os.killpg(running.pid, 0)
    assert [each.name for each in tmp_path.iterdir()] == ["lines"]


@pytest.mark.parametrize(
    ("lines", "chosen"),
    [
        (["42", "", "I am a boy."], "en-ne"),
        (["म केटा हुँ।", "I am a boy."], "ne-en"),
        (["WiFi कहाँ छ?"], "ne-en"),
        (["42"], "en-ne"),
        ([], "en-ne"),
    ],
)
def test_the_model_is_chosen_by_the_first_line_with_letters(lines, chosen):
    translate, given = Translate(), [None, Window(lines, "x"), Window(["more"], "x")]
    assert list(translate._directed(iter(given))) == given
    assert translate.model == chosen


def test_at_the_prompt_every_line_finds_its_model_and_doubts_are_said(
    tiny_model, make_model, tmp_path, monkeypatch, capsys
):
    line = Line([0.0] * 6, [0.0] * 6, -2.0)
    back = make_model(tmp_path / "back")
    Calibration(line, Line([0.0] * 5, [0.0] * 5, -3.0), 0.5, 30, []).save(back)
    found = {"en-ne": tiny_model, "ne-en": back}
    monkeypatch.setattr(command, "load_translator", lambda name, **_: toolkit.load(found[name]))
    monkeypatch.setattr(command, "typed_lines", lambda: iter(["I am a boy.", "म केटा हुँ।"]))
    monkeypatch.setattr(Translate, "asked_at_a_prompt", lambda self: True)
    Translate(generation=GenerationConfig(max_new_tokens=4)).run()
    one, two, doubted = capsys.readouterr().out.splitlines()
    assert one == toolkit.load(tiny_model).translate("I am a boy.", max_new_tokens=4)
    assert two == toolkit.load(back).translate("म केटा हुँ।", max_new_tokens=4)
    assert doubted == f"    not sure: {', '.join(two.split())} (right with a probability of 12%)"
