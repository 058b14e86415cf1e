"""From text files to batches of ids."""

from toolkit.data.batches import Example, epoch_batches, split_batch
from toolkit.data.lines import read_lines, read_pairs, write_lines_atomically

__all__ = ["Example", "epoch_batches", "read_lines", "read_pairs", "split_batch", "write_lines_atomically"]
