#!/usr/bin/env bash
# One entry point: makes the Python environment when it is needed, then runs the command.
set -euo pipefail

# Every path below is relative to the repository, which is where this file is, not a link to it.
script=${BASH_SOURCE[0]}
while [ -L "$script" ]; do
  target=$(readlink "$script")
  case "$target" in
    /*) script=$target ;;
    *) script=$(dirname -- "$script")/$target ;;
  esac
done
unset CDPATH
cd -P -- "$(dirname -- "$script")"

usage() {
  cat <<'USAGE'
usage: ./run.sh [COMMAND] [ARGUMENTS]

  (no command)   train a small GPT into out/, then sample from it; --options go to train/gpt.py
  sample [args]  sample text from a checkpoint            (train/sample.py)
  test [args]    run the tests                            (pytest)
  bench [args]   run the benchmarks                       (tests/bench/run.py)
  fuzz [args]    run the fuzzers, for an hour or two      (tests/fuzz/run.py)
  lint [args]    check the style                          (ruff)
  clear          delete all plans and compiled objects from the cache folder
  --help, -h     print this text

Paths in the arguments are relative to the repository. The first run installs the packages of
requirements.txt into .venv, which needs a network; later runs do not.

environment:
  PYTHON   the Python to make .venv from (default python3; 3.10 or newer)
  CC       the C compiler (default: the first found of gcc, clang, cc)
USAGE
}

die() {
  echo "run.sh: $1" >&2
  exit "${2:-1}"
}

# ---- what the commands run ----

main_job() {
  local out_dir="" argument previous=""
  for argument in "$@"; do
    case "$argument" in --out_dir=*) out_dir=${argument#*=} ;; esac
    if [ "$previous" = --out_dir ]; then out_dir=$argument; fi
    previous=$argument
  done
  if [ -z "$out_dir" ]; then
    out_dir=out
    set -- --out_dir=out "$@"
  fi
  case "$out_dir" in "~" | "~/"*) out_dir=${HOME:-}${out_dir#"~"} ;; esac # as gpt.py reads it
  python train/gpt.py --log_interval=25 "$@"
  python train/sample.py --out_dir="$out_dir"
  echo "log: $(cd -- "$out_dir" && pwd)/log.jsonl"
}

# ---- what must be there first ----

need_c_compiler() {
  local candidate
  if [ -n "${CC:-}" ]; then
    # CC is a command of shell words, which may be quoted: taken apart as uopc does.
    "$base" -c 'import shlex, shutil, sys
sys.exit(not shutil.which(shlex.split(sys.argv[1])[0]))' "$CC" 2>/dev/null ||
      die "the C compiler CC=$CC is not found"
    return
  fi
  for candidate in gcc clang cc; do
    if command -v "$candidate" >/dev/null; then return; fi
  done
  die "no C compiler found: install gcc or clang (Debian, Ubuntu: apt-get install gcc;\
 Fedora: dnf install gcc; macOS: xcode-select --install), or set CC"
}

# Sets `base`, the Python that .venv is made from, and its `version`.
find_python() {
  # A virtual environment that is active is looked through to the Python it was made from.
  base=$("${PYTHON:-python3}" -c \
    'import sys; print(getattr(sys, "_base_executable", sys.executable))') ||
    die "cannot run ${PYTHON:-python3}: install Python 3.10 or newer, or set PYTHON"
  version=$("$base" -c 'import sys; print(*sys.version_info[:3], sep=".")')
  "$base" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    die "$base is Python $version; set PYTHON to a Python 3.10 or newer"
}

# Makes .venv and puts it on PATH. The stamp says which Python and which requirements it was made
# from and is written last, so an interrupted installation is done again.
use_venv() {
  local stamp=.venv/requirements.stamp wanted
  wanted="python $version"$'\n'"$(cat requirements.txt)"
  if [ ! -x .venv/bin/python ] || [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    install_venv
    printf '%s\n' "$wanted" >"$stamp"
  fi
  export PATH="$PWD/.venv/bin:$PATH"
}

install_venv() {
  if [ "$(.venv/bin/python -c 'import sys; print(*sys.version_info[:3], sep=".")' \
    2>/dev/null)" != "$version" ] || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    "$base" -c 'import venv, ensurepip' 2>/dev/null ||
      die "this Python cannot make a virtual environment: install its venv module\
 (Debian, Ubuntu: apt-get install python${version%.*}-venv), or set PYTHON to another Python"
    echo "run.sh: making .venv with Python $version" >&2
    "$base" -m venv --clear .venv
  fi
  echo "run.sh: installing requirements.txt into .venv" >&2
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt ||
    die "pip could not install requirements.txt (see above; it needs a network)"
}

# ---- the command line ----

command=${1:-}
case "$command" in
  -h | --help)
    usage
    exit 0
    ;;
  "" | --*) ;;
  test | bench | fuzz | sample | lint | clear) shift ;;
  *)
    echo "run.sh: unknown command '$command'" >&2
    usage >&2
    exit 2
    ;;
esac

find_python
case "$command" in
  lint | clear) ;;
  *) need_c_compiler ;;
esac
use_venv
case "$command" in
  test) exec python -m pytest "$@" ;;
  bench) exec python tests/bench/run.py "$@" ;;
  fuzz) exec python tests/fuzz/run.py "$@" ;;
  sample) exec python train/sample.py "$@" ;;
  lint) exec python -m ruff check "$@" ;;
  clear) exec python -c 'from uopc.cache_folder import cache_folder, trim_cache
print(f"{trim_cache(0)} files deleted from {cache_folder()}")' ;;
  *) main_job "$@" ;;
esac
