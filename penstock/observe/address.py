"""Where something is served: `[HOST:]PORT`, on the loopback interface unless a host is named."""

from ipaddress import ip_address

from penstock.flow.errors import FlowError

LOOPBACK = "127.0.0.1"
_LARGEST_PORT = 65535


def host_and_port(address: str | int, what: str, example: int) -> tuple[str, int]:
    """Host and port; the loopback interface without a host, any free port for port 0."""
    host, _, port = str(address).rpartition(":")
    if not port.isdecimal() or int(port) > _LARGEST_PORT:
        raise FlowError(f'"{address}" is no address for {what}; give [HOST:]PORT, for example {example}')
    return host.strip("[]") or LOOPBACK, int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def in_url(host: str) -> str:
    """As it stands in an address: version 6 in brackets."""
    return f"[{host}]" if ":" in host else host
