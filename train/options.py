"""The command line of train/gpt.py: nanoGPT's option names, checked before any work starts."""
from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from data.dataset import SOURCES
from train.stopping import print_error
from train.terminal import few, quoted, visible


def boolean(text: str) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if text.lower() not in words:
        raise argparse.ArgumentTypeError(f"expected True or False, got {text!r}")
    return words[text.lower()]


def path(text: str) -> str:
    """A path, with a leading ~ expanded."""
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    if "\0" in text:
        raise argparse.ArgumentTypeError(f"a path cannot hold a NUL, got {quoted(text)}")
    return os.path.expanduser(text)


def at_least(low: float, kind: Callable[[str], Any] = int,
             below: float | None = None) -> Callable[[str], Any]:
    """A number of `kind` in low <= x < below, by default below 2**63 or infinity."""
    def parse(text: str) -> Any:
        end = below if below is not None else 2**63 if kind is int else float("inf")
        try:
            value = kind(text)
        except ValueError:
            word = "whole number" if kind is int else "number"
            raise argparse.ArgumentTypeError(f"expected a {word}, got {quoted(text)}") from None
        if not low <= value < end:
            limit = f" and below {end}" if low <= value else ""
            raise argparse.ArgumentTypeError(f"must be at least {low:g}{limit}, got "
                                             f"{visible(text)[:80]}")
        return value
    return parse


PATHS = ("dataset", "data_dir", "out_dir")
MODEL_OPTIONS = ("n_layer", "n_head", "n_embd", "block_size", "bias")
"""What a checkpoint fixes: on resume these cannot change."""


NO_MEANING = ("device", "compile", "dtype", "backend", "wandb_log", "wandb_project",
              "wandb_run_name", "always_save_checkpoint")
"""Options of nanoGPT's that decide nothing here."""


class Ignored(argparse.Action):
    """Says that an option has no meaning here."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace,
                 values: Any, option_string: str | None = None) -> None:
        ignored = getattr(namespace, "_ignored", [])
        namespace._ignored = [*ignored, f"{option_string}={visible(str(values))[:80]}"]


class Parser(argparse.ArgumentParser):
    """Refuses `--name=--` by name, for which argparse would give an empty list."""

    def parse_known_args(self, args: Sequence[str] | None = None,
                         namespace: argparse.Namespace | None = None
                         ) -> tuple[argparse.Namespace, list[str]]:
        options, rest = super().parse_known_args(args, namespace)
        for name, value in vars(options).items():
            if value == []:
                self.error(f"argument --{name}: expected a value, got '--'")
        return options, rest


class RaisingParser(Parser):
    """Where the ordinary one prints what is wrong and exits, this one raises ValueError."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def gpt_parser(kind: type[Parser] = Parser) -> Parser:
    parser = kind(
        description="Train a GPT on a text, on the CPU, with uopc.", allow_abbrev=False,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)

    def option(name: str, kind: Callable[[str], Any], default: Any, text: str, **more: Any) -> None:
        parser.add_argument(f"--{name}", type=kind, default=default, help=text, **more)

    option("dataset", path, "python", "a data set's name (python, shakespeare) or a text file")
    option("tokenizer", str, "char", "char, or an encoding of tiktoken such as gpt2")
    option("data_dir", path, None, "where prepared data is kept")
    option("out_dir", path, "out", "where the checkpoint and the log go")
    option("init_from", str, "scratch", "start anew, or continue from out_dir's checkpoint",
           choices=("scratch", "resume"))
    option("batch_size", at_least(1), 12, "sequences per micro-batch")
    option("block_size", at_least(1), 64, "tokens of context")
    option("n_layer", at_least(1), 4, "transformer blocks")
    option("n_head", at_least(1), 4, "attention heads; must divide n_embd")
    option("n_embd", at_least(1), 128, "channels")
    option("dropout", at_least(0, float, 1), 0.0, "probability of dropping an activation")
    option("bias", boolean, True, "biases in Linear and LayerNorm layers")
    option("learning_rate", at_least(0, float), 1e-3, "the highest learning rate")
    option("max_iters", at_least(1), 2000, "steps in all, those before a resume included")
    option("weight_decay", at_least(0, float), 0.1, "AdamW's decay of matrices")
    option("beta1", at_least(0, float, 1), 0.9, "AdamW's first moment's decay")
    option("beta2", at_least(0, float, 1), 0.99, "AdamW's second moment's decay")
    option("grad_clip", at_least(0, float), 1.0, "largest norm of the gradient; 0 is off")
    option("warmup_iters", at_least(0), 100, "steps of linear warm-up")
    option("lr_decay_iters", at_least(1), 2000, "the step at which min_lr is reached")
    option("min_lr", at_least(0, float), 1e-4, "the learning rate at the end")
    option("eval_interval", at_least(1), 250, "steps between evaluations, each with a checkpoint")
    option("eval_iters", at_least(1), 20, "batches per evaluation and split")
    option("log_interval", at_least(1), 10, "steps between lines, where there is no terminal")
    option("gradient_accumulation_steps", at_least(1), 1, "micro-batches per step")
    option("seed", at_least(0), 1337, "of weights, batches and dropout")
    option("decay_lr", boolean, True, "False keeps the rate at learning_rate")
    option("eval_only", boolean, False, "evaluate, print that, and save nothing")
    for name in NO_MEANING:  # so that commands for nanoGPT work as they are
        parser.add_argument(f"--{name}", dest=argparse.SUPPRESS, action=Ignored,
                            help=argparse.SUPPRESS)
    return parser


