"""Train a translator: English–Nepali on the embedded corpus by default, any other pairs of sentences by flags.

    python recipes/translation.py                                  # the embedded corpus, under three minutes
    python recipes/translation.py --reverse                        # Nepali to English
    python recipes/translation.py --source my.en --target my.ne    # your own sentences
    python recipes/translation.py --data pairs.tsv                 # the same in a table
    python recipes/translation.py --start en-ne-small --source my.en --target my.ne    # go on with a model

The result is a run: a directory of checkpoints that `toolkit translate --model RUN` reads.

What happens is in toolkit/recipes/translation.py; `toolkit train translation` does the same.
"""

from toolkit.commands.train import run_recipe

if __name__ == "__main__":
    run_recipe("translation")
