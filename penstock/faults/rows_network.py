"""An executor whose cable is pulled: a cluster on hosts of its own, in network namespaces.

Run as a module it is the driver on the first of these hosts.
"""

import sys
from pathlib import Path
from typing import Final

import penstock
from penstock.faults.bed import SINK, WARM_ITEMS, Bed, committed
from penstock.faults.drivers import await_no_orphans, flow, started
from penstock.faults.hosts import Hosts, cannot_make_hosts
from penstock.faults.row import Outcome, Row
from penstock.faults.standalone import standalone
from penstock.faults.victims import wait_until

CORES: Final = 6
REPLICAS: Final = 3  # with two splits and a sink as many slots as one executor has
SECONDS: Final = 28.0
RECOVERS_IN_S: Final = 20.0


def cable_pulled(bed: Bed) -> Outcome:
    """Nobody is told: the executor ends its workers, the driver gives it up, and nothing is written twice."""
    bed.once()
    bed.source(SECONDS)
    with Hosts(2) as network:
        near, far = network.hosts
        with standalone(network.hosts, CORES, bed.directory / "cluster") as master:
            argv = [sys.executable, "-P", "-m", __name__, str(bed.directory), master, near.address]
            with started(bed, near.command(argv), SPARK_LOCAL_IP=near.address) as driver:
                wait_until(lambda: committed(bed.checkpoint), "a first commit", 90.0)
                bed.strike(far.cut)
                bed.expect("exit code", driver.wait(), "==", 0)
            await_no_orphans(bed)
    said = (bed.directory / "said").read_text()
    bed.expect("told in words", "has said nothing for 10 s" in said)
    return bed.outcome()


def lacks_hosts() -> str:
    """Why there can be no such cluster here; nothing if there can."""
    return cannot_make_hosts() or ""


def drive(directory: Path, master: str, address: str) -> None:
    """Run the flow to its end."""
    here = {"spark.driver.host": address, "spark.driver.bindAddress": address}
    penstock.session(2 * CORES, master, here)
    flowing = flow(str(directory), SECONDS, once=True, replicas=REPLICAS)
    job = penstock.run(flowing, checkpoint=directory / "checkpoint", commit="10 min", on_notice=_say)
    wait_until(lambda: job.metrics().tasks[SINK].items_in > WARM_ITEMS, "items arrive", 60.0)
    job.boundary()
    job.await_termination()


def _say(notice: str) -> None:
    print(notice, flush=True)


ROWS = (
    Row(
        "cut-off-executor",
        "the cable of an executor's host is pulled",
        "own",
        cable_pulled,
        RECOVERS_IN_S,
        lacks=lacks_hosts,
    ),
)

if __name__ == "__main__":
    drive(Path(sys.argv[1]), *sys.argv[2:])
