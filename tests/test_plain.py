"""The page with the transformer on it, and the models: in float64 the same losses, gradients and outputs.

Gradients are compared relative to their largest entry, to 1e-12: one text at a time there, a batch of unequal lengths
here, and all parameters random, gains too. `plain.seq2seq` and `plain.gpt` are held as they stand. All other settings
have a substitute below, which is put in the place of a function of the page or is made of its functions:

    setting                                       held by
    norm_position post, none; norm rms, norm_eps  post_norm, optional, rms_norm, layer_norm(eps=...)
    activation gelu (exact), silu, swiglu         exact_gelu, silu, gated
    positions rotary, sinusoidal_halves, learned  rotary_attention, halves, Reader
    positions sinusoidal_fairseq                  tests/functional/test_formulas.py, tests/parity/test_parity.py
    rotary_scaling, rotary_attention_factor       rates, rotary_attention(scale)
    num_key_value_heads                           shared_heads: the page has every head of keys as often as it is shared
    qk_norm; head_dim                             normal_heads; the page divides what it is given by its heads
    bias, bias_in                                 a bias that is absent is 0 on the page
    tie, scale_embedding, output_bias, begin_row  Reader, Writer
    label smoothing with a prior, scored rows     smoothed, the rows that are scored
    AutoEncoder, RewardModel                      the page's stack with squared_error, and with a head on the last row
    dropout                                       tests/functional/test_pairs.py and tests/models/test_gradients.py
    template, begin, ignore_case, max_length      no arithmetic
    split_sentences                               no arithmetic
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tests.checks import batch_of, gpt_batch, random_model, small_config, small_gpt_config
from toolkit import plain
from toolkit.decoding import ContinuationConfig, GenerationConfig, generate
from toolkit.models.autoencoder import AutoEncoderConfig
from toolkit.models.reward import RewardConfig
from toolkit.nn.module import Model
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import BOS, EOS

Array = np.ndarray
Arrays = dict[str, Array]

TOLERANCE = 1e-12
SPECIALS = [token for token in range(16) if token != EOS]  # which decoding never writes


# Substitutes


def post_norm(x, layer, norm, **maps):  # norm(x + layer(x))
    branch, back_layer = layer(x, **maps)
    y, back_norm = plain.layer_norm(x + branch, **norm)

    def back(dy):
        dsum, dnorm = back_norm(dy)
        dx, *dmemory, dmaps = back_layer(dsum)
        return dsum + dx, *dmemory, {"norm": dnorm, **dmaps}

    return y, back


def optional(norm):  # what has no parameters does nothing
    return lambda x, **parameters: norm(x, **parameters) if parameters else (x, lambda dy: (dy, {}))


def with_eps(norm, eps):
    return lambda x, gain, bias=0.0: norm(x, gain, bias, eps)


def rms_norm(x, gain, bias=0.0, eps=1e-5):
    root = np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)

    def back(dy):
        along = (dy * gain * x).mean(axis=-1, keepdims=True)
        return dy * gain / root - x * along / root**3, {"gain": (dy * x / root).sum(axis=0)}

    return x / root * gain, back


def exact_gelu(x):  # x Φ(x)
    probability = np.vectorize(lambda z: (1 + math.erf(z / math.sqrt(2))) / 2)(x)
    return x * probability, lambda dy: dy * (probability + x * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi))


def silu(x):
    sigmoid = 1 / (1 + np.exp(-x))
    return x * sigmoid, lambda dy: dy * sigmoid * (1 + x * (1 - sigmoid))


def gated(x, activation, up, down):  # (silu(gate) · passed) W2
    hidden, back_up = plain.linear(x, **up)
    gate, passed = np.split(hidden, 2, axis=1)
    opened, back_silu = silu(gate)
    y, back_down = plain.linear(opened * passed, **down)

    def back(dy):
        dproduct, ddown = back_down(dy)
        dx, dup = back_up(np.hstack((back_silu(dproduct * passed), dproduct * opened)))
        return dx, {"up": dup, "down": ddown}

    return y, back


def rates(config):  # one after the other: base^(-2i/K), and how much of it is stretched
    width, low, high = config.head_width, config.rotary_low_freq_factor, config.rotary_high_freq_factor
    found, length = [], config.rotary_original_length
    for i in range(width // 2):
        rate = config.rotary_base ** (-2 * i / width)
        kept = {"none": 1.0, "linear": 0.0}.get(config.rotary_scaling)
        if config.rotary_scaling == "llama3":
            turns = length * rate / (2 * math.pi)
            kept = 0.0 if turns < low else 1.0 if turns > high else (turns - low) / (high - low)
        elif config.rotary_scaling == "yarn":
            first, last = (
                width * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(config.rotary_base))
                for turns in (high, low)
            )
            first, last = max(0, math.floor(first)), min(width - 1, math.ceil(last))
            kept = 1.0 if i <= first else 0.0 if i >= last else (last - i) / (last - first)
        found.append(rate * kept + rate * (1 - kept) / config.rotary_factor)
    return np.array(found)


def rotary_attention(rates, scale, attention):  # coordinate i of row t is turned with coordinate i + K/2, by t rates[i]
    def turn(x, sign):
        half = x.shape[1] // 2
        angles = np.arange(len(x))[:, None] * rates
        turned = (x[:, :half] + 1j * x[:, half:]) * scale * np.exp(1j * sign * angles)
        return np.hstack((turned.real, turned.imag))

    def turning(query, key, value, mask):
        y, back_attention = attention(turn(query, 1), turn(key, 1), value, mask)

        def back(dy):
            dquery, dkey, dvalue = back_attention(dy)
            return turn(dquery, -1), turn(dkey, -1), dvalue

        return y, back

    return turning


def normal_heads(eps):  # multi-head attention of rows to themselves, with norms of every query and key
    def attention(x, memory, mask, heads, query, key, value, output, query_norm, key_norm):
        names, gains = ("query", "key", "value"), (query_norm, key_norm, None)
        maps = [plain.linear(x, **part) for part in (query, key, value)]
        sides = [np.split(projected, heads, axis=1) for projected, _ in maps]
        sides = [
            [rms_norm(head, **gain, eps=eps) if gain else (head, None) for head in side]
            for side, gain in zip(sides, gains, strict=True)
        ]
        by_head = zip(*([head for head, _ in side] for side in sides), strict=True)
        contexts, backs = zip(*(plain.attention(*head, mask) for head in by_head), strict=True)
        y, back_output = plain.linear(np.hstack(contexts), **output)

        def back(dy):
            dcontext, doutput = back_output(dy)
            dheads = [back_head(d) for back_head, d in zip(backs, np.split(dcontext, heads, axis=1), strict=True)]
            dx, found = 0.0, {"output": doutput}
            for name, side, dside, (_, back_map) in zip(names, sides, zip(*dheads, strict=True), maps, strict=True):
                of_norms = [back_norm(d) for (_, back_norm), d in zip(side, dside, strict=True) if back_norm]
                if of_norms:
                    dside = [d for d, _ in of_norms]
                    found[f"{name}_norm"] = {"gain": sum(dgain["gain"] for _, dgain in of_norms)}
                dmapped, found[name] = back_map(np.hstack(dside))
                dx = dx + dmapped
            return dx, found

        return y, back

    return attention


def halves(length, width, waves=plain.waves):  # all sines, then all cosines
    table = waves(length, width)
    return np.hstack((table[:, 0::2], table[:, 1::2]))


def shared_heads(array: Array, heads: int, groups: int, back: bool = False) -> Array:
    """Repeat the columns of every head of keys or values for all that share it; or add their gradients up."""
    by_head = array.reshape(*array.shape[:-1], heads if back else groups, -1)
    if back:
        by_head = by_head.reshape(*array.shape[:-1], groups, heads // groups, -1).sum(axis=-2)
    else:
        by_head = by_head.repeat(heads // groups, axis=-2)
    return by_head.reshape(*array.shape[:-1], -1)


def smoothed(logits, labels, smoothing, prior):  # the sum over rows, and its gradient
    target = (1 - smoothing) * np.eye(logits.shape[1])[labels] + smoothing * prior
    probabilities = plain.softmax(logits)
    return -(target * np.log(probabilities)).sum(), probabilities - target


ACTIVATIONS = {"relu": plain.relu, "gelu_tanh": plain.gelu, "gelu": exact_gelu, "silu": silu, "swiglu": None}


def substitute(config: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the substitutes that a model needs into the page."""
    norm = rms_norm if getattr(config, "norm", "") == "rms" else plain.layer_norm
    monkeypatch.setattr(plain, "layer_norm", optional(with_eps(norm, getattr(config, "norm_eps", 1e-5))))
    if getattr(config, "norm_position", "pre") == "post":
        monkeypatch.setattr(plain, "residual", post_norm)
    if config.activation == "swiglu":
        monkeypatch.setattr(plain, "feed_forward", gated)
    if config.positions == "rotary":
        turning = rotary_attention(rates(config), config.rotary_attention_factor, plain.attention)
        monkeypatch.setattr(plain, "attention", turning)
    if getattr(config, "qk_norm", False):
        monkeypatch.setattr(plain, "multi_head_attention", normal_heads(config.norm_eps))
    if config.positions == "sinusoidal_halves":
        monkeypatch.setattr(plain, "waves", halves)


