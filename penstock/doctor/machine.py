"""Cores, memory, loopback, ports and directories of the machine. Pure: what there is is given."""

from penstock.doctor.finding import Finding, doubtful, ok, wrong

FEWEST_CORES = 2
LEAST_MEMORY = 1_500_000_000
ENOUGH_MEMORY = 3_500_000_000
FEWEST_PORTS = 1000
FEWEST_FILES = 512
ENOUGH_FILES = 4096
LEAST_DISK = 500_000_000
ENOUGH_DISK = 5_000_000_000
# Linux binds sockets to paths of 107 bytes; those of workers add "/penstock-", 19 digits and "/workers.sock".
LONGEST_TEMPORARY = 107 - len("/penstock-") - 19 - len("/workers.sock")


def check_cores(cores: int) -> Finding:
    """Spark's task slots are threads, of which there may be more; latencies need cores."""
    if cores >= FEWEST_CORES:
        return ok("cores", f"{cores}; local flows get as many task slots as they need")
    return doubtful(
        "cores",
        f"{cores}; Spark, sources and tasks share it, and latencies are long",
        f"give the machine or container {FEWEST_CORES} cores or more",
    )


def check_memory(available: int | None) -> Finding:
    """In bytes: of the machine, or what is left to its container."""
    if available is None:
        return doubtful("memory", "the system does not tell", "make sure that some GB are free")
    shown = f"{_gigabytes(available)} free"
    if available < LEAST_MEMORY:
        return wrong("memory", shown, "free some: Spark's driver takes up to 2 GB, a worker about 30 MB")
    if available < ENOUGH_MEMORY:
        return doubtful("memory", shown, 'free some, or give Spark less: conf={"spark.driver.memory": "1g"}')
    return ok("memory", shown)


def check_loopback(problem: str | None) -> Finding:
    """Driver, executors and Java talk over 127.0.0.1 in local mode."""
    if problem is None:
        return ok("loopback", "127.0.0.1 answers")
    return wrong(
        "loopback", f"127.0.0.1: {problem}", "bring the interface up (ip link set lo up) and let it pass"
    )


def check_ports(first: int, last: int) -> Finding:
    """Every replica that sends to another layer listens on an ephemeral port."""
    count = last - first + 1
    if count >= FEWEST_PORTS:
        return ok("ports", f"{count:,} ephemeral ones")
    return doubtful(
        "ports",
        f"only {count:,} ephemeral ones",
        "widen the range: sysctl -w net.ipv4.ip_local_port_range='32768 60999'",
    )


def check_open_files(soft: int) -> Finding:
    """Sockets between replicas count."""
    if soft < FEWEST_FILES:
        return wrong("open files", f"at most {soft:,}", f"run `ulimit -n {ENOUGH_FILES}` before")
    if soft < ENOUGH_FILES:
        return doubtful(
            "open files", f"at most {soft:,}", f"run `ulimit -n {ENOUGH_FILES}` before large flows"
        )
    return ok("open files", f"at most {soft:,}")


def check_temporary(path: str, problem: str | None) -> Finding:
    """Workers' sockets, temporary checkpoints and Spark's own files are there."""
    if problem is not None:
        return wrong(
            "temporary directory", f"{path}: {problem}", "set TMPDIR to a directory that you can write"
        )
    if len(path.encode()) > LONGEST_TEMPORARY:
        return wrong(
            "temporary directory",
            f"{path} is longer than {LONGEST_TEMPORARY} bytes, too long for workers' sockets",
            "set TMPDIR to a shorter one",
        )
    return ok("temporary directory", path)


def check_disk(path: str, free: int) -> Finding:
    """In bytes, of where temporary files go."""
    shown = f"{_gigabytes(free)} free in {path}"
    if free < LEAST_DISK:
        return wrong("disk", shown, "free some, or set TMPDIR to a larger one")
    if free < ENOUGH_DISK:
        return doubtful("disk", shown, "free some before long runs, or set TMPDIR to a larger one")
    return ok("disk", shown)


def check_commands(place: str, problem: str | None) -> Finding:
    """Whether `penstock ps`, `status`, `set` and `stop` will see flows of this user."""
    if problem is None:
        return ok("commands", place)
    return doubtful(
        "commands", problem, "flows run, but `penstock ps` does not see them until this is mended"
    )


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB"
