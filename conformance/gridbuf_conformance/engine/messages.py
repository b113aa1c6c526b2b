"""Messages between driver and worker: JSON after its length in eight bytes."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

__all__ = ["HEADER", "decode", "receive", "send"]

HEADER = struct.Struct("<Q")


def send(channel: socket.socket, message: dict[str, Any]) -> None:
    """Sends one message; raises BrokenPipeError or ConnectionResetError if the other process has closed."""
    body = json.dumps(message, separators=(",", ":")).encode()
    channel.sendall(HEADER.pack(len(body)) + body)


def receive(channel: socket.socket) -> dict[str, Any] | None:
    """Waits for one message; returns None if the other process has closed."""
    header = _exactly(channel, HEADER.size)
    body = header and _exactly(channel, HEADER.unpack(header)[0])
    return decode(body) if body else None


def decode(body: bytes) -> dict[str, Any]:
    """Returns the message of a body."""
    message: dict[str, Any] = json.loads(body)
    return message


def _exactly(channel: socket.socket, count: int) -> bytes | None:
    received = bytearray()
    while len(received) < count:
        chunk = channel.recv(min(count - len(received), 1 << 20))
        if not chunk:
            return None
        received += chunk
    return bytes(received)
