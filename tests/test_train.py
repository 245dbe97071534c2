"""The training script: what it logs, saves, resumes and refuses."""
from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from train import gpt, mlp, sample
from train.checkpoint import FILE_NAME, Checkpoint, load_checkpoint, save_checkpoint
from train.options import gpt_parser

ROOT = Path(__file__).resolve().parents[1]
TEXT = "".join(f"line {k}: the quick brown fox jumps over {k * k} lazy dogs.\n" for k in range(400))
TINY = ["--n_layer=1", "--n_head=2", "--n_embd=16", "--block_size=8", "--batch_size=2",
        "--eval_interval=4", "--eval_iters=2", "--warmup_iters=2", "--learning_rate=0.01",
        "--log_interval=1"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "fox.txt"
    path.write_text(TEXT)
    return path


def arguments(corpus: Path, out_dir: Path, *more: str) -> list[str]:
    return [f"--dataset={corpus}", f"--data_dir={corpus.parent}", f"--out_dir={out_dir}", *TINY,
            *more]


def resume(corpus: Path, out_dir: Path, *more: str) -> None:
    """Go on; the paths are given again, since none is taken from a checkpoint."""
    gpt.main([f"--dataset={corpus}", f"--data_dir={corpus.parent}", f"--out_dir={out_dir}",
              "--init_from=resume", *more])


def heed_signals() -> None:
    """In a child: a test that runs in the background may have been told to ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def records(out_dir: Path) -> list[dict]:
    return [json.loads(line) for line in (out_dir / "log.jsonl").read_text().splitlines()]


def same_arrays(a: Checkpoint, b: Checkpoint) -> bool:
    pairs = [(x.weights, y.weights) for x, y in [(a, b)]] + [(a.moments, b.moments)]
    return all(x.keys() == y.keys() and all(x[k].tobytes() == y[k].tobytes() for k in x)
               for x, y in pairs)


def test_trains_logs_and_saves(corpus: Path, tmp_path: Path) -> None:
    gpt.main(arguments(corpus, tmp_path, "--max_iters=8"))
    steps = [r for r in records(tmp_path) if "loss" in r]
    wanted = {"iter", "loss", "lr", "ms", "tokens_per_s", "plan_hits", "plan_misses", "kernels"}
    assert [r["iter"] for r in steps] == list(range(8))
    assert all(wanted <= r.keys() for r in steps)
    assert all(r["plan_misses"] == 0 and r["plan_hits"] == 1 for r in steps[2:])
    assert [r["iter"] for r in records(tmp_path) if "val_loss" in r] == [0, 4, 8]
    assert load_checkpoint(tmp_path).info["iteration"] == 8


def test_loss_falls(corpus: Path, tmp_path: Path) -> None:
    gpt.main(arguments(corpus, tmp_path, "--max_iters=120", "--eval_interval=60"))
    losses = [r["loss"] for r in records(tmp_path) if "loss" in r]
    assert np.mean(losses[-10:]) < 0.8 * np.mean(losses[:10])


def test_resume_continues_bit_for_bit(corpus: Path, tmp_path: Path) -> None:
    """Also twice in a row (A104), with dropout, whose random numbers must go on too."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    gpt.main(arguments(corpus, whole, "--max_iters=9", "--dropout=0.2"))
    gpt.main(arguments(corpus, parts, "--max_iters=3", "--dropout=0.2"))
    for end in (6, 9):
        resume(corpus, parts, f"--max_iters={end}")
    assert same_arrays(load_checkpoint(whole), load_checkpoint(parts))
    rates = [{r["iter"]: (r["lr"], r["loss"]) for r in records(d) if "loss" in r}
             for d in (whole, parts)]
    assert rates[0] == rates[1]


def test_resume_restores_what_was_saved(corpus: Path, tmp_path: Path) -> None:
    """A103: moments, step number and random state right after loading."""
    gpt.main(arguments(corpus, tmp_path, "--max_iters=3"))
    saved = load_checkpoint(tmp_path)
    options = gpt_parser().parse_args(arguments(corpus, tmp_path))
    dataset = gpt.load_dataset(options.dataset, options.tokenizer, options.data_dir)
    trainer = gpt.Trainer(options, dataset, saved)
    assert same_arrays(trainer.checkpoint(), saved)
    assert trainer.checkpoint().info["optimizer_steps"] == saved.info["optimizer_steps"]
    assert list(trainer.checkpoint().info["random"]) == saved.info["random"]


def test_gradient_accumulation_is_one_plan(corpus: Path, tmp_path: Path) -> None:
    gpt.main(arguments(corpus, tmp_path, "--max_iters=3", "--gradient_accumulation_steps=3"))
    steps = [r for r in records(tmp_path) if "loss" in r]
    assert steps[-1]["plan_hits"] == 1 and steps[-1]["plan_misses"] == 0


def test_a94_same_seed_same_log(corpus: Path, tmp_path: Path) -> None:
    logs = []
    for k, seed in enumerate((1, 1, 2)):
        gpt.main(arguments(corpus, tmp_path / str(k), "--max_iters=6", "--dropout=0.2",
                           f"--seed={seed}"))
        logs.append([(r["iter"], r["loss"]) for r in records(tmp_path / str(k)) if "loss" in r])
    assert logs[0] == logs[1]
    assert logs[0] != logs[2]


def test_a95_a_loss_that_is_not_finite_stops_the_run(corpus: Path, tmp_path: Path) -> None:
    gpt.main(arguments(corpus, tmp_path, "--max_iters=4"))
    weights = load_checkpoint(tmp_path).weights
    weights["transformer.ln_f.weight"][0] = 3e38
    saved = load_checkpoint(tmp_path)
    save_checkpoint(tmp_path, Checkpoint(weights, saved.moments, saved.info))
    before = (tmp_path / FILE_NAME).read_bytes()
    with pytest.raises(SystemExit, match="the loss of step 4 is"):
        resume(corpus, tmp_path, "--max_iters=9", "--eval_interval=100")
    assert (tmp_path / FILE_NAME).read_bytes() == before


def test_the_log_belongs_to_one_run(corpus: Path, tmp_path: Path,
                                    capsys: pytest.CaptureFixture[str]) -> None:
    """A new run starts it anew and says that it replaces a checkpoint; a resumed one drops what
    came after its checkpoint."""
    for _ in range(2):
        gpt.main(arguments(corpus, tmp_path, "--max_iters=3"))
    assert "will be replaced" in capsys.readouterr().out
    with open(tmp_path / "log.jsonl", "a", encoding="utf-8") as log:
        log.write('{"iter": 3, "loss": 9.0}\n{"iter": 4, "lo')  # a step that was never saved
    resume(corpus, tmp_path, "--max_iters=5")
    assert [r["iter"] for r in records(tmp_path) if "loss" in r] == list(range(5))
    assert all(r["loss"] != 9.0 for r in records(tmp_path) if "loss" in r)


def test_a_machine_without_a_compiler_gets_one_line(corpus: Path, tmp_path: Path) -> None:
    for script in ("gpt.py", "mlp.py"):
        more = arguments(corpus, tmp_path) if script == "gpt.py" else []
        run = subprocess.run([sys.executable, str(ROOT / "train" / script), *more],
                             env={**os.environ, "CC": "no-such-compiler"}, capture_output=True,
                             text=True, check=False, cwd=tmp_path)
        assert run.returncode == 1
        assert run.stderr.strip().splitlines()[-1].startswith(f"train/{script}: no C compiler")
        assert "Traceback" not in run.stderr


def test_a90_learning_rate() -> None:
    options = gpt_parser().parse_args(["--warmup_iters=100"])
    rates = [gpt.learning_rate(k, options) for k in range(2001)]
    assert 0 < rates[0] < rates[1] < rates[99] == max(rates) == 1e-3
    assert rates[2000] == pytest.approx(1e-4)
    assert gpt.learning_rate(0, gpt_parser().parse_args(["--warmup_iters=0"])) == 1e-3
    equal = gpt_parser().parse_args(["--warmup_iters=5", "--lr_decay_iters=5"])
    assert gpt.learning_rate(5, equal) == 1e-4


@pytest.mark.parametrize(("argument", "said"), [
    ("--n_layer=0", "--n_layer"),
    ("--n_layer=two", "--n_layer"),
    ("--dropout=1.0", "--dropout"),
    ("--grad_clip=-1", "--grad_clip"),
    ("--beta2=nan", "--beta2"),
    ("--bias=maybe", "--bias"),
    ("--n_embd=10", "--n_head"),
    ("--min_lr=0.5", "--min_lr"),
    ("--init_from=elsewhere", "--init_from"),
    ("--n_lay=3", "--n_lay"),
    ("--seed", "--seed"),
    ("stray", "stray"),
])
def test_a108_bad_options_are_refused_by_name(argument: str, said: str,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        gpt.main([argument])
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err


def test_resume_refuses_another_model(corpus: Path, tmp_path: Path,
                                      capsys: pytest.CaptureFixture[str]) -> None:
    gpt.main(arguments(corpus, tmp_path, "--max_iters=1"))
    with pytest.raises(SystemExit):
        resume(corpus, tmp_path, "--n_layer=2", "--bias=False")
    error = capsys.readouterr().err
    assert "--n_layer is 2, the checkpoint has 1" in error
    assert "--bias is False, the checkpoint has True" in error
    with pytest.raises(SystemExit):
        gpt.main([f"--out_dir={tmp_path / 'nowhere'}", "--init_from=resume"])
    assert "there is no checkpoint" in capsys.readouterr().err


def test_short_text_is_refused_with_both_numbers(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("a short text of forty characters, no more")
    with pytest.raises(SystemExit, match="64"):
        gpt.main([f"--dataset={tmp_path / 'short.txt'}", f"--data_dir={tmp_path}",
                  f"--out_dir={tmp_path / 'out'}"])
    assert not (tmp_path / "out" / FILE_NAME).exists()


def test_short_validation_split_is_skipped(tmp_path: Path,
                                           capsys: pytest.CaptureFixture[str]) -> None:
    """A82."""
    (tmp_path / "small.txt").write_text((TEXT * 2)[:100])
    gpt.main(arguments(tmp_path / "small.txt", tmp_path / "out", "--block_size=32",
                       "--max_iters=2"))
    assert "too short" in capsys.readouterr().out
    assert records(tmp_path / "out")[0]["val_loss"] is None


def test_runs_from_any_directory_and_ctrl_c_saves(corpus: Path, tmp_path: Path) -> None:
    out_dir = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "train/gpt.py"),
         *arguments(corpus, out_dir, "--max_iters=100000", "--eval_interval=1000000")],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True, preexec_fn=heed_signals)
    for line in process.stdout:
        if line.startswith("step 5:"):
            break
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole group
    rest = process.communicate(timeout=60)[0]
    assert process.returncode == 130, rest
    assert "stopped by SIGINT" in rest and "Traceback" not in rest
    steps = [r for r in records(out_dir) if "loss" in r]
    assert load_checkpoint(out_dir).info["iteration"] == len(steps) > 5


