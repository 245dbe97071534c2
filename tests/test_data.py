"""Data: text sources, prepared folders, digits and the command. Nothing needs a network."""

from __future__ import annotations

import io
import json
import shutil
import socket
import string
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import data.dataset
import data.shakespeare
import data.source
import data.stdlib
from data import TextDataset, load_dataset, load_digits, split_digits

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every attempt to reach the network in this process fails at once."""

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise OSError("no network in tests")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def dataset_of(folder: Path, text: str) -> TextDataset:
    """The data set of a file that holds `text`, prepared under `folder`."""
    path = folder / "corpus.txt"
    path.write_bytes(text.encode("utf-8"))
    return load_dataset(str(path), data_dir=folder / "prepared")


def random_text(length: int) -> str:
    letters = list(string.ascii_letters)
    return "".join(np.random.default_rng(0).choice(letters, length))


# ---- sources ----


def test_python_dataset_needs_no_network_and_has_a_small_vocabulary(tmp_path: Path) -> None:
    dataset = load_dataset("python", data_dir=tmp_path)
    assert dataset.name == "python"
    assert dataset.vocab_size <= 100
    assert 1_000_000 < len(dataset.train) + len(dataset.val) <= data.stdlib.CAP
    assert "import" in dataset.tokenizer.decode(dataset.train[:5000])
    dataset.check(256)


def test_python_source_is_sorted_capped_and_skips_non_ascii(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data.stdlib, "CAP", 9)
    files = {"b.py": "b=1\n", "a.py": "a=1\n", "c.py": "c=1\n", "ab.py": "s='é'\n", "a.txt": "?"}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "_sysconfigdata_x.py").write_text("y=1\n")
    source = data.stdlib.stdlib_source(tmp_path)
    assert source.read(tmp_path) == "a=1\nb=1\n"
    with pytest.raises(ValueError, match="no sources in"):
        data.stdlib.stdlib_source(tmp_path / "nowhere")


def test_unknown_name_says_path_names_and_command(tmp_path: Path) -> None:
    with pytest.raises(ValueError) as caught:
        load_dataset("pyhton", data_dir=tmp_path)
    message = str(caught.value)
    assert str(Path("pyhton").absolute()) in message
    assert "python, shakespeare" in message and "data/prepare.py" in message
    with pytest.raises(ValueError, match="is a folder"):
        load_dataset(str(tmp_path), data_dir=tmp_path)


def test_unusable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="empty"):
        dataset_of(tmp_path, "")
    latin1 = tmp_path / "latin1.txt"
    latin1.write_bytes(b"caf\xe9!")
    with pytest.raises(ValueError, match="not UTF-8 text .byte 0xe9 at offset 3"):
        load_dataset(str(latin1), data_dir=tmp_path)


def test_shakespeare_without_network_names_the_alternatives(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError) as caught:
        load_dataset("shakespeare", data_dir=tmp_path)
    message = str(caught.value)
    assert "--dataset=PATH" in message and "--dataset=python" in message
    assert "\n" not in message


def test_shakespeare_is_downloaded_once_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = b"To be, or not to be\n" * 20
    answers = [io.BytesIO(raw[:-1]), io.BytesIO(raw)]
    monkeypatch.setattr(data.shakespeare, "SIZE", len(raw))
    monkeypatch.setattr(data.shakespeare, "SHA256", data.source.source_of_bytes("", raw).sha256)
    monkeypatch.setattr(urllib.request, "urlopen", lambda *_args, **_kwargs: answers.pop(0))
    with pytest.raises(ConnectionError, match="expected 400 bytes"):
        load_dataset("shakespeare", data_dir=tmp_path)
    first = load_dataset("shakespeare", data_dir=tmp_path)
    shutil.rmtree(first.folder)
    again = load_dataset("shakespeare", data_dir=tmp_path)  # from the kept text
    assert not answers
    assert again.tokenizer.decode(again.train) == raw.decode()[:360]
    (tmp_path / "shakespeare.txt").unlink()
    load_dataset("shakespeare", data_dir=tmp_path)  # from the prepared folder alone


# ---- prepared folders ----


@pytest.mark.parametrize("vocab_size, dtype", [(300, "uint16"), (70_000, "uint32")])
def test_large_vocabularies_survive_the_files(tmp_path: Path, vocab_size: int, dtype: str) -> None:
    codes = [code for code in range(32, 80_000) if not 0xD800 <= code < 0xE000][:vocab_size]
    text = "".join(map(chr, codes))
    dataset_of(tmp_path, text)
    dataset = dataset_of(tmp_path, text)
    assert dataset.vocab_size == vocab_size and dataset.train.dtype == dtype
    ids = np.concatenate([dataset.train, dataset.val])
    assert np.array_equal(ids, np.arange(vocab_size))
    assert dataset.tokenizer.decode(ids) == text


def test_the_split_is_by_characters(tmp_path: Path) -> None:
    text = random_text(1005)
    dataset = dataset_of(tmp_path, text)
    assert dataset.tokenizer.decode(dataset.train) == text[:904]
    assert dataset.tokenizer.decode(dataset.val) == text[904:]


def test_prepared_data_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = dataset_of(tmp_path, "find me again")
    assert sorted(path.name for path in first.folder.iterdir()) == [
        "meta.json", "train.bin", "val.bin",
    ]
    assert [path.name for path in first.folder.parent.iterdir()] == [first.folder.name]
    monkeypatch.setattr(data.dataset, "write_prepared", None)  # calling it would fail
    again = dataset_of(tmp_path, "find me again")
    assert np.array_equal(again.train, first.train) and np.array_equal(again.val, first.val)


def test_a_changed_source_is_prepared_again(tmp_path: Path) -> None:
    before = dataset_of(tmp_path, "abc" * 20)
    after = dataset_of(tmp_path, "xyz" * 20)  # of the same size
    assert after.folder == before.folder
    assert after.tokenizer.decode(after.train[:3]) == "xyz"
    assert before.tokenizer.decode(before.train[:3]) == "abc"  # an open one is left alone


def test_files_of_one_name_do_not_mix(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "corpus.txt").write_text(name * 30)
    one = load_dataset(str(tmp_path / "one" / "corpus.txt"), data_dir=tmp_path)
    two = load_dataset(str(tmp_path / "two" / "corpus.txt"), data_dir=tmp_path)
    assert one.folder != two.folder
    assert two.tokenizer.decode(two.train[:3]) == "two"


@pytest.mark.parametrize("name", ["train.bin", "val.bin", "meta.json"])
@pytest.mark.parametrize("harm", ["missing", "cut", "longer", "changed", "garbage"])
def test_damaged_folders_are_repaired(tmp_path: Path, name: str, harm: str) -> None:
    text = random_text(400)
    path = dataset_of(tmp_path, text).folder / name
    raw = path.read_bytes()
    if harm == "missing":
        path.unlink()
    else:
        path.write_bytes({
            "cut": raw[: len(raw) // 2],
            "longer": raw + b"\0\0",
            "changed": raw[:5] + bytes([raw[5] ^ 1]) + raw[6:],
            "garbage": b"[1]",
        }[harm])
    repaired = dataset_of(tmp_path, text)
    assert repaired.tokenizer.decode(np.concatenate([repaired.train, repaired.val])) == text
    assert path.read_bytes() == raw


def test_several_processes_prepare_at_once(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text(random_text(300_000))
    code = (
        "import sys; from data import load_dataset; d = load_dataset(*sys.argv[1:]);"
        "print(d.tokenizer.decode(d.train[:50]), len(d.train), len(d.val))"
    )
    command = [sys.executable, "-c", code, str(path), "char", str(tmp_path / "prepared")]
    processes = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    outputs = [process.communicate()[0] for process in processes]
    assert set(outputs) == {f"{path.read_text()[:50]} 270000 30000\n"}
    assert len(list((tmp_path / "prepared").iterdir())) == 1  # no scratch folder is left


def test_an_unwritable_default_falls_back_to_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("a folder cannot be made below a file, not even by root")
    monkeypatch.setattr(data.dataset, "DEFAULT_ROOT", blocker / "prepared")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    dataset = load_dataset(str(blocker))
    assert dataset.folder.parent == tmp_path / "cache" / "uopc" / "data"
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and str(blocker) in said and str(dataset.folder.parent) in said
    with pytest.raises(OSError, match="--data_dir"):
        load_dataset(str(blocker), data_dir=blocker / "mine")


# ---- digits and the command ----


def test_digits() -> None:
    images, labels = load_digits()
    assert images.shape == (1797, 64) and images.dtype == np.float32
    assert labels.shape == (1797,) and labels.dtype == np.int32
    assert images.min() == 0 and images.max() == 1 and images[0, 2] == np.float32(5 / 16)
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_digits_split_holds_out_a_fifth() -> None:
    (x, y), (held_x, held_y) = split_digits(seed=3)
    assert (len(x), len(held_x)) == (len(y), len(held_y)) == (1438, 359)
    rows = np.concatenate([x, held_x])
    images, labels = load_digits()
    assert sorted(map(bytes, rows)) == sorted(map(bytes, images))  # each image once
    assert sorted(np.concatenate([y, held_y])) == sorted(labels)
    assert np.array_equal(split_digits(seed=3)[0][0], x)
    assert not np.array_equal(split_digits(seed=4)[0][0], x)


def prepare(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "data" / "prepare.py"), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_prepare_command_works_from_any_directory(tmp_path: Path) -> None:
    (tmp_path / "my notes.txt").write_text("naïve " * 100, encoding="utf-8")
    done = prepare(tmp_path, "--dataset=my notes.txt", "--data_dir=there")
    assert done.returncode == 0, done.stderr
    assert "my_notes" in done.stdout and "540 tokens" in done.stdout and "6 tokens" in done.stdout
    (folder,) = (tmp_path / "there").iterdir()
    assert json.loads((folder / "meta.json").read_text())["tokens"] == {"train": 540, "val": 60}


def test_prepare_command_reports_errors_in_one_line(tmp_path: Path) -> None:
    failed = prepare(tmp_path, "--dataset=absent.txt")
    assert failed.returncode == 1 and "absent.txt" in failed.stderr
    assert failed.stderr.count("\n") == 1 and failed.stdout == ""
