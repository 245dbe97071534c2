"""Kernels at level 1 against NumPy, and PyTorch where it is installed, in one run.

`./run.sh bench --kernels`. Figures are medians over rounds in which the libraries and the
machine's own peak or copy take turns. A ratio says how many times as fast uopc is.
"""
from __future__ import annotations

import re

import fused
import memory
import products
from libraries import Turns, peers
from machine import Bench, Machine


def run(rounds: int, threads: int | None, cores: int, only: str) -> None:
    """`threads` for each library, None for its own choice, which is taken to be `cores`."""
    libraries = ["uopc", *peers()]
    turns = Turns([*libraries, "machine"], rounds, threads)
    machine = Machine(threads or cores)
    bench = Bench(turns, machine, libraries, re.compile(only).search)
    print(f"{', '.join(libraries)}; {machine.threads} thread{'s' * (machine.threads > 1)} each; "
          f"medians of {rounds} rounds", flush=True)
    for section in (products, memory, fused):
        machine.look(turns)
        section.run(bench)
    machine.look(turns)
    print(machine.summary())
