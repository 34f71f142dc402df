"""What decides: one file per idea, each a pure function of a snapshot and its own small memory."""
