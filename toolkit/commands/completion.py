"""toolkit completion: a script by which a shell completes verbs, flags, their choices and the names of models."""

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Literal, NamedTuple

from tyro.conf import Positional

from toolkit.cli import KINDS, MENUS
from toolkit.commands.console import emit
from toolkit.commands.flags import flag_groups
from toolkit.models.storage import shipped_models
from toolkit.recipes import recipe_of

# What is said of a flag or word that takes the name of a model.
_TAKES_A_MODEL = re.compile(r"name of (a model|one) that comes|name of a shipped one")
_MENUS = {program.removeprefix("toolkit").strip(): choices for program, (_, choices, *_) in MENUS.items()}
_OF_ALL = MENUS["toolkit"][2]  # flags
_DESCRIBED = 60  # characters


class Flag(NamedTuple):
    """A flag of a command, and the words that may follow it: None where nothing does, () for any."""

    name: str
    words: tuple[str, ...] | None
    purpose: str
    is_path: bool = False


Command = tuple[str, list[str], list[Flag]]  # its words, what may stand after them, its flags


@dataclass
class Completion:
    """Write the completion script of a shell: verbs, topics, flags, their choices, and the models that ship.

    Where none of them fits, files are completed. For bash and fish the script goes where they look for it; for zsh, add
    "source ~/.toolkit.zsh" to ~/.zshrc. Write it again when the toolkit has a new version.
    """

    examples = (
        "bash > ~/.local/share/bash-completion/completions/toolkit",
        "zsh > ~/.toolkit.zsh",
        "fish > ~/.config/fish/completions/toolkit.fish",
    )

    shell: Positional[Literal["bash", "zsh", "fish"]]
    """The shell that reads it."""

    def run(self) -> None:
        emit(SCRIPTS[self.shell]([*commands()]))


def commands() -> Iterator[Command]:
    """Yield the words of each command that has flags, what its own words may be, and its flags."""
    for menu, choices in _MENUS.items():
        for choice, (home, _) in choices.items():
            if home:
                module, name = home.split(".")
                command = getattr(import_module(f"toolkit.commands.{module}"), name)
            elif choices is KINDS:
                command = recipe_of(choice).Settings
            else:
                continue
            words, flags = _flags(command)
            yield f"{menu} {choice}".strip(), words, flags


def _flags(command: type) -> tuple[list[str], list[Flag]]:
    words, flags = [], []
    for group in flag_groups(command):
        for shown, purpose in group.entries:
            models = tuple(sorted(shipped_models())) if _TAKES_A_MODEL.search(purpose) else ()
            choices = re.search(r"\{(\w[\w-]*(?:,[\w-]+)+)\}", shown)
            given = models or (tuple(choices[1].split(",")) if choices else ())
            names = re.findall(r"--([\w.-]+)", shown)
            if not names:
                words += given
            takes_nothing = len(names) > 1 or shown.startswith("-h")
            path = "PATH" in shown
            flags += [Flag(name, None if takes_nothing else given, purpose, path) for name in names]
    return words, flags


def _bash(commands: Iterable[Command]) -> list[str]:
    lines = [
        "_toolkit() {",
        "    local word last words command",
        '    word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]} words="" command=${COMP_WORDS[1]}',
        f"    case $command in {'|'.join(filter(None, _MENUS))})",
        '        [ "$COMP_CWORD" -gt 2 ] && command="$command ${COMP_WORDS[2]}" ;;',
        "    esac",
        '    [ "$COMP_CWORD" -gt 1 ] || command=""',
        '    case "$command:$last" in',
        *(_case(f"{menu}:", [*choices, *([] if menu else _OF_ALL)]) for menu, choices in _MENUS.items()),
    ]
    for command, words, flags in commands:
        free = "|".join(f'"{command}:--{flag.name}"' for flag in flags if flag.words == ())
        lines += [f"        {free}) ;;"] if free else []
        lines += [_case(f"{command}:--{flag.name}", flag.words, whole=True) for flag in flags if flag.words]
        lines.append(_case(f"{command}:", [*words, *(f"--{flag.name}" for flag in flags)]))
    end = ["    esac", '    COMPREPLY=($(compgen -W "$words" -- "$word"))', "}"]
    return [*lines, *end, "complete -o default -F _toolkit toolkit"]


def _case(begin: str, words: Iterable[str], whole: bool = False) -> str:
    return f'        "{begin}"{"" if whole else "*"}) words="{" ".join(words)}" ;;'


def _zsh(commands: Iterable[Command]) -> list[str]:
    return ["autoload -U +X compinit && compinit", "autoload -U +X bashcompinit && bashcompinit", *_bash(commands)]


def _fish(commands: Iterable[Command]) -> list[str]:
    lines = [
        "function __toolkit_in  # are these the words after `toolkit`?",
        "    set -l words (commandline -opc)",
        "    test (count $words) -gt (count $argv)",
        '    and test (string join -- " " $words[2..(math (count $argv) + 1)]) = "$argv"',
        "end",
    ]
    for menu, choices in _MENUS.items():
        place = f"test (count (commandline -opc)) -eq {2 if menu else 1}" + (
            f"; and __toolkit_in {menu}" if menu else ""
        )
        lines += [_complete(place, f"-f -a {choice}", purpose) for choice, (_, purpose) in choices.items()]
    lines += [_complete("test (count (commandline -opc)) -eq 1", f"-l {name[2:]}") for name in _OF_ALL]
    for command, words, flags in commands:
        place = f"__toolkit_in {command}"
        lines += [_complete(place, f"-a {word}") for word in words]
        for flag in flags:
            # After a flag, -r allows files, -x nothing but the words.
            needs = "" if flag.words is None else " -r" if flag.is_path or flag.words else " -x"
            given = f" -a {shlex.quote(' '.join(flag.words))}" if flag.words else ""
            lines.append(_complete(place, f"-l {flag.name}{needs}{given}", flag.purpose))
    return lines


def _complete(place: str, what: str, purpose: str = "") -> str:
    sentence = re.split(r"[.;:] |\(", purpose)[0].strip()
    first = re.match(rf"(.{{0,{_DESCRIBED}}})(?![^\s.,;:)])", sentence)[1]
    return f"complete -c toolkit -n {shlex.quote(place)} {what}" + (f" -d {shlex.quote(first)}" if first else "")


SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
