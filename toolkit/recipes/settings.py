"""Settings of recipes from where they are given: keywords of Python, and settings.json, which a run has written.

Both are values by name, with the groups `model`, `training` and so on as mappings or by full names, "training.seed".
"""

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from types import NoneType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from toolkit.data.embedded import CORPORA
from toolkit.display import meant, no_setting
from toolkit.errors import ConfigError
from toolkit.models.storage import read_json
from toolkit.recipes.recipe import KEPT_AS, OF_ONE_RUN, Recipe, refuse, settings_file
from toolkit.training.config import UPDATES, flat_settings
from toolkit.training.run import SETTINGS_FILE

DIGESTS = "data."  # under which settings.json has digests of what was read, and nothing to set
_LARGEST = sys.float_info.max  # a whole number may be beyond, with which nothing can be computed
_WORDS = {bool: "True or False", int: "a whole number", float: "a finite number", str: "a text", Path: "a path"}


def settings_of(kind: type[Recipe], given: Mapping[str, Any]) -> Recipe:
    """Make the settings of a recipe of Python's keywords, those that are left out being what flags would make them.

    Raises TypeError for a name that there is not, ConfigError for a value that does not fit.
    """
    own = _flat(kind, given)
    if strange := unknown(kind, [*own, *given]):  # of an empty group, its own name alone
        raise no_setting(*strange)
    recipe = changed(defaults_for(kind, _fitted(kind, own, ("config", *kind.deciding))), own)
    return recipe if {"training", UPDATES} & own.keys() else of_own_length(recipe)


def defaults_for(kind: type[Recipe], given: Mapping[str, Any]) -> Recipe:
    """Give the defaults beside what was given: the recipe's own, or where `config` is, those of that file.

    Raises ConfigError for a file that has no settings of this recipe, and for a choice that the file has made already.
    """
    deciding = {name: given[name] for name in kind.deciding if name in given}
    if not given.get("config"):
        return kind.defaults(deciding)
    path = settings_file(Path(given["config"]))
    before = read_settings(kind, path)
    for name, value in deciding.items():
        there, flag = before.get(name, ""), f"--{name.replace('_', '-')}"
        choice = isinstance(getattr(kind, name, None), str)
        refuse((choice and there != value, f"{path} is of {flag} {there or 'nothing'}, not {value}: leave out one"))
    try:
        return changed(kind.defaults(_fitted(kind, before, kind.deciding) | deciding), before)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def of_own_length(recipe: Recipe) -> Recipe:
    """Give a run that is continued the number of updates that it was asked for, where nobody has said another.

    A recipe's default would make it longer, which whoever resumes a shorter one has not asked for.
    """
    path = recipe.run / (f"seed-{recipe.seeds[0]}" if recipe.seeds else "") / SETTINGS_FILE
    if not recipe.resume or recipe.config or not path.exists():
        return recipe
    updates = flat_settings(read_json(path, "run")).get(UPDATES)
    return changed(recipe, {UPDATES: updates}) if isinstance(updates, int) else recipe


def read_settings(kind: type[Recipe], path: Path) -> dict[str, Any]:
    """Read the settings.json of a run of this recipe -> values by full names of today, without digests.

    Raises ConfigError for a file of something else, and ModelError for one that is damaged.
    """
    refuse((not path.exists(), f"{path} does not exist: --config takes the {SETTINGS_FILE} of a run, or the run"))
    names = {kept: name for name, kept in KEPT_AS.items()}
    found = flat_settings(read_json(path, "run"))
    own = {names.get(name, name): value for name, value in found.items() if not name.startswith(DIGESTS)}
    if one := next((name for name in OF_ONE_RUN if name in own), None):
        raise ConfigError(
            f"{path} has {one!r}, which no run writes there: take it out, and give --{one} if it is meant"
        )
    if strange := unknown(kind, own):
        name, near = strange
        question = f"did you mean {near!r}?" if near else "is it of another recipe?"
        raise ConfigError(f"{path} has {name!r:.60}, which is no setting here: {question}")
    return {name: _found_again(value) for name, value in own.items()}


