"""Train a GPT on a text: `python train/gpt.py`; `--help` lists the options.

Writes `<out_dir>/ckpt.safetensors` at every evaluation and at the end, and a record per step to
`<out_dir>/log.jsonl`. Ctrl-C finishes the step, saves and exits; `--init_from=resume` goes on from
there with the same numbers as if nothing had happened: with the options of before, but for paths.
"""
from __future__ import annotations

import argparse
import contextlib
import functools
import math
import signal
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # runs without being installed

from data import TextDataset, load_dataset, tokenizer_from_state
from models.gpt import GPT, GPTConfig
from train.checkpoint import FILE_NAME, Checkpoint, load_checkpoint, save_checkpoint
from train.log import TrainingLog
from train.options import parse_gpt_options
from train.terminal import visible
from uopc import nn, random
from uopc.jit import jit
from uopc.runtime import CompileError
from uopc.tensor import Tensor


def learning_rate(iteration: int, options: argparse.Namespace) -> float:
    """Linear warm-up, then a cosine from learning_rate down to min_lr at lr_decay_iters."""
    if iteration < options.warmup_iters:
        return options.learning_rate * (iteration + 1) / options.warmup_iters
    if iteration >= options.lr_decay_iters:
        return options.min_lr
    done = (iteration - options.warmup_iters) / (options.lr_decay_iters - options.warmup_iters)
    cosine = 0.5 * (1 + math.cos(math.pi * done))
    return options.min_lr + cosine * (options.learning_rate - options.min_lr)


