"""What can be wrong with a checkpoint's log and its files."""


class LogError(Exception):
    """A file of the checkpoint cannot be used; the message names it."""


class SupersededError(Exception):
    """Another driver has appended to the log: this one has to end, with its workers."""
