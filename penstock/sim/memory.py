"""Keep freed arrays in the process instead of giving every one back to the system.

A step allocates and frees the same large arrays again and again. By default the C library returns such memory
at once and the system clears it anew each time, which costs about a sixth of the whole simulation.
"""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
_KEEP_BYTES = 1 << 30
_PAD_BYTES = 1 << 25


def keep_freed_memory() -> bool:
    """Ask the C library to reuse memory; False where it cannot be asked (nothing but speed depends on it)."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    mallopt.argtypes = [ctypes.c_int, ctypes.c_int]
    settings = ((_TRIM_THRESHOLD, _KEEP_BYTES), (_TOP_PAD, _PAD_BYTES), (_MMAP_THRESHOLD, _KEEP_BYTES))
    return all(mallopt(name, value) == 1 for name, value in settings)
