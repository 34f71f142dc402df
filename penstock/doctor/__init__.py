"""What keeps a machine from running flows, and how to mend it; for `penstock doctor`."""
