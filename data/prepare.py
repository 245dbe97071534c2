"""Prepare a data set ahead of training, and say what it holds.

    python data/prepare.py --dataset=python --tokenizer=char

Training does the same by itself when the data is not there yet.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

# As a script, Python looks for modules in data/; the package is found from the repository's root.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from data import load_dataset


def main() -> int:
    """Read the command line, prepare, print; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="prepare.py",
        description="Turn a text into memory-mapped token ids.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--dataset", default="python", help="python, shakespeare, or the path of a text file"
    )
    parser.add_argument(
        "--tokenizer", default="char", help="char, or a tiktoken encoding such as gpt2"
    )
    parser.add_argument("--data_dir", default=None, help="where to keep it (data/prepared)")
    options = parser.parse_args()
    try:
        data = load_dataset(options.dataset, options.tokenizer, options.data_dir)
    except (ValueError, OSError) as error:
        print(f"prepare.py: {error}", file=sys.stderr)
        return 1
    print(f"data set   {data.name}")
    print(f"tokenizer  {data.tokenizer.name}, {data.vocab_size:,} tokens")
    print(f"train      {len(data.train):,} tokens")
    print(f"val        {len(data.val):,} tokens")
    print(f"folder     {data.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
