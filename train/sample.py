"""Sample text from a checkpoint: `python train/sample.py --start="def "`.

The context is padded to the model's block size and the position enters as data, so one plan serves
every token. Prints the text as it comes.
"""
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # runs without being installed

from data import Tokenizer, tokenizer_from_state
from models.gpt import GPT, GPTConfig
from train.checkpoint import load_checkpoint
from train.options import at_least
from uopc import nn
from uopc.jit import jit
from uopc.runtime import CompileError
from uopc.tensor import Tensor

MAX_TOKENS_PER_CHAR = 4  # UTF-8 takes at most four bytes


def sample_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Sample text from a trained GPT.",
                                     allow_abbrev=False,
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--out_dir", default="out", help="where the checkpoint is")
    parser.add_argument("--start", default="\n", help="the text to go on from")
    parser.add_argument("--num_samples", type=at_least(1), default=1, help="how many texts")
    parser.add_argument("--max_new_tokens", type=at_least(0), default=300, help="of each text")
    parser.add_argument("--temperature", type=at_least(0, float), default=0.8,
                        help="below 1 more likely, above 1 wilder; 0 takes the likeliest")
    parser.add_argument("--top_k", type=at_least(1), default=200,
                        help="choose among so many likeliest tokens")
    parser.add_argument("--seed", type=at_least(0), default=1337, help="of the choices")
    return parser


def choose(logits: np.ndarray, temperature: float, top_k: int, rng: np.random.Generator) -> int:
    """A token by its logits (V,). Raises ValueError if they are not finite."""
    if not np.isfinite(logits).all():
        raise ValueError("the model's probabilities are not finite (its weights hold NaN or "
                         "infinity); train it again from an earlier checkpoint")
    if temperature == 0:
        return int(logits.argmax())
    scaled = logits.astype(np.float64) / temperature
    if top_k < len(scaled):
        scaled[scaled < np.partition(scaled, -top_k)[-top_k]] = -np.inf
    weights = np.exp(scaled - scaled.max())
    return int(rng.choice(len(weights), p=weights / weights.sum()))


def generate(model: GPT, tokens: list[int], options: argparse.Namespace, rng: np.random.Generator,
             next_logits: Callable[[Tensor, Tensor], Tensor] | None = None) -> Iterator[int]:
    """Yield `max_new_tokens` tokens that follow `tokens`. `next_logits` is the model's under jit,
    recorded once for several samples."""
    block, next_logits = model.config.block_size, next_logits or jit(model.next_logits)
    for _ in range(options.max_new_tokens):
        context = tokens[-block:]
        padded = np.zeros((1, block), np.int32)
        padded[0, :len(context)] = context
        position = Tensor(np.array([len(context) - 1], np.int32))
        logits = next_logits(Tensor(padded), position).numpy()[0]
        tokens = [*tokens, choose(logits, options.temperature, options.top_k, rng)]
        yield tokens[-1]


def as_text(tokens: Iterable[int], tokenizer: Tokenizer) -> Iterator[str]:
    """Text piece by piece; a character whose bytes are spread over tokens waits for its last."""
    pending: list[int] = []
    for token in tokens:
        pending.append(token)
        text = tokenizer.decode(pending)
        if not text.endswith("\N{REPLACEMENT CHARACTER}") or len(pending) >= MAX_TOKENS_PER_CHAR:
            yield text
            pending = []
    yield tokenizer.decode(pending)


def load_model(out_dir: Path) -> tuple[GPT, Tokenizer]:
    """(the model, its tokenizer). Raises ValueError if the checkpoint does not hold together."""
    saved = load_checkpoint(out_dir)
    config = GPTConfig(**saved.info["model"])
    tokenizer = tokenizer_from_state(saved.info["tokenizer"])
    if tokenizer.vocab_size != config.vocab_size:
        raise ValueError(f"the checkpoint's model has a vocabulary of {config.vocab_size}, its "
                         f"tokenizer one of {tokenizer.vocab_size}")
    model = GPT(config)
    nn.load_parameters(model, saved.weights)
    Tensor.realize_all(*nn.parameters(model))
    model.training = False
    return model, tokenizer


def main(argv: list[str] | None = None) -> None:
    options = sample_parser().parse_args(argv)
    sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may lack a character
    try:
        model, tokenizer = load_model(Path(options.out_dir))
        start = tokenizer.encode(options.start)
        if not start:
            raise ValueError("--start must not be empty: there is nothing to go on from")
        next_logits = jit(model.next_logits)
        for number in range(options.num_samples):
            rng = np.random.default_rng((options.seed, number))
            print(options.start, end="", flush=True)
            for text in as_text(generate(model, start, options, rng, next_logits), tokenizer):
                print(text, end="", flush=True)
            print("\n---------------" if number + 1 < options.num_samples else "", flush=True)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # whoever read the text has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, OSError, CompileError) as error:
        sys.exit(f"train/sample.py: {error}")


if __name__ == "__main__":
    main()
