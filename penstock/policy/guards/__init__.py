"""What holds any policy back: one file per guard, and `compose` that wraps them around a policy."""
