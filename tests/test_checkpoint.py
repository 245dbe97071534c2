"""Checkpoints: the schema against the model, the checksum, and what is refused in which words.

tests/fuzz/checkpoints.py has the damage at random; here stand the kinds of it, each with its words.
"""
from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from models.gpt import GPT, GPTConfig, parameter_shapes
from tests.fuzz.checkpoints import put_together, taken_apart, with_context
from train import gpt
from train.checkpoint import FILE_NAME, load_checkpoint, save_checkpoint
from train.options import gpt_parser, parse_inheriting
from uopc import nn

TEXT = "".join(f"{k} bottles of {k * k} glasses.\n" for k in range(300))
WEIGHT = "model.transformer.h.0.ln_1.weight"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    gpt.main([f"--dataset={folder / 'text.txt'}", f"--data_dir={folder}", f"--out_dir={folder}",
              "--n_layer=1", "--n_head=2", "--n_embd=16", "--block_size=8", "--batch_size=2",
              "--max_iters=2", "--eval_iters=1"])
    return folder


def refusal(folder: Path) -> str:
    with pytest.raises(ValueError) as caught:
        load_checkpoint(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("bias", [True, False])
def test_the_shapes_are_those_of_the_model(bias: bool) -> None:
    config = GPTConfig(vocab_size=11, block_size=8, n_layer=3, n_head=2, n_embd=4, bias=bias)
    built = {name: p.shape for name, p in nn.named_parameters(GPT(config)).items()}
    assert dict(parameter_shapes(config)) == built


def test_equal_checkpoints_are_equal_files(trained: Path, tmp_path: Path) -> None:
    save_checkpoint(tmp_path, load_checkpoint(trained))
    assert (tmp_path / FILE_NAME).read_bytes() == (trained / FILE_NAME).read_bytes()


def test_no_byte_can_change_unnoticed(trained: Path, tmp_path: Path) -> None:
    good = (trained / FILE_NAME).read_bytes()
    header = 8 + int.from_bytes(good[:8], "little")
    places = [*range(0, header, 97), *range(header - 8, header + 8), *range(header, len(good), 999)]
    for place in places:
        for change in (1, 0x80):
            raw = bytearray(good)
            raw[place] ^= change
            (tmp_path / FILE_NAME).write_bytes(raw)
            assert "is not a checkpoint" in refusal(tmp_path), place
    (tmp_path / FILE_NAME).write_bytes(good[:-1])
    assert "is not a checkpoint" in refusal(tmp_path)
    blank = bytearray(good)  # blanks at the header's end mean nothing to a reader of JSON
    blank[:8] = struct.pack("<Q", header)
    blank[header:header] = b" " * 8
    (tmp_path / FILE_NAME).write_bytes(blank)
    assert "does not match its checksum" in refusal(tmp_path)


def test_one_without_a_checksum_is_read_with_a_word(
        trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put_together(*taken_apart((trained / FILE_NAME).read_bytes()), tmp_path / FILE_NAME,
                 checksum=False)
    assert load_checkpoint(tmp_path).info == load_checkpoint(trained).info
    assert capsys.readouterr().err.count("has no checksum") == 1


Edit = Callable[[dict, dict], object]


def planted(value: float, name: str) -> Edit:
    def edit(_: dict, tensors: dict) -> None:
        values = np.frombuffer(tensors[name]["data"], np.float32).copy()
        values[3] = value
        tensors[name]["data"] = values.tobytes()
    return edit


def retyped(dtype: str, bits: int) -> Edit:
    def edit(_: dict, tensors: dict) -> None:
        tensors[WEIGHT] |= {"dtype": dtype, "data": b"\0" * (16 * bits // 8)}
    return edit


def sized(name: str, size: int) -> Edit:
    def edit(info: dict, _: dict) -> None:
        info["model"][name] = info["options"][name] = size
    return edit


@pytest.mark.parametrize(("edit", "said"), [
    (retyped("F8_E4M3", 8), f"{WEIGHT} is stored as F8_E4M3, a checkpoint holds F32"),
    (retyped("F4", 4), "is stored as F4"),
    (retyped("BF16", 16), "is stored as BF16"),
    (retyped("F16", 16), "is stored as F16"),
    (retyped("I32", 32), "is stored as I32"),
    (retyped("F64", 64), "is stored as F64"),
    (planted(np.nan, WEIGHT), f"{WEIGHT}: 1 of its 16 values are not finite"),
    (planted(-np.inf, "optimizer.m.transformer.wpe.weight"), "optimizer.m.transformer.wpe.weight"),
    (planted(-1.0, "optimizer.v.transformer.wpe.weight"), "negative values"),
    (sized("n_layer", 10**7), "model.transformer.h.1.attn.c_attn.weight is missing"),
    (sized("n_embd", 2 * 10**6), "has shape (22, 16), the model needs (22, 2000000)"),
    (sized("block_size", 9), "wpe.weight has shape (8, 16), the model needs (9, 16)"),
    (sized("n_head", 3), "n_embd 16 must be a multiple of n_head 3"),
    (sized("n_head", 0), "--n_head: must be at least 1, got 0"),
    (lambda info, _: info["model"].update(n_layer=2), "n_layer is 2, the option 1"),
    (lambda info, _: info["model"].update(vocab_size=300), "300, the tokenizer one of 22"),
    (lambda info, _: info["options"].update(tokenizer="gpt2"), "it is 'char', the option 'gpt2'"),
    (lambda info, _: info["options"].update(dropout=1.5), "--dropout: must be at least 0 and"),
    (lambda info, _: info["options"].update(bias="True"), "--bias is 'True'"),
    (lambda info, _: info["options"].update({"\x1b[2J": 1}), r"no option '\x1b[2J'"),
    (lambda info, _: info.update(iteration=-1), "`iteration` is not a whole number"),
    (lambda info, _: info.update(iteration=True), "`iteration` is not a whole number"),
    (lambda info, _: info.update(iteration=float("nan")), "NaN is no number"),
    (lambda info, _: info["optimizer_steps"].pop(), "has 15 numbers for 16 weights"),
    (lambda info, _: info["optimizer_steps"].append(3), "at most `iteration`"),
    (lambda info, _: info.update(random=[0, 1 << 63]), "`random` is not"),
    (lambda info, _: info.pop("random"), "it lacks 'random'"),
    (lambda info, _: info.update({f"x{k}": 1 for k in range(9)}), "'x0', 'x1', 'x2' and 6 more"),
    (lambda info, _: info.update(tokenizer={"kind": "char", "chars": "ba"}), "sorted"),
    (lambda _, tensors: tensors.update({"\x1b[2J": tensors[WEIGHT]}), r"'\x1b[2J' is unknown"),
    (lambda _, tensors: tensors.pop(WEIGHT), f"{WEIGHT} is missing"),
])
def test_a_file_whose_checksum_fits_is_checked_too(trained: Path, tmp_path: Path, edit: Edit,
                                                   said: str) -> None:
    info, tensors = taken_apart((trained / FILE_NAME).read_bytes())
    edit(info, tensors)
    put_together(info, tensors, tmp_path / FILE_NAME)
    text = refusal(tmp_path)
    assert said in text
    assert "\x1b" not in text and len(text) < 800


def test_a_context_that_no_memory_holds(trained: Path, tmp_path: Path) -> None:
    info, tensors = taken_apart((trained / FILE_NAME).read_bytes())
    with_context(info, tensors, 400_000)
    put_together(info, tensors, tmp_path / FILE_NAME)
    assert "its attention needs 1,280,000,000,000 bytes" in refusal(tmp_path)


@pytest.mark.parametrize(("text", "said"), [
    ("[" * 100_000, "nested too deeply"),
    ('{"iteration": 1, "iteration": 2}', "says something twice"),
    ('{"iteration": ' + "9" * 5000 + "}", "is not a checkpoint"),
    ("null", "its description is None"),
    ("{", "is not a checkpoint"),
    ('{"sha256": 5}', "its checksum is 5"),
])
def test_json_that_no_run_has_written(trained: Path, tmp_path: Path, text: str, said: str) -> None:
    _, tensors = taken_apart((trained / FILE_NAME).read_bytes())
    raw = json.dumps({"__metadata__": {"uopc": text}}).encode()
    (tmp_path / FILE_NAME).write_bytes(struct.pack("<Q", len(raw)) + raw)
    assert said in refusal(tmp_path)


def test_what_is_no_file_is_called_what_it_is(trained: Path, tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    assert "there is no checkpoint" in refusal(tmp_path)
    os.mkfifo(path)
    assert "is a FIFO" in refusal(tmp_path)
    path.unlink()
    path.mkdir()
    assert "Is a directory" in refusal(tmp_path)
    path.rmdir()
    for target, said in (("/dev/zero", "is a device"), (path, "Too many levels of symbolic links")):
        path.symlink_to(target)
        assert said in refusal(tmp_path)
        path.unlink()
    path.write_bytes((trained / FILE_NAME).read_bytes())
    os.truncate(path, 1 << 43)
    assert "needs 8,796,093,022,208 bytes, there are" in refusal(tmp_path)


def test_no_path_is_taken_from_a_checkpoint(trained: Path, tmp_path: Path,
                                            capsys: pytest.CaptureFixture[str]) -> None:
    info, tensors = taken_apart((trained / FILE_NAME).read_bytes())
    info["options"] |= {"dataset": "/etc/passwd", "data_dir": str(tmp_path / "x\x1b[2J")}
    put_together(info, tensors, tmp_path / FILE_NAME)
    before = (tmp_path / FILE_NAME).read_bytes()
    with pytest.raises(SystemExit):
        gpt.main([f"--out_dir={tmp_path}", "--init_from=resume", "--max_iters=3"])
    said = capsys.readouterr().err
    assert "--dataset=/etc/passwd" in said and r"x\x1b[2J'" in said and "\x1b" not in said
    assert os.listdir(tmp_path) == [FILE_NAME] and (tmp_path / FILE_NAME).read_bytes() == before
    gpt.main([f"--out_dir={tmp_path}", "--init_from=resume", "--max_iters=3",
              f"--dataset={trained / 'text.txt'}", f"--data_dir={trained}"])
    assert load_checkpoint(tmp_path).info["iteration"] == 3


@pytest.mark.parametrize(("saved", "given", "dataset", "data_dir"), [
    ({"dataset": "shakespeare", "data_dir": None}, [], "shakespeare", None),
    ({"dataset": "shakespeare"}, ["--dataset=python"], "python", None),
    ({"dataset": "x.txt", "data_dir": "y"}, ["--dataset=a", "--data_dir=b"], "a", "b"),
    ({}, [], "python", None),
    ({"dataset": "./python"}, [], None, None),
    ({"dataset": "python", "data_dir": "y"}, [], None, None),
    ({"dataset": "x.txt", "data_dir": "y"}, ["--dataset=x.txt"], None, None),
])
def test_names_are_inherited_paths_are_not(saved: dict, given: list[str], dataset: str | None,
                                           data_dir: str | None) -> None:
    """Refused where `dataset` is None."""
    if dataset is None:
        with pytest.raises(SystemExit):
            parse_inheriting(gpt_parser(), given, saved)
        return
    options = parse_inheriting(gpt_parser(), given, saved)
    assert (options.dataset, options.data_dir) == (dataset, data_dir)


def test_a_refused_resume_touches_nothing(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("{}\n")
    (tmp_path / "other.txt").write_text("ab" * 500)
    (tmp_path / FILE_NAME).write_bytes((trained / FILE_NAME).read_bytes())
    before = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir()}
    with pytest.raises(SystemExit, match="the text has changed"):
        gpt.main([f"--out_dir={tmp_path}", "--init_from=resume", f"--data_dir={trained}",
                  f"--dataset={tmp_path / 'other.txt'}"])
    assert before == {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir()}
