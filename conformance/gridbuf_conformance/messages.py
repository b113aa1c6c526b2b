"""Messages between driver and worker: JSON, with its length in eight bytes before it."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

__all__ = ["HEADER", "decode", "receive", "send"]

HEADER = struct.Struct("<Q")


def send(channel: socket.socket, message: dict[str, Any]) -> None:
    """Sends one message; BrokenPipeError or ConnectionResetError if the other side has gone."""
    body = json.dumps(message, separators=(",", ":")).encode()
    channel.sendall(HEADER.pack(len(body)) + body)


def receive(channel: socket.socket) -> dict[str, Any] | None:
    """Waits for one message; None if the other side has closed."""
    header = _exactly(channel, HEADER.size)
    body = header and _exactly(channel, HEADER.unpack(header)[0])
    return decode(body) if body else None


def decode(body: bytes) -> dict[str, Any]:
    """A message from its body."""
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
