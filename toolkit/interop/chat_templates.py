"""Conversations in the language of templates (Jinja) that `apply_chat_template` of transformers reads.

There, a conversation becomes one text, in which special tokens are looked for by name. So that no content yields one,
the template writes a mark into every name of a special token that a content has, behind the first character, and the
first step of the tokenizer takes it out again (see `joining`); in a content, the mark itself is written as the Ω that
normal form C makes of it. A text that is no conversation's, and has the name of a special token, yields that token.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, get_args

from toolkit.interop.hugging_face_files import Config
from toolkit.models.gpt import GPTConfig
from toolkit.tokenization.chat_template import AROUND, NAMES, TemplateName
from toolkit.tokenization.normal_form import normal_form
from toolkit.tokenization.special import BOS, EOS, SPECIAL_TOKENS

# An ohm sign, of which normal form C has made Ω wherever a text had it: no text has it behind the normaliser.
MARK = "\u2126"

_WHOLE = """\
{%- set openers = OPENERS -%}
{%- set closers = CLOSERS -%}
{{- BEGIN -}}
{%- for message in messages -%}
{%- if message["role"] not in openers -%}{{- raise_exception("roles are system, user and assistant") -}}{%- endif -%}
{%- set text = namespace(content=message["content"].replace(MARK, OMEGA)) -%}
ESCAPED\
{%- for name in SPECIAL -%}
{%- set text.content = text.content.replace(name, name[0] ~ MARK ~ name[1:]) -%}
{%- endfor -%}
{{- openers[message["role"]] ~ " " ~ text.content ~ closers[message["role"]] -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- openers["assistant"] -}}{%- endif -%}"""

# `toolkit.tokenization.chat_template.escape`: one more backslash in lines that begin with a role.
_ESCAPED = """\
{%- set text.escaped = "" -%}
{%- for line in text.content.splitlines(true) -%}
{%- for start in STARTS if line.lstrip(BACKSLASH).startswith(start) -%}
{%- set text.escaped = text.escaped ~ BACKSLASH -%}
{%- endfor -%}
{%- set text.escaped = text.escaped ~ line -%}
{%- endfor -%}
{%- set text.content = text.escaped -%}
"""


def marks_of(name: TemplateName) -> list[int]:
    """List the special ids that a template writes, the begin token aside."""
    parts = (part for around in AROUND[name].values() for side in around for part in side)
    return sorted({part for part in parts if isinstance(part, int)})


def mark_name(mark: int, taken: Collection[str], last: bool = False) -> str:
    """Name a special id of ours among other tokens: a name that is free, or the last that is taken."""
    name = SPECIAL_TOKENS[mark]
    while (f"{name}'" if last else name) in taken:
        name += "'"
    return name


def end_of(config: Config) -> int:
    """Give the id that ends what a model writes: a reply, of one that converses."""
    template = config.template if isinstance(config, GPTConfig) else "none"
    return EOS if template == "none" else AROUND[template]["assistant"][1][0]


def chat_template(name: TemplateName, begin: bool, tokens: Mapping[int, str], special: Iterable[str]) -> str:
    """Write a template of ours, which gives the ids that `toolkit.tokenization.chat_template` gives.

    begin: whether conversations begin with the begin token. tokens: what our special ids are called there, those in
    `marks_of` at least. special: the names of all special tokens.
    """

    def written(parts: Iterable[int | str]) -> str:
        return "".join(part if isinstance(part, str) else tokens[part] for part in parts)

    openers, closers = ({role: written(each[side]) for role, each in AROUND[name].items()} for side in (0, 1))
    values = {
        "OPENERS": openers,
        "CLOSERS": closers,
        "BEGIN": tokens[BOS] if begin else "",
        "SPECIAL": _breakable(special),
        "MARK": MARK,
        "OMEGA": normal_form(MARK),
        "BACKSLASH": "\\",
        "STARTS": [f"{name}:" for name in NAMES.values()],
    }
    text = _WHOLE.replace("ESCAPED", _ESCAPED if name == "plain" else "")
    return re.sub("[A-Z]{4,}", lambda word: json.dumps(values[word[0]], ensure_ascii=False), text)


def recognized(text: str, tokens: Mapping[int, str], special: Sequence[str]) -> tuple[TemplateName, bool] | None:
    """Tell which template of ours a text is, and if it begins with the begin token; None where it is another's."""
    for name in get_args(TemplateName):
        for begin in (True, False):
            needed = [*marks_of(name), *([BOS] if begin else [])]
            if all(mark in tokens for mark in needed) and text.strip() == chat_template(name, begin, tokens, special):
                return name, begin
    return None


def joining(special: Iterable[str]) -> dict[str, Any]:
    """Give the step of a tokenizer.json that takes the mark out of the names of special tokens."""
    groups = groupby(_breakable(special), lambda name: name[0])
    rests = ((first, "|".join(re.escape(name[1:]) for name in same)) for first, same in groups)
    patterns = (f"(?<={re.escape(first)}){MARK}(?={rest})" for first, rest in rests)
    return {"type": "Replace", "pattern": {"Regex": "|".join(patterns)}, "content": ""}


def _breakable(special: Iterable[str]) -> list[str]:
    """Sort the names, and leave out those of one character."""
    return sorted(name for name in set(special) if len(name) > 1)
