"""Train a GPT on a text: `python train/gpt.py`; `--help` lists the options.

Writes `<out_dir>/ckpt.safetensors` at every evaluation and at the end, and a record per step to
`<out_dir>/log.jsonl`. Ctrl-C, SIGTERM and SIGHUP finish the step, save and exit with 128 plus the
signal's number; `--init_from=resume` goes on from there with the same numbers as if nothing had
happened: with the options of before, but for paths.
"""
from __future__ import annotations

import argparse
import contextlib
import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # runs without being installed

if __name__ == "__main__":  # Ctrl-C while the modules below are loaded is no traceback either
    from train import interrupts
    interrupts.end_at_once("train/gpt.py")

import numpy as np

from data import TextDataset, load_dataset, tokenizer_from_state
from models.gpt import GPT, GPTConfig
from train.checkpoint import FILE_NAME, Checkpoint, load_checkpoint, save_checkpoint
from train.log import TrainingLog
from train.options import parse_gpt_options
from train.run_folder import locked
from train.sizes import check_memory, gpt_memory
from train.stopping import Stopped, Stopping, print_error, status, told
from train.terminal import visible
from uopc import nn, random
from uopc.jit import jit
from uopc.runtime import CompileError
from uopc.tensor import Tensor


def learning_rate(iteration: int, options: argparse.Namespace) -> float:
    """Linear warm-up, then a cosine from learning_rate down to min_lr at lr_decay_iters."""
    if not options.decay_lr:
        return options.learning_rate
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


def shown(losses: dict[str, float | None]) -> str:
    return ", ".join(f"{split} {'not measured' if x is None else f'{x:.4f}'}"
                     for split, x in losses.items())


def train(trainer: Trainer, log: TrainingLog, out_dir: Path, stopping: Stopping) -> None:
    """The loop. Exits at the first loss that is not finite; the last checkpoint then stays. When a
    signal or a file that cannot be written ends it, the steps since that one are saved first."""
    options = trainer.options
    tokens = options.gradient_accumulation_steps * options.batch_size * options.block_size
    first = saved = trainer.iteration

    def save() -> None:
        nonlocal saved
        with stopping.later():
            checkpoint = trainer.checkpoint()
            for name, values in {**checkpoint.weights, **checkpoint.moments}.items():
                if not np.isfinite(values).all():
                    fail(f"after {trainer.iteration} steps {name} is not finite")
            out_dir.mkdir(parents=True, exist_ok=True)  # somebody may have removed it
            save_checkpoint(out_dir, checkpoint)
            saved = trainer.iteration

    def fail(reason: str) -> NoReturn:
        sys.exit(f"train/gpt.py: {reason}; try a lower --learning_rate (now "
                 f"{options.learning_rate}). Nothing was saved; the last checkpoint is kept.")

    def evaluate_and_save() -> None:
        losses = trainer.evaluate()
        log.write(iter=trainer.iteration, train_loss=losses["train"], val_loss=losses["val"])
        for split, loss in losses.items():
            if loss is not None and not math.isfinite(loss):
                fail(f"the {split} loss after {trainer.iteration} steps is {loss}")
        save()
        log.say(f"step {trainer.iteration}: evaluation: {shown(losses)}; checkpoint saved")

    try:
        while trainer.iteration < options.max_iters:
            if trainer.iteration % options.eval_interval == 0:
                evaluate_and_save()
            iteration = trainer.iteration
            # Before the first step is done there is nothing to lose, and much to compile.
            with stopping.later() if iteration > first else contextlib.nullcontext():
                with log.step() as timer:
                    loss, lr, norm = trainer.step()
                log.log_step(timer, iteration, loss, lr, tokens)
                if not math.isfinite(loss):
                    fail(f"the loss of step {iteration} is {loss}")
                if not math.isfinite(norm):
                    log.say(f"step {iteration}: the gradient's norm is {norm}; its gradients were "
                            "dropped")
        evaluate_and_save()
    except (Stopped, OSError) as reason:
        if trainer.iteration > saved:
            try:
                with contextlib.suppress(Stopped):  # raised once more when it is saved
                    save()
            except OSError as error:
                sys.exit(visible(f"train/gpt.py: {told(reason)}; the steps since {saved} could "
                                 f"not be saved: {told(error)}"))
        print_error(f"train/gpt.py: {told(reason)}; {trainer.iteration} steps are done, the "
                    f"checkpoint is of step {saved}" if saved > first else
                    f"train/gpt.py: {told(reason)}; nothing new was saved")
        sys.exit(status(reason))


