"""toolkit info: what a model is, how large it is, how well it did and how it was trained."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tyro.conf import Positional

from toolkit.commands.console import emit
from toolkit.display import json_text
from toolkit.models.autoencoder import AutoEncoder
from toolkit.models.shelf import read_model
from toolkit.models.storage import CONFIG_FILE, WEIGHTS_FILE, load_model, read_json, read_metrics
from toolkit.models.tensors import read_tensors
from toolkit.text_model import TextModel
from toolkit.tokenization import load_tokenizer


@dataclass
class Info:
    """Show what a model is: kind, settings, parameters, size on disk, tokenizer, scores, and how it was trained."""

    model: Positional[str]
    """Directory of a model or of a run, or the name of a model that comes with the toolkit."""
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> None:
        facts = read_model(self.model, describe)
        emit([json_text(facts)] if self.json else _lines(facts))


def describe(directory: Path) -> dict[str, Any]:
    """Everything that is known about a model.  Raises ModelError where it is damaged: all of it is read."""
    config, metrics = read_json(directory / CONFIG_FILE), read_metrics(directory)
    model = load_model(directory)
    tokenizer = None if isinstance(model, AutoEncoder) else load_tokenizer(directory)
    if tokenizer:
        TextModel(model, tokenizer, str(directory))  # which refuses a tokenizer of another model
    parts: dict[str, int] = {}
    for name, parameter in model.parameters().items():
        part = name.removeprefix("trunk.").split(".")[0]
        parts[part] = parts.get(part, 0) + parameter.data.size * parameter.trained
    return {
        "model": str(directory),
        "kind": config["kind"],
        "format": config["format"],
        "parameters": {"total": model.parameter_count, **parts},
        "bytes": {path.name: path.stat().st_size for path in sorted(directory.iterdir()) if path.is_file()},
        "weights": ", ".join(sorted({tensor.dtype for tensor in read_tensors(directory / WEIGHTS_FILE).values()})),
        "tokenizer": tokenizer and {"kind": type(tokenizer).__name__, "vocab_size": tokenizer.vocab_size},
        "settings": config["model"],
        "command": metrics.pop("command", None),
        "training": settings if isinstance(settings := metrics.pop("settings", {}), dict) else {},
        "metrics": metrics,
    }


def _lines(facts: dict[str, Any]) -> list[str]:
    sizes, parameters, tokenizer = facts["bytes"], facts["parameters"], facts["tokenizer"]
    reads = f"{tokenizer['kind']}, {tokenizer['vocab_size']} tokens" if tokenizer else "none: it reads vectors"
    lines = [
        f"model       {facts['model']}",
        f"kind        {facts['kind']}, format {facts['format']}",
        f"tokenizer   {reads}",
        f"on disk     {sum(sizes.values()) / 1e6:.2f} MB, weights as {facts['weights']}",
        f"made by     {facts['command'] or 'not recorded'}",
    ]
    parts = {name: f"{count:,}" for name, count in parameters.items()}
    training = {name: value for name, value in facts["training"].items() if name != "model"}  # as under "settings"
    sections = {"parameters": parts, "settings": facts["settings"], "training": training, "metrics": facts["metrics"]}
    for title, values in sections.items():
        lines += ["", title, *_table(values)] if values else []
    return lines


def _table(values: dict[str, Any], prefix: str = "") -> list[str]:
    lines = []
    for name, value in values.items():
        if isinstance(value, dict):
            lines += _table(value, f"{prefix}{name}.")
        else:
            shown = f"{value:.4g}" if isinstance(value, float) else str(value)
            lines.append(f"  {prefix + name:20}  {shown}")
    return lines
