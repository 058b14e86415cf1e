"""How a translation came about: what was read, what could have been written, and where the model looked."""

from collections.abc import Sequence

from toolkit.data.sentences import sentence_text, tidy
from toolkit.decoding import GenerationConfig
from toolkit.errors import DataError
from toolkit.explain.decoding.attended import Attention, averaged, by_head, cross_attention_maps, cut_maps
from toolkit.explain.decoding.candidates import (
    MOST_STEPS,
    named,
    score_formula,
    steps_section,
    tokens_table,
    written_table,
)
from toolkit.explain.decoding.decoded import Decoded, decoded_source
from toolkit.explain.decoding.search_tree import ended_section, tree_section
from toolkit.explain.pages.blocks import Page, Section, Text
from toolkit.explain.pages.writing import clipped, labels
from toolkit.explain.reading import check_choice, source_ids
from toolkit.functional.arrays import Array
from toolkit.tokenization.special import EOS
from toolkit.translator import Translator

CANDIDATES = 5
_LONGEST = 200  # cells of the text in a heading


def translation_page(
    translator: Translator,
    text: str,
    config: GenerationConfig | None = None,
    candidates: int = CANDIDATES,
    layer: int | None = None,
    head: int | None = None,
) -> Page:
    """How one text is translated: its tokens, the candidates of every step, the beam, and cross-attention.

    candidates: how many are shown at every step. layer, head: show the maps of this one only, counted from 1.

    Raises DataError for a blank text, ConfigError for a layer or head that the model does not have and for settings
    that it cannot decode with.
    """
    model, config = translator.model, config or GenerationConfig()
    check_choice(len(model.decoder.blocks), model.config.heads, layer, head)
    source, cut = _source(translator, text)
    decoded = decoded_source(translator, source, config, candidates)
    with translator.arithmetic():
        maps, memory = cross_attention_maps(model, source, decoded.found[0].ids)
    tokenizer, tokens = translator.tokenizer, decoded.tokens
    marked = [*source, EOS]
    attention = Attention(maps[:, :, : len(tokens)], labels(tokenizer, tokens), labels(tokenizer.source, marked))
    heads, cut_layers = by_head(attention, "Cross-attention", layer, head)
    tree, cut_tree = tree_section(tokenizer, decoded, config)
    names = named(tokenizer, [token for step in decoded.steps for token in step.distribution.tokens])
    sections = [
        _source_section(translator, marked, memory),
        _written_section(translator, decoded, config),
        steps_section(decoded, config, names, lambda ids: sentence_text(tokenizer, ids)),
        *tree,
        *ended_section(decoded, config, lambda ids: sentence_text(tokenizer, ids)),
        Section("Cross-attention, averaged", [Text(_LOOK), averaged(attention, "mean of all layers and heads")]),
        *heads,
    ]
    about = (
        f"“{clipped(tidy(text), _LONGEST)}” becomes “{sentence_text(tokenizer, decoded.found[0].ids)}”. All "
        "numbers are read from the search and from the model as it translates."
    )
    if len(tokens) > MOST_STEPS:
        cut.append(f"The output has {len(tokens)} tokens: the first {MOST_STEPS} steps are shown.")
    return Page("How a translation came about", about, sections, [*cut, *cut_tree, *cut_maps(attention), *cut_layers])


_LOOK = (
    "Each row is a step, named by the token that it writes; the columns are the tokens of the source. A row sums to 1: "
    "it says how much of what the decoder takes from the source comes from each token."
)


def _source(translator: Translator, text: str) -> tuple[list[int], list[str]]:
    """The ids of the text, as many as the model reads, and a sentence on those that it does not."""
    cut: list[str] = []
    most, ignore_case = translator.limit - 1, translator.model.config.ignore_case  # the end mark counts
    ids = source_ids(translator.tokenizer.source, text, most, cut, ignore_case=ignore_case)
    if not ids:
        raise DataError("the text is blank: there is nothing to translate")
    return ids, cut


def _source_section(translator: Translator, ids: Sequence[int], memory: Array) -> Section:
    count, width = memory.shape
    layers = len(translator.model.encoder.blocks)
    case = " The model takes its source in lower case." if translator.model.config.ignore_case else ""
    read = Text(
        f"The tokenizer cuts the text into {count - 1} tokens, and an end mark follows.{case} The encoder, {layers} "
        f"{'layer' if layers == 1 else 'layers'}, reads them all at once and makes of them the memory, {count} rows of "
        f"{width} numbers ({count}, {width}): one row for each token, which the decoder looks at in every step."
    )
    return Section("What was read", [read, tokens_table(translator.tokenizer.source, ids)])


def _written_section(translator: Translator, decoded: Decoded, config: GenerationConfig) -> Section:
    best = decoded.found[0]
    text = f"“{sentence_text(translator.tokenizer, best.ids)}”"
    if not best.finished:
        text += ": the length limit ended it."
    return Section(
        "What was written", [Text(text), written_table(translator.tokenizer, decoded), score_formula(best, config)]
    )
