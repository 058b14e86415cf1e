"""A search as it was: the candidates of every step, and the tree that grew, noted while the real search runs."""

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from toolkit.decoding import GenerationConfig, Hypothesis
from toolkit.decoding.hypothesis import Observer, Ranking, length_penalty
from toolkit.decoding.sampling import largest_first, log_sum_exp
from toolkit.errors import ConfigError
from toolkit.functional.arrays import Array
from toolkit.language_model import LanguageModel
from toolkit.pages.blocks import Branch
from toolkit.tokenization.special import EOS
from toolkit.translator import Translator

# The states of a node; of a tree that is too large, the first are left out first.
_WORTH = {"dropped": 0, "kept": 1, "ended": 2, "chosen": 3}


@dataclass(frozen=True)
class Stage:
    """A distribution over the next token, on its way from the model to the choice."""

    kept: int  # tokens with a probability above 0
    candidates: Mapping[int, float]  # the probabilities of a step's candidates, without those that are excluded


@dataclass(frozen=True)
class Step:
    """The candidates of a step, the model's most probable ones first, and what each stage makes of them.

    stages: "model", then "permitted" (after processors and constraints), and for a sample "temperature" and those of
    "top_k", "top_p" and "min_p" that are in force.
    """

    candidates: Sequence[int]
    stages: Mapping[str, Stage]
    token: int = -1  # the one that was taken

    def only(self, count: int, token: int) -> "Step":
        """Keep the first `count` candidates, and the token that was taken."""
        return Step(list(dict.fromkeys([*self.candidates[:count], token])), self.stages, token)


@dataclass(eq=False)
class Node:
    """An output as far as one token of it, and what became of it."""

    token: int  # the root has none: -1
    score: float  # the sum of log-probabilities by which beams are ranked
    log_prob: float  # the model's own sum
    state: str  # "kept", "dropped", "ended" or "chosen"
    parent: "Node | None" = None
    children: list["Node"] = field(default_factory=list)
    step: Step | None = None  # the candidates of what follows, where the model was asked
    complete: bool = False  # true where nothing was to follow

    @property
    def tokens(self) -> list[int]:
        """All tokens up to this one."""
        node, found = self, []
        while node.parent is not None:
            found.append(node.token)
            node = node.parent
        return found[::-1]

    def every(self) -> Iterator["Node"]:
        """Give this node and all below it, level by level."""
        level = [self]
        while level:
            yield from level
            level = [child for each in level for child in each.children]


class Watch(Observer):
    """Notes what the model and the constraints say of the tokens of the present step.

    count: the number of candidates that are noted, beside what is taken.
    """

    def __init__(self, count: int):
        self._count = count
        self._stages: dict[str, Array] = {}
        self._owners = self._permitted = self._normalizers = np.empty(0)

    def scored(self, owners: Array, logits: Array, normalizers: Array) -> None:
        self._owners = owners.copy()
        self._stages = {"model": np.exp(logits - normalizers[:, None])}

    def constrained(self, logits: Array, normalizers: Array) -> None:
        self._permitted, self._normalizers = logits.copy(), normalizers.copy()

    def _step(self, row: int, taken: Sequence[int]) -> Step:
        """Note the candidates of one row, and those that were taken among them."""
        best = largest_first(self._stages["model"][row][None], self._count)[0].tolist()
        candidates = list(dict.fromkeys([*best, *taken]))
        stages = {}
        for name, every in self._stages.items():
            likely = {token: float(every[row, token]) for token in candidates if every[row, token] > 0}
            stages[name] = Stage(int(np.count_nonzero(every[row])), likely)
        return Step(candidates, stages)


class Choices(Watch):
    """Watches greedy search and sampling: the steps of each sequence."""

    def __init__(self, count: int):
        super().__init__(count)
        self.steps: dict[int, list[Step]] = {}

    def constrained(self, logits: Array, normalizers: Array) -> None:
        super().constrained(logits, normalizers)
        self._stages["permitted"] = np.exp(logits - log_sum_exp(logits)[:, None])

    def weighed(self, stage: str, tokens: Array | None, weights: Array) -> None:
        probabilities = weights / weights.sum(axis=1, keepdims=True)
        if tokens is not None:
            everywhere = np.zeros(self._permitted.shape)
            np.put_along_axis(everywhere, tokens, probabilities, axis=1)
            probabilities = everywhere
        self._stages[stage] = probabilities

    def chosen(self, tokens: Array) -> None:
        for row, (sequence, token) in enumerate(zip(self._owners.tolist(), tokens.tolist(), strict=True)):
            self.steps.setdefault(sequence, []).append(replace(self._step(row, [token]), token=token))

    def of(self, tokens: Sequence[int]) -> list[Step]:
        """Find the steps of the sequence that wrote these tokens, EOS included where it has one."""
        return next(steps for steps in self.steps.values() if [step.token for step in steps] == list(tokens))


