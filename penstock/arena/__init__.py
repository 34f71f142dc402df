"""Policies against each other, and against an oracle that knows what comes, on the simulated engine."""
