"""Help pages: what tyro says of a command's flags, with examples, in groups that have the most used ones first."""

import os
import re
import shutil
from bisect import bisect
from collections.abc import Iterable, Iterator
from dataclasses import fields
from textwrap import TextWrapper
from typing import NamedTuple

_WIDEST, _NARROWEST = 100, 40  # columns of the page: longer lines are hard to follow
_NAMES = 26  # columns of the names of flags, where what they are for stands beside them
_TYPES = {"STR", "PATH", "INT", "FLOAT"}
# Defaults that say no more than the flag itself does.
_SILENT = re.compile(r" ?\(default: (?:None|False|''|)\)")

# The settings of decoding in groups, and the flags of a verb that go with them; what is not named here stands above.
_OF_DECODING = {
    "search and sampling": "num_beams reverse_model reverse_weight do_sample mbr_samples temperature top_k top_p min_p "
    "seed num_return_sequences",
    "what is written": "max_new_tokens min_new_tokens stop_strings bad_words no_repeat_ngram_size repetition_penalty "
    "past_context",
    "rarely used": "ids long_lines length_penalty early_stopping forced_eos workers batch_size quiet help",
}
# The flag that stands first in a group, and those that stand last, whatever the command.
_FIRST = "model"
_LAST = (
    "source_language",
    "target_language",
    "config",
    "ids",
    "seeds",
    "export",
    "workers",
    "batch_size",
    "quiet",
    "help",
)


class Group(NamedTuple):
    """Flags that tyro puts into one box, with what it says of all of them."""

    title: str
    about: list[str]  # paragraphs
    entries: list[tuple[str, str]]  # how a flag is written, what it is for


def groups_of(page: str) -> list[Group]:
    """Find the boxes of one of tyro's help pages, which must be wide enough that no line of it is broken."""
    columns: dict[int, list[tuple[str, list[str]]]] = {}  # of boxes, by where they begin in a line
    for line in page.splitlines():
        for found in re.finditer(r"[╭│][ ─](.*?)\s*[╮│]", line):
            if found[0][0] == "╭":
                columns.setdefault(found.start(), []).append((found[1].strip("─ "), []))
            elif columns:  # letters of no or of double width may have moved it a little
                starts = sorted(columns)
                _, lines = columns[starts[max(bisect(starts, found.start() + 2) - 1, 0)]][-1]
                lines.append(found[1])
    return [_group(title, lines) for boxes in columns.values() for title, lines in boxes]


def _group(title: str, lines: list[str]) -> Group:
    """Read a box: paragraphs above a rule, if there is one, and flags with what they are for."""
    rule = next((number for number, line in enumerate(lines) if line.startswith("──")), -1)
    entries: list[tuple[str, str]] = []
    for line in lines[rule + 1 :]:
        if line[:1].strip():
            name, _, purpose = line.partition("  ")
            entries.append((name, purpose.strip()))
        elif entries:
            name, purpose = entries[-1]
            entries[-1] = name, f"{purpose} {line.strip()}".strip()
    return Group(title.removesuffix(" options"), "\n".join(lines[: max(rule, 0)]).split("\n\n"), entries)


def flags_of(groups: Iterable[Group]) -> list[str]:
    """List every spelling of every flag, such as --json and --no-json."""
    return [name for group in groups for shown, _ in group.entries for name in re.findall(r"--[\w.-]+", shown)]


def help_page(page: str, program: str, command: type) -> list[str]:
    """Lay out the help of a command, from tyro's own page of it; see `groups_of`.

    The command's `examples`, if it has any, are what may stand after its name.
    """
    groups = _sorted(groups_of(page), command)
    flags = flags_of(groups)
    names = [each.name for each in fields(command) if f"--{each.name.replace('_', '-')}" not in flags]
    for number, group in enumerate(groups):
        if group.title.startswith("positional"):
            named = zip(group.entries, names, strict=False)
            entries = [(_word(shown, name), purpose) for (shown, purpose), name in named]
            groups[number] = Group("arguments", group.about, entries)
    width = max(min(shutil.get_terminal_size((_WIDEST, 24)).columns, _WIDEST), _NARROWEST)
    given = [shown for group in groups if group.title == "arguments" for shown, _ in group.entries]
    about = page[page.find("\n") : page.find("╭")].strip().split("\n\n")
    lines = _wrapped(" ".join(["usage:", program, "[options]", *given]), width)
    lines += [line for paragraph in about for line in ("", *_wrapped(paragraph, width))]
    lines += example_lines(program, getattr(command, "examples", ()))
    for group in groups:
        lines += ["", f"{group.title}:", *_shown(group, width)]
    return lines


