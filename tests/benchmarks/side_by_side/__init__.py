"""What `compare.py` is made of: processes that do the same work, the toolkit's and the others', told when to run."""
