"""How a text goes on: every step from the model's distribution to the token that was taken, and self-attention."""

from collections.abc import Sequence
from dataclasses import replace

from toolkit.decoding import ContinuationConfig
from toolkit.decoding.state import window_length
from toolkit.explain.decoding.attended import (
    Attention,
    by_head,
    cut_maps,
    mask_section,
    self_attention_maps,
)
from toolkit.explain.decoding.candidates import (
    MOST_STEPS,
    named,
    score_formula,
    steps_section,
    tokens_table,
    written_table,
)
from toolkit.explain.decoding.decoded import Decoded, decoded_prompt
from toolkit.explain.decoding.search_tree import ended_section, tree_section
from toolkit.explain.pages.blocks import Page, Section, Text
from toolkit.explain.pages.writing import clipped, labels
from toolkit.explain.reading import check_choice
from toolkit.language_model import LanguageModel
from toolkit.tokenization.special import BOS

CANDIDATES = 8
NEW_TOKENS = 12
_LONGEST = 200  # cells of a text in a heading
_READ = "The model reads the prompt all at once, and then one token in every step: the one that it has just written."
_READ_BEGUN = f"A begin mark stands before the prompt. {_READ}"


def generation_page(
    model: LanguageModel,
    prompt: str,
    config: ContinuationConfig | None = None,
    candidates: int = CANDIDATES,
    layer: int | None = None,
    head: int | None = None,
) -> Page:
    """How a language model continues one prompt: the stages of every choice, the mask, and self-attention.

    candidates: how many are shown at every step. layer, head: show the maps of this one only, counted from 1.

    Raises DataError for a prompt that the model cannot read, ConfigError for a layer or head that it does not have and
    for settings that it cannot decode with.
    """
    config = config or ContinuationConfig(max_new_tokens=NEW_TOKENS)
    shape, tokenizer = model.model.config, model.tokenizer
    check_choice(shape.layers, shape.heads, layer, head)
    ids, cut = prompt_ids(model, prompt, config)
    decoded = decoded_prompt(model, ids, config, candidates)
    begun = [BOS, *ids] if shape.begin else ids
    attention, cut_window = _attention(model, [*begun, *decoded.tokens][:-1])
    heads, cut_layers = by_head(attention, "Self-attention", layer, head)
    tree, cut_tree = tree_section(tokenizer, decoded, config)
    names = named(tokenizer, [token for step in decoded.steps for token in step.distribution.tokens])
    sections = [
        Section("What was read", [Text(_READ_BEGUN if shape.begin else _READ), tokens_table(tokenizer, begun)]),
        _written_section(model, decoded, config),
        steps_section(decoded, config, names, lambda written: tokenizer.decode([*ids, *written])),
        *tree,
        *ended_section(decoded, config, tokenizer.decode),
        mask_section(attention),
        *heads,
    ]
    new = clipped(tokenizer.decode(decoded.found[0].ids), _LONGEST)
    about = f"“{clipped(prompt, _LONGEST)}” is continued with “{new}”" if prompt else f"The model begins: “{new}”"
    about += ". All numbers are read from the model and the search as they write it."
    if len(decoded.tokens) > MOST_STEPS:
        cut.append(f"The output has {len(decoded.tokens)} tokens: the first {MOST_STEPS} steps are shown.")
    cut += [*cut_window, *cut_tree, *cut_maps(attention), *cut_layers]
    return Page("How a text goes on", about, sections, cut)


def prompt_ids(model: LanguageModel, prompt: str, config: ContinuationConfig) -> tuple[list[int], list[str]]:
    """The ids of a prompt, the last ones where it is too long, and a sentence on those that were cut.

    Cut so that there is room for max_new_tokens where the context has it; a context that slides needs no cut.
    """
    shape = model.model.config
    [ids] = model.encode([prompt], replace(config, past_context="slide"), lambda _: "the prompt")
    room = shape.max_length - shape.begin
    if config.past_context == "slide" or len(ids) + max(config.shortest, 1) <= room:
        return ids, []
    kept = max(room - max(config.max_new_tokens or NEW_TOKENS, config.shortest), 1)
    sentence = (
        f"The prompt has {len(ids)} tokens and the context {shape.max_length}, with what is written: the first "
        f"{len(ids) - kept} are cut."
    )
    return ids[-kept:], [sentence]


def _attention(model: LanguageModel, read: Sequence[int]) -> tuple[Attention, list[str]]:
    """Of everything that was read to write the output; of the last window where the context slid."""
    window = window_length(len(read), model.model.config.max_length)
    seen, cut = read[-window:], []
    if window < len(read):
        cut.append(f"The context slid: attention is shown over the last {window} of {len(read)} tokens, read at once.")
    with model.arithmetic():
        maps, hidden = self_attention_maps(model.model, seen)
    names = labels(model.tokenizer, seen)
    return Attention(maps, names, names, hidden, last=True), cut


def _written_section(model: LanguageModel, decoded: Decoded, config: ContinuationConfig) -> Section:
    best = decoded.found[0]
    text = f"“{model.tokenizer.decode(best.ids)}”"
    if not best.finished:
        text += ": the length limit ended it."
    return Section(
        "What was written", [Text(text), written_table(model.tokenizer, decoded), score_formula(best, config)]
    )
