"""Train the auto-encoder of the founding documents 000 and 001: it is to give back the vectors that it reads.

    python recipes/autoencoder.py                          # a minute or two
    python recipes/autoencoder.py --model.norm-position pre    # another shape
    python recipes/autoencoder.py --text my.txt --valid-text other.txt

A sentence is read as vectors of mean 0 and variance 1, one fixed random vector for each of the tokens there are. The
model adds positions to them, mixes them by attention, and has to give them back without either. Whoever gives back the
mean of each vector has a mean squared error (MSE) of 1.

What happens is in toolkit/recipes/autoencoder.py; `toolkit train autoencoder` does the same.
"""

from toolkit.commands.train import run_recipe

if __name__ == "__main__":
    run_recipe("autoencoder")
