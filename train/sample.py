"""Sample text from a checkpoint: `python train/sample.py --start="def "`.

The context is padded to the model's block size and the position enters as data, so one plan serves
every token. Prints the text as it comes.
"""
from __future__ import annotations

import argparse
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # runs without being installed

if __name__ == "__main__":  # Ctrl-C while the modules below are loaded is no traceback either
    from train import interrupts
    interrupts.end_at_once("train/sample.py")

import numpy as np

from data import Tokenizer, tokenizer_from_state
from models.gpt import GPT, GPTConfig
from train.checkpoint import load_checkpoint
from train.options import Parser, at_least, boolean
from train.terminal import printer, visible
from uopc import nn
from uopc.jit import jit
from uopc.runtime import CompileError
from uopc.tensor import Tensor

MAX_TOKENS_PER_CHAR = 4  # UTF-8 takes at most four bytes
READER_GONE = 128 + 13  # the exit status that a shell gives for SIGPIPE
FROM_FILE = "FILE:"


def sample_parser() -> argparse.ArgumentParser:
    parser = Parser(description="Sample text from a trained GPT.",
                                     allow_abbrev=False,
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--out_dir", default="out", help="where the checkpoint is")
    parser.add_argument("--start", help="the text to go on from, or FILE:PATH for one in a file; "
                        "by default a new line")
    parser.add_argument("--num_samples", type=at_least(1), default=1, help="how many texts")
    parser.add_argument("--max_new_tokens", type=at_least(0), default=300, help="of each text")
    parser.add_argument("--temperature", type=at_least(0, float), default=0.8,
                        help="below 1 more likely, above 1 wilder; 0 takes the likeliest")
    parser.add_argument("--top_k", type=at_least(1), default=200,
                        help="choose among so many likeliest tokens")
    parser.add_argument("--seed", type=at_least(0), default=1337, help="of the choices")
    parser.add_argument("--init_from", default="resume", choices=("resume",),
                        help="nanoGPT's option; there are no pretrained weights here")
    for name, kind in (("device", str), ("dtype", str), ("compile", boolean)):
        parser.add_argument(f"--{name}", type=kind, help="nanoGPT's option, without effect here")
    return parser


def ignored_options(options: argparse.Namespace) -> str:
    """What to say of nanoGPT's options that ask for something else than uopc does; "" if none."""
    asked = {"device": options.device not in (None, "cpu"), "compile": options.compile is False,
             "dtype": options.dtype not in (None, "float32")}
    named = [f"--{k}={getattr(options, k)}" for k, is_other in asked.items() if is_other]
    return f"{', '.join(named)} without effect: uopc compiles for the CPU, in float32" \
        if named else ""


def start_text(argument: str | None, tokenizer: Tokenizer) -> str:
    """The text to go on from. Raises ValueError or OSError if its file cannot be read as UTF-8."""
    if argument is None:
        try:
            tokenizer.encode("\n")
            return "\n"
        except ValueError:  # the text that it was trained on had one line
            return tokenizer.decode([0])
    if argument.startswith(FROM_FILE):
        path = Path(os.path.expanduser(argument.removeprefix(FROM_FILE)))
        try:
            return path.read_bytes().decode("utf-8-sig")
        except OSError as error:
            raise ValueError(f"--start: cannot read {path}: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise ValueError(f"--start: {path} is not UTF-8 text (byte 0x"
                             f"{error.object[error.start]:02x} at offset {error.start})") from None
    try:  # what a locale could not decode is UTF-8 all the same
        return os.fsencode(argument).decode("utf-8")
    except UnicodeError:
        return argument


def choose(logits: np.ndarray, temperature: float, top_k: int, rng: np.random.Generator) -> int:
    """A token by its logits (V,). Raises ValueError if they are not finite."""
    if not np.isfinite(logits).all():
        raise ValueError("the model's probabilities are not finite (its weights hold NaN or "
                         "infinity); train it again from an earlier checkpoint")
    if temperature == 0:
        return int(logits.argmax())
    below_best = logits.astype(np.float64) - logits.max()
    if top_k < len(below_best):
        below_best[below_best < np.partition(below_best, -top_k)[-top_k]] = -np.inf
    with np.errstate(over="ignore"):  # towards temperature 0 all but the best go to -inf
        weights = np.exp(below_best / temperature)
    return int(rng.choice(len(weights), p=weights / weights.sum()))


def generate(model: GPT, tokens: list[int], options: argparse.Namespace, rng: np.random.Generator,
             next_logits: Callable[[Tensor, Tensor], Tensor] | None = None) -> Iterator[int]:
    """Yield `max_new_tokens` tokens that follow `tokens`. `next_logits` is the model's under jit,
    recorded once for several samples."""
    block, next_logits = model.config.block_size, next_logits or jit(model.next_logits)
    context = deque(tokens, maxlen=block)
    for _ in range(options.max_new_tokens):
        padded = np.zeros((1, block), np.int32)
        padded[0, :len(context)] = context
        position = Tensor(np.array([len(context) - 1], np.int32))
        logits = next_logits(Tensor(padded), position).numpy()[0]
        context.append(choose(logits, options.temperature, options.top_k, rng))
        yield context[-1]


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
    tokenizer = tokenizer_from_state(saved.info["tokenizer"])
    model = GPT(GPTConfig(**saved.info["model"]))
    nn.load_parameters(model, saved.weights)
    Tensor.realize_all(*nn.parameters(model))
    model.training = False
    return model, tokenizer


def sample(options: argparse.Namespace, write: Callable[[str], None]) -> None:
    model, tokenizer = load_model(Path(os.path.expanduser(options.out_dir)))
    text = start_text(options.start, tokenizer)
    start = tokenizer.encode(text)
    if not start:
        raise ValueError("--start must not be empty: there is nothing to go on from")
    next_logits = jit(model.next_logits)
    for number in range(options.num_samples):
        rng = np.random.default_rng((options.seed, number))
        write(text)
        for piece in as_text(generate(model, start, options, rng, next_logits), tokenizer):
            write(piece)
        write("\n---------------\n" if number + 1 < options.num_samples else "\n")


def say(text: str) -> None:
    """A line for people on stderr, if there is one."""
    if sys.stderr is not None:
        print(visible(f"train/sample.py: {text}"), file=sys.stderr)


def main(argv: list[str] | None = None) -> None:
    options = sample_parser().parse_args(argv)
    if ignored := ignored_options(options):
        say(ignored)
    try:
        sample(options, printer(sys.stdout))
    except KeyboardInterrupt:
        say("interrupted")
        sys.exit(130)
    except BrokenPipeError:  # whoever read the text has had enough
        sys.exit(READER_GONE)
    except MemoryError:
        sys.exit("train/sample.py: there is not enough memory for this model")
    except (ValueError, OSError, CompileError) as error:
        sys.exit(visible(f"train/sample.py: {error}"))


if __name__ == "__main__":
    interrupts.raise_again()
    main()
