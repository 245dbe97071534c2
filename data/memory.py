"""How much memory this process can still have, before a large text is read into it."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_CGROUPS = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")
_OWN_CGROUPS = Path("/proc/self/cgroup")


def available_memory() -> int:
    """Bytes: what the machine has free or can free, at most what a container or `ulimit` allows."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *_free(), *_of_cgroups()]
    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    return min(limits if allowed == resource.RLIM_INFINITY else [*limits, allowed])


def _free() -> Iterator[int]:
    """What Linux says it can give without swapping; nothing elsewhere."""
    for line in _lines(_MEMINFO):
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024


def _of_cgroups() -> Iterator[int]:
    """The limits of the control groups that this process is in, and of those above them."""
    for line in _lines(_OWN_CGROUPS):
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            root, name = _CGROUPS, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = _CGROUPS / "memory", "memory.limit_in_bytes"
        else:
            continue
        own = PurePosixPath(group.lstrip("/"))
        for folder in (own, *own.parents):  # in a container only the last may be there
            yield from (int(text) for text in _lines(root / folder / name) if text.isdigit())


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
