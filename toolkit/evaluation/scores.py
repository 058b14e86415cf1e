"""Scores of translations: BLEU and chrF as sacreBLEU computes them (Post 2018), with signatures, and exact match."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from toolkit.errors import DataError
from toolkit.tokenization.normal_form import normal_form

FINAL_MARKS = ".?!।"


@dataclass(frozen=True)
class Scores:
    """Corpus scores from 0 to 100, higher is better, and what is needed to compute BLEU and chrF again elsewhere."""

    bleu: float
    chrf: float
    exact_match: float
    bleu_signature: str
    chrf_signature: str

    def to_dict(self) -> dict[str, float | str]:
        """The fields by name, as they go into metrics.json."""
        return asdict(self)


def bleu_chrf(references: Sequence[str], hypotheses: Sequence[str]) -> Scores:
    """Score plain (detokenized) hypotheses against one reference each, both in Unicode normal form C.

    BLEU with sacreBLEU's default tokenization 13a, chrF with its defaults (character 6-grams, beta 2), exact match in
    percent of the lines, compared after `normalise_for_match`.

    Raises DataError for unequal numbers of lines and for none.
    """
    if len(references) != len(hypotheses):
        raise DataError(
            f"there are {len(references)} references for {len(hypotheses)} hypotheses: each line needs its counterpart"
        )
    if not references:
        raise DataError("there is nothing to score: give at least one reference and its hypothesis")
    from sacrebleu.metrics import BLEU, CHRF

    references = [*map(normal_form, references)]
    hypotheses = [*map(normal_form, hypotheses)]
    bleu, chrf = BLEU(tokenize="13a"), CHRF()
    matches = sum(
        normalise_for_match(reference) == normalise_for_match(hypothesis)
        for reference, hypothesis in zip(references, hypotheses, strict=True)
    )
    return Scores(
        bleu=bleu.corpus_score(hypotheses, [references]).score,
        chrf=chrf.corpus_score(hypotheses, [references]).score,
        exact_match=100 * matches / len(references),
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
    )


def normalise_for_match(text: str) -> str:
    """The text in normal form C without outer white space and without its final mark (one of . ? ! ।)."""
    text = normal_form(text).strip()
    return text[:-1].rstrip() if text.endswith(tuple(FINAL_MARKS)) else text
