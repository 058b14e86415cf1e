"""Fine-tune a language model on conversations, so that it answers: the embedded ones by default, any others by flags.

    python recipes/language_model.py --preset chat --run checkpoints/base   # first what it should know
    python recipes/chat.py --start checkpoints/base                         # then how to converse
    python recipes/chat.py                                                  # or both at once, from nothing
    python recipes/chat.py --start checkpoints/base --conversations my.jsonl

The loss is on replies and their end markers alone. The result is a run: a directory of checkpoints that
`toolkit chat --model RUN` reads, and that recipes/preference.py goes on with.

What happens is in toolkit/recipes/chat.py; `toolkit train chat` does the same.
"""

from toolkit.commands.train import run_recipe

if __name__ == "__main__":
    run_recipe("chat")
