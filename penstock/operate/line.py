"""Lines over a socket, and who is at its other end."""

import os
import socket
from struct import Struct

from penstock.operate.place import user
from penstock.operate.protocol import Answer, Greeting, ProtocolError, Request, encode

_CREDENTIALS = Struct("3i")


class Line:
    """Messages to and from the other side; the connection is closed by whoever opened it."""

    def __init__(self, connection: socket.socket, most_bytes: int) -> None:
        self._connection = connection
        self._incoming = connection.makefile("rb")
        self._most_bytes = most_bytes

    def send(self, message: Greeting | Request | Answer) -> None:
        """One message."""
        self._connection.sendall(encode(message) + b"\n")

    def receive(self) -> bytes | None:
        """The next message; None if the other side has gone."""
        line = self._incoming.readline(self._most_bytes + 1)
        if len(line) > self._most_bytes:
            raise ProtocolError(f"a message of more than {self._most_bytes} bytes is refused")
        return line[:-1] if line.endswith(b"\n") else None

    def close(self) -> None:
        """The connection as well, which is kept open by what reads from it."""
        self._incoming.close()
        self._connection.close()


def stranger(connection: socket.socket) -> str | None:
    """Who is at the other end if it is another user; None if it is this one. The kernel tells."""
    size = _CREDENTIALS.size
    _, uid, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return None if uid == os.getuid() else user(uid)