def parse_gpt_options(argv: list[str] | None,
                      saved: Callable[[str], dict[str, Any]]) -> argparse.Namespace:
    """The options. On resume, those not given are the checkpoint's (`saved(out_dir)` tells them);
    one that would change the model is refused, as is a combination that is impossible."""
    parser = gpt_parser()
    options = parser.parse_args(argv)
    if options.init_from == "resume":
        try:
            before = saved(options.out_dir)
        except (ValueError, OSError) as error:
            parser.exit(2, visible(f"train/gpt.py: --init_from=resume: {error}") + "\n")
        options = parse_inheriting(parser, argv, before)
        changed = [f"--{k} is {getattr(options, k)}, the checkpoint has {before[k]}"
                   for k in MODEL_OPTIONS if getattr(options, k) != before[k]]
        if changed:
            parser.error("the model cannot change on resume: " + "; ".join(changed))
    if ignored := vars(options).pop("_ignored", []):
        print_error(f"train/gpt.py: no meaning here, ignored: {' '.join(ignored)}")
    if options.n_embd % options.n_head:
        parser.error(f"--n_embd {options.n_embd} must be a multiple of --n_head {options.n_head}")
    if options.min_lr > options.learning_rate:
        parser.error(f"--min_lr {options.min_lr} is above --learning_rate "
                     f"{options.learning_rate}")
    return options


def parse_inheriting(parser: argparse.ArgumentParser, argv: list[str] | None,
                     saved: dict[str, Any]) -> argparse.Namespace:
    """The options, of which those not given are the checkpoint's. No path is taken from there: it
    may be a stranger's, and would decide what is read and where it is written."""
    inherited = {k: v for k, v in saved.items() if k not in ("init_from", "out_dir")}
    names = {k: inherited.pop(k, parser.get_default(k)) for k in ("dataset", "data_dir")}
    parser.set_defaults(**inherited, dataset=None, data_dir=None)
    options = parser.parse_args(argv)
    if options.dataset is None and names["dataset"] in SOURCES:
        options.dataset = names["dataset"]
    missing = [f"--{k}={shlex.quote(v)}" for k, v in names.items()
               if v is not None and getattr(options, k) is None]
    if missing:
        parser.exit(2, "train/gpt.py: no path is taken from a checkpoint; if you trust these, add "
                    f"them to the command: {visible(' '.join(missing))[:1000]}\n")
    return options


def check_saved_options(saved: dict[str, Any]) -> bool:
    """True; raises ValueError unless the command line, by its own rules, could have given these.
    An option that is newer than the checkpoint may be missing."""
    parser = gpt_parser(RaisingParser)
    if unknown := [k for k in saved if k not in vars(parser.parse_args([]))]:
        raise ValueError(f"there is no option {few(unknown)}")
    if odd := [k for k, v in saved.items()
               if not (v is None or isinstance(v, (bool, int, float, str)))]:
        raise ValueError(f"--{odd[0]} is {quoted(saved[odd[0]])}")
    parsed = vars(parser.parse_args([f"--{k}={v}" for k, v in saved.items() if v is not None]))
    for k, v in saved.items():
        is_path = k in PATHS and isinstance(v, str)  # which nobody follows
        if type(parsed[k]) is not type(v) or parsed[k] != (path(v) if is_path else v):
            raise ValueError(f"--{k} is {quoted(v)}")
    return True
