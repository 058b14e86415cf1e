"""`explain attention`: one text through a trained model, number by number, read from one real pass."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolkit.decoding.sampling import log_sum_exp
from toolkit.errors import ConfigError
from toolkit.explain.attention.steps import Steps, norm_blocks
from toolkit.explain.pages.blocks import Bars, Block, Formula, Numbers, Page, Section, Table, Text
from toolkit.explain.pages.writing import labels, probability
from toolkit.explain.reading import Reading, check_choice, modules, read_text, read_translation
from toolkit.functional.arrays import Array
from toolkit.language_model import LanguageModel
from toolkit.models.gpt import GPT
from toolkit.models.inputs import Input
from toolkit.models.seq2seq import Seq2Seq
from toolkit.nn.blocks import Block as Layer
from toolkit.nn.blocks import DecoderBlock
from toolkit.nn.layers import LearnedPositions
from toolkit.nn.module import Module
from toolkit.translator import Translator

_CANDIDATES = 8  # tokens of a distribution that are shown


@dataclass(frozen=True)
class _Stack:
    """The layers that one side of a model has."""

    name: str
    input: Input
    layers: Sequence[Layer | DecoderBlock]
    norm: Module | None  # behind the last layer


def attention_page(
    text_model: Translator | LanguageModel, text: str, target: str | None = None, layer: int = 1, head: int = 1
) -> Page:
    """The walk of one text through a model that `toolkit.load` has read.

    target: for a translator, what the decoder reads; None is the model's own translation. layer, head: which are shown
    in full, from 1; a side of a translator that has fewer layers shows its last.

    Raises ConfigError for a layer or head that the model does not have and for a target that it does not read,
    DataError for a text that it cannot read.
    """
    model = text_model.model
    _check(model, target, layer, head)
    owners = _owners(model, layer)
    if isinstance(model, Seq2Seq):
        reading = read_translation(text_model, text, target, owners)
        sections = _translation(reading, layer, head, target is None)
    else:
        reading = read_text(text_model, text, owners)
        sections = _text(reading, layer, head)
    about = (
        f"Every number is read from one pass of a real model with {model.parameter_count:,} parameters: "
        f"{_shape(model)}. Shown in full: layer {layer}, head {head}."
    )
    return Page("Attention, step by step", about, sections, list(reading.cut))


def _check(model: Seq2Seq | GPT, target: str | None, layer: int, head: int) -> None:
    if target is not None and isinstance(model, GPT):
        raise ConfigError("a target is for a translator: a language model reads one text only")
    check_choice(max(len(stack.layers) for stack in _stacks(model)), model.config.heads, layer, head)


def _stacks(model: Seq2Seq | GPT) -> list[_Stack]:
    if isinstance(model, GPT):
        return [_Stack("", model.trunk.input, model.trunk.decoder.blocks, model.trunk.decoder.norm)]
    return [
        _Stack("Encoder, ", model.source, model.encoder.blocks, model.encoder.norm),
        _Stack("Decoder, ", model.target, model.decoder.blocks, model.decoder.norm),
    ]


def _owners(model: Seq2Seq | GPT, layer: int) -> set[Module]:
    """The modules that the page reads: other layers' maps would fill the memory."""
    owners: set[Module] = {model.output}
    for stack in _stacks(model):
        index = min(layer, len(stack.layers)) - 1
        owners |= {*modules(stack.input).values(), *modules(stack.layers[index]).values()}
        if stack.norm:
            owners.add(stack.norm)
        for other in (stack.layers[index - 1], stack.layers[-1]):
            last = other.feed_forward
            owners |= {last, last.norm} - {None}
    return owners


def _translation(reading: Reading, layer: int, head: int, own: bool) -> list[Section]:
    model = reading.model
    encoder, decoder = _stacks(model)
    written = "the model's own translation" if own else "the given target"
    intro = f"The encoder reads the source and its end mark; the decoder reads a begin mark and {written}."
    shared = int(model.target.embedding is model.source.embedding)
    sources, words = reading.source_words, reading.words
    return [
        Section("Tokens", [Text(intro), _tokens(sources, reading.sources), _tokens(words, reading.inputs)]),
        *_input(reading, encoder, sources, 0),
        *_layer(reading, encoder, sources, sources, layer, head),
        *_memory(reading, encoder, sources),
        *_input(reading, decoder, words, shared),
        *_layer(reading, decoder, words, sources, layer, head),
        *_output(reading, decoder),
    ]


def _text(reading: Reading, layer: int, head: int) -> list[Section]:
    [stack] = _stacks(reading.model)
    intro = "The model reads the text from left to right and says at every token what may come next."
    return [
        Section("Tokens", [Text(intro), _tokens(reading.words, reading.inputs)]),
        *_input(reading, stack, reading.words, 0),
        *_layer(reading, stack, reading.words, reading.words, layer, head),
        *_output(reading, stack),
    ]


def _tokens(words: Sequence[str], ids: Array) -> Table:
    rows = [[str(place), word, str(token)] for place, (word, token) in enumerate(zip(words, ids, strict=True))]
    return Table(("position", "token", "id"), rows, left=(1,))