class BeamTree(Watch):
    """Watches the beam search of one text: every continuation that was ranked is a node."""

    def __init__(self, count: int):
        super().__init__(count)
        self.root = Node(-1, 0.0, 0.0, "kept")
        self._beams: list[Node | None] = [self.root]

    def ranked(self, ranking: Ranking) -> None:
        self._stages["permitted"] = np.exp(self._permitted - self._normalizers[:, None])
        beams, tokens, scores, log_probs = (part[0].tolist() for part in ranking[1:5])
        places = list(zip(ranking.kept_beams[0].tolist(), ranking.kept_tokens[0].tolist(), strict=True))
        kept = set() if ranking.done[0] else set(places)
        ended = ranking.ended[0].tolist()
        grown: dict[tuple[int, int], Node] = {}
        for rank, (beam, token, score, log_prob) in enumerate(zip(beams, tokens, scores, log_probs, strict=True)):
            if score == -np.inf:  # there was nothing more to rank
                continue
            complete = rank < len(ended) and ended[rank]
            state = "ended" if complete else "kept" if (beam, token) in kept else "dropped"
            parent = self._beams[beam]
            grown[beam, token] = Node(token, score, log_prob, state, parent, complete=complete)
            parent.children.append(grown[beam, token])
        for row, parent in enumerate(self._beams):
            if parent is not None:
                parent.step = self._step(row, [node.token for node in parent.children])
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
        """List tokens, log-probability and score of every complete output, best first; power: length_penalty."""
        complete = [(node.tokens, node) for node in self.root.every() if node.complete]
        found = [(tokens, node.log_prob, node.score / length_penalty(len(tokens), power)) for tokens, node in complete]
        return sorted(found, key=lambda each: -each[2])


def steps_of(way: Sequence[Node], count: int) -> list[Step]:
    """List the steps of the output that a way from the root leads to, with `count` candidates and what was taken."""
    return [before.step.only(count, after.token) for before, after in pairwise(way)]


def written(hypothesis: Hypothesis) -> list[int]:
    """List all tokens of a hypothesis, EOS too where it has one."""
    return [*hypothesis.ids, EOS][: len(hypothesis.token_log_probs)]


def greedy_tree(steps: Sequence[Step], best: Hypothesis) -> Node:
    """Make the tree of greedy search: what it took, and the candidates that it let go; gives the root."""
    node = root = Node(-1, 0.0, 0.0, "chosen")
    for step, log_prob in zip(steps, best.token_log_probs, strict=True):
        node.step = step
        model, permitted = (step.stages[name].candidates for name in ("model", "permitted"))
        sums = {token: node.log_prob + math.log(model[token]) for token in permitted if token in model}
        sums[step.token] = node.log_prob + log_prob
        ranked = sorted(sums, key=lambda token: -permitted.get(token, 0))
        node.children = [Node(token, sums[token], sums[token], "dropped", node) for token in ranked]
        node = next(child for child in node.children if child.token == step.token)
        node.state = "chosen"
    node.complete = True
    return root


def branch(root: Node, names: Mapping[int, str], most: int, deepest: int) -> tuple[Branch, int]:
    """Make the tree as it is shown; gives the number of nodes that are left out too.

    names: of tokens, and of the root as -1. most: the number of nodes that are shown. What was dropped is left out
    first, then what came to nothing, then what ended, each from the lowest score; what leads to the output that was
    chosen never is, but beyond `deepest` tokens all are.
    """
    nodes = list(root.every())
    shown = [node for node in nodes if len(node.tokens) <= deepest]
    kept = _worth_showing(shown, most)
    made: dict[Node, Branch] = {}
    for node in reversed(shown):
        if node in kept:
            below = [made[child] for child in node.children if child in made]
            made[node] = Branch(names[node.token], node.score, node.state, below)
    return made[root], len(nodes) - len(made)


def _worth_showing(nodes: Sequence[Node], most: int) -> set[Node]:
    """Leave out the least interesting leaves until at most `most` nodes are left."""
    kept, places = set(nodes), {node: place for place, node in enumerate(nodes)}
    below = {node: sum(child in kept for child in node.children) for node in nodes}
    leaves = [(_WORTH[node.state], node.score, places[node]) for node in nodes if not below[node]]
    heapq.heapify(leaves)
    while len(kept) > most and leaves:
        worth, _, place = heapq.heappop(leaves)
        if worth == _WORTH["chosen"]:
            break
        kept.remove(nodes[place])
        parent = nodes[place].parent
        below[parent] -= 1
        if not below[parent]:
            heapq.heappush(leaves, (_WORTH[parent.state], parent.score, places[parent]))
    return kept


@dataclass(frozen=True)
class Decoded:
    """The outputs of a search, best first, and its way to the best."""

    found: list[Hypothesis]
    steps: list[Step]  # of the best one: its tokens, one by one
    root: Node | None  # of the tree of everything that was ranked; samples grow none
    ended: list[tuple[list[int], float, float]]  # tokens, log-probability, score of each complete output, best first

    @property
    def tokens(self) -> list[int]:
        """The tokens of the best output, EOS too where it has one."""
        return written(self.found[0])


def decoded(
    owner: Translator | LanguageModel,
    config: GenerationConfig,
    count: int,
    search: Callable[[Observer], list[list[Hypothesis]]],
) -> Decoded:
    """Decode one text as ever, and note all that is considered on the way.

    count: the number of candidates of every step that are noted; search: decodes the text before an observer. Raises
    ConfigError for a count below 1, ModelError where the model computes what is not finite.
    """
    if count < 1:
        raise ConfigError(f"candidates is {count}: it must be at least 1")
    watch = BeamTree(count) if config.num_beams > 1 else Choices(count)
    with owner.arithmetic():
        found = search(watch)[0]
    owner.check_finite([each.log_prob for each in found] or [np.nan])
    if isinstance(watch, BeamTree):
        return Decoded(found, steps_of(watch.choose(found[0]), count), watch.root, watch.ended(config.length_penalty))
    steps = watch.of(written(found[0]))
    root = None if config.samples else greedy_tree(steps, found[0])
    return Decoded(found, steps, root, [(written(each), each.log_prob, each.score) for each in found])
