"""The translations of a validation, piece by piece."""

import pickle

import toolkit
from toolkit.data.embedded import embedded
from toolkit.data.lines import read_pairs
from toolkit.evaluation.scores import bleu_chrf
from toolkit.recipes.translation import PairEvaluator


def test_pieces_have_the_scores_and_samples_of_the_whole() -> None:
    corpus, translator = embedded("en_ne", quiet=True), toolkit.load("en-ne-small")
    pairs = [*read_pairs(*(corpus / f"valid.{side}" for side in ("en", "ne")))][:75]
    sources, targets = zip(*pairs, strict=True)
    translations = translator.translate(sources)
    evaluator = pickle.loads(pickle.dumps(PairEvaluator(translator.tokenizer, pairs)))
    pieces = evaluator.pieces()
    assert len(pieces) > 2
    assert sorted(number for piece in pieces for number in piece) == list(range(len(pairs)))
    answers = [evaluator.answers(translator.model, [piece])[0] for piece in pieces]
    assert answers == evaluator.answers(translator.model, pieces)
    scores, samples = evaluator.result(answers)
    assert scores == bleu_chrf(targets, translations).to_dict()
    assert samples == [f"{sources[number]} -> {translations[number]}" for number in (9, 27, 45, 63)]
