"""A transformer toolkit in NumPy, every derivative written by hand."""
