"""Commits of state: the log, its entries, tables of key groups, and the files that hold what tasks know."""