# Names: those of the page are ours without what stands around a sub-layer, and every map has a name of its own there.


def plain_names(arrays: Mapping[str, Array], config: Any) -> Arrays:
    """Return our parameters, or gradients, by the page's names."""
    groups = getattr(config, "num_key_value_heads", 0) or config.num_heads
    found = {}
    for name, array in arrays.items():
        name = name.removeprefix("trunk.").replace(".layer.", ".").replace(".embedding.table", ".table")
        name = name.replace("positions.table", "positions")
        if ".query_key_value." in name:
            bounds = np.cumsum([config.num_heads, groups]) * config.head_width
            for part, own in zip(("query", "key", "value"), np.split(array, bounds, axis=-1), strict=True):
                found[name.replace("query_key_value", part)] = own
        elif ".key_value." in name:
            for part, own in zip(("key", "value"), np.split(array, 2, axis=-1), strict=True):
                found[name.replace("key_value", part)] = own
        else:
            found[name] = array
    return found


def is_shared(name: str, config: Any) -> bool:
    return bool(re.search(r"\.attention\.(key|value)\.", name)) and getattr(config, "num_key_value_heads", 0) > 0


def tree(arrays: Mapping[str, Array], config: Any) -> dict[str, Any]:
    """Return a model's parameters as the page has them."""
    found: dict[str, Any] = {}
    for name, array in plain_names(arrays, config).items():
        if is_shared(name, config):
            array = shared_heads(array, config.num_heads, config.num_key_value_heads)
        place: Any = found
        *path, last = re.sub(r"blocks\.(\d+)", r"blocks.\1", name).split(".")
        for word in path:
            place = place.setdefault(word, {})
        place[last] = array
    for stack in (found[name] for name in ("encoder", "decoder") if name in found):
        stack["blocks"] = list(stack["blocks"].values())
        stack.setdefault("norm", {})
        for part in (part for block in stack["blocks"] for part in block.values()):
            part.setdefault("norm", {})
    return found


