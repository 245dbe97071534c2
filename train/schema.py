"""What a checkpoint of a GPT holds, declared once; a file is read only after it was found to be so.

    INFO      the rules of its JSON, field by field
    tensors   the tensors that its sizes call for: all f32, and with how many values

Nothing here builds a model or reads a tensor, so a file that claims ten million layers, or a
terabyte, costs no more than its refusal.
"""
from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

import numpy as np

from data import tokenizer_from_state
from models.gpt import GPTConfig, parameter_shapes
from train.options import check_saved_options
from train.terminal import few, quoted

DTYPE = "F32"  # as safetensors names it
MOMENTS = ("m", "v")  # AdamW's; v is a mean of squares
Info = dict[str, Any]


@dataclass(frozen=True)
class Rule:
    """What a field must be, in words and as a check of its value, given the whole JSON. The check
    is false, or raises ValueError to say more, where the field is not so."""

    right: str
    check: Callable[[Any, Info], bool]


def _whole(value: Any, low: int, end: int) -> bool:
    return type(value) is int and low <= value < end


def _options(value: Any, _: Info) -> bool:
    return isinstance(value, dict) and check_saved_options(value)


def _model(value: Any, info: Info) -> bool:
    names = {field.name for field in fields(GPTConfig)}
    if not isinstance(value, dict) or value.keys() != names:
        return False
    if not _whole(value["vocab_size"], 1, 1 << 31):
        raise ValueError(f"vocab_size is {quoted(value['vocab_size'])}")
    for name in sorted(names - {"vocab_size"}):
        option = info["options"].get(name)
        if type(value[name]) is not type(option) or value[name] != option:
            raise ValueError(f"{name} is {quoted(value[name])}, the option {quoted(option)}")
    GPTConfig(**value)
    return True


def _tokenizer(value: Any, info: Info) -> bool:
    tokenizer = tokenizer_from_state(value)
    size, option = tokenizer.vocab_size, info["options"].get("tokenizer", tokenizer.name)
    if option != tokenizer.name:
        raise ValueError(f"it is {tokenizer.name!r}, the option {quoted(option)}")
    if size != info["model"]["vocab_size"]:
        raise ValueError(f"the model has a vocabulary of {info['model']['vocab_size']}, the "
                         f"tokenizer one of {size}")
    return True


INFO = {  # in this order: a rule may rely on the fields before its own
    "options": Rule("the options of train/gpt.py", _options),
    "model": Rule("the model's sizes, as the options have them, and vocab_size", _model),
    "tokenizer": Rule("a tokenizer of vocab_size tokens", _tokenizer),
    "iteration": Rule("a whole number, below 2**53",
                      lambda value, _: _whole(value, 0, 1 << 53)),
    "optimizer_steps": Rule("for each weight a whole number, at most `iteration`",
                            lambda value, info: isinstance(value, list) and all(
                                _whole(steps, 0, info["iteration"] + 1) for steps in value)),
    "random": Rule("a seed below 2**64 and a number of calls below 2**63",
                   lambda value, _: isinstance(value, list) and len(value) == 2
                   and _whole(value[0], 0, 1 << 64) and _whole(value[1], 0, 1 << 63)),
}


def parse_info(text: str) -> Info:
    """The JSON of a checkpoint. Raises ValueError for what is no JSON, or says a thing twice."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("its description is nested too deeply") from None


def _once(pairs: list[tuple[str, Any]]) -> Info:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"it says something twice, among {few(list(found))}")
    return found


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number")


def check_info(info: Any) -> None:
    """Raises ValueError, which names the field, unless every rule of INFO holds."""
    if not isinstance(info, dict):
        raise ValueError(f"its description is {quoted(info)}, not a table of fields")
    if missing := [name for name in INFO if name not in info]:
        raise ValueError(f"it lacks {few(missing)}")
    if unknown := [name for name in info if name not in INFO]:
        raise ValueError(f"it has unknown fields: {few(unknown)}")
    for name, rule in INFO.items():
        try:
            holds = rule.check(info[name], info)
        except ValueError as error:
            raise ValueError(f"`{name}` is not {rule.right}: {str(error)[:300]}") from None
        if not holds:
            raise ValueError(f"`{name}` is not {rule.right}: it is {quoted(info[name])}")


# *** tensors ***


def tensor_shapes(config: GPTConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every tensor of a checkpoint: the weights, and AdamW's two moments of each."""
    for name, shape in parameter_shapes(config):
        yield f"model.{name}", shape
        for moment in MOMENTS:
            yield f"optimizer.{moment}.{name}", shape


def check_tensors(stored: Mapping[str, tuple[str, tuple[int, ...]]], info: Info) -> None:
    """`stored` has each tensor's dtype and shape by name. Raises ValueError, which names up to
    three tensors, unless they are those that the model's sizes call for."""
    config = GPTConfig(**info["model"])
    # Lazily: sizes are the file's claim, and what it claims may be without end.
    if problems := list(islice(_unfit(stored, config), 3)):
        raise ValueError("the weights do not fit the model: " + "; ".join(problems))
    expected = {name for name, _ in tensor_shapes(config)}
    if unknown := [name for name in stored if name not in expected]:
        raise ValueError(f"the weights do not fit the model: {few(unknown)} is unknown")
    weights = len(expected) // (1 + len(MOMENTS))
    if len(info["optimizer_steps"]) != weights:
        raise ValueError(f"`optimizer_steps` has {len(info['optimizer_steps'])} numbers for "
                         f"{weights} weights")


def _unfit(stored: Mapping[str, tuple[str, tuple[int, ...]]],
           config: GPTConfig) -> Iterator[str]:
    for name, shape in tensor_shapes(config):
        if name not in stored:
            yield f"{name} is missing"
            continue
        dtype, found = stored[name]
        if dtype != DTYPE:
            yield f"{name} is stored as {dtype}, a checkpoint holds {DTYPE}"
        elif found != shape:
            yield f"{name} has shape {quoted(found)}, the model needs {shape}"


def attention_bytes(info: Info) -> int:
    """The scores of one full context, which no size of a tensor bounds: f32 (H, T, T)."""
    return info["model"]["n_head"] * info["model"]["block_size"] ** 2 * 4


def check_values(name: str, values: np.ndarray) -> None:
    """Raises ValueError, with the tensor's name, where a value is none that training can give."""
    if wrong := values.size - np.count_nonzero(np.isfinite(values)):
        raise ValueError(f"{name}: {wrong} of its {values.size} values are not finite (NaN or "
                         "infinity); train again from an earlier checkpoint")
    if name.startswith("optimizer.v.") and (values < 0).any():
        raise ValueError(f"{name} is a mean of squares, and holds negative values")
