"""A GPT of your own: what you have found, put together. It learns from the stories, and then it writes some.

    python gpt.py                  train, and write three stories
    python gpt.py --updates 500    for a shorter time; Ctrl-C ends training, too, and what there is is kept
    python gpt.py --check          train the toolkit's model after it, in the same way, and compare

Nothing is left out here. The functions are yours, each with its derivative; this file has the heads of attention, the
blocks, the loop of training, and the writing. From the toolkit come the stories and their tokenizer, and for --check
its own model. T tokens of a text, D width, K = D / heads, V vocabulary.
"""

import argparse
import math
import sys
import time
from functools import partial
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import threadpoolctl
from accumulate import accumulate
from adamw_step import adamw_step
from attention_gradient import attention_gradient
from causal_mask import causal_mask
from clip_gradients import clip_gradients
from cross_entropy import cross_entropy
from embedding import embedding
from feed_forward import feed_forward
from gelu import gelu
from greedy import greedy
from layer_norm import layer_norm
from learning_rate import learning_rate
from linear import linear
from perplexity import perplexity
from residual import residual
from rotary_gradient import rotary_gradient
from sample import sample
from split_heads import split_heads
from teacher_forcing import teacher_forcing
from temperature import temperature
from top_k import top_k
from top_p import top_p

import toolkit
from toolkit.data.embedded import embedded
from toolkit.tokenization.special import BOS, EOS

WIDTH, LAYERS, HEADS, HIDDEN = 64, 2, 4, 256
UPDATES, STORIES = 2400, 4  # of training; in a batch
PEAK, DECAY, CLIP = 1e-2, 0.1, 1.0  # the highest learning rate; of AdamW; of the gradients' norm
LONGEST = 256  # tokens of a story; those of the corpus have 198 at most
WARMUP = 20  # the learning rate rises over a 20th of the updates
SEED = 1
SHOWN = 100  # updates between two lines


# The model


def new_parameters(vocabulary):
    """Draw what is learned, {part: {name: array}}: small random matrices as in GPT-2, gains of 1, biases of 0."""
    rng, smaller = np.random.default_rng(SEED), 0.02 / math.sqrt(2 * LAYERS)  # where 2 · LAYERS results add up

    def maps(name, inputs, outputs, std=0.02):
        return {f"{name}_weight": rng.standard_normal((inputs, outputs)) * std, f"{name}_bias": np.zeros(outputs)}

    def norm():
        return {"gain": np.ones(WIDTH), "bias": np.zeros(WIDTH)}

    parameters = {"embedding": {"table": rng.standard_normal((vocabulary, WIDTH)) * 0.02}}
    for block in range(LAYERS):
        parameters[f"norm of attention {block}"] = norm()
        parameters[f"attention {block}"] = maps("input", WIDTH, 3 * WIDTH) | maps("output", WIDTH, WIDTH, smaller)
        parameters[f"norm of network {block}"] = norm()
        parameters[f"network {block}"] = maps("up", WIDTH, HIDDEN) | maps("down", HIDDEN, WIDTH, smaller)
    return parameters | {"last norm": norm()}


def self_attention(x, input_weight, input_bias, output_weight, output_bias):
    """Let every position ask those up to itself, by several heads.  (T, D) -> (T, D), and `back`."""
    projected, back_input = linear(x, input_weight, input_bias)  # (T, 3D): queries, keys and values side by side
    by_head = zip(*(split_heads(each, HEADS) for each in np.split(projected, 3, axis=1)), strict=True)
    mask, contexts, backs = causal_mask(len(x)), [], []
    for query, key, value in by_head:  # (T, K) each
        turned_query, back_query = rotary_gradient(query)
        turned_key, back_key = rotary_gradient(key)
        context, back_context = attention_gradient(turned_query, turned_key, value, mask)
        contexts.append(context)
        backs.append((back_query, back_key, back_context))
    y, back_output = linear(np.hstack(contexts), output_weight, output_bias)

    def back(dy):
        dcontexts, doutput = back_output(dy)
        dheads = []
        for dcontext, (back_query, back_key, back_context) in zip(split_heads(dcontexts, HEADS), backs, strict=True):
            dquery, dkey, dvalue = back_context(dcontext)
            dheads.append((back_query(dquery), back_key(dkey), dvalue))
        # As they were cut: the queries of all heads, then their keys, then their values.
        dx, dinput = back_input(np.hstack([*chain(*zip(*dheads, strict=True))]))
        names = {"input_weight": dinput["weight"], "input_bias": dinput["bias"]}
        return dx, names | {"output_weight": doutput["weight"], "output_bias": doutput["bias"]}

    return y, back


