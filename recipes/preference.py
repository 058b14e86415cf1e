"""Teach a chat model which replies are better: by a reward model and PPO, or directly by DPO.

    python recipes/preference.py --method reward --start checkpoints/chat-model --run checkpoints/reward
    python recipes/preference.py --method ppo --start checkpoints/chat-model --reward checkpoints/reward
    python recipes/preference.py --method dpo --start checkpoints/chat-model --run checkpoints/dpo

The embedded preferences rank polite answers above curt ones, and both above wrong ones. The result is a run, whose
log.jsonl has the curves; `toolkit chat --model RUN` talks with what PPO and DPO have made of the model.

What happens is in toolkit/recipes/preference.py; `toolkit train preference` does the same.
"""

from toolkit.commands.train import run_recipe

if __name__ == "__main__":
    run_recipe("preference")
