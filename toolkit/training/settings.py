"""Settings by their full names, and what differs between two sets of them."""

from typing import Any

_ABSENT = "not set"
_MOST_SHOWN = 6


def flat_settings(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings by their full names: {"training": {"seed": 1}} becomes {"training.seed": 1}."""
    flat = {}
    for name, value in settings.items():
        flat |= flat_settings(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


def told_changes(before: dict[str, Any], now: dict[str, Any]) -> str:
    """What changed from one set of settings to another, as the end of a sentence; empty where nothing did.

    What is under "data" are digests of contents, whose values say nothing to a reader.
    """
    before, now = flat_settings(before), flat_settings(now)
    changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    data = [name.removeprefix("data.") for name in changed if name.startswith("data.")]
    others = [name for name in changed if not name.startswith("data.")]
    shown = [f"{name}: {before.get(name, _ABSENT)} → {now.get(name, _ABSENT)}" for name in others[:_MOST_SHOWN]]
    if len(others) > _MOST_SHOWN:
        shown.append(f"and {len(others) - _MOST_SHOWN} more")
    parts = [f"other settings ({', '.join(shown)})"] if others else []
    parts += [f"other data (the data has changed since: {', '.join(data)})"] if data else []
    return " and ".join(parts)
