"""How good is it? Scores that others can reproduce."""

from toolkit.evaluation.scores import Scores, bleu_chrf, normalise_for_match

__all__ = ["Scores", "bleu_chrf", "normalise_for_match"]
