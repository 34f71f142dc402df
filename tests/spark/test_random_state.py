"""Random flows with state on Spark, random changes, kills and restarts: equal to a single process.

The same flow each time, one that has most of what there is. PENSTOCK_SEEDS=20 draws so many others, and
PENSTOCK_SEED=7 plays one again, as the name of its test tells it.
"""

import os
import secrets
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from tests.spark.random_state import MOST, Graph
from tests.spark.test_marks import commits, read_before
from tests.spark.test_rescale_by_marks import until

pytestmark = pytest.mark.spark


def seeds() -> list[int]:
    if "PENSTOCK_SEED" in os.environ:
        return [int(os.environ["PENSTOCK_SEED"])]
    many = int(os.environ.get("PENSTOCK_SEEDS", "0"))
    return [secrets.randbelow(10**6) for _ in range(many)] or [9]


class Life:
    """A flow, what is done to it, and when; all of it by a seed, but for what the machine makes of it."""

    def __init__(self, seed: int, root: Path) -> None:
        self.chance = Random(seed)
        self.root = root
        self.graph = Graph.drawn(self.chance)
        print(f"seed {seed}: {self.graph}")
        self.start()

    def start(self) -> None:
        self.job = ps.run(
            self.graph.flow(self.root / "files", self.chance),
            checkpoint=self.root / "checkpoint",
            commit="0.2 s",
            policy=None,
            restarts=20,
        )

    def go_on(self) -> None:
        """Until it has committed once more."""
        known = commits(self.job)
        until(lambda: commits(self.job) > known)

    def script(self) -> list[Callable[[], None]]:
        """In any order; kills come more or less at the time of the next."""
        starts = [self.stop, self.abandon][self.chance.randrange(2) :]
        changes = [self.set_active, self.set_active, self.set_pool, self.set_chains, self.set_chains]
        whole = [*changes, self.kill, *starts]
        return self.chance.sample(whole, len(whole))

    def set_active(self) -> None:
        task = self.chance.choice(self.graph.elastic)
        replicas = self.chance.randint(1, MOST)
        if replicas > self.job.layout.unit_of(task).pool:
            self.job.set_pool(task, replicas)
        self.job.set_active(task, replicas)

    def set_pool(self) -> None:
        """Too small for those that are active, perhaps."""
        self.job.set_pool(self.chance.choice(self.graph.elastic), self.chance.randint(1, MOST))

    def set_chains(self) -> None:
        """Beginnings of some pipelines, and none of others."""
        chains = [chain[: self.chance.randint(1, len(chain))] for chain in self.graph.chains]
        self.job.set_chains([chain for chain in chains if len(chain) > 1])

    def kill(self) -> None:
        tasks = [*self.graph.elastic, "numbers"]
        task, after_s = self.chance.choice(tasks), self.chance.uniform(0.0, 0.3)
        until(lambda: bool(self.job.metrics().tasks[task].processes))
        victim = self.job.metrics().tasks[task].processes[0]

        def strike() -> None:
            with suppress(ProcessLookupError):  # it has just ended by itself
                os.kill(victim, signal.SIGKILL)
                print(f"killed one of {task}")

        threading.Timer(after_s, strike).start()

    def stop(self) -> None:
        self.job.stop()
        self.start()

    def abandon(self) -> None:
        self.job.abandon()
        self.start()


@pytest.mark.parametrize("seed", seeds())
def test_state_and_files_are_those_of_a_single_process(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    life = Life(seed, tmp_path)
    done, refused = 0, list[str]()
    for step in life.script():
        life.go_on()
        print(step.__name__)
        try:
            step()
            done += 1
        except ps.FlowError as problem:  # it met the end of a worker
            refused.append(str(problem))
            until(lambda: life.job.is_running)
    life.go_on()
    life.job.stop()
    read = read_before(tmp_path / "checkpoint")
    assert len(read) > 100
    assert all(problem.endswith("is restarting") for problem in refused), refused
    assert done > 3, "hardly anything happened"
    life.graph.check(life.job, tmp_path / "files", read)
