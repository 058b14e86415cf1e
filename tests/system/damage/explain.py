"""What is asked of `explain` and of `plot` that cannot be shown: topics, texts, layers, files, models and logs."""

import json
from collections.abc import Iterator

from tests.system.damage.language import gains
from tests.system.damage.models import smaller_tokenizer
from tests.system.damage.room import Harm, Kind, both, change, copy, cut, directory, edit, remove, write

EXAMPLE = "explain attention --documents"
ATTENTION = "explain attention --model model She"
TRANSLATE = "explain translate --model model --max-new-tokens 2 She"
GENERATE = "explain generate --model gpt --max-new-tokens 2 She"
TRAINING = "explain training --model model She म"
PARALLEL = "explain parallel --model gpt --lengths 4 --quiet She"

# For every command, which succeeds by itself: what is wrong with more words, those words, and what is told.
FLAGS: dict[str, dict[str, tuple[str, str]]] = {
    EXAMPLE: {
        "a word that the example has not": ("girl", "is made of I, am, boy, without 'girl'"),
        "signs that the example has not": ("😀", "is made of I, am, boy, without '😀'"),
        "a hundred thousand letters for the example": ("x" * 100_000, "is made of I, am, boy, without 'xxx"),
        "white space for the example": ("\t", "the text is blank"),
        "a target that the example has not": ("--target boy", "without 'boy': leave out --documents"),
        "a layer of the example": ("--layer 2", "one layer and one head: leave out --model, --layer and --head"),
        "a model for the example": ("--model model", "--documents has a model of its own"),
        "a page in a directory that there is not": ("--html none/page.html", "none/page.html cannot be written"),
        "a page below a file": ("--html old.txt/page.html", "old.txt/page.html cannot be written"),
        "a page that is a directory": ("--html tales", "tales is not a regular file"),
        "a page that is a device": ("--html /dev/null", "/dev/null is not a regular file"),
        "a page of an endless name": (f"--html {'x' * 260}", "cannot be written"),
        "a page without a name": ("--html", "--html needs a value"),
        "a picture of another kind": ("--picture map.gif", "map.gif is not the name of a picture: it must end with"),
        "a picture in a directory that there is not": ("--picture none/map.svg", "none/map.svg cannot be written"),
        "one file for page and picture": ("--html map.svg --picture ./map.svg", "both name map.svg"),
        "a flag of another topic": ("--candidates 3", "there is no flag --candidates"),
    },
    ATTENTION: {
        "a layer that there is not": ("--layer 2", "layer is 2: this model has layers 1 to 1"),
        "layer 0": ("--layer 0", "layer is 0"),
        "a head that there is not": ("--head 99", "head is 99: this model has heads 1 to 2"),
        "a layer that there is not, for a page that is there": ("--layer 2 --html old.txt", "layer is 2"),
        "half a character of a text": ("--target caf\udce9", "UTF-8"),
    },
    TRANSLATE: {
        "no candidates": ("--candidates 0", "candidates is 0: it must be at least 1"),
        "fewer candidates than none": ("--candidates -1", "candidates is -1"),
        "a decoder layer that there is not": ("--layer 2", "layer is 2: this model has layers 1 to 1"),
        "head 0, for a picture that is there": ("--head 0 --picture map.svg", "head is 0"),
        "beams and sampling, shown": ("--num-beams 2 --do-sample", "sampling has no beams"),
        "a language model that shall translate, shown": ("--model gpt", "gpt is a language model"),
        "a second text to translate": ("eats", "'eats' is a word too many"),
    },
    GENERATE: {
        "no candidates for what follows": ("--candidates 0", "candidates is 0"),
        "a head that a language model has not": ("--head 3", "head is 3: this model has heads 1 to 2"),
        "a translator that shall go on, shown": ("--model model", "model is a translator"),
        "a negative temperature, shown": ("--temperature -1", "temperature is -1"),
    },
    TRAINING: {
        "a third text to learn from": ("म", "3 texts are given"),
        "steps of nothing": ("--learning-rate 0", "learning_rate is 0"),
        "steps that are not a number": ("--learning-rate nan", "learning_rate is nan"),
    },
    PARALLEL: {
        "texts of no tokens": ("--lengths 0", "lengths are 0: give some from 1 to 16384"),
        "texts of fewer tokens than none": ("--lengths 5 -1", "lengths are -1, 5"),
        "texts of a billion tokens": ("--lengths 1000000000", "lengths are 1000000000"),
        "no texts to time": ("--lengths", "lengths are none"),
        "texts of half a token": ("--lengths 4 5.5", "--lengths has '5.5' in it: give whole numbers"),
        "a translator that reads one after the other": ("--model model", "model is a translator"),
    },
}
# Commands that are nothing by themselves; a text may be empty.
WHOLE: dict[str, tuple[tuple[str, ...], str]] = {
    "an unknown topic": (("paint",), "there is no topic 'paint'"),
    "a flag for a topic": (("--html", "page.html"), "there is no flag '--html'"),
    "nothing to translate, shown": (("translate",), "text is missing"),
    "blank text to translate, shown": (("translate", "--model", "model", " "), "the text is blank"),
    "nothing to go on with, shown": (("generate",), "text is missing"),
    "half a character to go on with": (("generate", "--model", "gpt", "caf\udce9"), "UTF-8"),
    "one text for a translator to learn from": (("training", "--model", "model", "She"), "1 text is given"),
    "a blank text to learn from": (("training", "--model", "model", "", "म"), "the sentence is blank"),
    "a text of no tokens to learn from": (("training", "--model", "gpt", ""), "there is nothing to predict"),
    "a model to explain that there is not": (("attention", "--model", "none"), "there is no model 'none'"),
    "a directory of something else to explain": (("attention", "--model", "tales"), "tales is not a model"),
    "an unknown pair": (("gradients", "layer_nrom"), "there is no pair 'layer_nrom': the pairs are linear"),
    "a hundred thousand letters for a pair": (("gradients", "x" * 100_000), "there is no pair 'xxx"),
    "a negative seed of checks": (("gradients", "linear", "--seed", "-1"), "seed is -1"),
}
MODEL: dict[str, tuple[Harm, str]] = {
    "without a tokenizer": (remove("gpt/tokenizer.model"), "gpt/tokenizer.model does not exist"),
    "with a smaller tokenizer": (change("gpt/tokenizer.model", smaller_tokenizer), "gpt"),
    "whose weights are cut": (cut("gpt/model.safetensors", 0.5), "gpt/model.safetensors is damaged"),
    "whose weights overflow": (gains(1e30), "numbers that are not finite"),
    "of no format": (edit("gpt/config.json", lambda config: [config.pop("format"), None][1]), "gpt/config.json"),
}

