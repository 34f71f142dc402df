"""An executor whose cable is pulled or bad: a cluster on hosts of its own, in network namespaces.

Run as a module it is the driver on the first of these hosts.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import penstock
from penstock.faults.bed import SINK, WARM_ITEMS, Bed, await_commit, committed
from penstock.faults.drivers import await_no_orphans, flow, started
from penstock.faults.hosts import Host, Hosts, cannot_make_hosts
from penstock.faults.row import Outcome, Row
from penstock.faults.standalone import await_slots, standalone
from penstock.faults.victims import wait_until

HOSTS: Final = 2
CORES: Final = 6
REPLICAS: Final = 3  # with two splits and a sink as many slots as one executor has
PULLED_S: Final = 28.0
RECOVERS_IN_S: Final = 20.0
NARROW_S: Final = 18.0
NARROW_FOR_S: Final = 4.0
RATE, QUEUE = "300kbit", "400ms"  # a third of what the flow sends, and how long it may wait


def cable_pulled(bed: Bed) -> Outcome:
    """Nobody is told: the executor ends its workers, the driver gives it up, and nothing is written twice."""
    with _flowing(bed, PULLED_S) as far:
        bed.strike(far.cut)
    bed.expect("told in words", "has said nothing for 10 s" in _said(bed))
    return bed.outcome()


def cable_narrow(bed: Bed) -> Outcome:
    """What is on its way waits and is partly dropped; the network sends it again, and nobody is given up."""
    with _flowing(bed, NARROW_S) as far:
        bed.strike(lambda: far.narrow(RATE, QUEUE))
        time.sleep(NARROW_FOR_S)
        far.widen()
        bed.healed()
    bed.expect("restarts", _said(bed).count("has said nothing"), "==", 0)
    return bed.outcome()


@contextmanager
def _flowing(bed: Bed, seconds: float) -> Iterator[Host]:
    """A flow on a cluster, and the host on which the driver is not; left at its end."""
    bed.once()
    bed.source(seconds)
    with Hosts(HOSTS) as network, standalone(network.hosts, CORES, bed.directory / "cluster") as master:
        near, far = network.hosts
        argv = [sys.executable, "-P", "-m", __name__, str(bed.directory), str(seconds), master, near.address]
        with started(bed, near.command(argv), SPARK_LOCAL_IP=near.address) as driver:
            wait_until(lambda: committed(bed.checkpoint), "a first commit", 90.0)
            yield far
            bed.expect("exit code", driver.wait(), "==", 0)
        await_no_orphans(bed)


def _said(bed: Bed) -> str:
    return (bed.directory / "said").read_text()


def lacks_hosts() -> str:
    """Why there can be no such cluster here; nothing if there can."""
    return cannot_make_hosts() or ""


def drive(directory: Path, seconds: float, master: str, address: str) -> None:
    """Run the flow to its end."""
    here = {"spark.driver.host": address, "spark.driver.bindAddress": address}
    await_slots(penstock.session(HOSTS * CORES, master, here), HOSTS * CORES)
    flowing = flow(str(directory), seconds, once=True, replicas=REPLICAS)
    job = penstock.run(flowing, checkpoint=directory / "checkpoint", on_notice=_say)
    wait_until(lambda: job.metrics().tasks[SINK].items_in > WARM_ITEMS, "items arrive", 60.0)
    await_commit(job)
    job.await_termination()


def _say(notice: str) -> None:
    print(notice, flush=True)


ROWS = (
    Row(
        "cut-off-executor",
        "the cable of an executor's host is pulled",
        "hosts",
        cable_pulled,
        RECOVERS_IN_S,
        lacks=lacks_hosts,
    ),
    Row(
        "slow-network",
        "the cable of an executor's host carries a third of the load for 4 s, and drops what waits too long",
        "hosts",
        cable_narrow,
        lacks=lacks_hosts,
    ),
)

if __name__ == "__main__":
    drive(Path(sys.argv[1]), float(sys.argv[2]), *sys.argv[3:])
