"""Kernels at level 1 against NumPy, and PyTorch where it is installed, in one run.

`./run.sh bench --kernels`. Figures are medians over rounds in which the libraries and the
machine's own peak or copy take turns. A ratio says how many times as fast uopc is.
"""
from __future__ import annotations

import fused
import memory
import products
from machine import Bench


def run(bench: Bench) -> None:
    turns, machine = bench.turns, bench.machine
    print(f"{', '.join(bench.libraries)}; {machine.threads_said()} each; "
          f"medians of {turns.rounds} rounds", flush=True)
    for section in (products, memory, fused):
        machine.look(turns)
        section.run(bench)
    machine.look(turns)
    print(machine.summary())
