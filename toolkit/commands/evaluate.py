"""toolkit evaluate: how close are translations to their references?"""

import json
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from toolkit.commands.console import emit
from toolkit.data.readers import read_lines
from toolkit.errors import DataError
from toolkit.evaluation import bleu_chrf


@dataclass
class Evaluate:
    """Score translations against references, line by line: BLEU, chrF and exact match.

    Both files are plain text in UTF-8, not tokenized. The signatures say how BLEU and chrF were computed, so that
    others can compute the same.
    """

    reference: Positional[Path]
    """File with the right translations."""
    hypothesis: Positional[Path]
    """File with the translations to score, line by line in the same order."""
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> None:
        references, hypotheses = read_lines(self.reference), read_lines(self.hypothesis)
        if len(references) != len(hypotheses):
            raise DataError(
                f"{self.reference} has {len(references)} lines, {self.hypothesis} has {len(hypotheses)}: "
                "each translation needs the reference on the same line"
            )
        scores = bleu_chrf(references, hypotheses)
        if self.json:
            emit([json.dumps({"lines": len(references), **scores.to_dict()})])
        else:
            emit(
                [
                    f"BLEU         {scores.bleu:6.2f}   {scores.bleu_signature}",
                    f"chrF         {scores.chrf:6.2f}   {scores.chrf_signature}",
                    f"exact match  {scores.exact_match:6.2f} % of {len(references)} lines, final mark aside",
                ]
            )
