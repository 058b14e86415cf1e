"""toolkit translate: text, a file, a pipe or a prompt in, one line out for every line in."""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Annotated

from tyro.conf import DisallowNone, OmitArgPrefixes, Positional, arg

from toolkit.api import load_translator
from toolkit.commands.console import emit_results, typed_lines
from toolkit.commands.flags import (
    Alignments,
    BadWords,
    Dtype,
    Ids,
    Output,
    Quiet,
    Resume,
    SourceLanguage,
    TargetLanguage,
    Workers,
)
from toolkit.commands.lines import (
    LongLines,
    Window,
    Work,
    check_inputs,
    file_windows,
    one_text,
    tell_one_text,
    text_windows,
)
from toolkit.commands.output import answer_all, check_output, written_file
from toolkit.confidence import Confidence
from toolkit.decoding import GenerationConfig
from toolkit.display import tell
from toolkit.errors import ConfigError, ToolkitError
from toolkit.noisy_channel import WEIGHT
from toolkit.outputs import Translation
from toolkit.translator import BATCH_SIZE

AUTO = "auto"
DIRECTIONS = "en-ne", "ne-en"  # the shipped translators: from Latin letters, from Devanagari
DOUBTFUL = 0.5  # a word of less confidence is named at the prompt


@dataclass
class Translate:
    """Translate the given text, a file, standard input, or what you type at a prompt.

    Every line gives exactly one line of output, in order; an empty line gives an empty one. Only translations go to
    standard output. Input and output may be larger than memory.
    """

    examples = (
        '"I am a boy"',
        "--file letter.txt --reverse-model auto --output letter.ne",
        '--json --alignments "My mother is at home."',
        '--do-sample --temperature 0.8 --seed 7 "I am a boy"',
    )

    text: Positional[list[str]] = field(default_factory=list)
    """What to translate, before or after all flags; words without quotation marks are one text. Without it, and without
    --file, or where it is -, lines come from standard input."""
    model: Annotated[
        str,
        arg(
            help="Directory of a model or of a run, or the name of a model that comes with the toolkit. auto: en-ne, "
            "or ne-en where the first line with letters is in Devanagari; of what you type, each line by itself."
        ),
    ] = "auto"
    reverse_model: str | None = None
    """Translator of the other direction: of what the beams find, 8 unless you say, take what it thinks best, too. That
    is better, and takes about sixteen times as long as without. auto: the other one of en-ne and ne-en."""
    reverse_weight: float = WEIGHT
    """How much that translator counts, beside 1 for the first; best chosen on held-out sentences. The default is best
    of those that ship."""
    mbr_samples: int = 0
    """With --do-sample: draw so many translations, and take the one that the others resemble most, by chrF (minimum
    Bayes risk). For texts that the model hardly knows."""
    file: Path | None = None
    """Text file in UTF-8 to translate line by line; - is standard input."""
    output: Output = None
    resume: Resume = False
    prefix: str = ""
    """What every translation begins with, that of the first sentence."""
    prefix_file: Path | None = None
    """Text file with what the translation of each line begins with; an empty line leaves the model free."""
    split_sentences: DisallowNone[bool | None] = None
    """Translate every sentence of a line by itself, and keep what stands between; otherwise a line is one sentence.
    Default: as the model was trained."""
    long_lines: LongLines = "refuse"
    """A line with a sentence that is longer than the model reads: refuse it, skip it (its translation is empty), or
    truncate it after the last word that fits. How many there were is told at the end."""
    bad_words: BadWords = ()
    json: bool = False
    """Write a JSON object for every line: its translations with ids, tokens, their log-probabilities and the score; of
    several sentences, the same for each as "segments"."""
    confidence: bool = False
    """Put the confidence in front of each translation, from 0 to 1, and a tab: how probable it is that it is right, for
    a model that was calibrated (see toolkit calibrate). In JSON it is there anyway, and for each word."""
    ids: Ids = False
    alignments: Alignments = False
    source_language: SourceLanguage = None
    target_language: TargetLanguage = None
    dtype: Dtype = "auto"
    workers: Workers = None
    batch_size: int = BATCH_SIZE
    """Sentences that are translated at once. Changes the speed, not the result."""
    quiet: Quiet = False
    generation: OmitArgPrefixes[GenerationConfig] = field(default_factory=GenerationConfig)

    def run(self) -> None:
        self._check()
        if self.asked_at_a_prompt():
            if flag := "--output" if written_file(self) else "--prefix-file" if self.prefix_file else "":
                raise ConfigError(f"{flag} is given without a text: give one, or --file, or a pipe")
            self._converse()
            return
        windows = self._windows()
        if self.model == AUTO:
            windows = self._directed(windows)
        answer_all(_Work, self, windows, self.file)
        tell_one_text(self.text, self.quiet)

    def asked_at_a_prompt(self) -> bool:
        """Say if the lines are typed at a prompt."""
        return not self.text and not self.file and sys.stdin is not None and sys.stdin.isatty()

    def _check(self) -> None:
        """Raises ConfigError for flags that contradict each other."""
        if self.text and self.file:
            raise ConfigError("text and --file are both given: choose one")
        if self.prefix and self.prefix_file:
            raise ConfigError("--prefix and --prefix-file are both given: choose one")
        check_inputs(file=Path("-") if self.text == ["-"] else self.file, prefix_file=self.prefix_file)
        check_output(self, file=self.file, prefix_file=self.prefix_file)
        if self.alignments and not self.json:
            raise ConfigError("--alignments are shown in JSON only: add --json")
        if self.confidence and self.json:
            raise ConfigError("--confidence is there in JSON anyway: leave out one of the two")
        if self.reverse_weight != WEIGHT and not self.reverse_model:
            raise ConfigError("--reverse-weight is that of --reverse-model: give both, or none")
        if self.generation.num_return_sequences > 1 and not self.json:
            raise ConfigError("several translations of a line are shown in JSON only: add --json")

    def _windows(self) -> Iterator[Window | None]:
        if self.text and self.text != ["-"]:
            return text_windows(one_text(self.text), self.prefix_file, "prefix")
        return file_windows(self.file, self.prefix_file, "prefix", self.long_lines, live=not written_file(self))

    def _directed(self, windows: Iterator[Window | None]) -> Iterator[Window | None]:
        """Choose the model by the first line that has letters, and give all windows."""
        read, found = [], None
        for window in windows:
            read.append(window)
            found = next((model for line in window.lines if (model := model_for(line))), None) if window else None
            if found:
                break
        self.model = found or DIRECTIONS[0]
        return chain(read, windows)

    def _converse(self) -> None:
        """Translate line by line what is typed, until the end of input or an empty line."""
        tell("Type a sentence to translate; an empty line or Ctrl-D ends.")
        works = {} if self.model == AUTO else {self.model: _Work(self)}
        for number, line in enumerate(typed_lines()):
            try:
                model = (model_for(line) or DIRECTIONS[0]) if self.model == AUTO else self.model
                if model not in works:
                    works[model] = _Work(replace(self, model=model))
                outputs = works[model](Window([line.strip()], "the text", spoken_before=number)).outputs
                works[model].tell_seed()
                emit_results(outputs)
            except ToolkitError as error:
                tell(f"toolkit: {error}")