def network(x, up_weight, up_bias, down_weight, down_bias):
    """Give the feed-forward layer its two maps.  (T, D) -> (T, D), and `back`."""
    return feed_forward(x, gelu, {"weight": up_weight, "bias": up_bias}, {"weight": down_weight, "bias": down_bias})


def gpt(ids, parameters):
    """Return the scores of all tokens as the next one, after every token of a text, and `back`.

    ids: (T,); logits: (T, V); back: dlogits (T, V) -> the gradients, {part: {name: array}}
    """
    gradients = {}

    def layer(function, part):
        """Make a layer a function of x alone, as `residual` takes it; its `back` puts the other gradients aside."""

        def forward(x):
            y, back = function(x, **parameters[part])

            def back_x(dy):
                dx, gradients[part] = back(dy)
                return dx

            return y, back_x

        return forward

    table, backs = parameters["embedding"]["table"], []
    x, back_embedding = embedding(ids, table)
    for block in range(LAYERS):
        for name, function in (("attention", self_attention), ("network", network)):
            part = f"{name} {block}"
            x, back = residual(x, layer(function, part), layer(layer_norm, f"norm of {part}"))
            backs.append(back)
    x, back_norm = layer(layer_norm, "last norm")(x)
    logits, back_logits = linear(x, table.T)

    def back(dlogits):
        dx, dlast = back_logits(dlogits)
        for back_part in (back_norm, *reversed(backs)):
            dx = back_part(dx)
        # The table is used twice, as in tied_logits: where tokens are predicted, and where they are looked up.
        gradients["embedding"] = {"table": dlast["weight"].T + back_embedding(dx)}
        return gradients

    return logits, back


# Training


def story_loss(ids, parameters):
    """Return the mean loss of the tokens of a story, their number, and `back`: nothing -> the gradients."""
    inputs, labels = teacher_forcing(ids, BOS, EOS)
    logits, back_logits = gpt(inputs, parameters)
    loss, back_loss = cross_entropy(logits, labels)
    return loss, len(labels), lambda: back_logits(back_loss())


def loss_and_gradients(stories, parameters):
    """Return the loss of a batch, the mean over its tokens, and the gradients: a list, an array for each parameter."""
    losses, counts, found = [], [], []
    for ids in stories:
        loss, tokens, back = story_loss(ids, parameters)
        gradients = back()
        losses.append(loss)
        counts.append(tokens)
        found.append([gradients[part][name] for part, arrays in parameters.items() for name in arrays])
    return mean_loss(losses, counts), [accumulate(list(each), counts) for each in zip(*found, strict=True)]


def validation_loss(stories, parameters):
    """Return the mean loss of the tokens of stories that it has not learned from."""
    losses, counts = zip(*(story_loss(ids, parameters)[:2] for ids in stories), strict=True)
    return mean_loss(losses, counts)


def mean_loss(losses, counts):
    """Return the mean loss of the tokens of several stories, a number."""
    return math.log(perplexity(np.array(losses), np.array(counts)))


