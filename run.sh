#!/usr/bin/env bash
# One entry point: makes the Python environment when it is needed, then runs the command.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" # every path below is relative to the repository

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
  python train/gpt.py --log_interval=25 "$@"
  python train/sample.py --out_dir="$out_dir"
  echo "log: $(cd "$out_dir" && pwd)/log.jsonl"
}

# ---- what must be there first ----

need_c_compiler() {
  local candidate
  if [ -n "${CC:-}" ]; then
    command -v "${CC%% *}" >/dev/null || die "the C compiler CC=$CC is not found"
    return
  fi
  for candidate in gcc clang cc; do
    if command -v "$candidate" >/dev/null; then return; fi
  done
  die "no C compiler found: install gcc or clang (Debian, Ubuntu: apt-get install gcc;\
 Fedora: dnf install gcc; macOS: xcode-select --install), or set CC"
}

# Makes .venv and puts it on PATH. The stamp says which Python and which requirements it was made
# from and is written last, so an interrupted installation is done again.
use_venv() {
  local base=${PYTHON:-python3} version stamp=.venv/requirements.stamp wanted
  # A virtual environment that is active is looked through to the Python it was made from.
  base=$("$base" -c 'import sys; print(getattr(sys, "_base_executable", sys.executable))') ||
    die "cannot run ${PYTHON:-python3}: install Python 3.10 or newer, or set PYTHON"
  version=$("$base" -c 'import sys; print(*sys.version_info[:3], sep=".")')
  "$base" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    die "$base is Python $version; set PYTHON to a Python 3.10 or newer"

  wanted="python $version"$'\n'"$(cat requirements.txt)"
  if [ ! -x .venv/bin/python ] || [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    install_venv "$base" "$version"
    printf '%s\n' "$wanted" >"$stamp"
  fi
  export PATH="$PWD/.venv/bin:$PATH"
}

install_venv() {
  local base=$1 version=$2
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

if [ "$command" != lint ]; then need_c_compiler; fi
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
