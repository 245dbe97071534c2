"""The sampler: what it prints, and what it refuses."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from models.gpt import GPT, GPTConfig
from train import gpt, sample
from train.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from uopc.counters import counters
from uopc.tensor import Tensor

ROOT = Path(__file__).resolve().parents[1]
TEXT = "".join(f"{k} bottles \N{SLICE OF PIZZA} and {k * 7 % 13} glasses.\n" for k in range(300))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    gpt.main([f"--dataset={folder / 'text.txt'}", f"--data_dir={folder}", f"--out_dir={folder}",
              "--n_layer=1", "--n_head=2", "--n_embd=16", "--block_size=8", "--batch_size=2",
              "--max_iters=20", "--eval_iters=1"])
    return folder


def text_of(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    sample.main([f"--out_dir={folder}", *arguments])
    return capsys.readouterr().out


def test_a97_greedy_text_does_not_depend_on_the_seed(
        trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [text_of(trained, capsys, "--temperature=0", "--max_new_tokens=20", f"--seed={s}",
                     "--start=1 b") for s in (1, 2)]
    assert texts[0] == texts[1]
    assert texts[0].startswith("1 b") and len(texts[0]) >= 20


def test_same_seed_same_text_another_another(
        trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [text_of(trained, capsys, "--max_new_tokens=30", f"--seed={s}") for s in (3, 3, 4)]
    assert texts[0] == texts[1] != texts[2]


def test_samples_differ_and_are_set_apart(trained: Path,
                                          capsys: pytest.CaptureFixture[str]) -> None:
    text = text_of(trained, capsys, "--num_samples=2", "--max_new_tokens=15", "--start=2")
    first, second = text.split("---------------")
    assert first.strip() != second.strip()


def test_one_plan_serves_every_length_and_padding_changes_nothing() -> None:
    Tensor.manual_seed(0)
    model = GPT(GPTConfig(vocab_size=11, block_size=8, n_layer=2, n_head=2, n_embd=16))
    tokens = np.random.default_rng(0).integers(0, 11, 8).astype(np.int32)
    full = model(Tensor(tokens[None])).numpy()[0]
    misses = []
    for n in range(1, 9):
        padded = np.zeros((1, 8), np.int32)
        padded[0, :n] = tokens[:n]
        before = counters.copy()
        got = model.next_logits(Tensor(padded), Tensor(np.array([n - 1], np.int32))).numpy()[0]
        misses.append((counters - before).plan_misses)
        np.testing.assert_allclose(got, full[n - 1], rtol=1e-4, atol=1e-5)
    assert misses[1:] == [0] * 7


def test_top_k_and_temperature() -> None:
    logits = np.array([0.0, 3.0, 2.0, 1.0], np.float32)
    rng = np.random.default_rng(0)
    assert {sample.choose(logits, 1.0, 2, rng) for _ in range(200)} == {1, 2}
    assert {sample.choose(logits, 0.01, 4, rng) for _ in range(50)} == {1}
    drawn = np.bincount([sample.choose(logits, 1.0, 4, rng) for _ in range(4000)], minlength=4)
    wanted = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(drawn / 4000, wanted, atol=0.03)


def test_a98_unknown_character(trained: Path) -> None:
    with pytest.raises(SystemExit, match="Q"):
        sample.main([f"--out_dir={trained}", "--start=Q"])


def test_a99_vocabulary_mismatch(trained: Path, tmp_path: Path) -> None:
    saved = load_checkpoint(trained)
    saved.info["model"]["vocab_size"] = 300
    save_checkpoint(tmp_path, saved)
    with pytest.raises(SystemExit, match=r"300.*\d\d"):
        sample.main([f"--out_dir={tmp_path}"])


def test_a100_weights_that_are_not_finite(trained: Path, tmp_path: Path) -> None:
    saved = load_checkpoint(trained)
    weights = {k: np.full_like(v, np.nan) for k, v in saved.weights.items()}
    save_checkpoint(tmp_path, Checkpoint(weights, saved.moments, saved.info))
    with pytest.raises(SystemExit, match="not finite"):
        sample.main([f"--out_dir={tmp_path}", "--max_new_tokens=1"])


def test_a105_weights_that_do_not_fit(trained: Path, tmp_path: Path) -> None:
    saved = load_checkpoint(trained)
    saved.info["model"]["n_layer"] = saved.info["options"]["n_layer"] = 2
    save_checkpoint(tmp_path, saved)
    with pytest.raises(SystemExit, match="transformer.h.1.*is missing"):
        sample.main([f"--out_dir={tmp_path}"])


def test_a102_a_terminal_without_the_character(trained: Path) -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "train/sample.py"), f"--out_dir={trained}",
         "--start=\N{SLICE OF PIZZA}", "--max_new_tokens=3"],
        env={"PATH": "/usr/bin:/bin", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "\\U0001f355" in run.stdout
