"""Pages on one decoded text: its tokens, the candidates of every step, the search as a tree, and attention.

`translation_page` is for a translator, with cross-attention; `generation_page` for a language model, with
self-attention.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate

from toolkit.data.sentence_boundaries import divided
from toolkit.data.sentences import sentence_text, tidy
from toolkit.decoding import ContinuationConfig, GenerationConfig, Hypothesis, generate
from toolkit.decoding.hypothesis import length_penalty
from toolkit.decoding.state import window_length
from toolkit.errors import DataError
from toolkit.explain.attention_maps import Attention, cross_attention_maps, self_attention_maps
from toolkit.explain.reading import check_choice, source_ids, tokens_table
from toolkit.explain.search import Decoded, Step, branch, decoded
from toolkit.language_model import LanguageModel
from toolkit.pages.blocks import Bars, Formula, Page, Section, Table, Tree
from toolkit.pages.writing import clipped, labels
from toolkit.pages.writing import written as number
from toolkit.tokenization import Tokenizer
from toolkit.tokenization.special import BOS, EOS
from toolkit.translator import Translator

TRANSLATION_CANDIDATES, CONTINUATION_CANDIDATES = 5, 8
NEW_TOKENS = 12  # of a continuation
MOST_STEPS = 64  # that are shown
MOST_NODES = 240  # of a tree that is shown
MOST_OUTPUTS = 12  # complete ones that are listed
_LONGEST = 200  # cells of a text in a heading
_CHANGED = 5e-4  # of a probability: what a reader sees at three decimals
_RECENT = 32  # characters of what was written before a step


def translation_page(
    translator: Translator,
    text: str,
    config: GenerationConfig | None = None,
    candidates: int = TRANSLATION_CANDIDATES,
    layer: int | None = None,
    head: int | None = None,
) -> Page:
    """Explain how one sentence is translated: its tokens, the candidates of every step, the beam, and cross-attention.

    Of a text of several, it is the first: each is translated by itself.

    candidates: the number that is shown at every step. layer, head: show the maps of this one only, counted from 1.

    Raises DataError for a text without a sentence, ConfigError for a layer or head that the model does not have and for
    settings that it cannot decode with.
    """
    model, tokenizer, config = translator.model, translator.tokenizer, (config or GenerationConfig()).seeded()
    layers, cut = len(model.encoder.blocks), []
    check_choice(len(model.decoder.blocks), model.config.num_heads, layer, head)
    most, ignore_case = translator.limit - 1, model.config.ignore_case  # EOS counts
    if model.config.split_sentences and not translator.by_ids:
        text = _first_sentence(text, cut)
    source = source_ids(translator, text, most, cut)
    if not source:
        raise DataError("the text is blank: there is nothing to translate")
    if config.num_return_sequences > 1 and not config.samples:  # then a translator returns all that its beams find
        config = replace(config, num_return_sequences=config.num_beams)
    search, forced_bos = partial(generate, model, [source], config), translator.language("target")
    output = _Output(
        decoded(translator, config, candidates, lambda watch: search(forced_bos=forced_bos, observer=watch)),
        config,
        tokenizer,
        lambda ids: sentence_text(tokenizer, ids),
    )
    with translator.arithmetic():
        maps = cross_attention_maps(model, source, output.decoded.found[0].ids)
    marked, tokens = [*source, EOS], output.decoded.tokens
    shape = len(marked), model.config.d_model
    attention = Attention(maps[:, :, : len(tokens)], labels(tokenizer, tokens), labels(tokenizer.source, marked))
    read = (
        f"The tokenizer cuts the text into {len(source)} tokens, and an end mark follows."
        f"{'' if forced_bos is None else ' The first is its language.'}"
        f"{' The model takes its source in lower case.' if ignore_case else ''} The encoder, {layers} "
        f"{'layer' if layers == 1 else 'layers'}, reads them all at once and makes of them the memory, {shape[0]} "
        f"rows of {shape[1]} numbers {shape}: one row for each token, which the decoder looks at in "
        "every step."
    )
    look = (
        "Each row is a step, named by the token that it writes; the columns are the tokens of the source. A row sums "
        "to 1: it says how much of what the decoder takes from the source comes from each token."
    )
    about = (
        f"“{clipped(tidy(text), _LONGEST)}” becomes “{output.text}”. All numbers are read from the search and from the "
        "model as it translates."
    )
    sections = [
        Section("What was read", read, tokens_table(labels(tokenizer.source, marked), marked)),
        *output.sections(),
        Section("Cross-attention, averaged", look, attention.averaged()),
        *attention.by_head("Cross-attention", layer, head),
    ]
    return Page("How a translation came about", about, sections, [*cut, *output.cut(), *attention.cut])


def _first_sentence(text: str, cut: list[str]) -> str:
    """Give the first sentence of a text; `cut` gets a sentence on the others.

    Raises DataError where a text that is not blank has none.
    """
    sentences = divided(text).sentences
    if text.strip() and not sentences:
        raise DataError("the text has no word in it: it is copied, and nothing is translated")
    if len(sentences) > 1:
        cut.append(f"The text has {len(sentences)} sentences, and each is translated by itself: this is the first.")
    return sentences[0] if sentences else ""


def generation_page(
    model: LanguageModel,
    prompt: str,
    config: ContinuationConfig | None = None,
    candidates: int = CONTINUATION_CANDIDATES,
    layer: int | None = None,
    head: int | None = None,
) -> Page:
    """Explain how a language model continues a prompt: the stages of every choice, the mask, and self-attention.

    candidates: the number that is shown at every step. layer, head: show the maps of this one only, counted from 1.

    Raises DataError for a prompt that the model cannot read, ConfigError for a layer or head that it does not have and
    for settings that it cannot decode with.
    """
    config = (config or ContinuationConfig(max_new_tokens=NEW_TOKENS)).seeded()
    shape, tokenizer = model.model.config, model.tokenizer
    check_choice(shape.layers, shape.num_heads, layer, head)
    ids, cut = prompt_ids(model, prompt, config)
    output = _Output(
        decoded(model, config, candidates, lambda watch: generate(model.model, [ids], config, observer=watch)),
        config,
        tokenizer,
        tokenizer.decode,
        ids,
    )
    begun = [BOS, *ids] if shape.begin else ids
    seen = [*begun, *output.decoded.tokens][:-1]
    window, slid = window_length(len(seen), shape.max_length), []
    if window < len(seen):
        slid.append(f"The context slid: attention is shown over the last {window} of {len(seen)} tokens, read at once.")
    with model.arithmetic():
        maps, hidden = self_attention_maps(model.model, seen[-window:])
    names = labels(tokenizer, seen[-window:])
    attention = Attention(maps, names, names, hidden, last=True)
    read = "The model reads the prompt all at once, and then one token in every step: the one that it has just written."
    if shape.begin:
        read = f"A begin mark stands before the prompt. {read}"
    mask = (
        "A row may look at itself and at what stands before it, never at what is still to be written: the mask hides "
        "everything to the right of the diagonal. What remains of a row sums to 1."
    )
    new = clipped(output.text, _LONGEST)
    about = f"“{clipped(prompt, _LONGEST)}” is continued with “{new}”" if prompt else f"The model begins: “{new}”"
    sections = [
        Section("What was read", read, tokens_table(labels(tokenizer, begun), begun)),
        *output.sections(),
        Section("The causal mask", mask, attention.averaged()),
        *attention.by_head("Self-attention", layer, head),
    ]
    about += ". All numbers are read from the model and the search as they write it."
    return Page("How a text goes on", about, sections, [*cut, *output.cut(*slid), *attention.cut])


def prompt_ids(model: LanguageModel, prompt: str, config: ContinuationConfig) -> tuple[list[int], list[str]]:
    """Cut a prompt into ids, keep the last ones where it is too long, and give a sentence on those that were cut.

    There is room for max_new_tokens then where the context has it; a context that slides needs no cut.
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