def test_kill_during_a_save_keeps_a_whole_checkpoint(corpus: Path, tmp_path: Path) -> None:
    """kill -9 at random moments of a program that does nothing but save."""
    gpt.main(arguments(corpus, tmp_path, "--n_embd=64", "--max_iters=1"))
    program = ("import sys; sys.path.insert(0, sys.argv[1])\n"
               "from pathlib import Path\n"
               "from train.checkpoint import load_checkpoint, save_checkpoint\n"
               "folder = Path(sys.argv[2])\n"
               "saved = load_checkpoint(folder)\n"
               "while True:\n"
               "    k = saved.info['iteration'] = saved.info['iteration'] + 1\n"
               "    for array in (*saved.weights.values(), *saved.moments.values()):\n"
               "        array[:] = k\n"
               "    save_checkpoint(folder, saved)\n"
               "    print(k, flush=True)\n")
    rng, last = random.Random(0), 0
    for _ in range(12):
        process = subprocess.Popen([sys.executable, "-c", program, str(ROOT), str(tmp_path)],
                                   stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        time.sleep(rng.uniform(0, 0.05))
        os.kill(process.pid, signal.SIGKILL)
        said = [int(word) for word in process.communicate()[0].split() if word.isdigit()]
        found = load_checkpoint(tmp_path)
        last = found.info["iteration"]
        assert last >= max(said, default=1)
        assert all((array == last).all()
                   for array in (*found.weights.values(), *found.moments.values()))
    assert last


@pytest.mark.parametrize("damage", [b"", b"\xff" * 64, b"\x10\x00\x00\x00\x00\x00\x00\x00{}"])
def test_damaged_checkpoints_are_refused(damage: bytes, tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(damage)
    with pytest.raises(ValueError, match="is not a checkpoint"):
        load_checkpoint(tmp_path)
    with pytest.raises(SystemExit, match="is not a checkpoint"):
        sample.main([f"--out_dir={tmp_path}"])


def start(corpus: Path, out_dir: Path, *more: str, **streams: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(ROOT / "train/gpt.py"), *arguments(corpus, out_dir, *more)],
        text=True, preexec_fn=heed_signals, **{"stderr": subprocess.PIPE, **streams})


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_a_run_that_saves(corpus: Path, tmp_path: Path, number: int,
                                        code: int) -> None:
    run = start(corpus, tmp_path, "--max_iters=1000000", "--eval_interval=1000000",
                stdout=subprocess.PIPE)
    for line in run.stdout:
        if line.startswith("step 5:"):
            break
    run.send_signal(number)
    _, said = run.communicate(timeout=60)
    assert run.returncode == code, said
    steps = [r for r in records(tmp_path) if "loss" in r]
    assert load_checkpoint(tmp_path).info["iteration"] == len(steps) > 5
    assert {p.name for p in tmp_path.iterdir()} == {FILE_NAME, "log.jsonl"}


def test_a_reader_that_goes_and_a_full_disk_end_a_run_with_a_line(corpus: Path,
                                                                  tmp_path: Path) -> None:
    run = start(corpus, tmp_path / "a", "--max_iters=1000000", stdout=subprocess.PIPE)
    run.stdout.readline()
    run.stdout.close()
    assert "its reader has gone" in run.stderr.read()
    run.stderr.close()
    assert run.wait(60) == 141
    with open("/dev/full", "w") as full:
        run = start(corpus, tmp_path / "b", stdout=full)
        said = run.communicate(timeout=60)[1]
    assert run.returncode == 1 and "No space left" in said and said.count("\n") == 1


def test_one_folder_takes_one_run(corpus: Path, tmp_path: Path) -> None:
    """Of several that start at once one trains; the others name it."""
    runs = [start(corpus, tmp_path, "--max_iters=1000000", stdout=subprocess.PIPE)
            for _ in range(4)]
    deadline = time.monotonic() + 60
    while sum(run.poll() is None for run in runs) > 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    (winner,) = [run for run in runs if run.poll() is None]
    winner.terminate()
    for run in runs:
        _, said = run.communicate(timeout=60)
        if run is not winner:
            assert run.returncode == 1 and f"process {winner.pid} on" in said
    assert winner.returncode in (143, -signal.SIGTERM)


def test_a_log_that_is_damaged_does_not_stop_a_resume(corpus: Path, tmp_path: Path,
                                                      capsys: pytest.CaptureFixture[str]) -> None:
    gpt.main(arguments(corpus, tmp_path, "--max_iters=4"))
    log = tmp_path / "log.jsonl"
    damage = b'\n\xff\xfe\n[1]\n{"x": 1}\n{"iter": "a"}\n' + b"[" * 9999 + b'\n{"iter": 4, "lo'
    log.write_bytes(log.read_bytes() + damage)
    resume(corpus, tmp_path, "--max_iters=6")
    assert "5 lines of" in capsys.readouterr().out
    assert [r["iter"] for r in records(tmp_path) if "loss" in r] == list(range(6))
    assert (tmp_path / "log.damaged.jsonl").read_bytes().endswith(damage)


def test_max_iters_that_is_reached_changes_nothing(corpus: Path, tmp_path: Path,
                                                   capsys: pytest.CaptureFixture[str]) -> None:
    gpt.main(arguments(corpus, tmp_path, "--max_iters=4"))
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir()}
    resume(corpus, tmp_path, "--max_iters=4")
    assert "4 steps are done" in capsys.readouterr().err
    assert before == {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir()}


