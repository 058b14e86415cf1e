"""The keywords of a language model's verbs, for editors and type checkers."""

from collections.abc import Sequence

from toolkit.decoding import ContinuationSettings


class WritingSettings(ContinuationSettings, total=False):
    """The keywords of `LanguageModel.generate`, for editors and type checkers."""

    stop_strings: Sequence[str]
    bad_words: Sequence[str]
    batch_size: int


class ContinuationsSettings(WritingSettings, total=False):
    """Those of `LanguageModel.generate_n`."""

    num_return_sequences: int