def example_lines(program: str, examples: Iterable[str]) -> list[str]:
    """Lay out commands that can be copied: they are never broken."""
    called = f"python {program}" if program.endswith(".py") else program
    lines = [f"  {called} {example}".rstrip() for example in examples]
    return ["", "examples:", *lines] if lines else []


def _sorted(groups: list[Group], command: type) -> list[Group]:
    """Put groups into the order of the command's fields, and the flags of decoding into groups by what they do."""
    order = [each.name for each in fields(command)]
    groups = sorted(groups, key=lambda group: order.index(group.title) if group.title in order else -1)
    groups = [group._replace(entries=sorted(group.entries, key=_rank)) for group in groups]
    decoding = next((group for group in groups if group.title == "generation"), None)
    if decoding is None:
        return groups
    entries = {_name(shown): (shown, purpose) for group in groups for shown, purpose in group.entries}
    sections = {title: names.split() for title, names in _OF_DECODING.items()}
    taken = {name for names in sections.values() for name in names}
    kept = [each._replace(entries=[pair for pair in each.entries if _name(pair[0]) not in taken]) for each in groups]
    found = [
        Group(title, [""], [entries[name] for name in names if name in entries]) for title, names in sections.items()
    ]
    found[-1] = found[-1]._replace(about=["", *decoding.about[1:]])  # of which the first says what is seen
    return [group for group in (*kept, *found) if group.entries]


def _name(shown: str) -> str:
    """Find the name of the field that a flag sets."""
    return re.findall(r"--([\w.-]+)", shown + " --")[0].replace("-", "_") if "--" in shown else ""


def _rank(entry: tuple[str, str]) -> int:
    name = _name(entry[0])
    return _LAST.index(name) + 1 if name in _LAST else -(name == _FIRST)


def _shown(group: Group, width: int) -> Iterator[str]:
    """Lay out a group: its first paragraph, its flags, and the other paragraphs."""
    from toolkit.data.embedded import CORPORA  # here, because only pages need it

    first, *others = group.about
    yield from _wrapped(first, width, 2)
    for shown, purpose in group.entries:
        purpose = _SILENT.sub("", purpose).replace(f"{CORPORA}{os.sep}", "the embedded ")
        shown, lines = f"  {_flag(shown)}", _wrapped(_capital(purpose), width, _NAMES)
        if lines and len(shown) <= _NAMES - 2:
            lines[0] = shown + lines[0][len(shown) :]
        else:
            yield shown
        yield from lines
    for paragraph in others:
        yield ""
        yield from _wrapped(paragraph, width, 2)


def _capital(text: str) -> str:
    """Begin with a capital letter, but for a letter of a formula."""
    return text[:1].upper() + text[1:] if text[:1].isascii() else text


def _wrapped(text: str, width: int, indent: int = 0) -> list[str]:
    """Break a paragraph into lines of at most `width` columns; names of flags stay whole."""
    space = " " * indent
    return TextWrapper(width, space, space, break_on_hyphens=False).wrap(text)


def _flag(shown: str) -> str:
    """Write a flag, with both spellings of one that is on or off as one: --[no-]json."""
    pair = re.fullmatch(r"--([\w.-]*?)([\w-]+), --\1no-\2", shown)
    return f"--{pair[1]}[no-]{pair[2]}" if pair else _value(shown)


def _value(shown: str) -> str:
    """Write a flag or word with its value: no {None}|PATH for a PATH that may be left out, [INT ...] for several."""
    shown = re.sub(r"\{None\}\|\{?([\w ]+)\}?", r"\1", shown).replace("{None,", "{")
    return re.sub(r"\[+(\w+) \[\1 \.\.\.\]+", r"[\1 ...]", shown)


def _word(shown: str, name: str) -> str:
    """Call a word of a command by its name, where tyro calls it by its type."""
    return re.sub(r"\w+", lambda kind: name.upper() if kind[0] in _TYPES else kind[0], _value(shown))
