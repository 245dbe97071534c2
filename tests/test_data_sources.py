"""Texts as users have them: pipes, marks, encodings, file names and locales; and run.sh."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import data.memory
import data.textfile
from data import TextDataset, load_dataset, prepare
from train import gpt, sample

ROOT = Path(__file__).resolve().parents[1]
PREPARE = f"{sys.executable} {ROOT / 'data' / 'prepare.py'}"
TEXT = "one line, é\n" * 30
LOCALES = {"C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
           "ascii": {"PYTHONIOENCODING": "ascii"}}


def text_of(dataset: TextDataset) -> str:
    return dataset.tokenizer.decode([*dataset.train, *dataset.val])


def shell(folder: Path, line: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["bash", "-c", line], cwd=folder, env={**os.environ, **env},
                          capture_output=True, check=False, timeout=60)


# ---- encodings ----


def test_a_byte_order_mark_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text(TEXT, encoding="utf-8-sig")
    assert text_of(load_dataset(str(path), data_dir=tmp_path)) == TEXT
    path.write_bytes(b"\xef\xbb\xbf")
    with pytest.raises(ValueError, match="empty"):
        load_dataset(str(path), data_dir=tmp_path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-le", "utf-16-be", "utf-32-le"])
@pytest.mark.parametrize("text", ["plain text\n" * 9, TEXT])
def test_other_unicode_encodings_are_named(tmp_path: Path, encoding: str, text: str) -> None:
    path = tmp_path / "t.txt"
    path.write_text(text, encoding=encoding)
    with pytest.raises(ValueError, match="not UTF-8 text") as caught:
        load_dataset(str(path), data_dir=tmp_path)
    if encoding in ("utf-16", "utf-32"):  # these write the mark
        assert encoding.upper() in str(caught.value) and "iconv -f" in str(caught.value)


def test_one_character_is_too_short_to_train_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.txt"
    path.write_text("x")
    assert prepare.main([f"--dataset={path}", f"--data_dir={tmp_path}"]) == 1
    said = capsys.readouterr().err
    assert "the train split has 0 tokens" in said and "needs at least 2" in said


# ---- pipes and devices ----


def test_a_fifo_is_read_once_and_known_by_its_text(tmp_path: Path) -> None:
    folders = set()
    for name in ("one", "two"):
        os.mkfifo(tmp_path / name)
        writer = threading.Thread(target=(tmp_path / name).write_bytes, args=(TEXT.encode(),))
        writer.start()
        dataset = load_dataset(str(tmp_path / name), data_dir=tmp_path)
        writer.join()
        assert text_of(dataset) == TEXT and dataset.name == "stream"
        folders.add(dataset.folder)
    assert len(folders) == 1


@pytest.mark.parametrize("line", [
    "cat t.txt | {} --dataset=/dev/stdin", "{} --dataset=<(cat t.txt)",
    "{} --dataset=/dev/stdin < t.txt", "{} --dataset=/dev/fd/3 3<t.txt",
    '{} --dataset=/dev/stdin <<< "$(cat t.txt)"',
])
def test_shells_ways_to_pass_a_text(tmp_path: Path, line: str) -> None:
    (tmp_path / "t.txt").write_text(TEXT, encoding="utf-8")
    done = shell(tmp_path, line.format(PREPARE) + " --data_dir=d")
    assert done.returncode == 0, done.stderr
    assert b"char, 9 tokens\ntrain      324 tokens\nval        36 tokens" in done.stdout


@pytest.mark.parametrize("path, message", [("/dev/null", "empty"), ("/dev/zero", "is a device"),
                                           ("/dev/urandom", "is a device"), ("/", "is a folder")])
def test_what_is_no_text_is_refused_at_once(path: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        load_dataset(path, data_dir=tmp_path)


@pytest.mark.parametrize("text, needed", [("x" * 1001, None), ("x" * 1000, 3000),
                                          ("x" * 990 + "é", 2974), ("x" * 990 + "𝄞", 8922)])
def test_a_text_beyond_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, needed: int | None
) -> None:
    """Python stores every character as wide as the widest: one can make the text four times as
    large."""
    monkeypatch.setattr(data.textfile, "available_memory", lambda: 4000)
    (tmp_path / "t.txt").write_text(text, encoding="utf-8")
    os.mkfifo(tmp_path / "fifo")
    writer = threading.Thread(target=(tmp_path / "fifo").write_bytes, args=(text.encode(),))
    writer.start()
    for name in ("t.txt", "fifo"):
        if needed is not None and needed <= 4000:
            assert text_of(load_dataset(str(tmp_path / name), data_dir=tmp_path)) == text
            continue
        message = "1,001 bytes or more, .* may have 1,000" if needed is None else f"take {needed:,}"
        with pytest.raises(ValueError, match=message):
            load_dataset(str(tmp_path / name), data_dir=tmp_path)
    writer.join()


def test_the_free_memory_is_what_a_container_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = data.memory.available_memory()
    assert 0 < whole <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("_CGROUPS", "_MEMINFO", "_OWN_CGROUPS"):
        monkeypatch.setattr(data.memory, name, tmp_path / name)
    assert data.memory.available_memory() >= whole  # nothing says anything
    (tmp_path / "_OWN_CGROUPS").write_text("5:cpu,memory:/a/b\n3:cpu:/\n0::/c/d\n")
    limits = {"memory/a/memory.limit_in_bytes": 7000, "c/d/memory.max": "max",
              "c/memory.max": 6000, "memory.max": 5000, "memory/memory.limit_in_bytes": 2**63}
    for name, limit in limits.items():
        (tmp_path / "_CGROUPS" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "_CGROUPS" / name).write_text(f"{limit}\n")
    assert data.memory.available_memory() == 5000
    (tmp_path / "_MEMINFO").write_text("MemTotal: 9 kB\nMemAvailable:    4 kB\n")
    assert data.memory.available_memory() == 4096


def test_ctrl_c_while_a_pipe_is_read_ends_prepare_with_a_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    process = subprocess.Popen([*PREPARE.split(), f"--dataset={tmp_path / 'fifo'}"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with open(tmp_path / "fifo", "wb"):  # waits for its reader
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 130 and said == b"prepare.py: interrupted\n"


def test_ctrl_c_while_modules_are_loaded_ends_prepare_with_a_line(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("import os; os.kill(os.getpid(), 2); import nothing_more")
    done = shell(tmp_path, PREPARE, PYTHONPATH=str(tmp_path))
    assert done.returncode == 130 and done.stderr == b"prepare.py: interrupted\n"


# ---- names and locales ----


def test_empty_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the data set is an empty name"):
        load_dataset("", data_dir=tmp_path)
    with pytest.raises(ValueError, match="the folder of prepared data is an empty name"):
        load_dataset("python", data_dir="")


def test_the_home_folder_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "t.txt").write_text(TEXT, encoding="utf-8")
    dataset = load_dataset("~/t.txt", data_dir="~/there")
    assert text_of(dataset) == TEXT and dataset.folder.parent == tmp_path / "there"


@pytest.mark.parametrize("name", ["één €.txt".encode(), b"latin \xe9.txt"])
@pytest.mark.parametrize("locale", LOCALES)
def test_prepare_understands_every_name_in_every_locale(
    tmp_path: Path, name: bytes, locale: str
) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text(TEXT, encoding="utf-8")
    folder = os.fsdecode(name) + "-prepared"
    done = subprocess.run(
        [*PREPARE.split(), b"--dataset=" + name, b"--data_dir=" + os.fsencode(folder)],
        cwd=tmp_path, env={**os.environ, **LOCALES[locale]}, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b"" and done.stdout.isascii()
    assert len(list((tmp_path / folder).iterdir())) == 1
    missing = subprocess.run([*PREPARE.split(), b"--dataset=no " + name], cwd=tmp_path,
                             env={**os.environ, **LOCALES[locale]}, capture_output=True,
                             check=False)
    assert missing.returncode == 1 and missing.stderr.count(b"\n") == 1
    assert b"unknown data set" in missing.stderr


def test_a_text_of_one_line_is_trained_on_and_sampled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is no line break to begin with, and a prompt may be from another locale."""
    (tmp_path / "t.txt").write_text("abéc" * 60, encoding="utf-8")
    gpt.main([f"--dataset={tmp_path / 't.txt'}", f"--data_dir={tmp_path}", f"--out_dir={tmp_path}",
              "--n_layer=1", "--n_head=1", "--n_embd=8", "--block_size=4", "--batch_size=2",
              "--max_iters=2", "--eval_iters=1"])
    capsys.readouterr()
    sample.main([f"--out_dir={tmp_path}", "--max_new_tokens=5"])
    assert re.fullmatch("a[abcé]{5}\n", capsys.readouterr().out)
    command = [sys.executable, str(ROOT / "train" / "sample.py"), f"--out_dir={tmp_path}"]
    for env in LOCALES.values():
        done = subprocess.run([*command, "--start=é".encode(), "--max_new_tokens=0"],
                              env={**os.environ, **env}, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout == b"\\xe9\n"


# ---- run.sh ----


def test_run_sh_finds_its_folder_through_links(tmp_path: Path) -> None:
    place = tmp_path / "a place"
    place.mkdir()
    (tmp_path / "absolute").symlink_to(ROOT / "run.sh")
    (place / "relative").symlink_to("../absolute")
    (tmp_path / "folder").symlink_to(ROOT)
    for line in ("./absolute", "'a place/relative'", f"bash '{place}/relative'", "folder/run.sh"):
        done = shell(tmp_path, f"{line} --help", CDPATH="/")
        assert done.returncode == 0 and b"usage: ./run.sh" in done.stdout, done.stderr


@pytest.mark.parametrize("compiler, message", [
    ("sh -m64", b""), ("'sh' -O1", b""), ("no-such-cc -m64", b"CC=no-such-cc -m64 is not found"),
    ("'unfinished", b"is not found"), (" ", b"is not found"),
])
def test_run_sh_takes_cc_apart_as_uopc_does(
    tmp_path: Path, compiler: str, message: bytes
) -> None:
    """It only looks whether the command is there, so any will do. In a copy whose .venv is this
    Python's, nothing is installed."""
    shutil.copy(ROOT / "run.sh", tmp_path)
    shutil.copy(ROOT / "requirements.txt", tmp_path)
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "sample.py").write_text("print('reached')")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    version = ".".join(map(str, sys.version_info[:3]))
    requirements = (ROOT / "requirements.txt").read_text().rstrip("\n")
    stamp = f"python {version}\n{requirements}\n"
    (tmp_path / ".venv" / "requirements.stamp").write_text(stamp)
    done = shell(tmp_path, "./run.sh sample", CC=compiler, PYTHON=sys.executable)
    if message:
        assert done.returncode == 1 and message in done.stderr
    else:
        assert done.stdout == b"reached\n", done.stderr
