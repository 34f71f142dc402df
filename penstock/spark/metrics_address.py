"""Where metrics are served: checked before anything is started."""

from penstock.extras import require
from penstock.flow.errors import FlowError

LOOPBACK = "127.0.0.1"
_LARGEST_PORT = 65535


def metrics_address(address: str | int) -> tuple[str, int]:
    """`[HOST:]PORT` as host and port; the loopback interface without a host, any free port for port 0."""
    require("prometheus_client", "metrics", "serving metrics")
    host, _, port = str(address).rpartition(":")
    if not port.isdecimal() or int(port) > _LARGEST_PORT:
        raise FlowError(f'"{address}" is no address for metrics; give [HOST:]PORT, for example 9464')
    return host.strip("[]") or LOOPBACK, int(port)
