"""Trying again: a body that raised is asked again after a pause, as its task's `retries` say.

Pauses are spread over their upper half, so that calls which failed together do not come back together.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from penstock.flow.retries import Retries
from penstock.worker.asking import Asked

Step = Callable[[Any], object]


def pause_s(retries: Retries, tried: int) -> float:
    """How long to wait after so many tries."""
    return retries.pause_ms(tried) * random.uniform(0.5, 1.0) / 1000.0


def retrying(parts: Asked, retries: Retries, pause: Callable[[float], None]) -> Step:
    """A step that asks again; what raises when the answer is given on is not tried again."""
    ask, give = parts

    def step(item: Any) -> object:
        tried = 0
        while True:
            try:
                answer = ask(item)
                break
            except Exception as problem:
                tried += 1
                if not retries.allow(problem, tried):
                    raise
            pause(pause_s(retries, tried))
        return give(item, answer)

    return step


async def retrying_async(attempt: Callable[[], Awaitable[Any]], retries: Retries) -> Any:
    """The answer of the first attempt that does not fail, or the failure of the last one."""
    tried = 0
    while True:
        try:
            return await attempt()
        except Exception as problem:
            tried += 1
            if not retries.allow(problem, tried):
                raise
        await asyncio.sleep(pause_s(retries, tried))
