"""Benches: each states its figures and holds them against bars; see docs/bench.md."""
