"""Reply evaluation: a model replies to questions, and rules judge the replies. Right? Polite? Ended by itself?"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from toolkit.data.conversations import Question, read_tests
from toolkit.decoding import ContinuationConfig, generate
from toolkit.errors import DataError
from toolkit.evaluation.scores import normalise_for_match, stripped
from toolkit.models.gpt import GPT
from toolkit.tokenization.chat_template import ChatTemplate, Message
from toolkit.untrusted import ANYTHING, SETTINGS_BYTES, Items, Record, Text, UnfitError, check, parse_json, read_bytes

# Replies are compared by the most probable ones, of this length at most.
GREEDY = ContinuationConfig(do_sample=False, max_new_tokens=64)
SAMPLED = ContinuationConfig(temperature=1.0, top_k=0, min_p=0.0, max_new_tokens=64, seed=0)
BATCH_SIZE = 64

_POLITE, _BLUNT = ("openings", "closings"), ("blunt_openings", "blunt_closings")
_STYLE = Record(dict.fromkeys((*_POLITE, *_BLUNT), Items(Text())), needed=_POLITE, others=ANYTHING)
_NAME = r"(?:, [^.,!?।]{1,40})?"  # which a sentence may have before its final mark: "Of course, Sita."


@dataclass(frozen=True)
class Style:
    """The rule by which a reply is polite: it opens or closes with polite sentences, and with no blunt one.

    A reply is [opening] core [closing]; the answer is the core. A name may stand before the final mark of an opening or
    a closing. Text is in normal form C.
    """

    openings: tuple[str, ...]
    closings: tuple[str, ...]
    blunt_openings: tuple[str, ...] = ()
    blunt_closings: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path) -> "Style":
        """Read a file {"openings": [...], "closings": [...]}, if need be with "blunt_openings" and "blunt_closings".

        Raises DataError where it is missing or is not that.
        """
        try:
            value = check(parse_json(read_bytes(path, SETTINGS_BYTES)), _STYLE)
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}") from error
        except UnfitError as error:
            raise DataError(f'{path} is no style ({error}): write {{"openings": ["…"], "closings": ["…"]}}') from error
        return cls(*(tuple(map(stripped, value.get(name, ()))) for name in (*_POLITE, *_BLUNT)))

    def is_polite(self, reply: str) -> bool:
        """Say if the reply has a polite opening or closing, and no blunt one."""
        opening, _, closing = self.parts(reply)
        manners = [part for part in (opening, closing) if part]
        return bool(manners) and all(map(self._polite.fullmatch, manners))

    def core(self, reply: str) -> str:
        """Take away the sentence that opens a reply and the one that closes it."""
        return self.parts(reply)[1]

    def parts(self, reply: str) -> tuple[str, str, str]:
        """Divide a reply into opening, core and closing; what is not there is empty."""
        text = stripped(reply)
        opening = self._opening.match(text)
        core = text[opening.end() :].lstrip() if opening else text
        closing = self._closing.search(core)
        rest = core[: closing.start()].rstrip() if closing else core
        return opening[1] if opening else "", rest, closing[1] if closing else ""

    @cached_property
    def _polite(self) -> re.Pattern[str]:
        return re.compile(_either(self.openings + self.closings))

    @cached_property
    def _opening(self) -> re.Pattern[str]:
        return re.compile(f"({_either(self.openings + self.blunt_openings)}) ")

    @cached_property
    def _closing(self) -> re.Pattern[str]:
        return re.compile(f" ({_either(self.closings + self.blunt_closings)})$")


def _either(sentences: Sequence[str]) -> str:
    """Give a pattern for any of the sentences, the longest first, with a name or without; for nothing where none is."""
    longest = sorted(filter(None, sentences), key=len, reverse=True)
    return "|".join(re.escape(each[:-1]) + _NAME + re.escape(each[-1]) for each in longest) or r"(?!)"


class WrittenReply(NamedTuple):
    """A reply, and whether its end of turn came by itself."""

    text: str
    ended: bool


class Judgement(NamedTuple):
    """The verdict of the rules on one reply."""

    kind: str
    exact: bool  # its core is one of the accepted ones, a final mark aside, and the whole is what was asked for
    polite: bool
    ended: bool  # by its end of turn, and not at a limit
    letters: int = 0  # of the whole reply


_RULES = "exact", "polite", "ended"


class EvaluatedReply(NamedTuple):
    """A question, the reply of a model, and the judgement of it."""

    question: Question
    reply: WrittenReply
    judgement: Judgement

    def shown(self) -> tuple[str, str]:
        """Show the last message of the user and the reply, each on one line."""
        return one_line(self.question.prompt[-1].content), one_line(self.reply.text)


def one_line(text: str) -> str:
    """Put marks in place of what ends the lines of a text."""
    return " ⏎ ".join(text.splitlines())


def fitting_questions(questions: Sequence[Question], template: ChatTemplate, max_length: int) -> list[Question]:
    """Keep the questions after which a model that reads `max_length` tokens has room for a reply.

    Raises DataError, naming the place, for a question that the tokenizer cannot read.
    """
    found = []
    for question in questions:
        try:
            prompt = template.prompt(question.prompt)
        except DataError as error:
            raise DataError(f"{question.place}: {error}") from error
        if len(prompt) < max_length:
            found.append(question)
    return found


def read_questions(path: Path, template: ChatTemplate, max_length: int) -> tuple[list[Question], int]:
    """Read the questions of a file that leave room for a reply -> them, and the number of the others.

    Raises DataError where there are none, and as `fitting_questions` does.
    """
    questions = list(read_tests(path))
    found = fitting_questions(questions, template, max_length)
    if not found:
        raise DataError(f"{path} has no question that leaves room for a reply: give shorter ones")
    return found, len(questions) - len(found)


def generate_replies(
    model: GPT, template: ChatTemplate, conversations: Sequence[Sequence[Message]], config: ContinuationConfig = GREEDY
) -> list[WrittenReply]:
    """Reply to each conversation, whose last message is a user's; samples depend on config.seed and the number.

    Raises DataError for a conversation that leaves no room for a reply.
    """
    first = 1 if model.config.begin else 0  # the model reads its BOS by itself
    prompts = [template.prompt(each)[first:] for each in conversations]
    best = [group[0] for group in generate(model, prompts, config, BATCH_SIZE, end=template.end)]
    texts = [template.reader().whole(template.tokenizer.decode(each.ids)) for each in best]
    return [WrittenReply(text, each.finished) for text, each in zip(texts, best, strict=True)]


def judge(reply: WrittenReply, question: Question, style: Style) -> Judgement:
    """Judge one reply by what its question accepts, and by what it asks of the whole reply."""
    is_right = normalise_for_match(style.core(reply.text)) in map(normalise_for_match, question.accept)
    is_right &= all(each in reply.text for each in question.contains)
    is_right &= question.most_letters is None or len(reply.text) <= question.most_letters
    return Judgement(question.kind, is_right, style.is_polite(reply.text), reply.ended, len(reply.text))


def evaluate_replies(
    model: GPT, template: ChatTemplate, questions: Sequence[Question], style: Style
) -> list[EvaluatedReply]:
    """Let the model reply to each question, most probable tokens first, and judge the replies."""
    found = generate_replies(model, template, [question.prompt for question in questions])
    return [
        EvaluatedReply(question, reply, judge(reply, question, style))
        for question, reply in zip(questions, found, strict=True)
    ]


class Manners(NamedTuple):
    """Manners and length of samples of a model."""

    polite: float  # percentage
    letters: float  # mean length


def sampled_manners(model: GPT, template: ChatTemplate, questions: Sequence[Question], style: Style) -> Manners:
    """Reply to every question by a sample: temperature 1, nothing cut off."""
    found = generate_replies(model, template, [question.prompt for question in questions], SAMPLED)
    polite, letters = ([style.is_polite(each.text) for each in found], [len(each.text) for each in found])
    return Manners(100 * sum(polite) / len(found), sum(letters) / len(found))


def summary(judged: Iterable[Judgement]) -> dict[str, dict[str, float]]:
    """Count, for each kind and for "all": `count`, percentages (`exact`, `polite`, `ended`), the mean of `letters`."""
    groups: dict[str, list[Judgement]] = {}
    for each in judged:
        groups.setdefault(each.kind, []).append(each)
    together = [each for group in groups.values() for each in group]
    scores = {}
    for kind, group in (*sorted(groups.items()), ("all", together)):
        if group:
            shares = {name: 100 * sum(getattr(each, name) for each in group) / len(group) for name in _RULES}
            scores[kind] = {"count": len(group), **shares, "letters": sum(each.letters for each in group) / len(group)}
    return scores


def table(scores: dict[str, dict[str, float]]) -> list[list[str]]:
    """Lay out a summary as the rows of a table."""
    rows = [["prompts", "count", "exact", "polite", "end by themselves", "letters"]]
    for kind, shares in scores.items():
        percentages = (f"{shares[name]:.1f} %" for name in _RULES)
        rows.append([kind.replace("_", " "), str(shares["count"]), *percentages, f"{shares['letters']:.0f}"])
    return rows
