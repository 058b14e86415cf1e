"""A line that is longer than the model reads does not end the command where --long-lines says so."""

import json

import pytest

import toolkit
from toolkit.commands import lines as windows
from toolkit.data.lines import LONGEST_LINE

LONG, ENDLESS = "xq " * 2000 + "end", "y" * (LONGEST_LINE + 5)
LINES = ["I am", LONG, "", "She eats", ENDLESS, "a boy", LONG]
PLACES = [1, 4, 6]  # of those that are too long
SHORT = ("--max-new-tokens", 5)
DRAWN = ("--do-sample", "--seed", 4)


@pytest.fixture
def file(tmp_path):
    (tmp_path / "lines").write_text("".join(f"{line}\n" for line in LINES))
    return tmp_path / "lines"


@pytest.fixture(params=["file", "pipe"])
def ways(request, file):
    """The flags and the input that give the lines to a verb."""
    return (("--file", file), {}) if request.param == "file" else ((), {"stdin": file.read_bytes()})


def numbered(lines):
    """Those of the lines that are not too long, as the others see them: one stands for each that is left out."""
    return ["x" if place in PLACES else line for place, line in enumerate(lines)]


def ids_of(record):
    """What was written after a prompt; other batches change the last digits of probabilities."""
    return record["prompt"], [each["ids"] for each in record["continuations"]]


@pytest.mark.parametrize("flags", [(), DRAWN], ids=["greedy", "drawn"])
@pytest.mark.parametrize("size", [2048, 2])
def test_a_skipped_line_is_empty_and_changes_no_other(translate, ways, monkeypatch, flags, size):
    monkeypatch.setattr(windows, "WINDOW", size)
    given, stdin = ways
    outcome = translate(*given, *SHORT, *flags, "--long-lines", "skip", **stdin)
    expected = translate(*SHORT, *flags, stdin="\n".join(numbered(LINES)).encode()).lines
    assert outcome.lines == ["" if place in PLACES else line for place, line in enumerate(expected)]
    name = f"{given[1]}" if given else "standard input"
    assert outcome.err == f"toolkit: 3 lines too long for the model were skipped: the first is {name}, line 2\n"


def test_a_line_that_is_cut_off_is_its_longest_beginning(translate, file, tiny_model):
    found = translate("--file", file, *SHORT, "--json", "--long-lines", "truncate")
    records = [json.loads(line) for line in found.lines]
    assert [place for place, each in enumerate(records) if "truncated" in each] == PLACES
    translator = toolkit.load(tiny_model)
    for place in PLACES:
        source = records[place]["source"]
        assert LINES[place].startswith(source)
        assert records[place]["translations"][0]["text"] == translator.translate(source, max_new_tokens=5)
    kept = records[1]["source"]
    assert LONG[len(kept)] == " "  # a whole word is the last one
    with pytest.raises(toolkit.errors.DataError, match="at most: divide it"):
        translator.translate(f"{kept} xq")
    assert found.err.startswith("toolkit: 3 lines too long for the model were cut off: the first is")


def test_what_is_skipped_is_marked_in_json(translate, file):
    records = [json.loads(line) for line in translate("--file", file, *SHORT, "--json", "--long-lines", "skip").lines]
    assert [place for place, each in enumerate(records) if each.get("skipped")] == PLACES
    assert all(records[place]["translations"] == [] for place in PLACES)


def test_by_default_a_long_line_is_refused(translate, file):
    assert "lines, line 5 has more than 100,000 characters" in translate("--file", file).sentence
    file.write_text("".join(f"{line}\n" for line in LINES[:4]))
    for flags in (), ("--long-lines", "refuse"):
        assert "lines, line 2 has" in translate("--file", file, *flags).sentence


def test_processes_count_together(translate, file, monkeypatch):
    monkeypatch.setattr(windows, "WINDOW", 2)
    alone, together = (translate("--file", file, *SHORT, "--long-lines", "skip", "--workers", n) for n in (1, 2))
    assert alone == together


def test_a_line_is_as_long_as_its_longest_sentence(translate):
    many, long = "I am a boy. " * 400, f"She eats. {LONG.upper()}. I am."
    given = f"{many}\n{long}\n".encode()
    skipped = translate(*SHORT, "--long-lines", "skip", stdin=given)
    assert [bool(line) for line in skipped.lines] == [True, False]
    assert skipped.err.endswith("was skipped: standard input, line 2\n")
    assert "standard input, line 2, sentence 2 has" in translate(*SHORT, stdin=given).sentence
    [cut] = [json.loads(line) for line in translate(*SHORT, "--json", "--long-lines", "truncate", long).lines]
    assert long.startswith(cut["source"])
    assert cut["translations"][0]["segments"][0]["source"] == "She eats."
    assert "line 1 has" in translate(*SHORT, "--no-split-sentences", stdin=given).sentence


@pytest.mark.parametrize("policy", ["skip", "truncate"])
def test_prompts_have_the_rule(run, file, tiny_gpt, policy):
    generate = ("generate", "--model", tiny_gpt, *SHORT, "--json", "--batch-size", 2, "--long-lines", policy)
    found = run(*generate, "--file", file)
    records = [json.loads(line) for line in found.lines]
    rest = run(*generate, stdin="\n".join(numbered(LINES)).encode()).lines
    for place, record in enumerate(records):
        if place not in PLACES:
            assert ids_of(record) == ids_of(json.loads(rest[place]))
        elif policy == "skip":
            assert record == {"prompt": LINES[place][: LONGEST_LINE + 1], "continuations": [], "skipped": True}
        else:
            assert record["truncated"]
            assert LINES[place].startswith(record["prompt"])
            assert len(record["continuations"][0]["ids"]) == 5  # there is room for what was asked for
    assert found.err.startswith("toolkit: 3 lines too long")


def test_what_is_scored_has_the_rule(run, tiny_model, tmp_path):
    score = ("score", "--model", tiny_model, "--long-lines", "skip")
    (tmp_path / "source").write_text("".join(f"{line}\n" for line in ["I am", LONG, "", "She", ENDLESS]))
    (tmp_path / "target").write_text("".join(f"{line}\n" for line in ["म", "म", "", LONG, "म"]))
    found = run(*score, "--source", tmp_path / "source", "--target", tmp_path / "target")
    assert [bool(line) for line in found.lines] == [True, False, False, False, False]
    assert found.err.startswith("toolkit: 3 lines too long for the model were skipped: the first is")
    requests = [
        {"source": "I am", "target": "म"},
        {"source": LONG, "target": "म"},
        {"source": "She", "ids": [20] * 3000},
    ]
    lines = run(*score, "--json", stdin="".join(f"{json.dumps(each)}\n" for each in requests).encode()).lines
    assert ["skipped" in json.loads(line) for line in lines] == [False, True, True]