class Trainer:
    """The model, its optimizer and its data; knows how to take a step and how to be saved."""

    def __init__(self, options: argparse.Namespace, dataset: TextDataset,
                 resumed: Checkpoint | None) -> None:
        self.options, self.dataset = options, dataset
        random.manual_seed(options.seed)
        self.model = GPT(GPTConfig(dataset.vocab_size, options.block_size, options.n_layer,
                                   options.n_head, options.n_embd, options.dropout, options.bias))
        self.named = nn.named_parameters(self.model)
        matrices = [p for p in self.named.values() if p.ndim >= 2]
        vectors = [p for p in self.named.values() if p.ndim < 2]
        self.optimizer = nn.AdamW(
            [{"params": matrices, "weight_decay": options.weight_decay},
             {"params": vectors, "weight_decay": 0.0}],
            lr=options.learning_rate, betas=(options.beta1, options.beta2))
        self.train_step, self.batch_loss = jit(self._train_step), jit(self.model.loss)
        self.iteration = 0
        if resumed:
            self.restore(resumed)

    def batch(self, split: str, *position: int) -> tuple[Tensor, Tensor]:
        """The batch that belongs to a position in the run: (seed, position) decide it."""
        rng = np.random.default_rng((self.options.seed, *position))
        x, y = self.dataset.get_batch(split, self.options.batch_size, self.options.block_size, rng)
        return Tensor(x), Tensor(y)

    def step(self) -> tuple[float, float, float]:
        """One optimizer step; returns (loss, learning rate, gradient norm)."""
        self.optimizer.lr = learning_rate(self.iteration, self.options)
        batches = [self.batch("train", 0, self.iteration, micro)
                   for micro in range(self.options.gradient_accumulation_steps)]
        loss, norm = self.train_step(batches)
        self.iteration += 1
        return loss.item(), self.optimizer.lr, norm.item()

    def _train_step(self, batches: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Recorded once, then replayed: loss and gradient norm, the parameters updated."""
        self.optimizer.zero_grad()
        total = None
        for x, y in batches:
            loss = self.model.loss(x, y) * (1 / len(batches))
            total = loss if total is None else total + loss
        total.backward(self.optimizer.params)
        norm = nn.clip_grad_norm(self.optimizer.params, self.options.grad_clip or math.inf)
        self.optimizer.step(total, norm)
        return total, norm

    def evaluate(self) -> dict[str, float | None]:
        """Mean loss over eval_iters batches of each split; None where a split is too short."""
        self.model.training = False
        losses: dict[str, float | None] = {}
        for number, split in enumerate(("train", "val"), 1):
            if not self.dataset.has_room(split, self.options.block_size):
                losses[split] = None
                continue
            parts = [self.batch_loss(*self.batch(split, number, k)).item()
                     for k in range(self.options.eval_iters)]
            losses[split] = sum(parts) / len(parts)
        self.model.training = True
        return losses

    # *** saving ***

    def checkpoint(self) -> Checkpoint:
        names = {id(p): name for name, p in self.named.items()}
        moments = {f"{kind}.{names[id(p)]}": value.numpy()
                   for kind, values in self.optimizer.state().items()
                   for p, value in zip(self.optimizer.params, values, strict=True)}
        info = {"options": vars(self.options), "model": asdict(self.model.config),
                "tokenizer": self.dataset.tokenizer.state(), "iteration": self.iteration,
                "optimizer_steps": self.optimizer.t, "random": random.get_state()}
        return Checkpoint({n: p.numpy() for n, p in self.named.items()}, moments, info)

    def restore(self, saved: Checkpoint) -> None:
        nn.load_parameters(self.model, saved.weights)
        names = {id(p): name for name, p in self.named.items()}
        restored = list(self.named.values())
        for kind, values in self.optimizer.state().items():
            for p, value in zip(self.optimizer.params, values, strict=True):
                restored.append(value.assign(saved.moments[f"{kind}.{names[id(p)]}"]))
        Tensor.realize_all(*restored)
        self.iteration = saved.info["iteration"]
        self.optimizer.t = saved.info["optimizer_steps"]
        random.set_state(*saved.info["random"])


class StopRequest:
    """While entered, turns the first Ctrl-C into a flag, so that a step is never cut in two."""

    wanted = False

    def __enter__(self) -> StopRequest:
        self._before = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _on_signal(self, *_: object) -> None:
        self.wanted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print("\nfinishing this step, then saving (Ctrl-C again to quit at once)", file=sys.stderr)


def train(trainer: Trainer, log: TrainingLog, out_dir: Path, stop: StopRequest) -> None:
    """The loop. Exits at the first loss that is not finite; the last checkpoint then stays."""
    options = trainer.options
    tokens = options.gradient_accumulation_steps * options.batch_size * options.block_size

    def evaluate_and_save() -> None:
        losses = trainer.evaluate()
        log.write(iter=trainer.iteration, train_loss=losses["train"], val_loss=losses["val"])
        shown = ", ".join(f"{split} {'not measured' if x is None else f'{x:.4f}'}"
                          for split, x in losses.items())
        save_checkpoint(out_dir, trainer.checkpoint())
        log.say(f"step {trainer.iteration}: evaluation: {shown}; checkpoint saved")

    while trainer.iteration < options.max_iters and not stop.wanted:
        if trainer.iteration % options.eval_interval == 0:
            evaluate_and_save()
        iteration = trainer.iteration
        with log.step() as timer:
            loss, lr, norm = trainer.step()
        if not math.isfinite(loss):
            sys.exit(f"train/gpt.py: the loss of step {iteration} is {loss}; try a lower "
                     f"--learning_rate (now {options.learning_rate}). The last checkpoint is kept.")
        if not math.isfinite(norm):
            log.say(f"step {iteration}: the gradient's norm is {norm}; its gradients were dropped")
        log.log_step(timer, iteration, loss, lr, tokens)
    if stop.wanted:
        save_checkpoint(out_dir, trainer.checkpoint())
        log.say(f"stopped after {trainer.iteration} steps; checkpoint saved")
    else:
        evaluate_and_save()


def prepare(options: argparse.Namespace, resumed: Checkpoint | None) -> Trainer:
    """The trainer, with the checkpoint's state if there is one to go on from. Raises ValueError or
    OSError for what the user can mend; nothing in out_dir was touched then."""
    dataset = load_dataset(options.dataset, options.tokenizer, options.data_dir)
    dataset.check(options.block_size)
    if resumed:
        wanted = tokenizer_from_state(resumed.info["tokenizer"])
        if wanted.state() != dataset.tokenizer.state():
            raise ValueError(f"the data set's vocabulary of {dataset.vocab_size} tokens is not "
                             f"the checkpoint's of {wanted.vocab_size}: the text has changed")
    trainer = Trainer(options, dataset, resumed)
    Path(options.out_dir).mkdir(parents=True, exist_ok=True)
    return trainer


def main(argv: list[str] | None = None) -> None:
    load = functools.cache(load_checkpoint)  # read once: another run may replace it meanwhile
    options = parse_gpt_options(argv, lambda d: load(Path(d)).info["options"])
    out_dir = Path(options.out_dir)
    resumed = load(out_dir) if options.init_from == "resume" else None
    try:
        trainer = prepare(options, resumed)
    except (ValueError, OSError, CompileError) as error:
        sys.exit(visible(f"train/gpt.py: {error}"))
    dataset = trainer.dataset
    try:
        log = TrainingLog(out_dir, trainer.iteration, options.max_iters, options.log_interval)
        log.say(f"{dataset.name}: {len(dataset.train):,} tokens to train on, "
                f"{len(dataset.val):,} to validate, {dataset.vocab_size} in the vocabulary; "
                f"{trainer.model.parameter_count():,} parameters")
        if resumed is None and (out_dir / FILE_NAME).exists():
            log.say(f"the checkpoint in {visible(options.out_dir)} is of an earlier run and will "
                    "be replaced")
        if not dataset.has_room("val", options.block_size):
            log.say(f"the validation split of {len(dataset.val)} tokens is too short for "
                    f"--block_size {options.block_size}; its loss is not measured")
        with contextlib.closing(log), StopRequest() as stop:
            train(trainer, log, out_dir, stop)
    except CompileError as error:
        sys.exit(visible(f"train/gpt.py: {error}"))


if __name__ == "__main__":
    main()
