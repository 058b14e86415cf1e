"""Language models of characters or bytes: a tokenizer.json that is damaged, and characters that it does not know."""

import json
from collections.abc import Callable, Iterator

from tests.system.damage.room import Harm, Kind, change, cut, directory, edit, link, remove, write

LETTERS, BYTES = "letters/tokenizer.json", "bytes/tokenizer.json"
GENERATE = "generate --max-new-tokens 3 --model letters She"
PROMPTS = "generate --max-new-tokens 3 --model letters --file lines.en"
MEASURE = "perplexity --model letters story.txt"
READERS = [GENERATE, MEASURE, "info letters", PROMPTS]

FOREIGN = {"version": "1.0", "truncation": None, "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}


def values(**changes: object) -> Harm:
    return edit(LETTERS, lambda settings: settings.update(changes))


def characters(how: Callable[[str], str]) -> Harm:
    return edit(LETTERS, lambda settings: settings.update(characters=how(settings["characters"])))


# What a tokenizer of characters has become.
TOKENIZER: dict[str, tuple[Harm, str]] = {
    **{f"cut to {keep}": (cut(LETTERS, keep), "is damaged") for keep in (0, 1, 0.5, 0.98)},
    "gone": (remove(LETTERS), "letters/tokenizer.model does not exist, nor tokenizer.json"),
    "a directory": (directory(LETTERS), "letters/tokenizer.json cannot be read: Is a directory"),
    "a link to nothing": (link(LETTERS, "nowhere"), "letters/tokenizer.json does not exist"),
    "a link to itself": (link(LETTERS, "tokenizer.json"), "letters/tokenizer.json cannot be read: Too many levels"),
    "a list": (write(LETTERS, "[]"), "is damaged"),
    "a text": (write(LETTERS, '"hello"'), "is damaged"),
    "null": (write(LETTERS, "null"), "is damaged"),
    "nested without end": (write(LETTERS, "[" * 100_000), "is damaged"),
    "in UTF-16": (change(LETTERS, lambda content: content.decode().encode("utf-16")), "is damaged"),
    "in Latin-1": (write(LETTERS, b'{"kind": "caf\xe9"}'), "is damaged"),
    "gone to zeros": (change(LETTERS, lambda content: bytes(len(content))), "is damaged"),
    "from elsewhere": (write(LETTERS, json.dumps(FOREIGN)), "is damaged or is not a tokenizer of this toolkit"),
    "of the next version": (values(version=2), "has format version 2, and this toolkit reads version 1"),
    "of a version in words": (values(version="one"), "has format version 'one'"),
    "of a true version": (values(version=True), "has format version True"),
    "of no version": (edit(LETTERS, lambda settings: [settings.pop("version"), None][1]), "has no format version"),
    "of no kind": (edit(LETTERS, lambda settings: [settings.pop("kind"), None][1]), "is damaged"),
    "of a kind that there is not": (values(kind="word"), "is a tokenizer of kind 'word', this toolkit has character"),
    "of a kind that is a list": (values(kind=["character"]), "is damaged"),
    "of bytes with characters": (values(kind="byte"), "is damaged"),
    "of a setting more": (values(colour="red"), "is damaged"),
    "without characters": (edit(LETTERS, lambda settings: [settings.pop("characters"), None][1]), "is damaged"),
    "of no characters": (values(characters=""), "is damaged"),
    "of characters in a list": (values(characters=["a", "b"]), "is damaged"),
    "of characters in another order": (characters(lambda text: text[::-1]), "is damaged"),
    "of a character twice": (characters(lambda text: text[0] + text), "is damaged"),
    "of half a character": (
        write(LETTERS, '{"version": 1, "kind": "character", "characters": "a\\ud83d"}'),
        "is damaged",
    ),
    "of a character too few": (characters(lambda text: text[:-1]), "letters"),
    "of a character too many": (characters(lambda text: text + "\U0010fffd"), "letters"),
    "of bytes": (write(LETTERS, '{"version": 1, "kind": "byte"}'), "letters"),
    "one of two": (write("letters/tokenizer.model", "hello"), "letters has both tokenizer.model and tokenizer.json"),
    "one of two, the other a link to nothing": (link("letters/tokenizer.model", "nowhere"), "has both"),
}
BYTE_TOKENIZER: dict[str, tuple[Harm, str]] = {
    "cut": (cut(BYTES, 0.5), "bytes/tokenizer.json is damaged"),
    "of characters": (write(BYTES, '{"version": 1, "kind": "character", "characters": "abc"}'), "bytes"),
    "of a setting more": (edit(BYTES, lambda settings: settings.update(characters="abc")), "is damaged"),
}


def only(known: str) -> Harm:
    """The model knows as many characters as before, but other ones."""
    others = "".join(map(chr, range(0x4E00, 0x5000)))
    return characters(lambda text: ("".join(sorted(known)) + others)[: len(text)])


IN_BYTES = GENERATE.replace("letters", "bytes")
# The command, what is done to the room, more words, what is told.
UNKNOWN: dict[str, tuple[str, Harm | None, tuple[str, ...], str]] = {
    "a prompt of unknown characters": (GENERATE, None, ("Ω",), "the prompt cannot be read: the character 'Ω' (U+03A9)"),
    "a control character in a prompt": (GENERATE, None, ("\x07",), "the character '\\x07' (U+0007)"),
    "half a character for characters": (GENERATE, None, ("caf\udce9",), "the prompt cannot be read"),
    "half a character for bytes": (IN_BYTES, None, ("caf\udce9",), "the prompt cannot be read"),
    "a prompt that is too long in bytes": (IN_BYTES, None, ("क" * 20,), "the prompt has 64 tokens"),
    "nothing to begin with": (GENERATE, only("She"), ("",), "prompt 2 is empty, and this model cannot begin"),
    "a bad word of unknown characters": (GENERATE, None, ("--bad-words", "Ω"), "the character 'Ω' (U+03A9)"),
    "a file of prompts of unknown characters": (
        PROMPTS,
        write("lines.en", "She\nΩ\n"),
        (),
        "lines.en, line 2 cannot be read: the character 'Ω'",
    ),
    "a text of unknown characters": (
        MEASURE,
        change("story.txt", lambda content: content + "Ω".encode()),
        (),
        "story.txt cannot be measured: the character 'Ω' (U+03A9)",
    ),
    "a text of one character": (MEASURE, write("story.txt", "S"), (), "story.txt cannot be measured: there is nothing"),
}


def kinds() -> Iterator[Kind]:
    for number, (name, (harm, says)) in enumerate(TOKENIZER.items()):
        yield Kind(f"letters: a tokenizer {name}", READERS[number % len(READERS)], says, harm)
    for name, (harm, says) in BYTE_TOKENIZER.items():
        yield Kind(f"bytes: a tokenizer {name}", IN_BYTES, says, harm)
    for name, (command, harm, words, says) in UNKNOWN.items():
        yield Kind(name, command, says, harm, words)