def flat(gradients: Any, prefix: str = "") -> Iterator[tuple[str, Array]]:
    """Yield the leaves of a tree by their names."""
    if isinstance(gradients, np.ndarray):
        yield prefix.rstrip("."), gradients
    else:
        items = enumerate(gradients) if isinstance(gradients, list) else gradients.items()
        for name, branch in items:
            yield from flat(branch, f"{prefix}{name}.")


def check_gradients(model: Model, found: Arrays, expected: Mapping[str, Array]) -> None:
    """Compare every gradient of ours with the page's: relative to its largest entry, or to 0.001 of the largest of all.

    The second is for those that are 0 but for rounding: a bias of all keys moves no attention.
    """
    config, ours = model.config, plain_names(found, model.config)
    largest = max(np.abs(value).max() for value in ours.values())
    for name, value in ours.items():
        other = expected[name]
        if is_shared(name, config):
            other = shared_heads(other, config.num_heads, config.num_key_value_heads, back=True)
        scale = max(np.abs(other).max(), 1e-3 * largest)
        assert np.abs(value - other).max() <= TOLERANCE * scale, name
        assert value.shape == other.shape, name


def close(found: float, expected: float) -> bool:
    return math.isclose(found, expected, rel_tol=TOLERANCE)


def gradients_of(model: Model, work: Callable[[Tape], Any]) -> tuple[Any, Arrays]:
    """What `work` returns, and the gradients that it adds, by name."""
    views = model.views(np.zeros_like(model.vector))
    found = work(Tape(views))
    return found, {name: views[parameter] for name, parameter in model.parameters().items()}