class _Output:
    """The sections on what was written: its tokens, the candidates of every step, the tree, all complete outputs.

    spelled: the text of some ids; prompt: the ids that stand before what was written.
    """

    def __init__(
        self,
        found: Decoded,
        config: GenerationConfig,
        tokenizer: Tokenizer,
        spelled: Callable[[Sequence[int]], str],
        prompt: Sequence[int] = (),
    ):
        self.decoded, self.config, self.tokenizer, self.spelled, self.prompt = found, config, tokenizer, spelled, prompt
        self.text = spelled(found.found[0].ids)
        self._nodes = list(found.root.every()) if found.root else []
        if found.root:
            names = named(tokenizer, [node.token for node in self._nodes[1:]])
            self._tree, self._missing = branch(found.root, names, MOST_NODES, MOST_STEPS)

    def sections(self) -> list[Section]:
        best, ended = self.decoded.found[0], "" if self.decoded.found[0].finished else ": the length limit ended it."
        return [
            Section(
                "What was written", f"“{self.text}”{ended}", self._written_table(), _score_formula(best, self.config)
            ),
            self._steps(),
            *([self._tree_section()] if self.decoded.root else []),
            *([self._ended_section()] if len(self.decoded.ended) > 1 else []),
        ]

    def cut(self, *more: str) -> list[str]:
        """Write a sentence on everything that is left out; more: others to stand among them."""
        found = [*more]
        if len(self.decoded.tokens) > MOST_STEPS:
            count = len(self.decoded.tokens)
            found.insert(0, f"The output has {count} tokens: the first {MOST_STEPS} steps are shown.")
        if self.decoded.root and self._missing:
            found.append(
                f"The tree has {len(self._nodes)} branches, and {self._missing} are not shown: those that were dropped "
                f"first, and any beyond {MOST_STEPS} tokens."
            )
        return found

    def _written_table(self) -> Table:
        """List the tokens of the best output, the log-probability of each and their sum."""
        tokens, own = self.decoded.tokens, self.decoded.found[0].token_log_probs
        columns = zip(labels(self.tokenizer, tokens), tokens, own, accumulate(own), strict=True)
        rows = [
            (str(step), name, str(token), number(log_prob, 4), number(total, 4))
            for step, (name, token, log_prob, total) in enumerate(columns, start=1)
        ]
        return Table(("step", "token", "id", "log-probability", "sum"), rows[:MOST_STEPS], left=(1,))

    def _steps(self) -> Section:
        """Show the candidates of every step, and which was taken."""
        names = named(self.tokenizer, [token for step in self.decoded.steps for token in step.candidates])
        shown = self.decoded.steps[:MOST_STEPS]
        stages = _stages(shown, self.config)
        bars = []
        own = self.decoded.found[0].token_log_probs
        for place, (step, log_prob) in enumerate(zip(shown, own, strict=False)):
            before = self.spelled([*self.prompt, *self.decoded.tokens[:place]])
            if len(before) > _RECENT:
                before = f"… {before[-_RECENT:].split(' ', 1)[-1]}"
            what = f"what follows “{before}”" if before else "what comes first"
            bars.append(_bars(f"step {place + 1}: {what}", step, log_prob, stages, names))
        return Section("Candidates at every step", _explained(self.config, stages), bars)

    def _tree_section(self) -> Section:
        width = self.config.num_beams
        text = (
            f"In every step the {width} unfinished hypotheses grow by a token. The {2 * width} best continuations of "
            "all together are ranked by the sum of their log-probabilities. Those of the first "
            f"{width} that are an end mark or reach the length limit are complete; the {width} best of the others are "
            "kept, and the rest is dropped. When the search is over, so is everything that is unfinished."
            if width > 1
            else "One hypothesis grows: in every step the most probable token is kept, and other candidates are "
            "dropped."
        )
        title = f"The {'beam' if width > 1 else 'search'} as a tree"
        return Section(title, text, Tree("sums of log-probabilities", self._tree))

    def _ended_section(self) -> Section:
        """List every output that was complete, best first."""
        ended = self.decoded.ended
        rows = [
            (str(place), self.spelled(tokens), str(len(tokens)), number(log_prob, 4), number(score, 4))
            for place, (tokens, log_prob, score) in enumerate(ended[:MOST_OUTPUTS], start=1)
        ]
        rule = f"the sum divided by length ^ {self.config.length_penalty:g}"
        text = f"{len(ended)} outputs were complete. The best score wins: {rule}."
        if len(ended) > MOST_OUTPUTS:
            text += f" The best {MOST_OUTPUTS}:"
        header = ("place", "text", "tokens", "log-probability", "score")
        return Section("What was complete", text, Table(header, rows, left=(1,)))


