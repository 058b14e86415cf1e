"""Language models: damaged ones, texts and prompts that they cannot read, and words of a command that mean nothing."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.system.damage.models import foreign_tokenizer, smaller_tokenizer
from tests.system.damage.room import Harm, Kind, arrays, change, cut, edit, fresh, remove, write
from tests.system.damage.texts import CONTENTS, EMPTY, LINES, PLACES

GENERATE = "generate --max-new-tokens 3 --model gpt She"
PROMPTS = "generate --max-new-tokens 3 --model gpt --file lines.en"
MEASURE = "perplexity --model gpt lines.en"

CONFIG, WEIGHTS, TOKENIZER = (f"gpt/{name}" for name in ("config.json", "model.safetensors", "tokenizer.model"))
READERS = [GENERATE, MEASURE, "info gpt", PROMPTS]


def setting(**values: Any) -> Harm:
    return edit(CONFIG, lambda config: config["model"].update(values))


def tensors(how: Any) -> Harm:
    return arrays(WEIGHTS, how)


def gains(factor: float) -> Harm:
    """Weights that are finite, and what is computed with them is not."""
    return tensors(
        lambda values: {
            name: value * np.float32(factor if name.endswith("gain") else 1) for name, value in values.items()
        }
    )


# What is wrong with the model, where it is not wrong in the same way with a translator.
MODEL: dict[str, Harm] = {
    "gpt: config.json is cut": cut(CONFIG, 0.5),
    "gpt: no config.json": remove(CONFIG),
    "gpt: the kind of another model": edit(CONFIG, lambda config: config.update(kind="seq2seq")),
    "gpt: a setting of another kind": setting(encoder_layers=1),
    "gpt: no layers": setting(layers=0),
    "gpt: a layer more than the weights": setting(layers=2),
    "gpt: thousands of layers": setting(layers=9_999),
    "gpt: a context of no tokens": setting(max_length=0),
    "gpt: a context in words": setting(max_length="long"),
    "gpt: learned positions for rotary ones": setting(positions="learned"),
    "gpt: positions that there are not": setting(positions="alibi"),
    "gpt: a norm of another kind": setting(norm="pre"),
    "gpt: another norm than the weights": setting(norm="rms", bias=True),
    "gpt: an activation of other weights": setting(activation="swiglu"),
    "gpt: heads that do not share evenly": setting(num_heads=4, num_key_value_heads=3),
    "gpt: fewer key and value heads than none": setting(num_key_value_heads=-1),
    "gpt: fewer key and value heads than the weights": setting(num_key_value_heads=1),
    "gpt: heads of odd width": setting(num_heads=16),
    "gpt: waves of no length": setting(rotary_base=0.0),
    "gpt: waves of endless length": setting(rotary_base=float("inf")),
    "gpt: heads wider than anything": setting(head_dim=1 << 40),
    "gpt: norms of queries that are not there": setting(qk_norm=True),
    "gpt: waves stretched by nothing": setting(rotary_scaling="yarn", rotary_factor=0.0),
    "gpt: an eps that is not a number": setting(norm_eps=float("nan")),
    "gpt: an output table that is not there": setting(tie=False),
    "gpt: marks that are neither there nor not": setting(begin=None),
    "gpt: model.safetensors is cut": cut(WEIGHTS, 0.5),
    "gpt: no model.safetensors": remove(WEIGHTS),
    "gpt: an array too few": tensors(lambda values: [values.popitem(), None][1]),
    "gpt: an array of NaN": tensors(lambda values: values.update({min(values): values[min(values)] * np.nan})),
    "gpt: tokenizer.model is cut": cut(TOKENIZER, 0.5),
    "gpt: no tokenizer": remove(TOKENIZER),
    "gpt: a tokenizer from elsewhere": change(TOKENIZER, foreign_tokenizer),
    "gpt: a tokenizer of another size": change(TOKENIZER, smaller_tokenizer),
    "gpt: a tokenizer too many": write("gpt/tokenizer.json", "{}"),
    "gpt: a tokenizer that is not JSON": lambda room: [
        fresh(room / TOKENIZER),
        (room / "gpt/tokenizer.json").write_text("hello"),
    ],
}
OVERFLOW = {
    "gpt: weights that overflow": GENERATE,
    "gpt: weights that overflow, greedily": f"{GENERATE} --temperature 0",
    "gpt: weights that overflow, with beams": f"{GENERATE} --no-do-sample --num-beams 2",
    "gpt: weights that overflow, with several prompts": PROMPTS,
    "gpt: weights that overflow, measured": MEASURE,
}

FLAGS: dict[str, dict[str, tuple[str, str]]] = {
    GENERATE: {
        "a flag of a translation": ("--alignments", "there is no flag --alignments"),
        "a prompt and a file of them": ("--file lines.en", "choose one"),
        "a file of prompts that there is not": ("--file", "--file needs a value"),
        "a prompt that is too long": ("xq" * 40, "the prompt has 8"),
        "a prompt of a hundred thousand characters": ("x" * 100_000, "the prompt has 10000"),
        "half a character in a prompt": ("caf\udce9", "the prompt cannot be read"),
        "a least probability above 1": ("--min-p 1.5", "min_p is 1.5"),
        "a least probability that is not a number": ("--min-p nan", "min_p is nan"),
        "a penalty of nothing": ("--repetition-penalty 0", "repetition_penalty is 0"),
        "an endless penalty": ("--repetition-penalty inf", "repetition_penalty is inf"),
        "sequences of fewer tokens than none": ("--no-repeat-ngram-size -1", "no_repeat_ngram_size is -1"),
        "beams and samples": ("--num-beams 3", "num_beams is 3, but sampling has no beams"),
        "more continuations than beams": (
            "--no-do-sample --num-return-sequences 3",
            "num_return_sequences is 3, but a search with 1 beam finds",
        ),
        "stops that beams cannot keep": ("--no-do-sample --num-beams 2 --stop-strings a", "stop strings"),
        "a stop of nothing": ("--stop-strings=", "a stop string is empty"),
        "a bad word of nothing": ("--bad-words=", "a bad word is empty"),
        "half a character as a bad word": ("--bad-words caf\udce9", "surrogate"),
        "a context that does something else": ("--past-context wrap", "--past-context is 'wrap'"),
        "no prompts at a time": ("--batch-size 0", "batch_size is 0"),
        "no processes for two prompts": ("They --workers 0", "workers is 0"),
        "more at least than at most, of a prompt": ("--min-new-tokens 9", "min_new_tokens is 9"),
        "a translator that shall continue": ("--model model", "model is a translator, which continues no text"),
        "a language model that there is not": ("--model none", "there is no model 'none'"),
    },
    "translate --max-new-tokens 2 --model model hello": {
        "a language model that shall translate": ("--model gpt", "gpt is a language model, which translates nothing"),
    },
    "score --model model --source lines.en --target lines.ne": {
        "a language model that shall score": ("--model gpt", "use toolkit perplexity"),
    },
    MEASURE: {
        "an overlap of the whole context": ("--overlap 32", "overlap is 32"),
        "a negative overlap": ("--overlap -1", "overlap is -1"),
        "documents that there are not": ("--documents page", "--documents is 'page': it must be one of"),
        "documents for a model without marks": ("--model plain --documents line", "plain knows no marks"),
        "a translator that shall be measured": ("--model model", "use toolkit score"),
        "a second file that there is not": ("none.txt", "none.txt does not exist"),
        "a folder without text": ("hub", "hub has no text in it"),
    },
    "presets": {
        "a preset of one's own": ("mine", "'mine' is a word too many"),
        "a flag of presets that there is not": ("--model gpt", "there is no flag --model"),
    },
}
WHOLE = {
    "nothing to measure": ("perplexity --model gpt", "no file is given"),
    "a shipped model that is none": ("generate --model novels hello", "there is no model 'novels'"),
}

# What is nothing wrong with a text that is not read line by line.
_FINE = ("an enormous line", "a directory")


def kinds() -> Iterator[Kind]:
    for number, (name, harm) in enumerate(MODEL.items()):
        yield Kind(name, READERS[number % len(READERS)], "gpt", harm)
    for name, command in OVERFLOW.items():
        yield Kind(name, command, "gpt computes numbers that are not finite", gains(1e30))
    for command, table in FLAGS.items():
        for name, (words, says) in table.items():
            yield Kind(name, command, says, flags=tuple(words.split(" ")))
    for name, (words, says) in WHOLE.items():
        verb, *rest = words.split(" ")
        yield Kind(name, verb, says, flags=tuple(rest))
    yield from _texts()


def _texts() -> Iterator[Kind]:
    """What no command can read, met by those who read prompts, line by line, and whole texts."""
    harms = [(name, change("lines.en", _first(line)), says) for name, (line, says, *_) in LINES.items()]
    harms += [(name, change("lines.en", how), says) for name, (how, says, *_) in CONTENTS.items()]
    harms += [(name, write("lines.en", content), "is empty") for name, content in EMPTY.items()]
    harms += [(name, how("lines.en"), says) for name, (how, says) in PLACES.items()]
    for number, (name, harm, says) in enumerate(harms):
        command = MEASURE if number % 2 and name not in _FINE else PROMPTS
        yield Kind(f"{name}, for a language model", command, says, harm)


def _first(line: bytes) -> Any:
    return lambda content: line + b"\n" + content.partition(b"\n")[2]