def _input(reading: Reading, stack: _Stack, words: Sequence[str], which: int) -> list[Section]:
    embedding, positions = stack.input.embedding, stack.input.positions
    size, width = embedding.table.shape
    scale = f"{embedding.scale:.3f} · " if embedding.scale != 1 else ""
    formula = f"E = {scale}table[id]        table ({size}, {width}) → ({len(words)}, {width})"
    found = Numbers("E", reading.found(embedding, "output", which), words)
    sections = [Section(f"{stack.name}embedding".capitalize(), [Formula(formula), found])]
    if positions is None:
        return sections
    if isinstance(positions, LearnedPositions):
        formula = f"PE(t) = positions[t]        positions {positions.embedding.table.shape}, learned like any weight"
    elif positions.layout == "halves":
        formula = "PE(t, i) = sin(t / 10000^(2i / D))        PE(t, D/2 + i) = cos(t / 10000^(2i / D))"
    else:
        formula = "PE(t, 2i) = sin(t / 10000^(2i / D))        PE(t, 2i + 1) = cos(t / 10000^(2i / D))"
    blocks = [
        Text("Attention by itself does not know the order of tokens: what tells it is added."),
        Formula(formula + "\nx = E + PE"),
        Numbers("PE", reading.found(positions, "positions"), words),
        Numbers("x", reading.found(positions, "output"), words),
    ]
    return [*sections, Section(f"{stack.name}positions".capitalize(), blocks)]


def _layer(
    reading: Reading, stack: _Stack, words: Sequence[str], memory: Sequence[str], layer: int, head: int
) -> list[Section]:
    number = min(layer, len(stack.layers))
    block = stack.layers[number - 1]
    steps = Steps(reading, f"{stack.name}layer {number}".capitalize(), words, head - 1)
    sections = []
    if number > 1:
        blocks = [
            Text(f"What layer {number} is given: the rows after {number - 1} of {len(stack.layers)} layers."),
            Numbers("x", _after(reading, stack.layers[number - 2]), words),
        ]
        sections.append(Section(f"{steps.where}: what it reads", blocks))
    sections += steps.residual(block.attention, *steps.attention(block.attention.layer, words))
    if isinstance(block, DecoderBlock):
        crossing = block.cross_attention
        sections += steps.residual(crossing, *steps.attention(crossing.layer, memory))
    return [*sections, *steps.residual(block.feed_forward, steps.feed_forward(block.feed_forward.layer))]


def _after(reading: Reading, block: Layer | DecoderBlock) -> Array:
    """What a block returned."""
    last = block.feed_forward
    return reading.found(last, "sum") if last.pre_norm or not last.norm else reading.found(last.norm, "output")


def _last(reading: Reading, stack: _Stack, words: Sequence[str]) -> list[Block]:
    """What comes out of a stack."""
    count = len(stack.layers)
    rows = Numbers(f"x after {count} layer{'s' * (count > 1)}", _after(reading, stack.layers[-1]), words)
    return [rows, *norm_blocks(reading, stack.norm, words)] if stack.norm else [rows]


def _memory(reading: Reading, stack: _Stack, words: Sequence[str]) -> list[Section]:
    text = "What the encoder made of the source; the decoder attends to these rows."
    return [Section("Memory", [Text(text), *_last(reading, stack, words)])]


def _output(reading: Reading, stack: _Stack) -> list[Section]:
    model, words = reading.model, reading.words
    logits = reading.found(model.output, "logits")
    log_probs = logits - log_sum_exp(logits)[:, None]
    size, width = model.output.table.shape
    best = np.argsort(-log_probs[-1], kind="stable")[:_CANDIDATES]
    names = labels(reading.tokenizer, best)
    formula = f"logits = x tableᵀ{' + b' if model.output.bias else ''}"
    formula += f"        ({len(words)}, {width}) · ({width}, {size}) → ({len(words)}, {size})"
    tied = "The table of the embedding once more" if model.output is stack.input.embedding else "A table of its own"
    return [
        Section(f"{stack.name}output".capitalize(), _last(reading, stack, words)),
        Section(
            "Logits",
            [
                Text(f"{tied}: each row is compared with every token. The largest of the last row:"),
                Formula(formula),
                Numbers("logits", logits[-1:, best], words[-1:], names),
            ],
        ),
        Section(
            "Next token",
            [
                Formula("P(next = v) = exp(logit_v) / Σ_v' exp(logit_v')"),
                Bars(f"after {words[-1]}", names, {"probability": np.exp(log_probs[-1, best]).tolist()}),
                Text("All positions at once: what each row says comes next, and what did."),
                _predictions(reading, log_probs),
            ],
        ),
    ]


def _predictions(reading: Reading, log_probs: Array) -> Table:
    best = log_probs.argmax(axis=1)
    following = labels(reading.tokenizer, reading.following) if len(reading.following) else []
    rows = []
    for place, (word, likely) in enumerate(zip(reading.words, labels(reading.tokenizer, best), strict=True)):
        row = [word, likely, probability(np.exp(log_probs[place, best[place]])), "", ""]
        if place < len(following):
            row[3:] = following[place], probability(np.exp(log_probs[place, reading.following[place]]))
        rows.append(row)
    return Table(("after", "most probable", "P", "came", "P"), rows, left=(0, 1, 3))


def _shape(model: Seq2Seq | GPT) -> str:
    config = model.config
    layers = f"{len(_stacks(model)[-1].layers)} layers"
    if isinstance(model, Seq2Seq):
        layers = f"{config.encoder_layers} encoder and {config.decoder_layers} decoder layers, {config.norm}-norm"
    return f"{layers}, D = {config.width}, H = {config.heads} heads, F = {config.feed_forward}, V = {config.vocab_size}"