PLOT: dict[str, tuple[str, str]] = {
    "no run to draw": ("", "RUN is missing"),
    "a run to draw that there is not": ("none", "none is not a directory"),
    "a file to draw": ("lines.en", "lines.en is not a directory"),
    "a run to draw of an endless name": ("x" * 300, "is not a directory"),
    "a directory without runs to draw": ("tales", "tales holds no runs"),
    "a drawing of another kind": ("run --output curves.gif", "curves.gif is not the name of a picture"),
    "a drawing that is a directory": ("run --output tales", "tales is not the name of a picture"),
    "a drawing in a directory that there is not": ("run --output none/x.png", "none/x.png cannot be written"),
    "a figure that no run has": ("run --output x.svg --metrics speed", "there is no metric 'speed' in these logs"),
    "an axis that there is not": ("run --output x.svg --x epochs", "--x is 'epochs': it must be one of updates"),
}
_DAMAGED = "run/log.jsonl, line 1 is damaged: it is not a record of an update"
LOGS: dict[str, tuple[Harm, str]] = {
    "gone": (remove("run/log.jsonl"), "run has no figures in its log.jsonl yet"),
    "of no bytes": (write("run/log.jsonl", ""), "run has no figures in its log.jsonl yet"),
    "cut off in its first line": (cut("run/log.jsonl", 20), "run has no figures in its log.jsonl yet"),
    "a directory": (directory("run/log.jsonl"), "run/log.jsonl cannot be read"),
    "of something else": (copy("run/log.jsonl", "lines.en"), _DAMAGED),
    "of other records": (write("run/log.jsonl", '{"message": "hello"}\n'), _DAMAGED),
    "nested without end": (write("run/log.jsonl", "[" * 100_000 + "\n"), _DAMAGED),
    "of an update in words": (write("run/log.jsonl", '{"update": "one", "loss": 2}\n'), _DAMAGED),
    "of an update before the first": (write("run/log.jsonl", '{"update": -1, "loss": 2}\n'), _DAMAGED),
    "of an update without end": (write("run/log.jsonl", json.dumps({"update": 10**400, "loss": 2}) + "\n"), _DAMAGED),
    "of another run's damage": (
        both(directory("second"), copy("second/settings.json", "run/settings.json"), write("second/log.jsonl", "x\n")),
        "second/log.jsonl, line 1 is damaged",
    ),
}


def kinds() -> Iterator[Kind]:
    for command, table in FLAGS.items():
        for name, (words, says) in table.items():
            yield Kind(name, command, says, flags=tuple(words.split(" ")), needs="old.txt tales")
    for name, (words, says) in WHOLE.items():
        yield Kind(name, "explain", says, flags=words)
    for name, (harm, says) in MODEL.items():
        yield Kind(f"a model {name}, explained", GENERATE, says, harm)
    for topic in "attention", "training", "parallel":
        words = (topic, "--model", "gpt", "She")
        yield Kind(f"a model whose weights overflow, in {topic}", "explain", "not finite", gains(1e30), words)
    for name, (words, says) in PLOT.items():
        yield Kind(name, "plot", says, flags=tuple(words.split()))
    for name, (harm, says) in LOGS.items():
        runs = ("run", "second") if "another" in name else ("run",)
        yield Kind(f"a log {name}, drawn", "plot", says, harm, (*runs, "--output", "old.svg"), needs="lines.en")