def epoch_batches(stories, epoch):
    """Divide so many stories into batches, in each epoch in another way.  Returns a list of arrays, their numbers."""
    order = np.random.default_rng([SEED, epoch]).permutation(stories)
    return np.array_split(order, max(1, stories // STORIES))


def train(parameters, stories, updates):
    """Move the parameters, in place, by AdamW; yield the number and the loss of every update.

    Matrices also decay, gains and biases do not.
    """
    arrays = [array for part in parameters.values() for array in part.values()]
    moments = [(np.zeros(array.size), np.zeros(array.size)) for array in arrays]
    batches = chain.from_iterable(epoch_batches(len(stories), epoch) for epoch in count())
    for step in range(1, updates + 1):
        loss, gradients = loss_and_gradients([stories[number] for number in next(batches)], parameters)
        gradients, _ = clip_gradients(gradients, CLIP)
        rate = learning_rate(step, updates, updates // WARMUP, PEAK, 0.0)
        for place, (array, gradient) in enumerate(zip(arrays, gradients, strict=True)):
            decay = DECAY if array.ndim > 1 else 0.0
            moved, *moments[place] = adamw_step(array.ravel(), gradient.ravel(), *moments[place], step, rate, decay)
            array[...] = moved.reshape(array.shape)
        yield step, loss


def unigram_loss(stories, valid, vocabulary):
    """Return the loss of a model that knows how often each token occurs, and nothing else."""
    seen, labels = (np.concatenate([np.append(ids, EOS) for ids in texts]) for texts in (stories, valid))
    counts = np.bincount(seen, minlength=vocabulary) + 1
    return -np.log(counts / counts.sum())[labels].mean()


# Writing


def write(parameters, rng=None):
    """Write a story, and return its ids: the most probable token each time, or with a generator one that it draws."""

    def scores_after(ids):
        return gpt(np.array(ids), parameters)[0][-1]

    if rng is None:
        return greedy(scores_after, [BOS], EOS, LONGEST)
    ids = [BOS]
    while ids[-1] != EOS and len(ids) < LONGEST:
        scores = top_p(top_k(scores_after(ids), 50), 0.95)
        ids.append(sample(temperature(scores, 0.7), rng.random()))
    return ids


# The comparison


def toolkit_loss(stories, valid, tokenizer, parameters, updates):
    """Train the toolkit's GPT with the same settings, batches and initial values; return its validation loss.

    parameters: with their initial values; those of the toolkit's model have the same shapes in the same order.
    """
    from toolkit.data.store import RaggedStore  # here, because nothing else needs them
    from toolkit.models.gpt import GPT, GPTConfig
    from toolkit.training.config import TrainingConfig
    from toolkit.training.language import LanguageTask
    from toolkit.training.run import Run
    from toolkit.training.task import Share
    from toolkit.training.trainer import Trainer

    class SameBatches(LanguageTask):
        def batches(self, epoch, tokens_per_batch, seed):
            return [Share("train", numbers) for numbers in epoch_batches(len(stories), epoch)]

    def start(model):
        arrays = [array for part in parameters.values() for array in part.values()]
        for theirs, ours in zip(model.arrays().values(), arrays, strict=True):
            theirs[...] = ours

    shape = {"d_model": WIDTH, "layers": LAYERS, "num_heads": HEADS, "d_ff": HIDDEN, "max_length": LONGEST}
    model = GPTConfig(tokenizer.vocab_size, activation="gelu_tanh", bias=True, **shape)
    rule = {"learning_rate": PEAK, "warmup": updates // WARMUP, "weight_decay": DECAY, "clip": CLIP}
    rule |= {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "label_smoothing": 0.0}  # as adam_step has them
    training = TrainingConfig(updates=updates, validate_every=updates, best_by="loss", workers=1, **rule)
    with TemporaryDirectory() as directory:
        stores = []
        for name, texts in (("train", stories), ("valid", valid)):
            stores.append(RaggedStore.write(Path(directory, name), ([BOS, *ids, EOS] for ids in texts), np.int32))
        run = Run(Path(directory, "run"), {})
        run.create()
        task = SameBatches(*stores, LONGEST)
        trainer = Trainer(partial(GPT, model), task, training, run, tokenizer, quiet=True, start=start)
        scores = trainer.train().scores
    if trainer.interrupted:
        raise KeyboardInterrupt
    return scores["loss"]


# The program


def unfinished():
    """List the files in this directory that are imported here, or by those that are, and still want their lines."""
    here = Path(__file__).resolve().parent
    paths = [Path(getattr(module, "__file__", None) or "").resolve() for module in [*sys.modules.values()]]
    beside = [path for path in paths if path.parent == here and path.name != Path(__file__).name]
    return sorted(path.name for path in beside if "raise NotImplementedError" in path.read_text(encoding="utf-8"))


def trained(stories, updates, parameters):
    """Train, and tell how it goes; Ctrl-C ends it.  Returns how many updates were made."""
    began, step, losses = time.perf_counter(), 0, []
    try:
        for step, loss in train(parameters, stories, updates):
            losses.append(loss)
            if step % SHOWN == 0 or step == updates:
                seconds = time.perf_counter() - began
                left = seconds / step * (updates - step)
                print(f"update {step:4}: loss {np.mean(losses):.3f}, {seconds:.0f} s, {left:.0f} s left", flush=True)
                losses.clear()
    except KeyboardInterrupt:
        print(f"stopped after {step} updates")
    return step


def compare(loss, theirs):
    """Tell how far the losses of the two models are apart; return the exit code."""
    print(f"\nthe toolkit's model, trained in the same way: {theirs:.4f}; yours / the toolkit's = {loss / theirs:.5f}")
    if abs(loss / theirs - 1) <= 0.02:
        print("within 2 %: it is the same model")
        return 0
    print("more than 2 % apart: `toolkit exercise check --all` says which function is wrong", file=sys.stderr)
    return 2


def main():
    """Train, write, and compare; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--updates", type=int, default=UPDATES, help=f"steps of training, {UPDATES} by default")
    parser.add_argument("--check", action="store_true", help="compare with the toolkit's model")
    given = parser.parse_args()
    if given.updates < 1:
        parser.error("--updates must be at least 1")
    if waiting := unfinished():
        print(f"not finished yet: {', '.join(waiting)} (toolkit exercise next)", file=sys.stderr)
        return 2
    tokenizer = toolkit.load_language_model("stories").tokenizer
    texts = [(embedded("stories") / f"{name}.en.txt").read_text(encoding="utf-8") for name in ("train", "valid")]
    stories, valid = (tokenizer.encode_batch(text.strip().split("\n\n")) for text in texts)
    parameters = new_parameters(tokenizer.vocab_size)
    done = trained(stories, given.updates, parameters)
    loss, guessing = validation_loss(valid, parameters), math.log(tokenizer.vocab_size)
    counting = unigram_loss(stories, valid, tokenizer.vocab_size)
    print(f"validation loss {loss:.4f}; of guessing {guessing:.4f}, of counting how often tokens occur {counting:.4f}")
    rng = np.random.default_rng(SEED)
    for title, generator in (("the most probable story", None), ("by chance", rng), ("by chance", rng)):
        print(f"\n{title}: {tokenizer.decode(write(parameters, generator))}")
    if not given.check or done < given.updates:
        return 0
    values = new_parameters(tokenizer.vocab_size)
    return compare(loss, toolkit_loss(stories, valid, tokenizer, values, done))


if __name__ == "__main__":
    with threadpoolctl.threadpool_limits(1):  # several threads are slower, on arrays as small as these
        try:
            sys.exit(main())
        except KeyboardInterrupt:
            sys.exit(130)
        except toolkit.errors.ToolkitError as error:
            print(error, file=sys.stderr)
            sys.exit(2)
