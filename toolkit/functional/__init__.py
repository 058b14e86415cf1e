"""The calculus: every operation as a forward and a backward, side by side, on plain arrays.

A forward returns its result and what its backward needs; a backward takes the gradient of the result and what was
saved, and returns one gradient for every differentiable argument, in their order. Nobody writes to an argument; a
backward may overwrite what was saved for it. Results are written to memory that `empty(shape, dtype)` hands out:
`np.empty` unless the caller owns something better (see `toolkit.nn.memory`).
"""
