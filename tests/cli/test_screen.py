"""A screen whose reader has gone."""

import logging
import os
import threading

from penstock.cli.logs import LogLevel, logs_shown
from penstock.cli.screen import Screen


def unread() -> Screen:
    reader, writer = os.pipe()
    os.close(reader)
    return Screen(file=os.fdopen(writer, "w"), force_terminal=True)


def test_nothing_is_raised_and_nothing_more_is_said() -> None:
    screen = unread()
    screen.print("somebody?")
    assert screen.quiet
    screen.print("nobody")


def test_a_thread_that_logs_lives_on() -> None:
    done = threading.Event()

    def speak() -> None:
        logging.getLogger("penstock").warning("somebody?")
        done.set()

    with logs_shown(unread(), LogLevel.INFO):
        thread = threading.Thread(target=speak)
        thread.start()
        thread.join(10)
    assert done.is_set()
