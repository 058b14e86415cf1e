"""Many conversations answered at once, and how good the answers are where it is known what is right."""

from collections.abc import Sequence
from typing import NamedTuple

from toolkit.chat.template import Template
from toolkit.data.conversations import Question
from toolkit.data.messages import Message
from toolkit.decoding import ContinuationConfig, generate
from toolkit.errors import DataError
from toolkit.evaluation.replies import Judged, Style, judge
from toolkit.models.gpt import GPT

# How replies are compared: the most probable ones, of this length at most.
GREEDY = ContinuationConfig(do_sample=False, max_new_tokens=64)
SAMPLED = ContinuationConfig(temperature=1.0, top_k=0, min_p=0.0, max_new_tokens=64)
BATCH_SIZE = 64


class Answer(NamedTuple):
    """A reply, and whether its end marker came by itself."""

    text: str
    ended: bool


class Tested(NamedTuple):
    """A question, what a model replied, and what the rules say of that."""

    question: Question
    answer: Answer
    judged: Judged

    def shown(self) -> tuple[str, str]:
        """What the user said last and what was replied, each on one line."""
        return one_line(self.question.prompt[-1].content), one_line(self.answer.text)


def one_line(text: str) -> str:
    """A text with marks in place of what ends its lines."""
    return " ⏎ ".join(text.splitlines())


def answers(
    model: GPT, template: Template, conversations: Sequence[Sequence[Message]], config: ContinuationConfig = GREEDY
) -> list[Answer]:
    """The reply to each conversation, whose last message is a user's; samples depend on config.seed and the number.

    Raises DataError for a conversation that leaves no room for a reply.
    """
    prompts = [reply_prompt(template, each) for each in conversations]
    if model.config.begin:  # which is put in front of every prompt again
        prompts = [prompt[1:] for prompt in prompts]
    found = generate(model, prompts, config, BATCH_SIZE, end=template.end)
    return [Answer(_text(template, group[0].ids), group[0].finished) for group in found]


def with_room(questions: Sequence[Question], template: Template, max_length: int) -> list[Question]:
    """Those questions after which a model that reads so many tokens has room for a reply.

    Raises DataError, naming the place, for a question that the tokenizer cannot read.
    """
    found = []
    for question in questions:
        try:
            prompt = reply_prompt(template, question.prompt)
        except DataError as error:
            raise DataError(f"{question.place}: {error}") from error
        if len(prompt) < max_length:
            found.append(question)
    return found


def reply_prompt(template: Template, conversation: Sequence[Message]) -> list[int]:
    """The ids of a conversation and of what opens the reply to it.  Raises DataError where no user speaks last."""
    if not conversation or conversation[-1].role != "user":
        raise DataError("a reply is wanted to a conversation that does not end with the user")
    return template.encode(conversation).ids + template.reply_opener()


def _text(template: Template, ids: Sequence[int]) -> str:
    written, reading = template.tokenizer.decode(ids), template.reading()
    return reading.push(written) + reading.flush()


def tested(model: GPT, template: Template, questions: Sequence[Question], style: Style) -> list[Tested]:
    """What the model replies to each question, most probable tokens first, judged."""
    found = answers(model, template, [question.prompt for question in questions])
    return [
        Tested(question, answer, judge(answer.text, answer.ended, question.kind, question.accept, style))
        for question, answer in zip(questions, found, strict=True)
    ]


def sampled_politeness(model: GPT, template: Template, questions: Sequence[Question], style: Style) -> float:
    """Percent of replies that are polite when they are drawn as the model has them: temperature 1, nothing cut off."""
    found = answers(model, template, [question.prompt for question in questions], SAMPLED)
    return 100 * sum(style.is_polite(answer.text) for answer in found) / len(found)
