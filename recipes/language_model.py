"""Train a language model: on the embedded stories by default, on any other text by flags.

    python recipes/language_model.py                                   # little stories in English, under five minutes
    python recipes/language_model.py --language ne                     # in Nepali
    python recipes/language_model.py --text my.txt                     # your own text: a file, several, a folder
    python recipes/language_model.py --start stories --text my.txt     # a model that knows something already
    python recipes/language_model.py --preset nanogpt-cpu --text shakespeare.txt
    python recipes/language_model.py --preset chat --run checkpoints/base   # what recipes/chat.py goes on with

The result is a run: a directory of checkpoints that `toolkit generate --model RUN` reads.

What happens is in toolkit/recipes/language_model.py; `toolkit train language-model` does the same.
"""

from toolkit.commands.train import run_recipe

if __name__ == "__main__":
    run_recipe("language-model")
