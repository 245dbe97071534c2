"""Training data: text as memory-mapped tokens, and a small set of handwritten digits.

Comes in: the name of a data set, or the path of a text file. Goes out: NumPy arrays.

    load_dataset("python").get_batch("train", 8, 64, rng)  →  x, y   int32 (8, 64) each
    load_digits()                                          →  images float32, labels int32

One module per source (`stdlib`, `shakespeare`, `textfile`, `digits`); `tokenizer` turns text into
ids, `store` keeps the ids on disk (`files` is how files are met), `dataset` draws batches from
them.
"""

from data.dataset import TextDataset, load_dataset
from data.digits import load_digits, split_digits
from data.tokenizer import CharTokenizer, TiktokenTokenizer, Tokenizer, tokenizer_from_state

__all__ = [
    "CharTokenizer",
    "TextDataset",
    "TiktokenTokenizer",
    "Tokenizer",
    "load_dataset",
    "load_digits",
    "split_digits",
    "tokenizer_from_state",
]
