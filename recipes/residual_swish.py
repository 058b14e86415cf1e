"""Train the transformer of the founding document 003: no norms, no biases, swish, and residuals around everything.

    python recipes/residual_swish.py                       # half a minute
    python recipes/residual_swish.py --model.layers 3      # another shape, of teacher and pupil

A teacher of the same shape with random weights answers random vectors, and the pupil, with other random weights, is to
answer alike. The loss of a vector is ½ ‖Y - Y_true‖², so that ∂L/∂Y = Y - Y_true, as in the document. AdamW has its ε
inside the root. Before training, every gradient of the document's list is compared with finite differences.

What happens is in toolkit/recipes/residual_swish.py; `toolkit train residual-swish` does the same.
"""

from toolkit.commands.train import run_recipe

if __name__ == "__main__":
    run_recipe("residual-swish")
