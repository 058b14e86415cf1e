"""The transformer on one page: encoder-decoder and GPT, forward and backward, in plain NumPy.

Every function returns its result and `back`, which turns the gradient of the result into the gradients of what went in:
first the arrays, then the parameters, as a dictionary of the shape of theirs. A gradient is d + the name of what it is
of. This is the mathematics and nothing else: one text at a time, no batches, no cache, nothing fused. The models in
`toolkit.models` are tested against it.

    python -m toolkit.plain      trains both models on some sentences and lets them translate one they have never seen

T target, S source length, D model, H heads, K = D / H head, F feed-forward, V vocabulary.
"""

import numpy as np


def softmax(x):
    exp = np.exp(x - x.max(axis=-1, keepdims=True))
    return exp / exp.sum(axis=-1, keepdims=True)


def linear(x, weight, bias=0.0):  # (T, D), (D, F), (F,) -> (T, F)
    def back(dy):
        return dy @ weight.T, {"weight": x.T @ dy, "bias": dy.sum(axis=0)}

    return x @ weight + bias, back


def relu(x):
    return np.maximum(x, 0), lambda dy: dy * (x > 0)


def gelu(x):  # x Φ(x), with Φ(x) ≈ (1 + tanh u) / 2 as in GPT-2
    root = np.sqrt(2 / np.pi)
    tanh = np.tanh(root * (x + 0.044715 * x**3))

    def back(dy):
        return dy * (0.5 * (1 + tanh) + 0.5 * x * (1 - tanh**2) * root * (1 + 3 * 0.044715 * x**2))

    return 0.5 * x * (1 + tanh), back


def layer_norm(x, gain, bias=0.0, eps=1e-5):  # (T, D), (D,), (D,) -> (T, D)
    std = np.sqrt(x.var(axis=-1, keepdims=True) + eps)
    normal = (x - x.mean(axis=-1, keepdims=True)) / std

    def back(dy):  # mean and std depend on every entry of a row: each entry's gradient loses two averages
        dnormal = dy * gain
        along = (dnormal * normal).mean(axis=-1, keepdims=True)
        dx = (dnormal - dnormal.mean(axis=-1, keepdims=True) - normal * along) / std
        return dx, {"gain": (dy * normal).sum(axis=0), "bias": dy.sum(axis=0)}

    return normal * gain + bias, back


def attention(query, key, value, mask):  # (T, K), (S, K), (S, K), (T, S) -> (T, K)
    scale = 1 / np.sqrt(query.shape[1])
    weights = softmax(query @ key.T * scale + mask)

    def back(dcontext):  # softmax: a higher score lowers all other weights of its row
        dweights = dcontext @ value.T
        dscores = weights * (dweights - (weights * dweights).sum(axis=-1, keepdims=True)) * scale
        return dscores @ key, dscores.T @ query, weights.T @ dcontext

    return weights @ value, back


def multi_head_attention(x, memory, mask, heads, query, key, value, output):  # (T, D), (S, D), (T, S) -> (T, D)
    asked = x if memory is None else memory  # without a memory queries, keys and values come from the same rows
    maps = [linear(x, **query), linear(asked, **key), linear(asked, **value)]
    by_head = zip(*(np.split(projected, heads, axis=1) for projected, _ in maps), strict=True)
    contexts, backs = zip(*(attention(*head, mask) for head in by_head), strict=True)
    y, back_output = linear(np.hstack(contexts), **output)

    def back(dy):
        dcontext, doutput = back_output(dy)
        dheads = [back_head(d) for back_head, d in zip(backs, np.split(dcontext, heads, axis=1), strict=True)]
        dprojected = [np.hstack(of_heads) for of_heads in zip(*dheads, strict=True)]
        (dx, dquery), (dkeys, dkey), (dvalues, dvalue) = (
            back_map(d) for (_, back_map), d in zip(maps, dprojected, strict=True)
        )
        dmemory, dmaps = dkeys + dvalues, {"query": dquery, "key": dkey, "value": dvalue, "output": doutput}
        return (dx + dmemory, dmaps) if memory is None else (dx, dmemory, dmaps)

    return y, back


def feed_forward(x, activation, up, down):  # (T, D) -> (T, D), F wide inside
    hidden, back_up = linear(x, **up)
    active, back_activation = activation(hidden)
    y, back_down = linear(active, **down)

    def back(dy):
        dactive, ddown = back_down(dy)
        dx, dup = back_up(back_activation(dactive))
        return dx, {"up": dup, "down": ddown}

    return y, back


def residual(x, layer, norm, **maps):  # (T, D) -> (T, D): x + layer(norm(x))
    normal, back_norm = layer_norm(x, **norm)
    branch, back_layer = layer(normal, **maps)

    def back(dy):  # the gradient takes both ways: around the layer and through it
        dnormal, *dmemory, dmaps = back_layer(dy)
        dx, dnorm = back_norm(dnormal)
        return dy + dx, *dmemory, {"norm": dnorm, **dmaps}

    return x + branch, back


