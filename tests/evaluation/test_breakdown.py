"""Every sentence is in one bucket, a bucket has the scores of its sentences, and the worst are the worst."""

import pytest

from toolkit.evaluation import bleu_chrf, by_length, sentence_statistics, worst

REFERENCES = ["one", "one two three", "one two three four", "a b c d e f g", "", " ".join("abcdefghij" * 5)]
HYPOTHESES = ["one", "one three", "one two four four", "a b c d f e g", "", " ".join("abcdefghij" * 4)]


def test_a_bucket_has_the_scores_of_its_sentences_alone():
    buckets = by_length(sentence_statistics(REFERENCES, HYPOTHESES), REFERENCES)
    assert [(one.shortest, one.longest, one.sentences) for one in buckets] == [
        (0, 3, 3),
        (4, 6, 1),
        (7, 10, 1),
        (41, None, 1),
    ]
    for bucket in buckets:
        longest = bucket.longest or 10**9
        inside = [i for i, text in enumerate(REFERENCES) if bucket.shortest <= len(text.split()) <= longest]
        alone = bleu_chrf([REFERENCES[i] for i in inside], [HYPOTHESES[i] for i in inside])
        assert [bucket.bleu, bucket.chrf, bucket.exact_match] == pytest.approx(
            [alone.bleu, alone.chrf, alone.exact_match]
        )


def test_lengths_are_those_of_the_texts_given():
    statistics = sentence_statistics(REFERENCES, HYPOTHESES)
    (bucket,) = by_length(statistics, ["w " * 20] * 6)
    assert (bucket.shortest, bucket.longest, bucket.sentences) == (16, 25, 6)


def test_the_worst_come_first_with_their_chrf():
    statistics = sentence_statistics(REFERENCES, HYPOTHESES)
    ranked = worst(statistics, 100)
    assert sorted(index for index, _ in ranked) == [0, 1, 2, 3, 5]  # nothing for nothing is no error
    assert [score for _, score in ranked] == sorted(score for _, score in ranked)
    for index, score in ranked:
        assert score == pytest.approx(bleu_chrf([REFERENCES[index]], [HYPOTHESES[index]]).chrf)
    assert worst(statistics, 2) == ranked[:2]


def test_equally_bad_ones_keep_their_order():
    assert worst(sentence_statistics(["abc"] * 3, ["x", "abc", "y"]), 2) == [(0, 0), (2, 0)]
