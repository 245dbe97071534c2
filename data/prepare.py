"""Prepare a data set ahead of training, and say what it holds.

    python data/prepare.py --dataset=python --tokenizer=char

Training does the same by itself when the data is not there yet.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from pathlib import Path

# As a script, Python looks for modules in data/; the package is found from the repository's root.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

if __name__ == "__main__":  # Ctrl-C while the modules below are loaded is no traceback either
    from train import interrupts
    interrupts.end_at_once("prepare.py")

from data import load_dataset


def main(argv: list[str] | None = None) -> int:
    """Read the command line, prepare, print; returns the exit code."""
    options = _parser().parse_args(argv)
    try:
        data = load_dataset(options.dataset, options.tokenizer, options.data_dir)
        data.check(block_size=1)  # the shortest that anybody can train with
    except (ValueError, OSError) as error:
        print(f"prepare.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("prepare.py: interrupted", file=sys.stderr)
        return 130
    return _report(
        f"data set   {data.name}\n"
        f"tokenizer  {data.tokenizer.name}, {data.vocab_size:,} tokens\n"
        f"train      {len(data.train):,} tokens\n"
        f"val        {len(data.val):,} tokens\n"
        f"folder     {data.folder}"
    )


def _report(text: str) -> int:
    """Print it, whatever stdout is; returns the exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # it may lack a folder's characters
    try:
        print(text, flush=True)
    except OSError as error:  # a closed pipe, a full disk
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else tried again at exit
        print(f"prepare.py: prepared, but cannot print it ({error.strerror})", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="prepare.py",
        description="Turn a text into memory-mapped token ids.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--dataset", default="python",
        help="python, shakespeare, or the path of a text file, which may be a pipe",
    )
    parser.add_argument(
        "--tokenizer", default="char", help="char, or a tiktoken encoding such as gpt2"
    )
    parser.add_argument("--data_dir", default=None, help="where to keep it (data/prepared)")
    return parser


if __name__ == "__main__":
    interrupts.raise_again()
    sys.exit(main())