# Models of the page's functions, in every setting


class Page:
    """Each method gives a result and a function from its gradient to those of the parameters, by name."""

    def __init__(self, model: Model):
        self.config, self.parameters = model.config, tree(model.arrays(), model.config)
        self.activation = ACTIVATIONS[self.config.activation]

    def read(self, ids: Sequence[int], side: str) -> tuple[Array, Callable]:
        own, config = self.parameters.get(side, {}), self.config
        owner = side if "table" in own else "source"
        if side != "source":
            ids = [config.begin_row if token == BOS else token for token in ids]
        scale = math.sqrt(config.d_model) if getattr(config, "scale_embedding", False) else 1.0
        x, back_embedding = plain.embedding(ids, self.parameters[owner]["table"], scale)
        learned = own.get("positions")
        if learned is not None:
            x = x + learned[: len(ids)]
        elif config.positions != "rotary":
            x = x + plain.waves(*x.shape)

        def back(dx):
            found = {f"{owner}.table": back_embedding(dx)}
            if learned is not None:
                found[f"{side}.positions"] = np.vstack((dx, np.zeros((len(learned) - len(dx), dx.shape[1]))))
            return found

        return x, back

    def stack(self, x: Array, side: str, memory: Array | None = None) -> tuple[Array, Callable]:
        mask = plain.causal(len(x)) if side == "decoder" else 0.0
        y, back_stack = plain.stack(x, memory, mask, self.config.num_heads, self.activation, **self.parameters[side])

        def back(dy):
            dx, dmemory, gradients = back_stack(dy)
            return dx, dmemory, dict(flat(gradients, f"{side}."))

        return y, back

    def write(self, x: Array, side: str) -> tuple[Array, Callable]:
        own = self.parameters.get("output", {})
        owners = [name for name in ("output", side, "source") if "table" in self.parameters.get(name, {})]
        table = self.parameters[owners[0]]["table"]

        def back(dlogits):
            return dlogits @ table, {f"{owners[0]}.table": dlogits.T @ x, "output.bias": dlogits.sum(axis=0)}

        return x @ table.T + own.get("bias", 0.0), back

    def gpt(self, ids: Sequence[int]) -> tuple[Array, Callable]:
        x, back_input = self.read(ids, "input")
        x, back_decoder = self.stack(x, "decoder")
        logits, back_output = self.write(x, "input")

        def back(dlogits):
            dx, doutput = back_output(dlogits)
            dx, _, ddecoder = back_decoder(dx)
            return added(doutput, ddecoder, back_input(dx))

        return logits, back

    def seq2seq(self, source: Sequence[int], ids: Sequence[int]) -> tuple[Array, Callable]:
        x, back_source = self.read(source, "source")
        memory, back_encoder = self.stack(x, "encoder")
        x, back_target = self.read(ids, "target")
        x, back_decoder = self.stack(x, "decoder", memory)
        logits, back_output = self.write(x, "target")

        def back(dlogits):
            dx, doutput = back_output(dlogits)
            dx, dmemory, ddecoder = back_decoder(dx)
            dsource, _, dencoder = back_encoder(dmemory)
            return added(doutput, ddecoder, dencoder, back_target(dx), back_source(dsource))

        return logits, back

    def value(self, ids: Sequence[int]) -> tuple[Array, Callable]:
        """The reward of a text: what the head makes of its last row."""
        x, back_input = self.read(ids, "input")
        x, back_decoder = self.stack(x, "decoder")
        value, back_head = plain.linear(x[-1:], **self.parameters["head"])

        def back(dvalue):
            dlast, dhead = back_head(np.array([[dvalue]]))
            dx, _, ddecoder = back_decoder(np.vstack((np.zeros_like(x[:-1]), dlast)))
            return added(dict(flat(dhead, "head.")), ddecoder, back_input(dx))

        return value[0, 0], back