def block(x, memory, mask, heads, activation, parameters):  # (T, D) -> (T, D), with a memory also (S, D)
    """Self-attention, cross-attention where there is a memory, feed-forward; a residual connection around each."""
    layers = {
        "attention": lambda x, **maps: multi_head_attention(x, None, mask, heads, **maps),
        "cross_attention": lambda x, **maps: multi_head_attention(x, memory, 0.0, heads, **maps),
        "feed_forward": lambda x, **maps: feed_forward(x, activation, **maps),
    }
    backs = {}
    for name, part in parameters.items():
        x, backs[name] = residual(x, layers[name], **part)

    def back(dx):
        dmemory, gradients = 0.0, {}
        for name, back_residual in reversed(backs.items()):
            dx, *dother, gradients[name] = back_residual(dx)
            dmemory = dother[0] if dother else dmemory  # the gradient of what cross-attention reads
        return dx, dmemory, gradients

    return x, back


def stack(x, memory, mask, heads, activation, blocks, norm):  # as `block`
    """Blocks, and a last norm: an encoder, a decoder (it has a memory), a GPT (it has none)."""
    backs = []
    for parameters in blocks:
        x, back_block = block(x, memory, mask, heads, activation, parameters)
        backs.append(back_block)
    x, back_norm = layer_norm(x, **norm)

    def back(dx):
        dx, dnorm = back_norm(dx)
        dmemory, dblocks = 0.0, []
        for back_block in reversed(backs):
            dx, dfrom_block, dblock = back_block(dx)
            dmemory = dmemory + dfrom_block  # every decoder block reads the same memory
            dblocks.insert(0, dblock)
        return dx, dmemory, {"blocks": dblocks, "norm": dnorm}

    return x, back


def causal(length):  # (T, T): nobody sees what comes after him
    return np.triu(np.full((length, length), -np.inf), 1)


def embedding(ids, table, scale=1.0):  # (T,), (V, D) -> (T, D)
    def back(dy):
        dtable = np.zeros_like(table)
        np.add.at(dtable, ids, dy * scale)  # a token that occurs twice gets both gradients
        return dtable

    return table[ids] * scale, back


def waves(length, width):  # (T, D): the sine and cosine positions of Vaswani et al. 2017
    angles = np.arange(length)[:, None] / 10000 ** (np.arange(0, width, 2) / width)
    return np.stack((np.sin(angles), np.cos(angles)), axis=-1).reshape(length, width)


def cross_entropy(logits, labels):  # (T, V), (T,) -> a number: the mean of -log p(label)
    probabilities, rows = softmax(logits), np.arange(len(labels))

    def back():
        dlogits = probabilities.copy()
        dlogits[rows, labels] -= 1
        return dlogits / len(labels)

    return -np.log(probabilities[rows, labels]).mean(), back


def gpt(ids, parameters, heads):  # (T,) -> (T, V): scores of all tokens as the next one
    """Return the logits after every prefix of a text (Radford et al. 2019), and `back`."""
    table, positions = parameters["table"], parameters["positions"]
    x, back_embedding = embedding(ids, table)
    x = x + positions[: len(ids)]
    x, back_stack = stack(x, None, causal(len(ids)), heads, gelu, **parameters["decoder"])

    def back(dlogits):
        dx, _, ddecoder = back_stack(dlogits @ table)
        dpositions = np.zeros_like(positions)
        dpositions[: len(ids)] = dx
        # One table is read at both ends, and its gradient is the sum.
        return {"table": dlogits.T @ x + back_embedding(dx), "positions": dpositions, "decoder": ddecoder}

    return x @ table.T, back


def seq2seq(source, ids, parameters, heads):  # (S,), (T,) -> (T, V)
    """Return the logits after every prefix of a target (Vaswani et al. 2017, pre-norm), and `back`."""
    table, scale = parameters["table"], np.sqrt(parameters["table"].shape[1])
    x, back_source = embedding(source, table, scale)
    memory, back_encoder = stack(x + waves(*x.shape), None, 0.0, heads, relu, **parameters["encoder"])
    x, back_target = embedding(ids, table, scale)
    x, back_decoder = stack(x + waves(*x.shape), memory, causal(len(ids)), heads, relu, **parameters["decoder"])

    def back(dlogits):
        dx, dmemory, ddecoder = back_decoder(dlogits @ table)
        dsource, _, dencoder = back_encoder(dmemory)
        dtable = dlogits.T @ x + back_target(dx) + back_source(dsource)
        return {"table": dtable, "encoder": dencoder, "decoder": ddecoder}

    return x @ table.T, back


def greedy(logits_after, ids, end, limit):
    """Write the most probable token until `end`, or until there are `limit`; `logits_after(ids)` is (T, V)."""
    ids = list(ids)
    while ids[-1] != end and len(ids) < limit:
        ids.append(int(logits_after(np.array(ids))[-1].argmax()))
    return ids


def leaves(tree):
    """Yield the arrays of nested dictionaries and lists, always in the same order."""
    if isinstance(tree, np.ndarray):
        yield tree
    else:
        for branch in tree if isinstance(tree, list) else (tree[name] for name in sorted(tree)):
            yield from leaves(branch)


