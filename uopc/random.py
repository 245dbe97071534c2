"""Random numbers that are functions of (seed, call, element): no state is walked through.

The generator is Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers:
As Easy as 1, 2, 3", SC 2011), written as UOps and fused into whatever consumes it. The key is the
seed's two words, the counter is (element, call); of a tensor of more than 2**32 elements each such
block counts as a call. Seed and call are *data*, so a new seed or step needs no new plan, and
neither the order of evaluation nor the number of threads matters.
"""
from __future__ import annotations

import math
from functools import partial

import numpy as np

from uopc.atomic import change
from uopc.composite import LN_2
from uopc.dtype import DType, dtypes
from uopc.locks import rlock
from uopc.recording import made_by
from uopc.uop import Ops, UOp, prod

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
KEY_PARITY = 0x1BD11BDA
ROUNDS = 20
BLOCK = 2**32  # elements that one word counts


class _State:
    now = 0, 0  # the seed, the number of the next call
    lock = rlock()


def manual_seed(seed: int) -> None:
    """Start over: the calls that follow give the numbers that belong to `seed` (64 bits of it)."""
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise TypeError(f"a seed must be a whole number, got {seed!r}")
    set_state(int(seed) & (1 << 64) - 1, 0)


def get_state() -> tuple[int, int]:
    """(seed, number of the next call), for a checkpoint."""
    return _State.now


def set_state(seed: int, call: int) -> None:
    change(_State, now=(seed, call))


def threefry(key: tuple[UOp, UOp], counter: tuple[UOp, UOp]) -> tuple[UOp, UOp]:
    """Two random 32-bit words for each counter, all u32 and of one shape."""
    keys = (*key, key[0] ^ key[1] ^ KEY_PARITY)
    x, y = counter[0] + keys[0], counter[1] + keys[1]
    for step in range(ROUNDS // 4):
        for bits in ROTATIONS[step % 2]:
            x = x + y
            y = y.alu(Ops.SHL, bits) | y.alu(Ops.SHR, 32 - bits)
            y = x ^ y
        x = x + keys[(step + 1) % 3]
        y = y + keys[(step + 2) % 3] + (step + 1)
    return x, y


def _next_state(blocks: int) -> np.ndarray:
    """The seed's words and the number of the first of so many calls."""
    with _State.lock:
        seed, call = _State.now
        set_state(seed, call + blocks)
    return (np.array([seed, seed >> 32, call], np.uint64) & 0xFFFFFFFF).astype(np.uint32)


def _words(shape: tuple[int, ...], dtype: DType) -> tuple[UOp, UOp]:
    """A call's two words for each element, of shape (n,), for numbers of `dtype`. Raises TypeError
    for a dtype that has no fractions."""
    if not dtype.is_float:
        raise TypeError(f"random numbers are floats; cannot make them {dtype}")
    n = prod(shape)
    blocks = -(-n // BLOCK)
    state = made_by(partial(_next_state, blocks))
    low, high, call = (state.shrink([(k, k + 1)]).expand((n,)) for k in range(3))
    if blocks > 1:
        call = call + (UOp.iota(n) // BLOCK).cast(dtypes.u32)
    return threefry((low, high), (UOp.iota(n, dtypes.u32), call))


def _unit(word: UOp, dtype: DType) -> UOp:
    """The top 24 bits as a number in [0, 1)."""
    return word.alu(Ops.SHR, 8).cast(dtype) * 2.0 ** -24


def uniform(shape: tuple[int, ...], dtype: DType = dtypes.f32) -> UOp:
    """Numbers in [0, 1), multiples of 2**-24."""
    return _unit(_words(shape, dtype)[0], dtype).reshape(shape)


def normal(shape: tuple[int, ...], dtype: DType = dtypes.f32) -> UOp:
    """Standard normal numbers, by the transform of Box and Muller (1958)."""
    first, second = _words(shape, dtype)
    radius = ((1.0 - _unit(first, dtype)).log2() * (-2 * LN_2)).sqrt()
    return (radius * UOp(Ops.COS, (_unit(second, dtype) * (2 * math.pi),))).reshape(shape)
