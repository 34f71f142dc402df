"""Real loads, where they are: files of the Numenta Anomaly Benchmark, which are not part of Penstock."""

from __future__ import annotations

from pathlib import Path

from penstock.io.trace import trace

DIRECTORY = Path("../shared/data")
TRACES = {
    "trace of tweets": Path("nab/Twitter_volume_AAPL.csv.gz"),
    "trace of taxis": Path("nab/nyc_taxi.csv.gz"),
}


def find_traces(directory: Path) -> tuple[dict[str, tuple[float, ...]], list[str]]:
    """The rates of those that are there, and in words which are not."""
    rates: dict[str, tuple[float, ...]] = {}
    missing = []
    for name, file in TRACES.items():
        path = directory / file
        if path.is_file():
            rates[name] = trace(path).rates_per_s
        else:
            missing.append(f"random, {name}: {path} is not there")
    return rates, missing
