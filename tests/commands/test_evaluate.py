"""toolkit evaluate prints what the library computes, as text and as JSON, and says what does not fit together."""

import json

import pytest

from toolkit.commands.evaluate import Evaluate
from toolkit.errors import ConfigError, DataError
from toolkit.evaluation import bleu_chrf, compare, intervals, sentence_statistics

REFERENCES = ["म केटा हुँ।", "यो मेरो घर हो।", "उनी भात खान्छिन्।", "ऊ पानी पिउँछ।"]
HYPOTHESES = ["म केटा हुँ", "यो घर हो।", "उनी भात खान्छिन्।", "केटा पानी"]
OTHERS = ["म केटी हुँ", "यो घर", "भात", "ऊ पिउँछ।"]
SOURCES = ["I am a boy.", "This is my house.", "She eats rice.", "He drinks water."]
TRAIN = ["I am a girl.", "This is his house.", "She eats rice."], ["म केटी हुँ।", "यो उसको घर हो।", "उनी भात खान्छिन्।"]


@pytest.fixture
def files(tmp_path):
    """Paths of the texts above, by name."""
    texts = {"ref": REFERENCES, "hyp": HYPOTHESES, "other": OTHERS, "src": SOURCES, "x": TRAIN[0], "y": TRAIN[1]}
    for name, lines in texts.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {name: tmp_path / name for name in texts}


@pytest.fixture
def evaluate(files, capsys):
    """Run the command on the references and hypotheses -> what it prints."""

    def evaluate(**options):
        Evaluate(files["ref"], files["hyp"], **options).run()
        printed = capsys.readouterr().out
        return json.loads(printed) if options.get("json") else printed

    return evaluate


def test_scores_and_intervals_are_those_of_the_library(evaluate):
    facts = evaluate(json=True, bootstrap=50, seed=2)
    scores = bleu_chrf(REFERENCES, HYPOTHESES).to_dict()
    assert {name: facts[name] for name in scores} == scores
    found = intervals(sentence_statistics(REFERENCES, HYPOTHESES), 50, 2)
    assert facts["intervals"] == {metric: [one.low, one.high] for metric, one in found.items()}
    assert (facts["lines"], facts["bootstrap"]) == (4, {"samples": 50, "seed": 2})


def test_without_test_sets_there_are_scores_only(evaluate):
    assert evaluate(json=True, bootstrap=0) == {"lines": 4, **bleu_chrf(REFERENCES, HYPOTHESES).to_dict()}
    assert "95 %" not in evaluate(bootstrap=0)


def test_another_system_is_compared(evaluate, files):
    facts = evaluate(json=True, versus=files["other"])["versus"]
    found = compare(sentence_statistics(REFERENCES, HYPOTHESES), sentence_statistics(REFERENCES, OTHERS))
    assert facts["chrf"] == bleu_chrf(REFERENCES, OTHERS).chrf
    for metric, one in found.items():
        assert facts["difference"][metric] == {
            "score": one.score,
            "interval": [one.low, one.high],
            "p_value": one.p_value,
        }


def test_the_baseline_answers_with_training_targets(evaluate, files):
    facts = evaluate(json=True, source=files["src"], baseline=(files["x"], files["y"]))["baseline"]
    looked_up = [TRAIN[1][0], TRAIN[1][1], TRAIN[1][2], TRAIN[1][2]]
    assert facts["chrf"] == bleu_chrf(REFERENCES, looked_up).chrf
    assert (facts["pairs"], facts["verbatim"]) == (3, 1)


def test_the_worst_come_with_their_line_and_source(evaluate, files):
    (one,) = evaluate(json=True, worst=1, source=files["src"])["worst"]
    assert one.pop("chrf") == pytest.approx(bleu_chrf(REFERENCES[3:], HYPOTHESES[3:]).chrf)
    assert one == {"line": 4, "source": SOURCES[3], "reference": REFERENCES[3], "hypothesis": HYPOTHESES[3]}
    assert "source" not in evaluate(json=True, worst=1)["worst"][0]


def test_lengths_are_the_words_of_the_source_or_of_the_reference(evaluate, files):
    ours = evaluate(json=True, by_length=True, source=files["src"])["by_length"]
    assert (ours["words_of"], [one["sentences"] for one in ours["buckets"]]) == ("source", [2, 2])
    theirs = evaluate(json=True, by_length=True)["by_length"]
    assert (theirs["words_of"], [one["sentences"] for one in theirs["buckets"]]) == ("reference", [3, 1])


def test_the_text_shows_all_of_it(evaluate, files):
    options = {"versus": files["other"], "source": files["src"], "baseline": (files["x"], files["y"])}
    options |= {"by_length": True, "worst": 2}
    facts, text = evaluate(json=True, **options), evaluate(**options)
    lines = text.split("\n")
    for metric, name in ("bleu", "BLEU"), ("chrf", "chrF"), ("exact_match", "exact match"):
        rows = [line for line in lines if line.startswith(name)]
        assert len(rows) == 3
        for bound in facts["intervals"][metric]:
            assert f"{bound:.2f}" in rows[0]
        for row, section in zip(rows[1:], ("versus", "baseline"), strict=True):
            assert f"{facts[section][metric]:.2f}" in row
            assert row.endswith(f"{facts[section]['difference'][metric]['p_value']:.3f}")
    for shown in (facts["bleu_signature"], "1 of 4 sources", "words of the source", "worst 2", HYPOTHESES[3]):
        assert shown in text


def test_what_does_not_fit_together_is_said_in_one_sentence(files):
    def refused(error, message, hypothesis="hyp", **options):
        with pytest.raises(error, match=message) as caught:
            Evaluate(files["ref"], files[hypothesis], **options).run()
        assert "\n" not in str(caught.value)

    train = (files["x"], files["y"])
    refused(ConfigError, "--baseline looks up the sentences of --source", baseline=train)
    refused(ConfigError, "--worst is -1", worst=-1)
    refused(ConfigError, "--seed is -1", seed=-1)
    refused(ConfigError, "--bootstrap is -5", bootstrap=-5)
    refused(ConfigError, "need test sets", bootstrap=0, versus=files["other"])
    refused(DataError, "ref has 4 lines, .*x has 3: each translation", hypothesis="x")
    refused(DataError, "ref has 4 lines, .*x has 3: each translation", versus=files["x"])
    refused(DataError, "ref has 4 lines, .*x has 3: each source", source=files["x"])
    refused(
        DataError, "x has 3 lines, .*hyp has 4: each training", source=files["src"], baseline=(files["x"], files["hyp"])
    )
