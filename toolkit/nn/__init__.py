"""Layers: named parameters, and the order in which the calculus of `toolkit.functional` is applied, forth and back."""
