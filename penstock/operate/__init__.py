"""Commands to flows that run, from another terminal: a Unix socket of the user's own, no port."""
