"""Training: the optimizer, its schedules, workers that share the arithmetic, checkpoints, and the loop around them."""
