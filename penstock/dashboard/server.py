"""Serves the dashboard in a thread of its own, with an event loop of its own."""

import socket
import threading

from penstock.dashboard.access import Access, new_token
from penstock.dashboard.shown import Shown
from penstock.extras import require
from penstock.flow.errors import FlowError
from penstock.observe.address import host_and_port

_END_S = 5.0
_BACKLOG = 64
_MOST_CONNECTIONS = 64


def dashboard_address(address: str | int) -> tuple[str, int]:
    """`[HOST:]PORT` as host and port; the loopback interface without a host, any free port for port 0."""
    for module in ("starlette", "uvicorn"):
        require(module, "dashboard", "the dashboard")
    return host_and_port(address, "the dashboard", 8050)


class DashboardServer:
    """Until it is closed; needs the extra `dashboard`."""

    def __init__(self, shown: Shown, address: str | int, token: str | None = None) -> None:
        host, port = dashboard_address(address)
        import uvicorn

        from penstock.dashboard.app import create_app

        listener = _listening(host, port)
        self.access = Access(host, listener.getsockname()[1], new_token() if token is None else token)
        self._closed = threading.Event()
        config = uvicorn.Config(
            create_app(shown, self.access, self._closed.is_set),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._listener = listener
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listener]}, name="penstock-dashboard", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """Without the token."""
        return self.access.url

    @property
    def signed_url(self) -> str:
        """With it, to be shown to the user only."""
        return self.access.signed_url

    def close(self) -> None:
        """Serve no more."""
        self._closed.set()
        self._server.should_exit = True
        self._thread.join(_END_S)
        self._listener.close()

    def wait(self) -> None:
        """Until it is closed, or the thread ends."""
        self._thread.join()


def _listening(host: str, port: int) -> socket.socket:
    """Bound here and not in the thread, so that what is wrong is told at once."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as problem:
        where = f"{host}:{port}"
        raise FlowError(f"the dashboard cannot be served at {where}: {problem.strerror or problem}") from None