def test_what_is_not_finite_is_never_saved(corpus: Path, tmp_path: Path,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    """An evaluation, weights, and moments; the log stays JSON."""
    def refuse_constant(name: str) -> None:
        raise ValueError(name)

    gpt.main(arguments(corpus, tmp_path, "--max_iters=4"))
    before = (tmp_path / FILE_NAME).read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(gpt.Trainer, "evaluate", lambda _: {"train": 1.0, "val": np.inf})
        with pytest.raises(SystemExit, match="the val loss after 4 steps is inf"):
            resume(corpus, tmp_path, "--max_iters=9")
    for kind in ("weights", "moments"):
        taken = gpt.Trainer.checkpoint

        def spoilt(self: gpt.Trainer, kind: str = kind, taken: object = taken) -> Checkpoint:
            checkpoint = taken(self)
            next(iter(getattr(checkpoint, kind).values())).flat[0] = np.nan
            return checkpoint

        with monkeypatch.context() as patch:
            patch.setattr(gpt.Trainer, "checkpoint", spoilt)
            with pytest.raises(SystemExit, match="is not finite"):
                resume(corpus, tmp_path, "--max_iters=9")
    assert (tmp_path / FILE_NAME).read_bytes() == before
    for line in (tmp_path / "log.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=refuse_constant)
    with pytest.raises(SystemExit) as stopped:
        mlp.main([f"--out_dir={tmp_path / 'mlp'}", "--learning_rate=1e30", "--max_iters=9"])
    assert "the loss of step 1 is" in str(stopped.value)
    assert records(tmp_path / "mlp")[-1]["loss"] is None


def test_runs_in_a_thread_and_with_other_streams(corpus: Path, tmp_path: Path) -> None:
    """As a notebook or a daemon has them: no signals, streams that are none, or closed."""
    class Sink:
        def write(self, text: str) -> None: ...

    closed = io.StringIO()
    closed.close()
    for number, stream in enumerate((Sink(), closed, None)):
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            thread = threading.Thread(target=gpt.main, args=[
                arguments(corpus, tmp_path / str(number), "--max_iters=2")])
            thread.start()
            thread.join()
        assert load_checkpoint(tmp_path / str(number)).info["iteration"] == 2


def test_a_command_for_nanogpt_is_understood(corpus: Path, tmp_path: Path,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    gpt.main(arguments(corpus, tmp_path / "out", "--device=cpu", "--compile=False",
                       "--eval_only=True"))
    told = capsys.readouterr()
    assert told.err.count("ignored: --device=cpu --compile=False") == 1
    assert "evaluation: train" in told.out
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("argument", ["--batch_size=99999999999", "--n_layer=99999999999",
                                      "--n_embd=99999999996"])
def test_what_cannot_fit_memory_is_refused(corpus: Path, tmp_path: Path, argument: str) -> None:
    with pytest.raises(SystemExit, match=f"GB of memory.*{argument.split('=')[0]}"):
        gpt.main(arguments(corpus, tmp_path / "out", argument))
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_removed_is_made_again_for_the_checkpoint(
        corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = gpt.Trainer.step

    def step(self: gpt.Trainer) -> object:
        if self.iteration == 5:
            shutil.rmtree(tmp_path / "out")
        return taken(self)

    monkeypatch.setattr(gpt.Trainer, "step", step)
    gpt.main(arguments(corpus, tmp_path / "out", "--max_iters=6"))
    assert load_checkpoint(tmp_path / "out").info["iteration"] == 6


def test_a_folder_that_cannot_be_written_is_named(corpus: Path, tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkpoint before it stays, and nothing is left of the new one."""
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    gpt.main(arguments(corpus, tmp_path, "--max_iters=4"))
    before = (tmp_path / FILE_NAME).read_bytes()
    log = (tmp_path / "log.jsonl").read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SystemExit, match=r"log.jsonl: No space left on device; the steps since 4"):
        resume(corpus, tmp_path, "--max_iters=9", "--eval_interval=3")
    assert (tmp_path / FILE_NAME).read_bytes() == before
    assert (tmp_path / "log.jsonl").read_bytes() == log
    assert {p.name for p in tmp_path.iterdir()} == {FILE_NAME, "log.jsonl"}
