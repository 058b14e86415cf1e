"""toolkit score: what a search reports for its output is what scoring that output finds."""

import json

import pytest

import toolkit

LINES = ["I am a boy.", "", "She eats rice.", "Where do you go?"]
TARGETS = ["म केटा हुँ।", "", "उनी भात खान्छिन्।", ""]


@pytest.fixture
def score(run, tiny_model):
    return lambda *arguments, **options: run("score", "--model", tiny_model, *arguments, **options)


@pytest.fixture
def files(tmp_path):
    for name, lines in ("source", LINES), ("target", TARGETS):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return "--source", tmp_path / "source", "--target", tmp_path / "target"


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--num-beams", 4, "--num-return-sequences", 3],
        ["--do-sample", "--num-return-sequences", 2],
        ["--prefix", "मेरो"],
        ["--length-penalty", 0.5],
    ],
)
def test_translations_have_the_score_that_the_search_gave_them(translate, score, flags):
    written = translate("--json", "--max-new-tokens", 8, *flags, *LINES)
    power = flags[1] if "--length-penalty" in flags else 1.0
    scored = score("--json", "--length-penalty", power, stdin=written.out.encode())
    for before, after in zip(written.lines, scored.lines, strict=True):
        before, after = json.loads(before), json.loads(after)
        assert after["source"] == before["source"]
        for one, other in zip(before["translations"], after["translations"], strict=True):
            assert (one["text"], one["ids"], one["tokens"]) == (other["text"], other["ids"], other["tokens"])
            for name in ("score", "log_prob", "token_log_probs"):
                assert other[name] == pytest.approx(one[name], abs=1e-4)


def test_segments_are_scored_by_themselves(translate, score):
    lines = ("1. I am. She eats.", "* * *", "")
    written = [json.loads(line) for line in translate("--json", "--alignments", "--max-new-tokens", 6, *lines).lines]
    given = "".join(f"{json.dumps(each)}\n" for each in written)
    found = [json.loads(line) for line in score("--json", "--alignments", stdin=given.encode()).lines]
    for one, other in zip(written, found, strict=True):
        for left, right in zip(one["translations"], other["translations"], strict=True):
            assert right["log_prob"] == pytest.approx(left["log_prob"], abs=1e-4)
            assert right["score"] == pytest.approx(left["score"], abs=1e-4)
            assert [right[name] for name in ("text", "ids", "tokens")] == [
                left[name] for name in ("text", "ids", "tokens")
            ]
            assert [each["start"] for each in right["segments"]] == [each["start"] for each in left["segments"]]
    wrong = {"source": "I am. She eats.", "segments": [{"text": "म"}]}
    assert "line 1 has 2 sentences and translations of 1" in score(stdin=json.dumps(wrong).encode()).sentence


def test_two_files_are_scored_line_by_line(score, files, tiny_model):
    lines = score(*files).lines
    assert lines[1] == ""
    spoken = [(source, target) for source, target in zip(LINES, TARGETS, strict=True) if source]
    expected = toolkit.load(tiny_model).score(*zip(*spoken, strict=True))
    found = [line.split("\t") for line in lines if line]
    for (points, log_prob, count), translation in zip(found, expected, strict=True):
        assert float(points) == pytest.approx(translation.score, abs=1e-6)
        assert float(log_prob) == pytest.approx(translation.log_prob, abs=1e-6)
        assert int(count) == len(translation.ids)
        assert float(points) * int(count) == pytest.approx(float(log_prob), abs=1e-4)


def test_every_form_of_a_request_gives_the_same(score, files, tiny_model, tmp_path):
    translator = toolkit.load(tiny_model)
    ids = [
        translator.score([source], [target])[0].ids if source else []
        for source, target in zip(LINES, TARGETS, strict=True)
    ]
    for name, values in ("target", TARGETS), ("ids", ids):
        requests = [
            {"source": source, name: value} if source else {"source": "", "translations": []}
            for source, value in zip(LINES, values, strict=True)
        ]
        (tmp_path / "requests").write_text("".join(f"{json.dumps(each)}\n" for each in requests))
        assert score("--file", tmp_path / "requests") == score(*files)


def test_alignments_come_with_json(score, files):
    found = [json.loads(line) for line in score(*files, "--json", "--alignments").lines]
    for each in found:
        for translation in each["translations"]:
            assert [sum(row) for row in translation["attention"]] == pytest.approx([1] * len(translation["tokens"]))
            assert {target for _, target in translation["alignment"]} == set(range(len(translation["text"].split())))


def test_several_translations_without_json_are_several_lines(score):
    request = {"source": "I", "translations": [{"text": "म"}, {"text": "केटा"}]}
    assert len(score(stdin=json.dumps(request).encode()).lines) == 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("hello", "is not JSON"),
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[1]", 'a text as "source"'),
        ('{"target": "a"}', 'a text as "source"'),
        ('{"source": 3, "target": "a"}', 'a text as "source"'),
        ('{"source": "a"}', "has no translation"),
        ('{"source": "a", "ids": [20, "x"]}', "has no translation"),
        ('{"source": "a", "ids": [20, true]}', "has no translation"),
        ('{"source": "a", "ids": [20, 100000]}', "did another one write it?"),
        ('{"source": "a", "ids": [3, 20]}', "did another one write it?"),
        ('{"source": "a", "translations": 3}', "not a list"),
        ('{"source": "a", "translations": [3]}', "has no translation"),
        ('{"source": " ", "target": "a"}', "has a blank source"),
        (json.dumps({"source": "a", "target": "xq" * 3000}), "has 6,001 tokens"),
    ],
)
def test_a_foolish_request_is_named_with_its_line(score, line, words):
    sentence = score(stdin=f'{{"source": "a", "target": "b"}}\n{line}\n'.encode()).sentence
    assert "standard input, line 2" in sentence
    assert words in sentence


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--source", "x"], "--source and --target go together"),
        (["--source", "x", "--target", "y", "--file", "z"], "choose JSON lines or two text files"),
        (["--alignments"], "add --json"),
        (["--file", "no-such-file"], "no-such-file does not exist"),
        (["--batch-size", "0"], "batch_size is 0"),
    ],
)
def test_a_mistake_in_flags_is_told_in_one_sentence(score, flags, words):
    assert words in score(*flags, stdin=b'{"source": "a", "target": "b"}\n').sentence


def test_a_foolish_request_is_named_with_its_line_where_long_ones_are_skipped(score):
    requests = b'{"source": "a", "target": "b"}\n{"source": " ", "target": "a"}\n'
    sentence = score("--long-lines", "skip", stdin=requests).sentence
    assert "standard input, line 2 has a blank source" in sentence


def test_files_of_unequal_length(score, files, tmp_path):
    (tmp_path / "target").write_text("a\n")
    assert "source has 4 lines, " in score(*files).sentence
