"""The beam as a tree, grown by what the real search says of every step."""

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from toolkit.decoding.hypothesis import Hypothesis, Ranking, length_penalty
from toolkit.explain.decoding.choices import Choice, Distribution, Scores
from toolkit.explain.pages.blocks import Branch
from toolkit.tokenization.special import EOS

# What is left out last where a tree is too large to be shown.
_WORTH = {"dropped": 0, "kept": 1, "ended": 2, "chosen": 3}


@dataclass(eq=False)
class Node:
    """An output as far as one token of it, and what became of it."""

    token: int  # the root has none: -1
    score: float  # the sum of log-probabilities by which beams are ranked
    log_prob: float  # the model's own sum
    state: str  # "kept", "dropped", "ended" or "chosen"
    parent: "Node | None" = None
    children: list["Node"] = field(default_factory=list)
    distribution: Distribution | None = None  # of what may follow, where the model was asked
    complete: bool = False  # whether nothing was to follow
    length: int = field(init=False)  # tokens up to this one

    def __post_init__(self) -> None:
        self.length = 0 if self.parent is None else self.parent.length + 1

    @property
    def tokens(self) -> list[int]:
        """All tokens up to this one."""
        node, found = self, []
        while node.parent is not None:
            found.append(node.token)
            node = node.parent
        return found[::-1]


class BeamTree(Scores):
    """Of the search for one text: every continuation that was ranked is a node."""

    def __init__(self, count: int):
        super().__init__(count)
        self.root = Node(-1, 0.0, 0.0, "kept")
        self._beams = [self.root]

    def ranked(self, ranking: Ranking) -> None:
        self._stages["permitted"] = np.exp(self._permitted - self._normalizers[:, None])
        beams, tokens, scores, log_probs = (part[0].tolist() for part in ranking[1:5])
        kept = set() if ranking.done[0] else set(zip(ranking.kept_beams[0], ranking.kept_tokens[0], strict=True))
        ended = ranking.ended[0].tolist()
        grown: dict[tuple[int, int], Node] = {}
        for rank, (beam, token, score, log_prob) in enumerate(zip(beams, tokens, scores, log_probs, strict=True)):
            if score == -np.inf:  # there was nothing more to rank
                continue
            complete = rank < len(ended) and ended[rank]
            state = "ended" if complete else "kept" if (beam, token) in kept else "dropped"
            parent = self._beams[beam]
            node = grown[beam, token] = Node(token, score, log_prob, state, parent, complete=complete)
            parent.children.append(node)
        for row, parent in enumerate(self._beams):
            if parent is not None:
                parent.distribution = self._distribution(row, [node.token for node in parent.children])
        places = zip(ranking.kept_beams[0].tolist(), ranking.kept_tokens[0].tolist(), strict=True)
        self._beams = [grown.get(place) for place in places]

    def choose(self, best: Hypothesis) -> list[Node]:
        """Mark the way to the hypothesis that was returned; gives its nodes, the root first."""
        nodes = [self.root]
        for token in written(best):
            nodes.append(next(child for child in nodes[-1].children if child.token == token))
        for node in nodes:
            node.state = "chosen"
        return nodes

    def ended(self, power: float) -> list[tuple[list[int], float, float]]:
        """Tokens, log-probability and score of every output that was complete, best first; power: length_penalty."""
        complete = [node for node in every(self.root) if node.complete]
        found = [(node.tokens, node.log_prob, node.score / length_penalty(node.length, power)) for node in complete]
        return sorted(found, key=lambda each: -each[2])


def every(node: Node) -> Iterator[Node]:
    """A node and all below it, level by level."""
    level = [node]
    while level:
        yield from level
        level = [child for each in level for child in each.children]


def choices(way: Sequence[Node], count: int) -> list[Choice]:
    """The steps of the output that a way from the root leads to, with `count` candidates and what was taken."""
    steps = pairwise(way)
    return [Choice(after.token, before.distribution.only(count, after.token)) for before, after in steps]


def written(hypothesis: Hypothesis) -> list[int]:
    """All tokens of a hypothesis, the end mark too where it has one."""
    return [*hypothesis.ids, EOS][: len(hypothesis.token_log_probs)]


def greedy_tree(steps: Sequence[Choice], best: Hypothesis) -> Node:
    """The tree of greedy search: what it took, and the candidates that it let go; gives the root."""
    node = root = Node(-1, 0.0, 0.0, "chosen")
    for step, log_prob in zip(steps, best.token_log_probs, strict=True):
        node.distribution = step.distribution
        model, permitted = (step.distribution.stages[name].candidates for name in ("model", "permitted"))
        sums = {token: node.log_prob + (math.log(model[token])) for token in permitted if token in model}
        sums[step.token] = node.log_prob + log_prob
        ranked = sorted(sums, key=lambda token: -permitted.get(token, 0))
        node.children = [Node(token, sums[token], sums[token], "dropped", node) for token in ranked]
        node = next(child for child in node.children if child.token == step.token)
        node.state = "chosen"
    node.complete = True
    return root


def branch(root: Node, names: Mapping[int, str], most: int, deepest: int) -> tuple[Branch, int]:
    """The tree as it is shown, and how many nodes of it are left out.

    names: of tokens, and of the root as -1. most: how many nodes are shown. What was dropped is left out first, then
    what came to nothing, then what ended, each from the lowest score; what leads to the output that was chosen never
    is, but beyond `deepest` tokens all are.
    """
    shown = [node for node in every(root) if node.length <= deepest]
    kept = _worth_showing(shown, most)
    made: dict[Node, Branch] = {}
    for node in reversed(shown):
        if node in kept:
            below = [made[child] for child in node.children if child in made]
            made[node] = Branch(names[node.token], node.score, node.state, below)
    return made[root], sum(1 for _ in every(root)) - len(made)


def _worth_showing(nodes: Sequence[Node], most: int) -> set[Node]:
    """Nodes without the least interesting leaves, as many as are too many."""
    kept = set(nodes)
    below = {node: sum(child in kept for child in node.children) for node in nodes}
    leaves = [(_WORTH[node.state], node.score, place) for place, node in enumerate(nodes) if not below[node]]
    heapq.heapify(leaves)
    places = {node: place for place, node in enumerate(nodes)}
    while len(kept) > most and leaves:
        worth, _, place = heapq.heappop(leaves)
        if worth == _WORTH["chosen"]:
            break
        node = nodes[place]
        kept.remove(node)
        below[node.parent] -= 1
        if not below[node.parent]:
            heapq.heappush(leaves, (_WORTH[node.parent.state], node.parent.score, places[node.parent]))
    return kept
