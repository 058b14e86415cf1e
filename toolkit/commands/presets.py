"""toolkit presets: the named shapes of language models, and how large they are."""

from dataclasses import asdict, dataclass
from typing import Any

from toolkit.commands.console import aligned, emit
from toolkit.display import json_text
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.presets import PRESETS

_COLUMNS = ("preset", "parameters", "D", "layers", "heads", "context", "vocabulary", "settings")


@dataclass
class Presets:
    """Show the named shapes of language models: `recipes/language_model.py --preset NAME` trains one.

    The vocabulary is that of the published model; training takes as many tokens as its tokenizer has, and the number
    of parameters follows. Heads are those of queries, and those of keys and values where they are fewer.
    """

    json: bool = False
    """Print one JSON object, with every setting, instead of a table."""

    def run(self) -> None:
        counts = {name: GPT(config).parameter_count for name, config in PRESETS.items()}
        if self.json:
            facts = {name: {"parameters": counts[name], **asdict(config)} for name, config in PRESETS.items()}
            emit([json_text(facts)])
            return
        rows = [_COLUMNS, *(_row(name, config, counts[name]) for name, config in PRESETS.items())]
        emit(aligned(rows, left=(0, len(_COLUMNS) - 1)))


def _row(name: str, config: GPTConfig, count: int) -> tuple[str, ...]:
    heads = f"{config.heads}/{config.key_value_heads}" if config.key_value_heads else str(config.heads)
    numbers = (f"{count:,}", config.width, config.layers, heads, config.max_length, f"{config.vocab_size:,}")
    return (name, *map(str, numbers), ", ".join(_settings(config)))


def _settings(config: GPTConfig) -> list[Any]:
    """What is chosen among several, in words."""
    dropout = max(
        config.embedding_dropout, config.attention_dropout, config.residual_dropout, config.activation_dropout
    )
    return [
        config.positions,
        f"{config.norm} norm",
        config.activation,
        f"F {config.feed_forward}",
        "biases" if config.bias else "no biases",
        *([] if config.tie else ["output not tied"]),
        *([f"dropout {dropout:g}"] if dropout else []),
    ]
