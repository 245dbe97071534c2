"""What the compiler has done in this process so far, for logs and tests.

    before = counters.copy()
    loss.realize()
    print((counters - before).plan_misses)
"""
from __future__ import annotations

from dataclasses import dataclass, fields, replace


@dataclass
class Counters:
    """Running totals; times in seconds."""

    plan_hits: int = 0        # realizes whose plan was cached
    plan_misses: int = 0      # realizes that had to make a plan
    plans_found: int = 0      # of those misses, plans that were found in the cache folder
    kernels: int = 0          # kernels run
    objects_built: int = 0    # shared objects compiled
    objects_found: int = 0    # shared objects found in the cache folder
    compile_time: float = 0.0   # spent by the C compiler, added up over parallel runs
    plan_time: float = 0.0      # making plans, the C compiler included
    schedule_time: float = 0.0  # from a call of realize to the first kernel, plan_time included
    run_time: float = 0.0       # inside kernels

    def copy(self) -> Counters:
        return replace(self)

    def __sub__(self, before: Counters) -> Counters:
        """What happened since `before`, a copy taken earlier."""
        return Counters(*(getattr(self, f.name) - getattr(before, f.name) for f in fields(self)))


counters = Counters()
