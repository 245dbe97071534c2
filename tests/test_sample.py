"""The sampler: what it prints, and what it refuses."""
from __future__ import annotations

import contextlib
import io
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data import CharTokenizer
from models.gpt import GPT, GPTConfig
from train import gpt, sample
from train.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from train.terminal import printer, quoted, visible
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


# *** streams, and text that is hostile ***


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


HOSTILE = "a\x1b[2J\x9b\x7f\x00\r\u202e\u2066\ud800\té\N{SLICE OF PIZZA}\n"


def test_a_terminal_is_shown_control_characters_a_file_gets_them() -> None:
    shown, kept = Terminal(), io.StringIO()
    for stream in (shown, kept):
        printer(stream)(HOSTILE)
    assert shown.getvalue() == r"a\x1b[2J\x9b\x7f\x00\r\u202e\u2066\ud800" "\té\N{SLICE OF PIZZA}\n"
    assert kept.getvalue() == HOSTILE
    assert quoted("x\x1b" * 10_000).startswith(r"'x\x1bx") and len(quoted("\x1b" * 10_000)) < 400


def test_every_control_character_is_made_visible() -> None:
    for code in (*range(0x20), *range(0x7f, 0xa0), *range(0x202a, 0x202f), *range(0x2066, 0x206a)):
        plain = chr(code) in "\t\n"
        assert (visible(chr(code)) == chr(code)) == plain, hex(code)
    assert visible("".join(map(chr, range(0x20, 0x7f)))) == "".join(map(chr, range(0x20, 0x7f)))


class OnlyWrites:
    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text


@pytest.mark.parametrize("in_thread", [False, True])
def test_whatever_stands_in_for_stdout(trained: Path, in_thread: bool) -> None:
    texts = []
    for stream in (io.StringIO(), OnlyWrites(), Terminal()):
        def run(stream: Any = stream) -> None:
            with contextlib.redirect_stdout(stream):
                sample.main([f"--out_dir={trained}", "--max_new_tokens=5"])
        if in_thread:
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
        else:
            run()
        texts.append(stream.text if isinstance(stream, OnlyWrites) else stream.getvalue())
    assert texts[0] == texts[1] == texts[2] and len(texts[0]) == 7


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_nowhere_to_print_to(trained: Path, stream: io.StringIO | None) -> None:
    if stream is not None:
        stream.close()
    with contextlib.redirect_stdout(stream), pytest.raises(SystemExit, match="is closed"):
        sample.main([f"--out_dir={trained}"])


@pytest.mark.parametrize(("shell", "code", "said"), [
    ("{command} >/dev/full", 1, "cannot write to standard output: No space left on device"),
    ("{command} >&-", 1, "standard output is closed"),
    ("set -o pipefail; {command} --max_new_tokens=9000 | head -c 1 >/dev/null", 141, None),
])
def test_streams_of_a_shell(trained: Path, shell: str, code: int, said: str | None) -> None:
    command = f"{sys.executable} {ROOT}/train/sample.py --out_dir={trained}"
    run = subprocess.run(["bash", "-c", shell.format(command=command)], capture_output=True,
                         text=True, check=False)
    assert run.returncode == code
    assert run.stderr == (f"train/sample.py: {said}" + ": there is nowhere to print to"
                          * ("closed" in said) + "\n" if said else "")


def test_ctrl_c_while_starting_is_one_line(trained: Path) -> None:
    for delay in (0, 0.03, 0.1):
        process = subprocess.Popen([sys.executable, str(ROOT / "train/sample.py"),
                                    f"--out_dir={trained}", "--max_new_tokens=1000000"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while "numpy" not in Path(f"/proc/{process.pid}/maps").read_text():
            time.sleep(0.002)  # until it is loading its modules
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=20)[1]
        assert (process.returncode, said) == (130, "train/sample.py: interrupted\n")


# *** --start, and nanoGPT's options ***


def test_start_from_a_file(trained: Path, tmp_path: Path,
                           capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "prompt.txt"
    path.write_bytes(b"\xef\xbb\xbf1 b")
    given = ["--temperature=0", "--max_new_tokens=5"]
    assert text_of(trained, capsys, f"--start=FILE:{path}", *given) \
        == text_of(trained, capsys, "--start=1 b", *given)
    for content, said in ((b"", "must not be empty"), (b"ab\xff", "0xff at offset 2"),
                          (None, "No such file")):
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        with pytest.raises(SystemExit, match=said):
            sample.main([f"--out_dir={trained}", f"--start=FILE:{path}"])


def test_start_in_any_locale_and_without_a_newline() -> None:
    tokenizer = CharTokenizer.of_text("abé\N{SLICE OF PIZZA}")
    for text in ("é", "a\N{SLICE OF PIZZA}"):
        undecoded = text.encode().decode("ascii", "surrogateescape")
        assert sample.start_text(text, tokenizer) == text
        assert sample.start_text(undecoded, tokenizer) == text
    assert sample.start_text(None, tokenizer) == "a"
    assert sample.start_text(None, CharTokenizer.of_text("\nab")) == "\n"


def test_nanogpts_options_are_understood(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--max_new_tokens=2", "--init_from=resume", "--device=cpu"]
    text_of(trained, capsys, *given)
    assert capsys.readouterr().err == ""
    sample.main([f"--out_dir={trained}", *given[:2], "--device=cuda", "--compile=False"])
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "--device=cuda, --compile=False without effect" in said
    with pytest.raises(SystemExit):
        sample.main(["--init_from=gpt2-xl"])


@pytest.mark.parametrize("temperature", [5e-324, 1e-310, 1e-30])
def test_a_temperature_near_0_is_0(temperature: float) -> None:
    logits = np.array([1e30, 3.0, -1e38, 1.0000001e30], np.float32)
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert {sample.choose(logits, temperature, k, rng) for k in (1, 2, 4)} == {3}
        assert sample.choose(logits, 1e308, 4, rng) in range(4)
