"""How every model of the comparison is trained."""

RECIPE = {"learning_rate": 3e-4, "weight_decay": 0.01, "beta1": 0.9, "beta2": 0.98, "eps": 1e-9, "clip": 1.0}