def added(*gradients: Mapping[str, Array]) -> Arrays:
    """Add gradients up, name by name."""
    total: Any = Counter()
    for each in gradients:
        for name, value in each.items():
            total[name] = total[name] + value
    return dict(total)


# Tests

SEQ2SEQ = [
    {},
    {"norm_position": "post"},
    {"norm_position": "post", "positions": "learned", "tie": "none", "output_bias": True},
    {"positions": "sinusoidal_halves", "tie": "decoder", "activation": "gelu_tanh", "scale_embedding": False},
    {"positions": "learned", "bias": False, "activation": "gelu", "num_heads": 1},
    {"positions": "learned", "tie": "decoder", "activation": "silu", "output_bias": True, "begin_row": 20},
    {"norm_position": "post", "bias": False, "activation": "silu", "encoder_layers": 2},
]
SCALED = {
    "head_dim": 8,
    "rotary_base": 20.0,
    "rotary_factor": 3.0,
    "rotary_original_length": 12,
    "rotary_low_freq_factor": 0.5,
    "rotary_high_freq_factor": 1.5,
}
GPT = [
    {"positions": "learned", "bias": True, "activation": "gelu_tanh"},
    {},
    {"norm": "rms", "activation": "swiglu", "num_key_value_heads": 2},
    {"norm": "rms", "norm_eps": 0.1, "bias": True, "num_key_value_heads": 1, "rotary_base": 50.0, "tie": False},
    {"positions": "sinusoidal", "bias": True, "norm_eps": 0.1, "activation": "relu", "output_bias": True},
    {"positions": "sinusoidal_halves", "bias": True, "bias_in": "norms", "activation": "silu", "begin_row": 20},
    {"positions": "learned", "bias": True, "bias_in": "feed_forward", "activation": "swiglu", "tie": False},
    {"bias": True, "bias_in": "attention", "num_key_value_heads": 2, "output_bias": True},
    {"norm": "rms", "qk_norm": True, "head_dim": 6, "num_key_value_heads": 2, "norm_eps": 0.1},
    {"qk_norm": True, "positions": "learned", "bias": True, "bias_in": "attention_input"},
    {"rotary_scaling": "linear", "rotary_factor": 2.5, "head_dim": 2},
    {"rotary_scaling": "llama3", **SCALED, "num_key_value_heads": 1},
    {"rotary_scaling": "yarn", **SCALED, "rotary_attention_factor": 1.3, "qk_norm": True, "bias": True},
]
AUTOENCODER = [
    {},
    {"norm_position": "pre", "activation": "gelu_tanh", "bias": False},
    {"norm_position": "none", "activation": "silu", "bias": False, "positions": "none", "num_heads": 1},
]
LENGTHS = (3, 8, 1, 5)


def told(settings: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items()) or "default"


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(6)