def named(tokenizer: Tokenizer, ids: Sequence[int]) -> dict[int, str]:
    """Name each of the ids, and the root of a tree, -1, the empty beginning."""
    unique = list(dict.fromkeys(ids))
    return {-1: "(beginning)", **dict(zip(unique, labels(tokenizer, unique), strict=True))}


def _score_formula(best: Hypothesis, config: GenerationConfig) -> Formula:
    """Write how the score comes from the sum of log-probabilities.

    Beam search ranks by log-probabilities after logits processors, so that the sum may be another than log_prob.
    """
    length, power = len(best.token_log_probs), config.length_penalty
    total = best.score * length_penalty(length, power)
    return Formula(
        "score = sum of log-probabilities / length ^ length_penalty\n"
        f"      = {number(total, 4)} / {length} ^ {power:g} = {number(best.score, 4)}"
    )


def _stages(steps: Sequence[Step], config: GenerationConfig) -> dict[str, str]:
    """Choose the stages that have a column, with their titles.

    What is permitted is one only where it differs from what the model says; marks without meaning for a text, which
    are never written, have next to no probability.
    """
    titles = {
        "model": "model",
        "permitted": "permitted",
        "temperature": f"temperature {config.temperature:g}",
        "top_k": f"top-k {config.top_k}",
        "top_p": f"top-p {config.top_p:g}",
        "min_p": f"min-p {config.min_p:g}",
    }
    present = {name: title for name, title in titles.items() if any(name in step.stages for step in steps)}
    if not any(map(_restricted, steps)):
        del present["permitted"]
    return present


