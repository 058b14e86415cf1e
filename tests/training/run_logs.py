"""Logs of runs, written by hand."""

import json
from pathlib import Path


def write_log(run: Path, *records: dict, rest: str = "") -> Path:
    """A run that has nothing but settings and a log; rest: what stands behind its last whole line."""
    run.mkdir(parents=True)
    (run / "settings.json").write_text("{}")
    (run / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records) + rest, encoding="utf-8")
    return run


def training(update: int, **more: object) -> dict:
    """Make a record as a trainer writes it every few updates."""
    figures = {"learning_rate": 1e-3, "loss": 5 / update, "gradient_norm": 1.0, "tokens_per_second": 50.0}
    return {"update": update, "epoch": 0, **figures, "seconds": 2.0 * update, **more}


def validation(update: int, **more: object) -> dict:
    """Make a record as a trainer writes it after a validation."""
    return {"update": update, "epoch": 0, "validation": {"loss": 6 / update, "chrf": 1.0 * update, **more}}
