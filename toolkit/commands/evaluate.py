"""toolkit evaluate: how close are translations to their references, how surely, and where are they not?"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tyro.conf import Positional

from toolkit.commands.console import emit
from toolkit.commands.lines import all_lines, is_input
from toolkit.data.lines import read_lines
from toolkit.display import counted, json_text
from toolkit.errors import ConfigError, DataError
from toolkit.evaluation import (
    Tokenization,
    bleu_chrf,
    by_length,
    compare,
    intervals,
    look_up,
    sentence_statistics,
    worst,
)

_NAMES = {"bleu": "BLEU", "chrf": "chrF", "exact_match": "exact match"}


@dataclass
class Evaluate:
    """Score translations against references, line by line: BLEU, chrF and exact match.

    All files are plain text in UTF-8, not tokenized, with one sentence a line; in that of references several that are
    as good may stand on a line, with tabs between them. The signatures say how BLEU and chrF
    were computed, so that others can compute the same. Intervals hold 95 % of the scores of resampled test sets; a
    difference with p below 0.05 is commonly called significant. p is two-sided: sacreBLEU's paired bootstrap gives
    about half of it.
    """

    examples = (
        "new.ne translated.ne",
        "new.ne translated.ne --source new.en --worst 5",
        "new.ne translated.ne --versus other.ne",
    )

    reference: Positional[Path]
    """File with the right translations, of each line one or several between tabs; - is standard input, here or
    below."""
    hypothesis: Positional[Path]
    """File with the translations to score, line by line in the same order."""
    versus: Path | None = None
    """File with the translations of another system: is the difference significant?"""
    source: Path | None = None
    """File with the sentences that were translated."""
    baseline: tuple[Path, Path] | None = None
    """Training sources and targets: compares with looking up the most similar training sentence; needs --source."""
    tokenize: Tokenization = "13a"
    """How BLEU finds words; 13a is made for European languages, and intl also divides the punctuation of others."""
    bootstrap: int = 1000
    """How many test sets are drawn for intervals and p-values; 0: no intervals."""
    seed: int = 1
    """Seed of those draws."""
    by_length: bool = False
    """Also score by the number of words, of the source if it is given, else of the reference."""
    worst: int = 0
    """Show this number of sentences, those with the lowest chrF."""
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> None:
        self._check()
        facts = self._facts()
        emit([json_text(facts)] if self.json else _lines(facts))

    def _check(self) -> None:
        named = (self.reference, self.hypothesis, self.versus, self.source)
        if sum(map(is_input, named)) > 1:
            raise ConfigError("standard input (-) is named twice: give one of the files by its name")
        if self.baseline and not self.source:
            raise ConfigError("--baseline looks up the sentences of --source: give that file too")
        for name in ("bootstrap", "seed", "worst"):
            if getattr(self, name) < 0:
                raise ConfigError(f"--{name} is {getattr(self, name)}: choose a whole number from 0")
        if not self.bootstrap and (self.versus or self.baseline):
            raise ConfigError("--versus and --baseline need test sets to compare on: give --bootstrap 1000")

    def _facts(self) -> dict[str, Any]:
        """Compute everything that was asked for, by name, as --json prints it."""
        references = [line.split("\t") for line in all_lines(self.reference)]
        hypotheses = self._aligned(self.hypothesis, references, "each translation needs the reference")
        sources = self.source and self._aligned(self.source, references, "each source needs its reference")
        firsts = [line[0] for line in references]
        statistics = sentence_statistics(references, hypotheses, self.tokenize)
        facts: dict[str, Any] = {
            "lines": len(references),
            **asdict(bleu_chrf(references, hypotheses, self.tokenize)),
        }
        if self.bootstrap:
            found = intervals(statistics, self.bootstrap, self.seed)
            facts["intervals"] = {metric: [interval.low, interval.high] for metric, interval in found.items()}
            facts["bootstrap"] = {"samples": self.bootstrap, "seed": self.seed}
        if self.versus:
            others = self._aligned(self.versus, references, "each translation needs the reference")
            facts["versus"] = {"file": str(self.versus), **self._contrast(references, others, statistics)}
        if self.baseline:
            train_sources, train_targets = map(read_lines, self.baseline)
            if len(train_sources) != len(train_targets):
                raise DataError(
                    f"{self.baseline[0]} has {counted(len(train_sources))}, {self.baseline[1]} has "
                    f"{len(train_targets)}: each training source needs its translation on the same line"
                )
            copied = look_up(sources, train_sources, train_targets)
            facts["baseline"] = {
                "pairs": len(train_sources),
                "verbatim": copied.verbatim,
                "similarity": copied.similarity,
                **self._contrast(references, copied.translations, statistics),
            }
        if self.by_length:
            facts["by_length"] = {
                "words_of": "source" if sources else "reference",
                "buckets": [asdict(bucket) for bucket in by_length(statistics, sources or firsts)],
            }
        if self.worst:
            texts = {**({"source": sources} if sources else {}), "reference": firsts, "hypothesis": hypotheses}
            facts["worst"] = [
                {"line": place + 1, "chrf": chrf, **{name: lines[place] for name, lines in texts.items()}}
                for place, chrf in worst(statistics, self.worst)
            ]
        return facts

    def _aligned(self, path: Path, references: list[list[str]], need: str) -> list[str]:
        lines = all_lines(path)
        if len(lines) != len(references):
            raise DataError(
                f"{self.reference} has {counted(len(references))}, {path} has {len(lines)}: {need} on the same line"
            )
        return lines

    def _contrast(self, references: list[list[str]], others: list[str], statistics: Any) -> dict[str, Any]:
        """Compute another system's scores, and how much better the hypothesis is."""
        found = compare(statistics, sentence_statistics(references, others, self.tokenize), self.bootstrap, self.seed)
        scores = asdict(bleu_chrf(references, others, self.tokenize))
        return {
            **{metric: scores[metric] for metric in _NAMES},
            "difference": {
                metric: {"score": one.score, "interval": [one.low, one.high], "p_value": one.p_value}
                for metric, one in found.items()
            },
        }


