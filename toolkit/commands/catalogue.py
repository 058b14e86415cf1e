"""toolkit models: a line for each model that there is, by what its config and its metrics say."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from toolkit.commands.console import emit
from toolkit.display import aligned, json_text, tell
from toolkit.errors import ModelError
from toolkit.models.storage import described_model, holds_a_model, read_metrics, read_model, shipped_models

# Where metrics.json has the figure that says most of a model, and how it is shown; the first that is there is taken.
_SCORES = (
    ("test", "chrf", "chrF {:.1f} on new sentences"),
    ("replies", "all", "exact", "{:.1f} % of replies right"),
    ("validation", "chrf", "chrF {:.1f} in validation"),
    ("validation_full", "bits_per_byte", "{:.3f} bits per byte"),
    ("validation", "bits_per_byte", "{:.3f} bits per byte"),
    ("validation", "accuracy", "{:.3f} of pairs ranked right"),
    ("validation", "reward", "reward {:.3f}"),
    ("validation", "loss", "loss {:.3f} in validation"),
)
_PURPOSES = {"seq2seq": "translator", "gpt": "language model", "reward": "reward model", "autoencoder": "auto-encoder"}


@dataclass
class Models:
    """List models: name, kind, languages, number of parameters, size on disk, and how well each did.

    Without a directory, those that come with the toolkit; the name is what --model takes. `toolkit info` tells more of
    one, and `toolkit runs` compares runs.
    """

    examples = (
        "",
        "checkpoints --json",
    )

    directories: Positional[Annotated[tuple[Path, ...], arg(metavar="[DIRECTORY ...]")]] = ()
    """Directories that are models or runs, or hold some."""
    json: bool = False
    """Print one JSON object, with all scores, instead of a table."""

    def run(self) -> None:
        found = [each for path in self.directories for each in _models_in(path)]
        names = {str(path): path for path in found} if self.directories else shipped_models()
        records = [described(name, path) for name, path in sorted(names.items())]
        if self.json:
            emit([json_text({"models": records})])
            return
        problems = [record["problem"] for record in records if "problem" in record]
        if len(problems) == len(records):
            raise ModelError(problems[0])
        rows = [("model", "kind", "languages", "parameters", "MB", "score")]
        rows += [_row(record) for record in records if "problem" not in record]
        emit(aligned(rows, left=(0, 1, 2, 5)))
        for problem in problems:
            tell(f"toolkit: {problem}")


def _models_in(path: Path) -> list[Path]:
    """Find the models in a directory, or the one that it is.  Raises ModelError where there is none."""
    try:
        found = [path] if holds_a_model(path) else sorted(each for each in path.iterdir() if holds_a_model(each))
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from error
    if not found:
        raise ModelError(f"{path} has no models in it")
    return found


def described(name: str, path: Path) -> dict[str, Any]:
    """Collect what a list says of a model, whose values are not read; of one that is damaged, the "problem"."""
    try:
        return {"model": name, **read_model(path, _outline)}
    except (ModelError, OSError) as error:
        return {"model": name, "problem": str(error)}


def _outline(directory: Path) -> dict[str, Any]:
    model, metrics = described_model(directory)[0], read_metrics(directory)
    languages = metrics.pop("languages", [])
    if not (isinstance(languages, list) and all(isinstance(each, str) for each in languages)):
        languages = []
    return {
        "directory": str(directory),
        "kind": model.kind,
        "template": getattr(model.config, "template", "none"),
        "languages": languages,
        "parameters": model.parameter_count,
        "bytes": sum(path.stat().st_size for path in directory.iterdir() if path.is_file()),
        "scores": {key: value for key, value in metrics.items() if isinstance(value, dict) and key != "settings"},
    }


def _row(record: dict[str, Any]) -> tuple[str, ...]:
    chats = record["kind"] == "gpt" and record["template"] != "none"
    purpose = "chat model" if chats else _PURPOSES.get(record["kind"], record["kind"].replace("_", " "))
    languages = (" → " if record["kind"] == "seq2seq" else ", ").join(record["languages"]) or "-"
    return (
        record["model"],
        purpose,
        languages,
        f"{record['parameters']:,}",
        f"{record['bytes'] / 1e6:.1f}",
        _best_known(record["scores"]),
    )


def _best_known(scores: dict[str, Any]) -> str:
    """Write the first of `_SCORES` that is there and a number."""
    for *path, form in _SCORES:
        value: Any = scores
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, int | float):
            return form.format(value)
    return "-"