def some_pairs(rng: np.random.Generator) -> list[tuple[Array, Array]]:
    return [tuple(rng.integers(16, 30, length) for length in lengths) for lengths in ((4, 6), (1, 6), (7, 2), (3, 1))]


def loss_and_gradient(model: Model, batch: Any, **smoothing: Any) -> tuple[float, Arrays]:
    def work(tape: Tape) -> float:
        loss = model.loss(batch, tape, **smoothing).loss
        model.backward(tape)
        return loss

    return gradients_of(model, work)


@pytest.mark.parametrize("settings", SEQ2SEQ, ids=told)
def test_seq2seq(settings: dict[str, Any], rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(small_config(**settings), rng)
    substitute(model.config, monkeypatch)
    page, pairs, smoothing, prior = Page(model), some_pairs(rng), 0.1, rng.dirichlet(np.ones(30))
    loss, gradients = loss_and_gradient(model, batch_of(pairs), smoothing=smoothing, prior=prior)
    total, trees = 0.0, []
    for source, target in pairs:
        logits, back = page.seq2seq([*source, EOS], [BOS, *target])
        of_pair, dlogits = smoothed(logits, np.array([*target, EOS]), smoothing, prior)
        total += of_pair
        trees.append(back(dlogits))
    assert close(loss, total)
    check_gradients(model, gradients, added(*trees))
    sources = list(rng.integers(16, 30, (3, 4)))
    for source, found in zip(sources, generate(model, sources, GenerationConfig(max_new_tokens=8)), strict=True):

        def logits_after(ids: Array, source: Array = source) -> Array:
            return permitted(page.seq2seq([*source, EOS], ids)[0])

        written = plain.greedy(logits_after, [BOS], EOS, 8)
        assert [token for token in written[1:] if token != EOS] == list(found[0].ids)


@pytest.mark.parametrize("settings", GPT, ids=told)
def test_gpt(settings: dict[str, Any], rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(small_gpt_config(**settings), rng)
    substitute(model.config, monkeypatch)
    page, batch = Page(model), gpt_batch(rng, LENGTHS)
    scored = np.flatnonzero(rng.random(sum(LENGTHS)) < 0.7)
    loss, gradients = loss_and_gradient(model, batch._replace(scored=scored))
    total, trees, begin = 0.0, [], 0
    for length in LENGTHS:
        rows = scored[(begin <= scored) & (scored < begin + length)] - begin
        logits, back = page.gpt(batch.inputs[begin : begin + length])
        of_text, of_scored = smoothed(logits[rows], batch.labels[begin : begin + length][rows], 0.0, 0.0)
        dlogits = np.zeros_like(logits)
        dlogits[rows] = of_scored
        total += of_text
        trees.append(back(dlogits))
        begin += length
    assert close(loss, total)
    check_gradients(model, gradients, added(*trees))
    prompts = list(rng.integers(16, 30, (3, 2)))
    config = ContinuationConfig(max_new_tokens=4, do_sample=False)
    for prompt, found in zip(prompts, generate(model, prompts, config), strict=True):
        written = plain.greedy(lambda ids: permitted(page.gpt(ids)[0]), [BOS, *prompt], EOS, 7)
        assert [token for token in written[3:] if token != EOS] == list(found[0].ids)


def permitted(logits: Array) -> Array:
    logits[:, SPECIALS] = -np.inf
    return logits


@pytest.mark.parametrize("settings", GPT[:4], ids=told)
def test_reward_model(settings: dict[str, Any], rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(RewardConfig(**vars(small_gpt_config(**settings))), rng)
    substitute(model.config, monkeypatch)
    page, batch, dvalues = Page(model), gpt_batch(rng, LENGTHS), rng.standard_normal(len(LENGTHS))
    ends = np.cumsum(LENGTHS)

    def work(tape: Tape) -> Array:
        values = model.values(batch.inputs, batch.rows, ends - 1, tape).copy()
        model.backward(dvalues.copy(), tape)
        return values

    values, gradients = gradients_of(model, work)
    found = [page.value(ids) for ids in np.split(batch.inputs, ends[:-1])]
    np.testing.assert_allclose(values, [value for value, _ in found], rtol=TOLERANCE)
    check_gradients(model, gradients, added(*(back(dvalue) for (_, back), dvalue in zip(found, dvalues, strict=True))))


@pytest.mark.parametrize("settings", AUTOENCODER, ids=told)
def test_autoencoder(settings: dict[str, Any], rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(AutoEncoderConfig(**{"d_model": 8, "num_heads": 2, "d_ff": 12} | settings), rng)
    substitute(model.config, monkeypatch)
    page, lengths = Page(model), np.array([3, 6, 1])
    given, wanted = rng.standard_normal((2, lengths.sum(), 8))

    def work(tape: Tape) -> tuple[Array, Array]:
        y = model.forward(given.copy(), Rows(lengths), tape)
        return y, model.backward(2 * (y - wanted), tape)  # the squared error's gradient

    (y, dx), gradients = gradients_of(model, work)
    parts, trees = [], []
    for x, target in zip(*(np.split(each, np.cumsum(lengths)[:-1]) for each in (given, wanted)), strict=True):
        waves = plain.waves(*x.shape) if model.config.positions == "sinusoidal" else 0.0
        vectors, back = page.stack(x + waves, "encoder")
        dvectors, _, gradient = back(2 * (vectors - target))
        parts.append((vectors, dvectors))
        trees.append(gradient)
    for found, expected in zip((y, dx), map(np.vstack, zip(*parts, strict=True)), strict=True):
        assert np.abs(found - expected).max() <= TOLERANCE * np.abs(expected).max()
    check_gradients(model, gradients, added(*trees))


def test_the_models_of_the_page_as_they_stand(rng: np.random.Generator) -> None:
    """`plain.seq2seq` and `plain.gpt` with no substitute: loss and all gradients, one text at a time."""
    translator, pairs = random_model(small_config(encoder_layers=2), rng), some_pairs(rng)
    writer = random_model(small_gpt_config(**GPT[0]), rng)
    batch, cuts = gpt_batch(rng, LENGTHS), np.cumsum(LENGTHS)[:-1]
    texts = zip(np.split(batch.inputs, cuts), np.split(batch.labels, cuts), strict=True)
    works = [
        (translator, batch_of(pairs), "source", lambda source, ids, own: plain.seq2seq(source, ids, own, 2),
         [([*source, EOS], [BOS, *target], np.array([*target, EOS])) for source, target in pairs]),
        (writer, batch, "input", lambda ids, own: plain.gpt(ids, own, 4), list(texts)),
    ]  # fmt: skip
    for model, rows, side, logits_of, examples in works:
        parameters = tree(model.arrays(), model.config)
        parameters |= parameters.pop(side)
        loss, gradients = loss_and_gradient(model, rows)
        total, trees = 0.0, []
        for *read, labels in examples:
            logits, back = logits_of(*read, parameters)
            mean, back_loss = plain.cross_entropy(logits, labels)
            total += mean * len(labels)
            trees.append(dict(flat(back(back_loss() * len(labels)))))
        expected = added(*trees)
        expected |= {f"{side}.{name}": expected.get(name) for name in ("table", "positions")}
        assert close(loss, total)
        check_gradients(model, gradients, expected)


def test_the_toy_translates_what_it_has_not_seen(capsys: pytest.CaptureFixture[str]) -> None:
    plain.main()
    out = capsys.readouterr().out
    losses = [float(figure) for figure in re.findall(r"loss ([\d.]+)\n", out)]
    assert min(losses[:5]) < 0.1 < 3 < float(re.search(r"= ([\d.]+)", out)[1])
    asked = re.findall(r"-> (.+?)   \(right: (.+?)\)", out)
    assert len(asked) == 2
    assert all(written == right for written, right in asked)
