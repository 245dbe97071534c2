"""Train a multilayer perceptron on handwritten digits: `python train/mlp.py`.

1,797 images of 8x8 pixels; a fifth of them is held out and tells the accuracy.
"""
from __future__ import annotations

import argparse
import contextlib
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # runs without being installed

if __name__ == "__main__":  # Ctrl-C while the modules below are loaded is no traceback either
    from train import interrupts
    interrupts.end_at_once("train/mlp.py")

import numpy as np

from data import split_digits
from models.mlp import MLP
from train.log import TrainingLog
from train.options import Parser, at_least, path
from train.run_folder import locked
from train.sizes import BYTES, check_memory
from train.stopping import Stopping, print_error, status, told
from uopc import nn
from uopc.jit import jit
from uopc.runtime import CompileError
from uopc.tensor import Tensor


def mlp_parser() -> argparse.ArgumentParser:
    parser = Parser(description="Train an MLP on handwritten digits.",
                                     allow_abbrev=False,
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--out_dir", type=path, default="out/mlp", help="where the log goes")
    parser.add_argument("--hidden", type=at_least(1), default=128, help="width of both layers")
    parser.add_argument("--batch_size", type=at_least(1), default=64, help="images per step")
    parser.add_argument("--max_iters", type=at_least(1), default=1000, help="steps")
    parser.add_argument("--learning_rate", type=at_least(0, float), default=2e-3,
                        help="at the start; falls to 0 along a line")
    parser.add_argument("--weight_decay", type=at_least(0, float), default=0.01, help="AdamW's")
    parser.add_argument("--log_interval", type=at_least(1), default=100,
                        help="steps between lines, where there is no terminal")
    parser.add_argument("--seed", type=at_least(0), default=1337,
                        help="of weights, batches and the split")
    return parser


def accuracy(model: MLP, images: np.ndarray, labels: np.ndarray) -> float:
    return float((model(Tensor(images)).argmax(-1).numpy() == labels).mean())


def main(argv: list[str] | None = None) -> None:
    with Stopping() as stopping:
        try:
            run(argv, stopping)
        except (KeyboardInterrupt, ValueError, OSError, MemoryError, CompileError) as error:
            print_error(f"train/mlp.py: {told(error)}")
            sys.exit(status(error))


def run(argv: list[str] | None, stopping: Stopping) -> None:
    parser = mlp_parser()
    options = parser.parse_args(argv)
    (images, labels), held_out = split_digits(options.seed)
    if options.batch_size > len(images):
        parser.error(f"--batch_size {options.batch_size} exceeds the {len(images)} images")
    weights = options.hidden * (images.shape[1] + options.hidden + 10)
    try:
        check_memory({f"--hidden {options.hidden}": 4 * BYTES * weights})
    except ValueError as error:
        parser.error(str(error))
    with locked(Path(options.out_dir)):
        train(options, images, labels, *held_out, stopping)


def train(options: argparse.Namespace, images: np.ndarray, labels: np.ndarray,
          held_images: np.ndarray, held_labels: np.ndarray, stopping: Stopping) -> None:
    """Train on (images, labels); print and log the accuracy on the held-out ones. Exits at the
    first loss that is not finite."""
    Tensor.manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)
    model = MLP([images.shape[1], options.hidden, options.hidden, 10])
    optimizer = nn.AdamW(nn.parameters(model), weight_decay=options.weight_decay)

    @jit
    def step(batch: Tensor, targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(batch).cross_entropy(targets)
        loss.backward(optimizer.params)
        optimizer.step(loss)
        return loss

    log = TrainingLog(Path(options.out_dir), 0, options.max_iters, options.log_interval)
    for iteration in range(options.max_iters):
        chosen = rng.choice(len(images), options.batch_size, replace=False)
        optimizer.lr = options.learning_rate * (1 - iteration / options.max_iters)
        with stopping.later() if iteration else contextlib.nullcontext():
            with log.step() as timer:
                value = step(Tensor(images[chosen]), Tensor(labels[chosen])).item()
            log.log_step(timer, iteration, value, optimizer.lr, options.batch_size)
        if not math.isfinite(value):
            sys.exit(f"train/mlp.py: the loss of step {iteration} is {value}; try a lower "
                     f"--learning_rate (now {options.learning_rate})")
    held = accuracy(model, held_images, held_labels)
    log.write(iter=options.max_iters, train_accuracy=accuracy(model, images, labels),
              held_out_accuracy=held)
    log.close()
    log.say(f"held-out accuracy {held:.2%} on {len(held_labels)} images; "
            f"log: {options.out_dir}/log.jsonl")


if __name__ == "__main__":
    main()
