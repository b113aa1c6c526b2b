"""Messages between driver and worker: JSON after its length in eight bytes."""

from __future__ import annotations

import socket
import struct
from typing import Any

from ..info import wire

HEADER = struct.Struct("<Q")
_MOST_BYTES = 1 << 28


def send(channel: socket.socket, message: dict[str, Any]) -> None:
    """Sends a message; raises BrokenPipeError or ConnectionResetError if the other end closed."""
    body = wire.encode(message).encode()
    channel.sendall(HEADER.pack(len(body)) + body)


def receive(channel: socket.socket) -> dict[str, Any] | None:
    """Waits for one message; returns None if the other process has closed."""
    header = _exactly(channel, HEADER.size)
    body = header and _exactly(channel, body_bytes(header))
    return decode(body) if body else None


def body_bytes(header: bytes | bytearray) -> int:
    """The length of the body that follows; raises ValueError for more than a message can have."""
    count: int = HEADER.unpack_from(header)[0]
    if count > _MOST_BYTES:
        raise ValueError(f"a message of {count} bytes; the most are {_MOST_BYTES}")
    return count


def decode(body: bytes) -> dict[str, Any]:
    """Returns the message of a body; raises ValueError for anything else."""
    try:
        message = wire.decode(body.decode())
    except RecursionError as error:
        raise ValueError("lists in lists without end") from error
    if not isinstance(message, dict):
        raise ValueError(f"a {type(message).__name__}, must be a dict")
    return message


def _exactly(channel: socket.socket, count: int) -> bytes | None:
    received = bytearray()
    while len(received) < count:
        chunk = channel.recv(min(count - len(received), 1 << 20))
        if not chunk:
            return None
        received += chunk
    return bytes(received)
