"""Where metrics are served, checked before anything is started, and the server itself."""

from typing import TYPE_CHECKING

from penstock.extras import require
from penstock.flow.errors import FlowError

if TYPE_CHECKING:
    from penstock.observe.prometheus import Observable

LOOPBACK = "127.0.0.1"
_LARGEST_PORT = 65535


def metrics_address(address: str | int) -> tuple[str, int]:
    """`[HOST:]PORT` as host and port; the loopback interface without a host, any free port for port 0."""
    require("prometheus_client", "metrics", "serving metrics")
    host, _, port = str(address).rpartition(":")
    if not port.isdecimal() or int(port) > _LARGEST_PORT:
        raise FlowError(f'"{address}" is no address for metrics; give [HOST:]PORT, for example 9464')
    return host.strip("[]") or LOOPBACK, int(port)


class MetricsServer:
    """Serves the metrics of one job until it is closed; needs the extra `metrics`."""

    def __init__(self, job: "Observable", address: str | int) -> None:
        host, port = metrics_address(address)
        from prometheus_client import CollectorRegistry, start_http_server

        from penstock.observe.prometheus import FlowCollector

        registry = CollectorRegistry()
        registry.register(FlowCollector(job))
        try:
            self._server, self._thread = start_http_server(port, host, registry)
        except OSError as problem:
            raise FlowError(f"metrics cannot be served at {host}:{port}: {problem.strerror}") from None
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._server.server_port}/metrics"

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
