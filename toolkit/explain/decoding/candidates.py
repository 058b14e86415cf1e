"""The steps of an output as they are shown: candidates with their probabilities, tokens with their sums."""

from collections.abc import Callable, Mapping, Sequence

from toolkit.decoding import GenerationConfig, Hypothesis
from toolkit.decoding.hypothesis import length_penalty
from toolkit.explain.decoding.choices import Choice, Distribution
from toolkit.explain.decoding.decoded import Decoded
from toolkit.explain.pages.blocks import Bars, Formula, Section, Table, Text
from toolkit.explain.pages.writing import labels
from toolkit.explain.pages.writing import written as number
from toolkit.tokenization import Tokenizer

MOST_STEPS = 64  # that are shown
_CHANGED = 5e-4  # of a probability: what a reader sees at three decimals
_RECENT = 32  # characters of what was written before a step


def named(tokenizer: Tokenizer, ids: Sequence[int]) -> dict[int, str]:
    """A name for each of the ids, and for the root of a tree, -1, the empty beginning."""
    unique = list(dict.fromkeys(ids))
    return {-1: "(beginning)", **dict(zip(unique, labels(tokenizer, unique), strict=True))}


def tokens_table(tokenizer: Tokenizer, ids: Sequence[int]) -> Table:
    """Where each token stands, what it is, and its id."""
    rows = [(str(place), name, str(ids[place])) for place, name in enumerate(labels(tokenizer, ids))]
    return Table(("position", "token", "id"), rows, left=(1,))


def written_table(tokenizer: Tokenizer, decoded: Decoded) -> Table:
    """The tokens of the best output, the log-probability of each and their sum so far."""
    sums, rows = 0.0, []
    best = decoded.found[0]
    tokens = labels(tokenizer, decoded.tokens)
    for step, (name, token, own) in enumerate(zip(tokens, decoded.tokens, best.token_log_probs, strict=True), start=1):
        sums += own
        rows.append((str(step), name, str(token), number(own, 4), number(sums, 4)))
    return Table(("step", "token", "id", "log-probability", "sum"), rows[:MOST_STEPS], left=(1,))


def score_formula(best: Hypothesis, config: GenerationConfig) -> Formula:
    """How the score comes from the sum of log-probabilities.

    Beam search ranks by what processors make of log-probabilities, so that the sum may be another than log_prob.
    """
    length, power = len(best.token_log_probs), config.length_penalty
    total = best.score * length_penalty(length, power)
    return Formula(
        "score = sum of log-probabilities / length ^ length_penalty\n"
        f"      = {number(total, 4)} / {length} ^ {power:g} = {number(best.score, 4)}"
    )


def steps_section(
    decoded: Decoded, config: GenerationConfig, names: Mapping[int, str], text_of: Callable[[list[int]], str]
) -> Section:
    """The candidates of every step, and which was taken.  text_of: what some tokens spell."""
    shown = decoded.steps[:MOST_STEPS]
    stages = _stages(shown, config)
    blocks = [Text(_explained(config, stages))]
    for step, (choice, own) in enumerate(zip(shown, decoded.found[0].token_log_probs, strict=False), start=1):
        before = _recent(text_of(decoded.tokens[: step - 1]))
        name = f"step {step}: what follows “{before}”" if before else f"step {step}: what comes first"
        blocks.append(_bars(name, choice, own, stages, names))
    return Section("Candidates at every step", blocks)


def _recent(text: str) -> str:
    """The last words of a text."""
    if len(text) <= _RECENT:
        return text
    end = text[-_RECENT:]
    return f"… {end.split(' ', 1)[-1]}"


def _stages(steps: Sequence[Choice], config: GenerationConfig) -> dict[str, str]:
    """The stages that have a column, with their titles.

    What may be written is one only where it differs from what the model says; marks without meaning for a text, which
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
    present = [name for name in titles if any(name in step.distribution.stages for step in steps)]
    if not any(_restricted(step.distribution) for step in steps):
        present.remove("permitted")
    return {name: titles[name] for name in present}


def _restricted(distribution: Distribution) -> bool:
    before, after = (distribution.stages[name].candidates for name in ("model", "permitted"))
    return any(abs(before.get(token, 0) - after.get(token, 0)) >= _CHANGED for token in distribution.tokens)


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


def _bars(name: str, choice: Choice, own: float, stages: Mapping[str, str], names: Mapping[int, str]) -> Bars:
    distribution = choice.distribution
    columns = {
        title: [distribution.stages[stage].candidates.get(token) for token in distribution.tokens]
        for stage, title in stages.items()
    }
    left = [f"{distribution.stages[stage].kept} ({title})" for stage, title in stages.items()]
    note = f"{names[choice.token]}: log-probability {number(own, 4)}"
    if len(left) > 1:
        note += f"; tokens that are left: {', '.join(left)}"
    chosen = [distribution.tokens.index(choice.token)]
    return Bars(name, [names[token] for token in distribution.tokens], columns, chosen, f"{note}.")
