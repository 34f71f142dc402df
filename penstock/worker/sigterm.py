"""SIGTERM to all processes of a service, as systemd sends it: workers end with their flow, not before it.

The driver drains the flow then, for which it needs them; whoever ends a worker kills it (lease.py,
zygote.py). What a task forks or starts is ended by SIGTERM as usual.
"""

import os
import signal
import threading


def outlive_sigterm() -> None:
    """In the zygote and in each worker, in its main thread."""
    # A handler and not SIG_IGN, which programs that are started would inherit.
    signal.signal(signal.SIGTERM, lambda *_: None)


def let_forked_end() -> None:
    """Once, before anything is forked: a child ends by SIGTERM unless it says `outlive_sigterm` itself."""
    masks = threading.local()

    def hold_back() -> None:
        # What is sent to a child before it knows what to do has to wait.
        masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    def go_on() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, masks.before)

    def end_as_usual() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        go_on()

    os.register_at_fork(before=hold_back, after_in_parent=go_on, after_in_child=end_as_usual)