def _lines(facts: dict[str, Any]) -> list[str]:
    notes = facts["bleu_signature"], facts["chrf_signature"], f"of {facts['lines']} lines, final mark aside"
    lines = []
    for (metric, name), note in zip(_NAMES.items(), notes, strict=True):
        bounds = facts.get("intervals", {}).get(metric)
        interval = f"   95 %: {bounds[0]:6.2f} to {bounds[1]:6.2f}" if bounds else ""
        unit = " % " if metric == "exact_match" else "   "
        lines.append(f"{name:11}  {facts[metric]:6.2f}{unit}{interval}   {note}")
    if "versus" in facts:
        lines += ["", f"compared with {facts['versus']['file']}", *_contrast_lines(facts, facts["versus"])]
    if "baseline" in facts:
        found = facts["baseline"]
        lines += [
            "",
            f"compared with looking up the most similar of {found['pairs']} training sentences "
            f"(mean similarity {found['similarity']:.2f}; "
            f"{found['verbatim']} of {facts['lines']} sources are among them word for word)",
            *_contrast_lines(facts, found),
        ]
    if "by_length" in facts:
        words_of, buckets = facts["by_length"]["words_of"], facts["by_length"]["buckets"]
        lines += ["", f"{'words':>9}  {'lines':>7}  {'BLEU':>6}  {'chrF':>6}  exact match    (words of the {words_of})"]
        for one in buckets:
            first, last = one["shortest"], one["longest"]
            words = f"up to {last}" if not first else f"{first}-{last}" if last else f"{first} up"
            scores = f"{one['bleu']:6.2f}  {one['chrf']:6.2f}  {one['exact_match']:9.2f} %"
            lines.append(f"{words:>9}  {one['sentences']:7}  {scores}")
    for number, one in enumerate(facts.get("worst", []), start=1):
        texts = [f"  {name:10}  {one[name]}" for name in ("source", "reference", "hypothesis") if name in one]
        lines += ["", f"worst {number}: line {one['line']}, chrF {one['chrf']:.2f}", *texts]
    return lines


def _contrast_lines(facts: dict[str, Any], other: dict[str, Any]) -> list[str]:
    lines = [f"{'':11}  {'here':>6}  {'there':>6}  {'better by':>9}   {'95 %':^18}   p"]
    for metric, name in _NAMES.items():
        one = other["difference"][metric]
        low, high = one["interval"]
        lines.append(
            f"{name:11}  {facts[metric]:6.2f}  {other[metric]:6.2f}  {one['score']:+9.2f}   "
            f"{low:+7.2f} to {high:+7.2f}   {one['p_value']:.3f}"
        )
    return lines
