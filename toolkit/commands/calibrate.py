"""toolkit calibrate: learn what a translator's probabilities mean, from translations that are known to be right."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tyro.conf import OmitArgPrefixes

from toolkit.api import load_translator
from toolkit.commands.console import emit
from toolkit.commands.flags import Dtype, ModelName
from toolkit.commands.lines import all_lines, is_input
from toolkit.confidence import Calibration, Example
from toolkit.decoding import GenerationConfig
from toolkit.display import aligned, counted, json_text
from toolkit.errors import ConfigError, DataError
from toolkit.evaluation import matches, normalise_for_match, sentence_statistics, worst
from toolkit.files import check_writable
from toolkit.models.storage import CONFIDENCE_FILE, find_model


@dataclass
class Calibrate:
    """Calibrate a translator: learn how often it is right when its tokens have certain probabilities.

    It translates sentences whose right translations are known, and which nobody trained on: 200 or more. What it learns
    is written to confidence.json in the model's directory; from then on every translation has a confidence, in JSON, in
    Python and at the prompt. A sentence is right here if it equals one of its references, the final mark aside.
    """

    examples = (
        "--model RUN --source valid.en --reference valid.ne",
        "--model RUN --source a.en --reference a.ne --num-beams 4",
    )

    source: Path
    """Text file in UTF-8 with the sentences, one a line; - is standard input, here or below."""
    reference: Path
    """Their right translations, of each line one or several between tabs."""
    model: ModelName = "en-ne"
    dtype: Dtype = "auto"
    json: bool = False
    """Print what was learned as one JSON object."""
    generation: OmitArgPrefixes[GenerationConfig] = field(default_factory=GenerationConfig)

    def run(self) -> None:
        if is_input(self.source) and is_input(self.reference):
            raise ConfigError("standard input (-) is named twice: give one of the files by its name")
        if self.generation.samples:
            raise ConfigError("a calibration is of what the model finds best: leave out --do-sample")
        sources, references = all_lines(self.source), [line.split("\t") for line in all_lines(self.reference)]
        if len(sources) != len(references):
            told = f"{self.source} has {counted(len(sources))}, {self.reference} has {len(references)}"
            raise DataError(f"{told}: each source needs its references on the same line")
        directory = find_model(self.model)
        check_writable(directory / CONFIDENCE_FILE)
        translator = load_translator(directory, dtype=self.dtype)
        translator.calibration = None
        settings = {"split_sentences": False, "where": lambda number: f"{self.source}, line {number}"}
        found = translator.translate_n(sources, self.generation, **settings)
        spoken = [place for place, group in enumerate(found) if group]
        best = [found[place][0] for place in spoken]
        ids = [translator.read([sources[place]], str, False)[0].ids[0] for place in spoken]
        examples = [translator.example(source, each) for source, each in zip(ids, best, strict=True)]
        wanted = [references[place] for place in spoken]
        right = [matches(own, each.text) for each, own in zip(best, wanted, strict=True)]
        words = [right_words(each, own) for each, own in zip(examples, wanted, strict=True)]
        learned = Calibration.fit(examples, right, words)
        learned.save(directory)
        emit([json_text(asdict(learned))] if self.json else told_lines(learned, sum(right)))


def right_words(example: Example, references: Sequence[str]) -> list[bool]:
    """Say of each word of a translation if it stands in the reference that is nearest to it, as often as there."""
    words = example.words()
    statistics = sentence_statistics(references, [" ".join(words)] * len(references))
    nearest = references[worst(statistics, len(references))[-1][0]]
    left, found = Counter(map(normalise_for_match, nearest.split())), []
    for word in map(normalise_for_match, words):
        found.append(left[word] > 0)
        left[word] -= 1
    return found


def told_lines(learned: Calibration, right: int) -> list[str]:
    """Write what was learned for people."""
    rows = [("confidence", "sentences", "right")]
    rows += [
        (f"{one['confidence']:.2f}", str(one["sentences"]), f"{100 * one['right']:.0f} %") for one in learned.tenths
    ]
    return [
        f"{right} of {learned.sentences} translations are right; by their confidence:",
        *aligned(rows),
        f"sure from {learned.sure:.3f} on"
        if learned.sure <= 1
        else "none is called sure: too few of the best are right",
    ]
