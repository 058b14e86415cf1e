"""Chats: models that do not converse, conversations in files that are none, and messages that cannot be said."""

import json
from collections.abc import Iterator
from typing import Any

from tests.system.damage.language import gains
from tests.system.damage.models import smaller_tokenizer
from tests.system.damage.room import Harm, Kind, change, cut, edit, remove, write
from tests.system.damage.texts import CONTENTS, LINES, PLACES

SILENT = "chat --max-new-tokens 3 --template control --model gpt"
SAY = f"{SILENT} She"
PIPED = f"{SILENT} < lines.en"
CONFIG = "gpt/config.json"

SAID = [{"role": role, "content": text} for role, text in (("system", "a"), ("user", "She"), ("assistant", "eats."))]


def talk(content: Any) -> Harm:
    """A file of a conversation that holds this as JSON, or this text."""
    return write("talk.json", content if isinstance(content, str | bytes) else json.dumps(content))


def messages(*changed: Any) -> Harm:
    return talk({"messages": changed})


SYSTEM, USER, REPLY = SAID

# What is in the file of a conversation, and what is told of it.
FILES: dict[str, tuple[Harm, str]] = {
    "that there is not": (remove("talk.json"), "talk.json"),
    "in UTF-16": (talk(json.dumps({"messages": SAID}).encode("utf-16")), "talk.json"),
    "in Latin-1": (talk(b'{"messages": [{"role": "user", "content": "caf\xe9"}]}'), "talk.json"),
    "cut off": (talk(json.dumps({"messages": SAID})[:-9]), "talk.json"),
    "of no bytes": (talk(""), "talk.json"),
    "of zeros": (talk(bytes(400)), "talk.json"),
    "nested without end": (talk("[" * 100_000), "talk.json"),
    "in a list": (talk(SAID), "talk.json"),
    "without messages": (talk({"text": "hello"}), "messages"),
    "of a number of messages": (talk({"messages": 3}), "a number for its messages"),
    "of no messages": (messages(), "has no messages"),
    "of texts": (messages("She", "eats."), "message 1 is text"),
    "of roles that there are not": (messages({**USER, "role": "human"}, REPLY), "message 1 has the role 'human'"),
    "of a role in numbers": (messages({**USER, "role": 5}, REPLY), "message 1 has a number for its role"),
    "of no content": (messages({"role": "user"}, REPLY), "message 1 has no content"),
    "of blank content": (messages({**USER, "content": " \t"}, REPLY), "message 1 is blank"),
    "with a NUL": (messages({**USER, "content": "a\0b"}, REPLY), "message 1 has a NUL"),
    "of half a character": (messages({**USER, "content": "\ud800"}, REPLY), "message 1 has half of a surrogate pair"),
    "that a reply begins": (messages(REPLY, USER), "a conversation begins with the user"),
    "of two users in a row": (messages(USER, USER, REPLY), "message 2 is the second of the user in a row"),
    "of two system messages": (messages(SYSTEM, SYSTEM, USER, REPLY), "message 2 is a second system message"),
    "whose system message is last": (messages(USER, REPLY, SYSTEM), "message 3 is a system message, and not the first"),
    "that waits for a reply": (messages(USER), "ends with a message of the user"),
    "whose system message is too long": (
        messages({**SYSTEM, "content": "xq" * 99}, USER, REPLY),
        "the system message has",
    ),
    **{f"that is {name}": (how("talk.json"), "talk.json") for name, (how, _) in PLACES.items()},
}

MODEL: dict[str, tuple[Harm, str]] = {
    "without a tokenizer": (remove("gpt/tokenizer.model"), "gpt/tokenizer.model does not exist"),
    "with a tokenizer of another size": (change("gpt/tokenizer.model", smaller_tokenizer), "gpt"),
    "whose weights are cut": (cut("gpt/model.safetensors", 0.5), "gpt/model.safetensors is damaged"),
    "whose weights overflow": (gains(1e30), "gpt computes numbers that are not finite"),
    "whose template is a number": (edit(CONFIG, lambda config: config["model"].update(template=3)), "template is 3"),
    "whose template there is not": (
        edit(CONFIG, lambda config: config["model"].update(template="chatml")),
        "template is 'chatml'",
    ),
}

