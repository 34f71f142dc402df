"""Where metrics are served, checked before anything is started, and the server itself."""

from typing import TYPE_CHECKING

from penstock.extras import require
from penstock.flow.errors import FlowError
from penstock.observe.address import host_and_port, in_url

if TYPE_CHECKING:
    from penstock.observe.prometheus import Observable


def metrics_address(address: str | int) -> tuple[str, int]:
    """`[HOST:]PORT` as host and port; the loopback interface without a host, any free port for port 0."""
    require("prometheus_client", "metrics", "serving metrics")
    return host_and_port(address, "metrics", 9464)


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
        self.url = f"http://{in_url(host)}:{self._server.server_port}/metrics"

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