def _restricted(step: Step) -> bool:
    before, after = (step.stages[name].candidates for name in ("model", "permitted"))
    return any(abs(before.get(token, 0) - after.get(token, 0)) >= _CHANGED for token in step.candidates)


def _explained(config: GenerationConfig, stages: Mapping[str, str]) -> str:
    text = "The model's own probabilities of the next token, the most probable candidates first. "
    if config.samples:
        text += (
            f"Then what sampling makes of them: {', '.join(list(stages.values())[1:])}. A stage that excludes tokens "
            "shares their probability among the others; marks that are no text are excluded in any case. A token is "
            f"drawn from what the last stage leaves, with seed {config.seed}."
        )
    elif config.num_beams > 1:
        text += (
            "These are the steps of the output that was chosen; the beam ranked those of all its hypotheses together."
        )
    else:
        text += "Greedy search takes the most probable one."
    if "permitted" in stages:
        text += " Permitted are the tokens that constraints leave: repetition, the length, and marks that are no text."
    return text


def _bars(name: str, step: Step, own: float, stages: Mapping[str, str], names: Mapping[int, str]) -> Bars:
    columns = {
        title: [step.stages[stage].candidates.get(token) for token in step.candidates]
        for stage, title in stages.items()
    }
    note = f"{names[step.token]}: log-probability {number(own, 4)}"
    if len(stages) > 1:
        left = [f"{step.stages[stage].kept} ({title})" for stage, title in stages.items()]
        note += f"; tokens that are left: {', '.join(left)}"
    chosen = [step.candidates.index(step.token)]
    return Bars(name, [names[token] for token in step.candidates], columns, chosen, f"{note}.")