def changed(recipe: Recipe, values: Mapping[str, Any]) -> Recipe:
    """Change settings, by full names.  Raises ConfigError for a value of another type, or out of range."""
    groups: dict[str, dict[str, Any]] = {"": {}}
    for name, value in values.items():
        group, _, own = name.rpartition(".")
        target = getattr(recipe, group) if group else recipe
        groups.setdefault(group, {})[own] = fitted(value, get_type_hints(type(target))[own], name)
    own = groups.pop("")
    for group, inner in groups.items():
        own[group] = replace(own.get(group, getattr(recipe, group)), **inner)
    return replace(recipe, **own)


def _fitted(kind: type[Recipe], values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Take those of the values that have these names and say something.  Raises ConfigError as `fitted` does."""
    hints = get_type_hints(kind)
    return {name: fitted(values[name], hints[name], name) for name in names if _says_something(values.get(name))}


def fitted(value: Any, hint: Any, name: str) -> Any:
    """Return a value as a setting of this type holds it: a path for text, a tuple for a list or a single item.

    Raises ConfigError where it cannot be one.
    """
    origin, parts = get_origin(hint), get_args(hint)
    if origin is tuple:
        single = isinstance(value, str | os.PathLike | Real) or not isinstance(value, Iterable)
        return tuple(fitted(each, parts[0], name) for each in ([value] if single else value))
    if NoneType in parts:  # a path, or none: settings.json has no text for it
        return None if value is None or value == "" else fitted(value, parts[0], name)
    if origin is Union:  # of a type and a few words
        return value if value in get_args(parts[1]) else fitted(value, parts[0], name)
    if origin is Literal:
        refuse((value not in parts, f"{name} is {value!r:.60}: it must be one of {', '.join(parts)}"))
        return value
    if is_dataclass(hint):
        refuse((not isinstance(value, hint), f"{name} is {value!r:.60}: give a mapping, or {hint.__name__}(…)"))
        return value
    if not _is_a(value, hint):
        raise ConfigError(f"{name} is {value!r:.60}: it must be {_WORDS[hint]}")
    return os.fspath(value) if hint is str else hint(value)


def _is_a(value: Any, kind: type) -> bool:
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    if kind in (str, Path):
        return isinstance(value, str) or (isinstance(value, os.PathLike) and isinstance(os.fspath(value), str))
    return isinstance(value, Integral if kind is int else Real) and -_LARGEST <= value <= _LARGEST  # so not NaN either


def unknown(kind: type[Recipe], names: Iterable[str]) -> tuple[str, str] | None:
    """Find the first of these names that is no setting of the recipe, and the one that it resembles, or ""."""
    known = _names(kind)
    for name in names:
        if name not in known:
            ends = [full for full in known if full.rpartition(".")[2] == name.rpartition(".")[2]]
            return name, ends[0] if ends else meant(name, known)
    return None


def _names(kind: type[Recipe]) -> list[str]:
    """List the settings of a recipe by their full names, and the groups of some."""
    hints = get_type_hints(kind)
    groups = {field.name: fields(hints[field.name]) for field in fields(kind) if is_dataclass(hints[field.name])}
    return [*(f.name for f in fields(kind)), *(f"{name}.{f.name}" for name, inner in groups.items() for f in inner)]


def _flat(kind: type[Recipe], given: Mapping[str, Any]) -> dict[str, Any]:
    """Name what stands in groups in full."""
    flat = {}
    for name, value in given.items():
        inside = isinstance(value, Mapping)
        flat |= {f"{name}.{inner}": each for inner, each in value.items()} if inside else {name: value}
    return flat


def _says_something(value: Any) -> bool:
    """Say if a value is more than nothing, as which an empty list counts."""
    return value is not None and not (isinstance(value, str | list | tuple) and len(value) == 0)


def _found_again(value: Any) -> Any:
    """Find files of embedded corpora, which settings name without the directory that they lie in."""
    ours = isinstance(value, str) and value.startswith("data/") and not Path(value).exists()
    return str(CORPORA.parent / value) if ours else value