FLAGS: dict[str, tuple[str, str]] = {
    "a translator that shall converse": ("--model model", "model is a translator, which continues no text"),
    "a template that there is not": ("--template chatml", "--template is 'chatml': it must be one of"),
    "a template that letters cannot write": ("--model letters --template plain", "the template plain does not suit"),
    "a system message that is too long": (f"--system {'xq' * 40}", "the system message has"),
    "a system message of white space": ("--system=\t", "the system message is blank"),
    "a system message of half a character": ("--system caf\udce9", "the system message"),
    "a context that slides away": ("--past-context slide", "past_context is slide"),
    "several replies to a message": ("--do-sample --num-return-sequences 2", "num_return_sequences is 2"),
    "beams and samples, in a chat": ("--do-sample --num-beams 2", "sampling has no beams"),
    "a chat that is too hot": ("--do-sample --temperature inf", "temperature is inf"),
    "a stop of nothing, in a chat": ("--stop-strings=", "a stop string is empty"),
    "a bad word of nothing, in a chat": ("--bad-words=", "a bad word is empty"),
    "more tokens at least than at most, in a chat": ("--min-new-tokens 9", "min_new_tokens is 9"),
    "a flag that a chat has not": ("--file lines.en", "there is no flag --file"),
    "a flag of a chat misspelt": ("--sytem a", "there is no flag --sytem: did you mean --system?"),
    "a place for what is said, in no directory": ("--save none/talk.json", "none/talk.json cannot be written"),
    "a place for what is said, in a file": ("--save old.txt/talk.json", "old.txt/talk.json cannot be written"),
    "a place for what is said, that is a directory": ("--save gpt", "gpt is not a regular file"),
    "a place for what is said, that is a device": ("--save /dev/null", "/dev/null is not a regular file"),
}

# What is said, where it is the only message, and what is told of it.
SPOKEN: dict[str, tuple[str, str]] = {
    "that is too long": ("xq" * 40, "the message has"),
    "of a hundred thousand characters": ("x" * 100_000, "the message has"),
    "of half a character": ("caf\udce9", "the message"),
    "of white space": ("\u3000\t", "the message is blank"),
}


def kinds() -> Iterator[Kind]:
    yield Kind(
        "a model that was not taught to converse",
        "chat",
        "not taught to converse",
        needs="gpt",
        flags=("--model", "gpt", "a"),
    )
    yield Kind(
        "a model to converse with that is not there", "chat", "there is no model 'none'", flags=("--model", "none")
    )
    for name, (message, says) in SPOKEN.items():
        yield Kind(f"a message {name}", SILENT, says, flags=(message,))
    for name, (harm, says) in FILES.items():
        yield Kind(f"a conversation {name}", SAY, says, harm, ("--load", "talk.json"))
    for name, (harm, says) in MODEL.items():
        yield Kind(f"a model to converse with, {name}", SAY, says, harm)
    for name, (words, says) in FLAGS.items():
        first = ("old.txt", "letters", "model", "gpt")
        yield Kind(
            name, SAY, says, flags=tuple(words.split(" ")), needs=" ".join(each for each in first if each in words)
        )
    for name, (line, *says) in LINES.items():
        harm = change("lines.en", lambda content, line=line: line + b"\n" + content)
        told = "the message has" if name == "an enormous line" else f"line 1 {says[-1]}"
        yield Kind(f"{name}, said", PIPED, told, harm)
    for name, (how, *says) in CONTENTS.items():
        yield Kind(f"{name}, said", PIPED, says[-1], change("lines.en", how))
