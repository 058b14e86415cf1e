"""A reward model as the judge of PPO, on a scale that does not depend on the model's own."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from toolkit.display import short_repr
from toolkit.errors import DataError, ModelError
from toolkit.functional.arrays import Array
from toolkit.functional.tuning import fixed_choice
from toolkit.language_model import LanguageModel
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.reward import RewardModel, copy_values, settings_like
from toolkit.models.storage import load_model, read_model
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Tape
from toolkit.preference.ppo import PPOConfig
from toolkit.preference.replies import together, whole_texts, write_replies
from toolkit.tokenization import Tokenizer, load_tokenizer


def read_judge(name: str, chat: LanguageModel, start: str) -> RewardModel:
    """Read the judge of PPO; `start` is the name of the chat model.

    Raises ModelError where it is another kind of model, of another shape, or reads other ids.
    """

    def read(directory: Path) -> tuple[RewardModel, Tokenizer]:
        model = load_model(directory)
        if not isinstance(model, RewardModel):
            raise ModelError(f"{name} is no reward model: train one with --method reward")
        return model, load_tokenizer(directory)

    model, tokenizer = read_model(name, read)
    own, other = (vars(settings_like(GPTConfig, each.config, dropout=False)) for each in (model, chat.model))
    if differ := [setting for setting in own if own[setting] != other[setting]]:
        raise ModelError(f"{name} has another {', '.join(differ)} than {start}: train it from the same model")
    one, two = ([each.piece(token) for token in range(each.vocab_size)] for each in (tokenizer, chat.tokenizer))
    if one != two:
        raise ModelError(f"{name} reads other tokens than {start}: train it from the same model")
    return model


# This many replies give mean and standard deviation to a few percent.
_MOST = 256


class ModelScore:
    """The reward of a reward model, shifted and scaled: (r - mean) / std.  A `Score`; see `normalized_score`."""

    __repr__ = short_repr

    def __init__(self, model: RewardModel, mean: float = 0.0, std: float = 1.0):
        self._model, self.mean, self.std = model, mean, std

    def __call__(self, prompts: Sequence[Array], replies: Sequence[Array], memory: Pool) -> Array:
        rewards = self._model.values(*whole_texts(prompts, replies), Tape(memory=memory))
        return (rewards - self.mean) / self.std

    def critic(self) -> RewardModel:
        """Make a reward model whose own rewards are on this scale: a critic begins from it."""
        model = self._model
        scaled = RewardModel(model.config)
        scaled.allocate(model.vector.dtype.type)
        copy_values(model, scaled)
        scaled.head.weight.data[...] /= self.std
        scaled.head.bias.data[...] = (model.head.bias.data - self.mean) / self.std
        return scaled


def normalized_score(
    model: RewardModel, reference: GPT, prompts: Sequence[Sequence[int]], end: int, config: PPOConfig, seed: int = 0
) -> ModelScore:
    """Put a reward model on a scale where replies of the reference have mean 0 and standard deviation 1.

    Only differences of rewards are learned from preferences, so a zero point must be chosen (Stiennon et al. 2020 take
    this one); with the scale chosen too, a penalty or a β means the same whatever the reward model.
    The reference replies to 256 of the prompts at most; replies that do not end by themselves do not count. The same
    seed gives the same numbers. Raises DataError where no reply ends.
    """
    rng, most = np.random.default_rng(seed), min(len(prompts), _MOST)
    asked = [np.asarray(prompts[number], np.int64) for number in rng.choice(len(prompts), most, replace=False)]
    # With other kernels, and with more threads, the same sums are rounded otherwise.
    with fixed_choice(), threadpool_limits(1):
        replies = write_replies(
            reference, asked, end, temperature=config.temperature, max_new_tokens=config.max_new_tokens, seed=seed
        )
        both = [(prompt, reply) for prompt, reply in zip(asked, replies, strict=True) if reply.ended]
        if not both:
            raise DataError("no reply of the model ends by itself: fine-tune it further, or let replies be longer")
        parts, score, memory = [], ModelScore(model), Pool()
        for chosen in together(*zip(*both, strict=True)):
            parts.append(score([both[index][0] for index in chosen], [both[index][1].ids for index in chosen], memory))
        rewards = np.concatenate(parts).astype(np.float64)
    return ModelScore(model, float(rewards.mean()), float(rewards.std()) or 1.0)
