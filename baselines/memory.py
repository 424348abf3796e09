"""How much memory a process has held."""

from __future__ import annotations

import re
from pathlib import Path


def peak_memory_mb(process: int | str = "self") -> float | None:
    """The most memory a process ever held, in 10^6 bytes; None where the system does not tell.

    `resource.getrusage` would count for a process that another one started what that one held.
    """
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except OSError:
        return None
    peak = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(peak[1]) * 1024 / 1e6 if peak else None
