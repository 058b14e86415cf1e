"""toolkit export: a model of this toolkit for another library."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from toolkit.commands.console import emit
from toolkit.interop import export_model


@dataclass
class ExportModel:
    """Write a model, with its tokenizer, as another library reads it.

    For transformers, `from_pretrained(DIRECTORY)` then gives a model and a tokenizer that compute the same; for
    CTranslate2, `ctranslate2.Translator(DIRECTORY)` or `ctranslate2.Generator(DIRECTORY)`.
    """

    model: Positional[str]
    """Directory of a model or of a run, or the name of a model that comes with the toolkit."""
    directory: Positional[Path]
    """Directory to write; it must not exist yet."""
    to: Literal["hugging-face", "ctranslate2"] = "hugging-face"
    """Which library the model is for."""
    half: bool = False
    """Store the weights in float16."""

    def run(self) -> None:
        found = export_model(self.model, self.directory, self.to, self.half)
        emit([f"{self.directory}: {found.model.parameter_count:,} parameters, as {found.name}"])
        for note in found.notes:
            print(f"toolkit: {note}", file=sys.stderr)
