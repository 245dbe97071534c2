"""The machine description: all that the loop optimizer knows of the machine, and every threshold
that rests on it. Read from the compiler's predefined macros and the system, never from the CPU's
name.
"""
from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from uopc.compiler import compiler, macros, usable_cores


@dataclass(frozen=True)
class Target:
    """`vector_bytes` wide registers, `registers` of them; `threads` that may run at once; `cache`
    bytes of a core's own cache."""

    vector_bytes: int
    registers: int
    threads: int
    cache: int
    min_threaded_work: int = 10_000    # operations (of scalars or vectors) that pay for threads
    block: int = 16                    # elements of a line of the cache
    function_work: int = 20            # operations of an exponential, a logarithm, ...
    short_body: int = 12               # operations of a loop's body that is worth unrolling
    max_chain: int = 512               # operations in a row that one kernel computes
    exact_steps: int = 32              # f32 additions in a row that keep enough of their accuracy
    min_divided_work: int = 1 << 18    # elements of a reduction that may be done in parts
    part: int = 8192                   # elements of a part, but
    min_part: int = 512                # rows at least
    many_outputs: int = 512            # of a reduction, enough for threads to share
    strided_work: int = 1 << 22        # elements that one does not want to stride through
    min_packed_reuse: int = 8          # times that a packed operand must be read
    min_left_reuse: int = 64           # the same of the operand that is read one by one,
    min_copied_reuse: int = 512        # and where it is contiguous already
    min_packed_work: int = 32_768      # operations of a reduction whose operands may be packed
    small_cache: int = 1 << 15         # bytes of the cache next to a core
    max_members: int = 48              # kernels that share a loop
    min_shared_steps: int = 8          # of that loop
    min_shared_rows: int = 24          # of a product that are left in a step
    small_part: int = 16               # times smaller than the largest: may do without vectors
    min_shared_lanes: int = 64         # elements of a vector loop that are left in a step

    def lanes(self, width: int) -> int:
        """Elements of `width` bytes in a register."""
        return self.vector_bytes // width

    @property
    def max_between(self) -> int:
        """Bytes that kernels sharing a loop may pass on in a step, at one time."""
        return self.cache // 2

    @property
    def max_local(self) -> int:
        """Bytes of a thread's own memory for what they pass on, if no two of them shared any."""
        return 2 * self.cache

    @property
    def tile(self) -> tuple[int, int]:
        """(rows, registers per row) of the accumulators of a matrix product: the most registers
        that leave room for one row of the right operand and one element of the left."""
        columns = 2
        return (self.registers - columns - 1) // columns, columns


# macro that tells of an instruction set → (bytes per register, registers)
INSTRUCTION_SETS = (("__AVX512F__", 64, 32), ("__AVX__", 32, 16), ("__ARM_NEON", 16, 32),
                    ("__SSE2__", 16, 16))
PLAIN = (16, 16)  # GCC's vectors work without any instruction set for them


@functools.cache
def target() -> Target:
    """The description of this machine, for the compiler in use."""
    defined = macros(compiler())
    width, registers = next((sizes for name, *sizes in INSTRUCTION_SETS if name in defined), PLAIN)
    return Target(width, registers, usable_cores(), _cache_size())


def _cache_size() -> int:
    """Bytes of a core's second-level cache; half a MiB where the system does not tell."""
    try:
        size = Path("/sys/devices/system/cpu/cpu0/cache/index2/size").read_text().strip()
        return int(size.removesuffix("K")) << 10
    except (OSError, ValueError):
        return 1 << 19
