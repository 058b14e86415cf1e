"""Models of preference tuning: one that scores texts, and a pair of one that writes and one that foresees its reward.

Both are made of the parts of `toolkit.models.gpt`: a reward model is a trunk and a head (Stiennon et al. 2020, section
3.4; Ouyang et al. 2022, section 3.5).
"""

import dataclasses
from dataclasses import dataclass
from typing import TypeVar

from toolkit.display import short_repr
from toolkit.errors import ModelError
from toolkit.functional.arrays import Array
from toolkit.models.gpt import GPT, GPTConfig, Trunk
from toolkit.nn.layers import Linear
from toolkit.nn.module import Model, Module, zeros
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape

Config = TypeVar("Config", bound=GPTConfig)


@dataclass(frozen=True)
class RewardConfig(GPTConfig):
    """The shape of a `RewardModel`: that of the language model whose trunk it begins with."""

    __repr__ = short_repr


@dataclass(frozen=True)
class ActorCriticConfig(GPTConfig):
    """The shape of both parts of an `ActorCritic`."""

    __repr__ = short_repr


class RewardModel(Model):
    """A number for every row: what the text up to there is worth.

    The reward of a text is the value of its last token. As a critic, the value of a row is the reward to be expected.
    """

    kind = "reward"

    def __init__(self, config: GPTConfig):
        self.config = config
        self.trunk = Trunk(config)
        self.head = Linear(config.d_model, 1, initial=zeros)

    def begin_from(self, language_model: GPT) -> None:
        """Take its trunk; the head is zero, so that all texts are worth the same at first."""
        copy_values(language_model.trunk, self.trunk)
        for parameter in self.head.parameters().values():
            parameter.data[...] = 0

    def values(self, ids: Array, rows: Rows, at: Array, tape: Tape) -> Array:
        """The values of some rows; `backward` follows if the tape keeps.  Shapes: ids (N,), at (M,) rows -> (M,).

        No row may be named twice.
        """
        return self.head.forward(self.trunk.forward(ids, rows, tape, at), tape)[:, 0]

    def backward(self, dvalues: Array, tape: Tape) -> None:
        """Add the gradient of the last `values` on this tape to the tape's gradients.  dvalues: (M,)."""
        self.trunk.backward(self.head.backward(dvalues[:, None], tape), tape)


class ActorCritic(Model):
    """The models of PPO: a policy that writes, and a critic that foresees the reward (Schulman et al. 2017, section 5).

    They share no parameters, so that neither task disturbs the other; parameters are policy.* and critic.*.
    """

    kind = "actor-critic"

    def __init__(self, config: GPTConfig):
        self.config = config
        self.policy = GPT(config)
        self.critic = RewardModel(config)

    def begin_from(self, language_model: GPT, reward_model: RewardModel) -> None:
        """The policy begins as the language model, and the critic as the reward model (Ouyang et al. 2022)."""
        copy_values(language_model, self.policy)
        copy_values(reward_model, self.critic)

    def language_model(self) -> GPT:
        """A copy of the policy, as a model of its own."""
        model = GPT(settings_like(GPTConfig, self.config))
        model.allocate(self.vector.dtype.type)
        copy_values(self.policy, model)
        return model


def settings_like(kind: type[Config], config: GPTConfig, dropout: bool = True) -> Config:
    """The settings of a model of another kind with the same shape.

    dropout: False takes it out, as where log-probabilities of one model are compared at two times.
    """
    own = {field.name: getattr(config, field.name) for field in dataclasses.fields(GPTConfig)}
    rates = {} if dropout else {name: 0.0 for name in own if name.endswith("_dropout")}
    return kind(**own | rates)


def copy_values(source: Module, target: Module) -> None:
    """Give `target` the values of the parameters of the same names.  Raises ModelError where it has others."""
    given, own = source.parameters(), target.parameters()
    if {name: each.shape for name, each in given.items()} != {name: each.shape for name, each in own.items()}:
        raise ModelError("models of different shapes cannot begin from each other: train both from one language model")
    for name, parameter in own.items():
        parameter.data[...] = given[name].data
