"""Who may see and do what.

| bound to | without the token | with it |
|---|---|---|
| the loopback interface | figures and names | everything, steering too |
| anything else | nothing | everything |

A page of another origin must not reach the flow through the user's browser. So the name in `Host` must be one
of the server's own (else a name of a stranger's could be pointed here), and what says that it comes from
elsewhere (`Origin`, `Sec-Fetch-Site`) is refused.
"""

import hmac
import os
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from urllib.parse import quote

from penstock.flow.errors import FlowError
from penstock.observe.address import in_url, is_loopback

ENVIRONMENT = "PENSTOCK_DASHBOARD_TOKEN"
_LEAST = 16
_SESSION = b"penstock dashboard session"
_SAFE = ("GET", "HEAD")
_OWN = ("same-origin", "none")


def new_token(environment: Mapping[str, str] = os.environ) -> str:
    """Another one at every start, unless the environment has one."""
    given = environment.get(ENVIRONMENT)
    if given is None:
        return secrets.token_urlsafe(24)
    if len(given) < _LEAST or not given.isascii() or not given.isprintable():
        raise FlowError(f"{ENVIRONMENT} must have {_LEAST} printable characters at the least")
    return given


@dataclass(frozen=True)
class Access:
    """The rules for one server."""

    host: str
    port: int
    token: str = field(repr=False)

    @property
    def is_open(self) -> bool:
        """Whether figures are for everybody who reaches it."""
        return is_loopback(self.host)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://{in_url(self.host)}:{self.port}/"

    @property
    def signed_url(self) -> str:
        """The same with the token: for the user's eyes."""
        return f"{self.url}?token={quote(self.token, safe='')}"

    @property
    def cookie(self) -> str:
        """Its name: cookies do not know ports."""
        return f"penstock-{self.port}"

    @property
    def session(self) -> str:
        """What the browser of somebody with the token keeps; the token does not follow from it."""
        return hmac.digest(self.token.encode(), _SESSION, "sha256").hex()

    def knows(self, token: str) -> bool:
        """Whether it is the right one."""
        return hmac.compare_digest(token.encode(), self.token.encode())

    def is_signed(self, headers: Mapping[str, str]) -> bool:
        """Whether the request has the token, or the cookie that was given for it."""
        return self._has_token(headers) or self._has_cookie(headers)

    def problem(self, method: str, headers: Mapping[str, str]) -> str | None:
        """Why a request is refused whoever it is from, or None."""
        host = headers.get("host", "")
        if not self._is_own(host):
            return f"{host!r} is not the name of this server"
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return f"it comes from {origin!r}"
        site = headers.get("sec-fetch-site")
        if site is not None and site not in _OWN and not _is_navigation(method, headers):
            return f"it comes from another site ({site})"
        if method not in _SAFE and origin is None and not self._has_token(headers):
            return "a change says where it comes from (Origin), or has the token"
        return None

    def _is_own(self, host: str) -> bool:
        name, _, port = host.rpartition(":")
        if not port.isdecimal():
            name, port = host, "80"
        if int(port) != self.port:
            return False
        name = name.strip("[]").lower()
        if is_loopback(self.host):
            return is_loopback(name)
        if name == self.host.lower():
            return True
        return _is_unspecified(self.host) and (_is_address(name) or name in _own_names())

    def _has_token(self, headers: Mapping[str, str]) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self.knows(token.strip())

    def _has_cookie(self, headers: Mapping[str, str]) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self.session.encode())


def _is_navigation(method: str, headers: Mapping[str, str]) -> bool:
    """A link that somebody followed shows a page in a tab of its own, and nobody else reads it."""
    return method in _SAFE and headers.get("sec-fetch-mode") == "navigate"


def _is_unspecified(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _own_names() -> set[str]:
    return {"localhost", socket.gethostname().lower(), socket.getfqdn().lower()}