def model_for(text: str) -> str | None:
    """Choose the shipped translator that reads the script of a text; None where it has no letters."""
    devanagari, latin = (sum(low <= letter.lower() <= high for letter in text) for low, high in ("ऀॿ", "az"))
    if not devanagari + latin:
        return None
    return DIRECTIONS[devanagari > latin]


def reverse_of(command: Translate) -> str | None:
    """Name the translator of the other direction.  Raises ConfigError for auto where the model is none that ships."""
    if command.reverse_model != AUTO:
        return command.reverse_model
    if command.model not in DIRECTIONS:
        raise ConfigError(f"--reverse-model auto belongs to {' and '.join(DIRECTIONS)}: name that of {command.model}")
    return DIRECTIONS[command.model == DIRECTIONS[0]]


class _Work(Work):
    def __init__(self, command: Translate):
        super().__init__(command)
        self.seeded()
        self._converses = command.asked_at_a_prompt()
        translator = load_translator(command.model, ids=command.ids, dtype=command.dtype)
        if command.confidence and not translator.calibration:
            raise ConfigError(f"{command.model} was never calibrated: see toolkit calibrate, or leave out --confidence")
        self._translator = translator.between(command.source_language, command.target_language)
        self._reverse = load_translator(name, dtype=command.dtype) if (name := reverse_of(command)) else None

    def _check(self, line: str, cut: bool = False) -> object:
        return self._translator.read([line], str, self._command.split_sentences)

    def _answers(self, window: Window, cut: Sequence[int] = ()) -> list[str]:
        command = self._command
        settings = {
            "prefix": window.partners or command.prefix,
            "bad_words": command.bad_words,
            "split_sentences": command.split_sentences,
            "batch_size": command.batch_size,
            "reverse": self._reverse,
            "reverse_weight": command.reverse_weight,
            "mbr_samples": command.mbr_samples,
            "where": window.where,
            "first": window.spoken_before,
        }
        if command.confidence or (self._converses and self._translator.calibration):
            groups = self._translator.translate_n(window.lines, command.generation, **settings)
            return [self._marked(group) for group in groups]
        if not command.json:
            found = self._translator.translate(window.lines, command.generation, **settings)
            return [*map(on_one_line, found)]
        settings["alignments"] = command.alignments
        groups = self._translator.translate_n(window.lines, command.generation, **settings)
        return [
            self._json(line, group, "truncated" if place in cut else "")
            for place, (line, group) in enumerate(zip(window.lines, groups, strict=True))
        ]

    def _marked(self, group: Sequence[Translation]) -> str:
        """Write a translation with its confidence in front; at the prompt, with a mark where it is not sure."""
        if not group:
            return "" if self._converses else "\t"
        text, confidence = on_one_line(group[0].text), group[0].confidence
        if not self._converses:
            return f"{confidence.sentence:.3f}\t{text}" if confidence else f"\t{text}"
        if confidence is None or confidence.sure:
            return text
        return f"{text}\n{' ' * 4}not sure: {doubt(group[0].text.split(), confidence)}"


def on_one_line(translation: str) -> str:
    """Put a translation on one line: a model can write any character, a line feed too."""
    return re.sub(r"[\r\n]+", " ", translation)


def doubt(words: Sequence[str], confidence: Confidence) -> str:
    """Say what is not sure in a translation: that it repeats or lacks something, some of its words, or the whole."""
    if confidence.repeats:
        return "it repeats itself"
    if confidence.lost:
        return "a number, an address or an unknown word is missing"
    weak = [word for word, each in zip(words, confidence.words, strict=False) if each < DOUBTFUL]
    share = f"right with a probability of {confidence.sentence:.0%}"
    return f"{', '.join(weak)} ({share})" if weak else share