def adam(parameters, examples, loss_of, updates, rate=3e-3, report=lambda update, loss: None):
    """Move the parameters by Adam (Kingma and Ba 2015) on the mean gradient of all examples."""
    arrays = list(leaves(parameters))
    first, second = ([np.zeros_like(x) for x in arrays] for _ in range(2))
    for update in range(1, updates + 1):
        losses, trees = zip(*(loss_of(example) for example in examples), strict=True)
        for x, m, v, *gradients in zip(arrays, first, second, *map(leaves, trees), strict=True):
            mean = sum(gradients) / len(examples)
            m += 0.1 * (mean - m)
            v += 0.001 * (mean**2 - v)
            x -= rate * (m / (1 - 0.9**update)) / (np.sqrt(v / (1 - 0.999**update)) + 1e-8)
        report(update, np.mean(losses))


def new_stack(rng, layers, width, hidden, cross):
    """Draw the parameters of `stack`: small random matrices, biases 0, gains 1."""

    def linear_map(inputs, outputs):
        weight = rng.standard_normal((inputs, outputs)) / np.sqrt(inputs + outputs)
        return {"weight": weight, "bias": np.zeros(outputs)}

    def norm():
        return {"gain": np.ones(width), "bias": np.zeros(width)}

    def attention_part():
        return {"norm": norm()} | {name: linear_map(width, width) for name in ("query", "key", "value", "output")}

    def new_block():
        names = ("attention", "cross_attention") if cross else ("attention",)
        last = {"norm": norm(), "up": linear_map(width, hidden), "down": linear_map(hidden, width)}
        return {name: attention_part() for name in names} | {"feed_forward": last}

    return {"blocks": [new_block() for _ in range(layers)], "norm": norm()}


PRONOUNS = {"I am": ("म", "हुँ"), "you are": ("तिमी", "हौ"), "he is": ("ऊ", "हो")}
NOUNS = "boy केटा, teacher शिक्षक, student विद्यार्थी, farmer किसान, doctor डाक्टर, driver चालक, writer लेखक, "
NOUNS = dict(pair.split() for pair in (NOUNS + "player खेलाडी, soldier सिपाही").split(", "))
BEGIN, END = "<s>", "</s>"


def main():
    """Train both models on 26 sentences and their translations, and ask for the 27th.

    Of six seeds, the GPT had it right with all, the encoder-decoder with five.
    """
    pairs = [
        (f"{subject} a {noun}".split(), [pronoun, nepali, verb])
        for subject, (pronoun, verb) in PRONOUNS.items()
        for noun, nepali in NOUNS.items()
    ]
    words = [BEGIN, END, *dict.fromkeys(word for pair in pairs for side in pair for word in side)]
    asked, expected = pairs.pop(len(NOUNS))  # "you are a boy": the verb is another than in "I am a boy", which remains

    def ids(text):
        return np.array([words.index(word) for word in text])

    rng, width, heads = np.random.default_rng(1), 32, 4
    table = rng.standard_normal((len(words), width)) / np.sqrt(width)
    reader = {"encoder": new_stack(rng, 1, width, 64, False), "decoder": new_stack(rng, 1, width, 64, True)}
    writer = {"positions": rng.standard_normal((16, width)) / 10, "decoder": new_stack(rng, 2, width, 64, False)}
    writer, reader = ({"table": table.copy(), **parameters} for parameters in (writer, reader))

    def seq2seq_loss(pair):  # teacher forcing: what is to be written is read one place to the right
        logits, back = seq2seq(ids(pair[0]), ids([BEGIN, *pair[1]]), reader, heads)
        loss, back_loss = cross_entropy(logits, ids([*pair[1], END]))
        return loss, back(back_loss())

    def gpt_loss(pair):  # one text, of which everything is to be predicted: the sentence, <s>, its translation
        text = ids([END, *pair[0], BEGIN, *pair[1], END])
        logits, back = gpt(text[:-1], writer, heads)
        loss, back_loss = cross_entropy(logits, text[1:])
        return loss, back(back_loss())

    def report(update, loss):
        if update % 20 == 0:
            print(f"  update {update:3}: loss {loss:.4f}")

    def show(written):
        translation = [words[each] for each in written if words[each] not in (BEGIN, END)]
        print(f"  {' '.join(asked)} -> {' '.join(translation)}   (right: {' '.join(expected)})")

    print(f"encoder-decoder; the loss of guessing is ln {len(words)} = {np.log(len(words)):.4f}")
    adam(reader, pairs, seq2seq_loss, 100, report=report)
    end = words.index(END)
    show(greedy(lambda seen: seq2seq(ids(asked), seen, reader, heads)[0], ids([BEGIN]), end, 8))

    print("GPT, which reads sentence and translation as one text")
    adam(writer, pairs, gpt_loss, 100, report=report)
    prompt = ids([END, *asked, BEGIN])
    show(greedy(lambda seen: gpt(seen, writer, heads)[0], prompt, end, 16)[len(prompt) :])


if __name__ == "__main__":
    main()
