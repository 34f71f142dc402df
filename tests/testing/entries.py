"""Arrivals made up for tests."""

from collections.abc import Iterable

import numpy

from penstock.testing.arrivals import Entries


def entries(rows: Iterable[tuple[int, int, int, int, int]]) -> Entries:
    """From rows of (partition, index, due ns, arrived ns, mark)."""
    table = numpy.array(list(rows), dtype=numpy.int64).reshape(-1, 5)
    return Entries(*(table[:, column] for column in range(5)))
