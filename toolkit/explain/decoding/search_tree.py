"""Sections on a search: its tree, and everything that was complete."""

from collections.abc import Callable

from toolkit.decoding import GenerationConfig
from toolkit.explain.decoding.beam_tree import branch, every
from toolkit.explain.decoding.candidates import MOST_STEPS, named
from toolkit.explain.decoding.decoded import Decoded
from toolkit.explain.pages.blocks import Section, Table, Text, Tree
from toolkit.explain.pages.writing import written as number
from toolkit.tokenization import Tokenizer

MOST_NODES = 240  # of a tree that is shown
MOST_OUTPUTS = 12  # complete ones that are listed


def tree_section(tokenizer: Tokenizer, decoded: Decoded, config: GenerationConfig) -> tuple[list[Section], list[str]]:
    """The tree that the search grew, and what is left out of it; nothing for a sample."""
    if decoded.root is None:
        return [], []
    nodes = list(every(decoded.root))
    root, missing = branch(decoded.root, named(tokenizer, [node.token for node in nodes[1:]]), MOST_NODES, MOST_STEPS)
    cut = []
    if missing:
        cut.append(
            f"The tree has {len(nodes)} branches, and {missing} are not shown: those that were dropped first, and "
            f"any beyond {MOST_STEPS} tokens."
        )
    width = config.num_beams
    text = (
        f"In every step the {width} unfinished hypotheses grow by a token. The {2 * width} best continuations of all "
        f"together are ranked by the sum of their log-probabilities. Those of the first {width} that are an end mark "
        f"or reach the length limit are complete; the {width} best of the others are kept, and the rest is dropped. "
        "When the search is over, so is everything that is unfinished."
        if width > 1
        else "One hypothesis grows: in every step the most probable token is kept, and other candidates are dropped."
    )
    return [
        Section(
            f"The {'beam' if width > 1 else 'search'} as a tree", [Text(text), Tree("sums of log-probabilities", root)]
        )
    ], cut


def ended_section(decoded: Decoded, config: GenerationConfig, text_of: Callable[[list[int]], str]) -> list[Section]:
    """Every output that was complete, best first; nothing where there is one only."""
    if len(decoded.ended) < 2:
        return []
    rows = [
        (str(place), text_of(tokens), str(len(tokens)), number(log_prob, 4), number(score, 4))
        for place, (tokens, log_prob, score) in enumerate(decoded.ended[:MOST_OUTPUTS], start=1)
    ]
    rule = f"the sum divided by length ^ {config.length_penalty:g}"
    text = f"{len(decoded.ended)} outputs were complete. The best score wins: {rule}."
    if len(decoded.ended) > MOST_OUTPUTS:
        text += f" The best {MOST_OUTPUTS}:"
    header = ("place", "text", "tokens", "log-probability", "score")
    return [Section("What was complete", [Text(text), Table(header, rows, left=(1,))])]