def prepare(options: argparse.Namespace, resumed: Checkpoint | None) -> Trainer:
    """The trainer, with the checkpoint's state if there is one to go on from. Raises ValueError or
    OSError for what the user can mend; nothing in out_dir was touched then."""
    dataset = load_dataset(options.dataset, options.tokenizer, options.data_dir)
    dataset.check(options.block_size)
    check_memory(gpt_memory(options, dataset.vocab_size))
    if resumed:
        wanted = tokenizer_from_state(resumed.info["tokenizer"])
        if wanted.state() != dataset.tokenizer.state():
            raise ValueError(f"the data set's vocabulary of {dataset.vocab_size} tokens is not "
                             f"the checkpoint's of {wanted.vocab_size}: the text has changed")
    return Trainer(options, dataset, resumed)


def main(argv: list[str] | None = None) -> None:
    with Stopping() as stopping:
        try:
            run(argv, stopping)
        except (KeyboardInterrupt, OSError, MemoryError) as error:
            print_error(f"train/gpt.py: {told(error)}")
            sys.exit(status(error))
        except CompileError as error:
            sys.exit(visible(f"train/gpt.py: {error}"))


def run(argv: list[str] | None, stopping: Stopping) -> None:
    # Read before the folder is made, so that a mistake leaves nothing behind, and again when it is
    # ours: another run may have gone on meanwhile.
    options = parse_gpt_options(argv, lambda d: load_checkpoint(Path(d)).info["options"])
    out_dir = Path(options.out_dir)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(out_dir))
            resumed = load_checkpoint(out_dir) if options.init_from == "resume" else None
            trainer = prepare(options, resumed)
        except (ValueError, OSError) as error:
            sys.exit(visible(f"train/gpt.py: {told(error)}"))
        if resumed and trainer.iteration >= options.max_iters and not options.eval_only:
            print_error(f"train/gpt.py: {trainer.iteration} steps are done, which reaches "
                        f"--max_iters {options.max_iters}: there is nothing to do")
            return
        log = stack.enter_context(contextlib.closing(TrainingLog(
            out_dir, trainer.iteration, options.max_iters, options.log_interval)))
        introduce(trainer, log, resumed, out_dir)
        if options.eval_only:
            log.say(f"step {trainer.iteration}: evaluation: {shown(trainer.evaluate())}")
            return
        train(trainer, log, out_dir, stopping)


def introduce(trainer: Trainer, log: TrainingLog, resumed: Checkpoint | None,
              out_dir: Path) -> None:
    """Say what is trained, and what the user may not expect."""
    options, dataset = trainer.options, trainer.dataset
    log.say(f"{dataset.name}: {len(dataset.train):,} tokens to train on, "
            f"{len(dataset.val):,} to validate, {dataset.vocab_size} in the vocabulary; "
            f"{trainer.model.parameter_count():,} parameters")
    if resumed is None and (out_dir / FILE_NAME).exists():
        log.say(f"the checkpoint in {out_dir} is of an earlier run and will be replaced")
    if options.max_iters < options.lr_decay_iters:
        log.say(f"the learning rate falls until step {options.lr_decay_iters}, this run ends at "
                f"{options.max_iters}; usually --lr_decay_iters equals --max_iters")
    if not dataset.has_room("val", options.block_size):
        log.say(f"the validation split of {len(dataset.val)} tokens is too short for "
                f"--block_size {options.block_size}; its loss is not measured")


if __name__ == "__main__":
    main()
