"""Preference tuning: reward models, PPO and DPO.

In order, with ids as models read them (a reply ends with its end marker):

1. Pairs([(prompt, chosen, rejected), …], max_length) for training and validation.
2. A reward model: Trainer(build, RewardTask(train, valid), …, start=lambda model: model.begin_from(language_model)).
3. Its scale: score = normalized_score(reward_model, language_model, prompts, end, PPOConfig()).
4. PPO: PPOTrainer(PPOTask(prompts, valid_prompts, end, language_model, score, PPOConfig()), …).

Or, in place of 2 to 4, DPO: Trainer(build, DPOTask(train, valid, language_model, DPOConfig()), …, start=…).
"""

from toolkit.preference.dpo import DPOConfig, DPOTask
from toolkit.preference.pairs import PairExample, Pairs, RewardTask
from toolkit.preference.ppo import PPOConfig, PPOTask
from toolkit.preference.ppo_trainer import PPOTrainer
from toolkit.preference.replies import write_replies
from toolkit.preference.reward import ModelScore, normalized_score

__all__ = [
    "DPOConfig",
    "DPOTask",
    "ModelScore",
    "PPOConfig",
    "PPOTask",
    "PPOTrainer",
    "PairExample",
    "Pairs",
    "RewardTask",
    "normalized_score",
    "write_replies",
]
